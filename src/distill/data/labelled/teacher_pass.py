"""Pairs of a photo and the teacher's picture of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.files import write_json
from distill.core.images import from_pixels, to_image, to_pixels
from distill.data.augment import rng_for, view
from distill.data.labelled.manifest import Manifest, manifest_at
from distill.data.labelled.pair_maker import PairJob, PairMaker, Pictures
from distill.data.labelled.register import TEACHER_FOLDERS
from distill.data.labelled.teacher_check import check_teacher, some_squares
from distill.data.photos import BadPhoto, Photo, read_photo
from distill.models.teachers.teacher import Teacher

TEACHER = "teacher.json"  # in a set's folder: the teacher's settings, what `check_teacher` found


class TeacherPass(PairMaker):
    """SIDE/photo and SIDE/stylized: the teacher stylises `batch_size` views at a time."""

    folders = TEACHER_FOLDERS
    doing = "labelling"

    def __init__(
        self,
        teacher: Teacher,
        manifest: Manifest,
        batch_size: int = 1,
        workers: int = 1,
        device: str = "cpu",
    ) -> None:
        self.teacher, self.manifest, self.device = teacher, manifest, device
        self.batch_size, self.workers = batch_size, workers
        self.low_priority = self.adapts = device == "cpu"
        self.read = partial(read_view, manifest)

    @torch.inference_mode()
    def pairs(self, batch: Sequence[Tensor]) -> Iterator[Pictures]:
        stylised = self._inference(from_pixels(torch.stack([*batch]).to(self.device)))
        return (
            (Image.fromarray(pixels.numpy()), to_image(picture))
            for pixels, picture in zip(batch, stylised, strict=True)
        )

    def begin(self, root: Path, jobs: Sequence[PairJob]) -> None:
        """Measure whether the teacher is bent, once a set, and say so; teacher.json keeps it."""
        kept = root / TEACHER
        if kept.is_file():
            return
        photos = [job.photo for job in jobs if job.number == 0]
        squares = some_squares(photos, self.manifest.size, self.manifest.crop)
        if squares is not None:
            found = check_teacher(self._inference, squares)
            print(found)
            if found.bent:
                print(found.advice())
            write_json(kept, {"settings": self.teacher.settings()} | found.plain())

    def _inference(self, photos: Tensor) -> Tensor:
        """The teacher's output for (N, 3, S, S), in the set's precision, on the CPU."""
        rough = self.manifest.precision == "bfloat16"
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=rough):
            return self.teacher.to(self.device)(photos.to(self.device)).float().cpu()

    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        try:
            _read(photo)
        except BadPhoto as found:
            return str(found) == reason
        return False

    def nothing_usable(self, listed: Path, others: int) -> str:
        return f"could be read; see {listed}, mend those or add others"

    def check(self, root: Path, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        """A set may follow its photos to another folder, but not take others of the same names."""
        made = (manifest_at(root) or {}).get("photos", self.manifest.photos)
        if made == self.manifest.photos:
            return
        for job in [job for job in done if job.number == 0][:3]:
            with Image.open(root / job.side / self.folders[0] / job.name) as kept:
                try:
                    same = self.read(job).numpy().tobytes() == kept.tobytes()
                except BadPhoto:
                    same = False
            if not same:
                raise DistillError(
                    f"{root}: holds pairs of other photos, those of {made}; name another set with "
                    "data.root=DIR"
                )

    def finish(self, root: Path, done: Sequence[PairJob]) -> None:
        """Nothing: a teacher's set has no extras."""


def read_view(manifest: Manifest, job: PairJob) -> Tensor:
    """The view of a photo, uint8 (S, S, 3). Raises BadPhoto.

    Tensors go through shared memory. Pictures would fill the pipe, on which the reader of a killed
    command would then wait for ever.
    """
    photo = _read(job.photo)
    rng = rng_for(manifest.seed, job.photo.key, job.number)
    return to_pixels(view(photo, job.number, manifest.size, manifest.crop, manifest.colour, rng))


def _read(photo: Photo) -> Image.Image:
    try:
        return read_photo(photo.path)
    except BadPhoto:
        if os.path.lexists(photo.path):
            raise
        raise BadPhoto("no longer there") from None
