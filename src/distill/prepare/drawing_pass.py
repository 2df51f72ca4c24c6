"""Pairs of a photo and the drawing of its name: both are cut alike.

ROOT/drawings.json    SHA-256 of the drawing's file, by the photo's key
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.files import sha256, write_json
from distill.core.images import from_pixels, to_pixels
from distill.core.process import processor
from distill.core.progress import bar
from distill.data.augment import rng_for, views
from distill.data.manifest import DRAWINGS, Manifest
from distill.data.photos import BadPhoto, Photo, read_photo
from distill.models.teachers.drawings import FolderTeacher
from distill.prepare.drawing_folder import MISSING, DrawingFolder
from distill.prepare.pair_maker import PairJob, Pictures
from distill.prepare.teacher_check import PHOTOS, TeacherCheck, check_drawings, in_some_order
from distill.prepare.teacher_pass import TeacherPass, read_of
from distill.prepare.whole_photos import whole

SKEWED = 0.02  # a drawing may be this much wider or narrower than its photo: sizes are rounded


class DrawingPass(TeacherPass):
    """SIDE/photo and SIDE/stylized: a photo's view, and the same of its drawing."""

    doing = "cutting"

    def __init__(self, teacher: FolderTeacher, manifest: Manifest, workers: int = 1) -> None:
        super().__init__(teacher, manifest, 1, workers)
        self.adapts = False
        self.drawings = DrawingFolder(teacher.folder)
        self.read = partial(read_both, manifest, self.drawings)
        self._done: set[str] = set()  # photos of which pairs are there, after these very drawings

    @property
    def device_name(self) -> str:
        return processor()

    def lacking(self, photos: Sequence[Photo]) -> dict[str, str]:
        return {photo.key: MISSING for photo in self.drawings.missing(photos)}

    def pairs(self, batch: Sequence[Tensor]) -> Iterator[Pictures]:
        for photo, drawing in batch:
            yield Image.fromarray(photo.numpy()), Image.fromarray(drawing.numpy())

    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        try:
            _both(photo, self.drawings)
        except BadPhoto as found:
            return str(found) == reason
        return False

    def nothing_usable(self, listed: Path, others: int) -> str:
        return f"and drawing could be read; see {listed}, repair those or add others"

    def begin(self, root: Path, jobs: Sequence[PairJob]) -> None:
        """Record which drawing each pair is made of, and print how far the drawings lie off."""
        kept = _hashes(root)
        anew = [job.photo for job in jobs if job.photo.key not in self._done & kept.keys()]
        write_json(root / DRAWINGS, kept | self._hash(anew))
        super().begin(root, jobs)

    def measured(self, photos: Sequence[Photo]) -> TeacherCheck | None:
        pictures = []
        for photo in in_some_order(photos):
            with suppress(BadPhoto):
                pictures.append(self.read(PairJob(photo, "train", 0)))
            if len(pictures) == PHOTOS:
                break
        both = from_pixels(torch.stack(pictures).flatten(0, 1)) if pictures else torch.empty(0)
        return check_drawings(both[::2], both[1::2])

    def check_photos(
        self,
        root: str,
        made: Mapping[str, Any] | None,
        done: Sequence[PairJob],
        kept: Callable[[PairJob], Image.Image],
        stored: Callable[[Image.Image], Image.Image] = lambda photo: photo,
        own: Path | None = None,
    ) -> None:
        """Nor may a drawing have changed, of which there are pairs."""
        super().check_photos(root, made, done, kept, stored, own)
        known, now = _hashes(own or Path(root)), self._hash([job.photo for job in done])
        if changed := [key for key in now if key in known and now[key] != known[key]]:
            raise DistillError(
                f"{root}: the drawings of {len(changed)} of its photos have changed, the first is "
                f"that of {changed[0]!r}; delete this set and make it again, or name another with "
                "data.root=DIR"
            )
        self._done = set(now)

    def _hash(self, photos: Sequence[Photo]) -> dict[str, str]:
        """SHA-256 of the drawings, by the photos' keys."""
        each = {photo.key: photo for photo in photos}
        found = {}
        with bar(len(each), "drawing", "checking", leave=False) as progress:
            for key, photo in each.items():
                if path := self.drawings.of(photo):
                    with suppress(OSError):  # reading it says what is wrong
                        found[key] = sha256(path)
                progress.update()
        return found


def read_both(manifest: Manifest, drawings: DrawingFolder, job: PairJob) -> Tensor:
    """The same view of a photo and of its drawing, uint8 (2, S, S, 3), or all of both, (2, H, W,
    3). Raises BadPhoto."""
    m, rng = manifest, rng_for(manifest.seed, job.photo.key, job.number)
    if job.size:
        photo, drawing = _both(job.photo, drawings)
        scaled = whole(photo, job.size)
        laid = drawing.resize(scaled.size, Image.Resampling.LANCZOS)
        return torch.stack([to_pixels(scaled), to_pixels(laid)])
    both = views(_both(job.photo, drawings), job.number, m.size, m.crop, m.colour, rng)
    return torch.stack([to_pixels(picture) for picture in both])


def _both(photo: Photo, drawings: DrawingFolder) -> list[Image.Image]:
    """A photo and its drawing, of one shape. Raises BadPhoto."""
    path = drawings.of(photo)
    if path is None:
        raise BadPhoto(MISSING)
    picture = read_of(photo)
    try:
        drawing = read_photo(path)
    except BadPhoto as reason:
        raise BadPhoto(f"its drawing {path.name!r}: {reason}") from None
    skew = drawing.width * picture.height / (drawing.height * picture.width)
    if abs(np.log(skew)) > SKEWED:
        raise BadPhoto(
            f"its drawing is {drawing.width}×{drawing.height}, which does not fit "
            f"{picture.width}×{picture.height}: it must show all of the photo"
        )
    return [picture, drawing]


def _hashes(root: Path) -> dict[str, str]:
    """What the set at `root` remembers. Raises DistillError for a damaged file."""
    path = root / DRAWINGS
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not all(isinstance(v, str) for v in content.values()):
        raise DistillError(f"{path}: damaged; delete it if no drawing has changed since")
    return content
