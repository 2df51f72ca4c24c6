"""Pairs of a photo and the teacher's picture of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.files import write_json
from distill.core.images import from_pixels, to_image, to_pixels
from distill.data.augment import rng_for, views
from distill.data.listing import StoredPhoto
from distill.data.manifest import TEACHER, Manifest, manifest_at
from distill.data.photo_table import TEACHER_FOLDERS
from distill.data.photos import BadPhoto, Photo, read_photo
from distill.data.sampler import of_one_shape
from distill.models.teachers.teacher import Teacher
from distill.prepare.pair_maker import PairJob, PairMaker, Pictures
from distill.prepare.teacher_check import TeacherCheck, check_teacher, some_squares
from distill.prepare.whole_photos import whole


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

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name() if self.device == "cuda" else super().device_name

    @torch.inference_mode()
    def pairs(self, batch: Sequence[Tensor]) -> Iterator[Pictures]:
        # One shape at a time, and no more pixels than a batch of squares has.
        stylised: dict[int, Tensor] = {}
        shapes = [pixels.shape[:2] for pixels in batch]
        for part in of_one_shape(shapes, self.batch_size * self.manifest.size**2):
            drawn = self._inference(
                from_pixels(torch.stack([batch[i] for i in part]).to(self.device))
            )
            stylised |= dict(zip(part, drawn, strict=True))
        return (
            (Image.fromarray(pixels.numpy()), to_image(stylised[i]))
            for i, pixels in enumerate(batch)
        )

    def begin(self, root: Path, jobs: Sequence[PairJob]) -> None:
        """Measure whether the teacher is bent, once a set, and say so; teacher.json keeps it."""
        kept = root / TEACHER
        if kept.is_file():
            return
        found = self.measured([job.photo for job in jobs if job.number == 0 and not job.size])
        if found is not None:
            print(found)
            if found.bent:
                print(found.advice())
            write_json(kept, {"settings": self.teacher.settings()} | found.plain())

    def measured(self, photos: Sequence[Photo]) -> TeacherCheck | None:
        """What is found of some of the photos; None of too few."""
        squares = some_squares(photos, self.manifest.size, self.manifest.crop)
        return None if squares is None else check_teacher(self._inference, squares)

    def _inference(self, photos: Tensor) -> Tensor:
        """The teacher's output for (N, 3, S, S), in the set's precision, on the CPU."""
        rough = self.manifest.precision == "bfloat16"
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=rough):
            return self.teacher.to(self.device)(photos.to(self.device)).float().cpu()

    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        try:
            read_of(photo)
        except BadPhoto as found:
            return str(found) == reason
        return False

    def nothing_usable(self, listed: Path, others: int) -> str:
        return f"could be read; see {listed}, repair those or add others"

    def check(self, root: Path, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        def kept(job: PairJob) -> Image.Image:
            return Image.open(root / job.side / self.folders[0] / job.name)

        self.check_photos(str(root), manifest_at(root), done, kept)

    def check_photos(
        self,
        root: str,
        made: Mapping[str, Any] | None,
        done: Sequence[PairJob],
        kept: Callable[[PairJob], Image.Image],
        stored: Callable[[Image.Image], Image.Image] = lambda photo: photo,
        own: Path | None = None,
    ) -> None:
        """A set may follow its photos to another folder, but not take others of the same names.

        `made` is its manifest, `kept` gives the photo of a pair that is done, and `stored` what
        becomes of one that is kept there. `own` is the folder of the set's own files, None: `root`.
        """
        photos = (made or {}).get("photos", self.manifest.photos)
        if photos == self.manifest.photos:
            return
        for job in [job for job in done if job.number == 0][:3]:
            with kept(job) as picture:
                try:
                    now = stored(Image.fromarray(read_view(self.manifest, job).numpy()))
                    same = now.tobytes() == picture.tobytes()
                except BadPhoto:
                    same = False
            if not same:
                raise DistillError(
                    f"{root}: holds pairs of other photos, those of {photos}; name another set "
                    "with data.root=DIR"
                )

    def __getstate__(self) -> dict[str, Any]:
        """For another process, perhaps on a machine without this one's device."""
        return {**self.__dict__, "teacher": self.teacher.cpu()}

    def finish(self, root: Path, done: Sequence[PairJob]) -> None:
        """Nothing: a teacher's set has no extras."""


def read_view(manifest: Manifest, job: PairJob) -> Tensor:
    """The view of a photo, uint8 (S, S, 3), or all of it, (H, W, 3). Raises BadPhoto.

    Tensors go through shared memory. Pictures would fill the pipe, on which the reader of a killed
    command would then wait for ever.
    """
    photo = read_of(job.photo)
    if job.size:
        return to_pixels(whole(photo, job.size))
    m, rng = manifest, rng_for(manifest.seed, job.photo.key, job.number)
    return to_pixels(views([photo], job.number, m.size, m.crop, m.colour, rng)[0])


def read_of(photo: Photo) -> Image.Image:
    """The photo. Raises BadPhoto."""
    try:
        return read_photo(photo.path)
    except BadPhoto:
        if isinstance(photo.path, StoredPhoto) or os.path.lexists(photo.path):
            raise
        raise BadPhoto("no longer there") from None
