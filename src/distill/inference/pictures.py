"""A picture from its file to its drawing's: faces, the teacher beside it, several crops."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from distill.config.settings import Stylize
from distill.core.files import aside
from distill.core.images import PNG
from distill.data.faces import FindFaces
from distill.data.photos import BadPhoto, read_photo
from distill.inference import portraits, render
from distill.inference.jobs import StylizeJob
from distill.inference.onnx_student import Hand
from distill.inference.portraits import Square
from distill.models.teachers.teacher import Teacher

# Flat colours and hard lines: JPEG's half-size colours would fray them.
_JPEG = ("JPEG", {"quality": 95, "subsampling": 0})
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".png": ("PNG", PNG),
    ".webp": ("WEBP", {"quality": 95}),
}
MOVING = {"GIF", "PNG", "WEBP", "AVIF"}  # kinds that may hold a film; a TIFF holds pages


class TeacherHand:
    """A teacher that draws as a student does."""

    reach = sys.maxsize  # most teachers normalise over the whole picture

    def __init__(self, teacher: Teacher) -> None:
        self._teacher, self.fixed = teacher.fast(), teacher.fixed
        self.channels = 4 if teacher.transparent else 3

    @torch.inference_mode()
    def __call__(self, photo: Tensor) -> Tensor:
        return self._teacher(photo)


@dataclass(frozen=True)
class Studio:
    """Who draws: the student, the teacher beside it, and what finds faces, where wanted."""

    student: Hand
    teacher: Hand | None = None
    find: FindFaces | None = None
    taken: frozenset[Path] = frozenset()  # what a further crop must not be written over


def draw_one(job: StylizeJob, studio: Studio, settings: Stylize) -> None:
    """One picture, read, drawn and written whole. Raises BadPhoto with the reason where not."""
    photo = read_photo(job.source, least=1, alpha=True)
    if (count := _frames(job.source)) > 1:
        _say(job, f"its first picture of {count} is drawn")
    squares: list[Square] = []
    if studio.find is not None:
        everyone = settings.faces == "all"
        squares = portraits.squares(photo, studio.find, settings.detector, everyone)
        if not squares:
            _say(job, "no face found; the whole picture is drawn")
    suffix = job.target.suffix.lower()
    for number, page in enumerate(pages(photo, squares, studio, settings), start=1):
        _write(encoded(page, suffix), _place(job.target, number, studio.taken))


def pages(
    photo: Image.Image, squares: list[Square], studio: Studio, settings: Stylize
) -> Iterator[Image.Image]:
    """The drawing of an RGBA photo, or one of each square; beside the photo with compare=true."""
    if not squares or settings.face == "paste":
        yield _page(photo, squares, studio, settings)
        return
    side = None if settings.upscale != "whole" else settings.size or render.LEARNT
    for square in squares:
        yield _page(portraits.crop(photo, square, side), [], studio, settings)


def _page(
    photo: Image.Image, squares: list[Square], studio: Studio, settings: Stylize
) -> Image.Image:
    size, upscale = settings.size, settings.upscale
    drawn = render.stylize(photo, studio.student, size, upscale, squares)
    if not settings.compare:
        return drawn
    columns = [drawn]
    if studio.teacher is not None:  # whole, as it is meant: the measure for the other two ways
        at = None if upscale == "guided" and not squares else size and min(size, render.LIMIT)
        columns.append(render.stylize(photo, studio.teacher, at, "whole", squares))
    return render.side_by_side(photo, *columns)


def encoded(picture: Image.Image, suffix: str) -> memoryview:
    """A file's content, transparency over white where JPEG has none. Raises BadPhoto."""
    kind, options = FORMATS[suffix]
    if kind == "JPEG" and picture.mode == "RGBA":
        page = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(page, picture).convert("RGB")
    content = io.BytesIO()
    try:
        picture.save(content, kind, **options)
    except (OSError, ValueError) as error:  # WebP ends at 16383 pixels a side, JPEG at 65500
        raise BadPhoto(f"cannot be written as {suffix} ({error}); choose .png with -o") from error
    return content.getbuffer()


def _write(content: memoryview, target: Path) -> None:
    try:
        with aside(target) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadPhoto(f"{str(target)!r} cannot be written ({reason})") from error


def _place(target: Path, number: int, taken: frozenset[Path]) -> Path:
    """NAME.png for the first crop of a picture, then NAME-2.png and so on."""
    if number == 1:
        return target
    place = target.with_stem(f"{target.stem}-{number}")
    if place.resolve() in taken:
        raise BadPhoto(f"crop {number} would be written over {str(place)!r}; choose another -o")
    return place


def _frames(path: Path) -> int:
    """How many pictures an animation holds; 1 for every other file."""
    try:
        with Image.open(path) as image:
            return getattr(image, "n_frames", 1) if image.format in MOVING else 1
    except Exception:  # its later pictures may be damaged; the first one was read
        return 1


def _say(job: StylizeJob, what: str) -> None:
    tqdm.write(f"{str(job.source)!r}: {what}", file=sys.stderr)
