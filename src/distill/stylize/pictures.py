"""A picture from its file to the stylised one: faces, the teacher beside it, several crops."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from distill.config.settings.commands import Stylize
from distill.core.arrays import PNG
from distill.core.errors import counted
from distill.core.files import real_path, write_whole
from distill.data.decode import to_rgb
from distill.data.faces import FindFaces
from distill.data.photos import BadPhoto, read_photo
from distill.stylize import portraits, render
from distill.stylize.jobs import StylizeJob
from distill.stylize.onnx_student import ImageModel
from distill.stylize.parts import lay_over
from distill.stylize.portraits import Square
from distill.stylize.stickers import Wardrobe, wardrobe

# Flat colours and hard lines: JPEG's half-size colours would fray them.
_JPEG = ("JPEG", {"quality": 95, "subsampling": 0})
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".png": ("PNG", PNG),
    ".webp": ("WEBP", {"quality": 95}),
}
ANIMATED = {"GIF", "PNG", "WEBP", "AVIF"}  # kinds that may hold several; a TIFF's are pages


@dataclass(frozen=True)
class InferenceSetup:
    """What all pictures are stylised with: the detector, stickers and the teacher if wanted."""

    settings: Stylize
    student: ImageModel
    find_faces: FindFaces | None
    wardrobe: Wardrobe | None
    teacher: ImageModel | None = None
    protected: frozenset[Path] = frozenset()  # what a further crop must not be written over

    @classmethod
    def of(cls, settings: Stylize, student: ImageModel) -> InferenceSetup:
        """Raises DistillError for stickers that are none, and without a detector's weights."""
        crops = settings.face in ("crop", "paste")
        find_faces = portraits.finder(settings.detector) if crops else None
        return cls(settings, student, find_faces, wardrobe(settings, student))


def stylise_file(job: StylizeJob, setup: InferenceSetup) -> None:
    """One picture, read, stylised and written whole. Raises BadPhoto with the reason where not."""
    photo = read_photo(job.source, least=1, alpha=True)
    count = 1
    with suppress(Exception), Image.open(job.source) as image:  # later pictures may be damaged
        count = getattr(image, "n_frames", 1) if image.format in ANIMATED else 1
    if count > 1:
        job.say(f"the first of its {counted(count, 'picture')} is stylised")
    target = job.target
    for number, page in enumerate(pages(photo, setup, job.say), start=1):
        if number > 1:  # NAME.png for the first crop of a picture, then NAME-2.png and so on
            target = job.target.with_stem(f"{job.target.stem}-{number}")
            if real_path(target) in setup.protected:
                raise BadPhoto(
                    f"crop {number} would be written over {str(target)!r}; choose another -o"
                )
        _write(page, target)


def pages(
    photo: Image.Image, setup: InferenceSetup, say: Callable[[str], None]
) -> Iterator[Image.Image]:
    """What is made of an RGBA photo: one picture, or one of each face with face=crop.

    With compare=true that is input, student's output and teacher's side by side. `say` gets a line
    where no face is found.
    """
    size, upscale, blend = setup.settings.size, setup.settings.upscale, setup.settings.blend
    squares: list[Square] = []
    unchanged = setup.settings.face == "wear"
    if setup.find_faces is not None:
        everyone = setup.settings.faces == "all"
        squares = portraits.squares(photo, setup.find_faces, setup.settings.detector, everyone)
        if not squares:
            unchanged = setup.settings.no_face == "photo"
            say(f"no face found; {'it stays' if unchanged else 'the whole picture is stylised'}")
    parts = [photo]
    if squares and setup.settings.face == "crop":
        side = None if upscale != "whole" else size or render.TRAINED_AT
        parts, squares = [portraits.crop(photo, square, side) for square in squares], []
    for part in parts:
        page = part
        if not unchanged:
            page = render.stylise(part, setup.student, size, upscale, squares, blend)
            if setup.settings.strength < 1 or setup.settings.parts:
                page = lay_over(part, page, setup.settings, say)
        if setup.wardrobe and (dressed := setup.wardrobe(part, page)) is not None:
            page = dressed
        elif setup.wardrobe:
            say("no face that looks at the camera; nothing is put on")
        stylised = [page]
        if setup.teacher is not None:  # whole, as it is meant: the measure for the other two ways
            at = None if upscale == "guided" and not squares else size and min(size, render.LIMIT)
            stylised.append(render.stylise(part, setup.teacher, at, "whole", squares, blend))
        compare = setup.settings.compare
        yield render.side_by_side(part, *stylised) if compare else stylised[0]


def _write(picture: Image.Image, target: Path) -> None:
    """Transparency is put over white where JPEG has none."""
    suffix = target.suffix.lower()
    kind, options = FORMATS[suffix]
    content = io.BytesIO()
    try:
        (to_rgb(picture) if kind == "JPEG" else picture).save(content, kind, **options)
    except (OSError, ValueError) as error:  # WebP ends at 16383 pixels a side, JPEG at 65500
        raise BadPhoto(f"cannot be written as {suffix} ({error}); choose .png with -o") from error
    try:
        write_whole(target, content.getbuffer())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadPhoto(f"{str(target)!r} cannot be written ({reason})") from error
