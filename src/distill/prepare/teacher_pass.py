"""Pairs of a photo and the teacher's picture of it, or the drawing of its name.

ROOT/drawings.json    SHA-256 of the drawing's file, by the photo's key
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from distill.core.errors import DistillError, counted
from distill.core.files import sha256, write_json
from distill.core.images import from_pixels, to_image, to_pixels, to_uint8
from distill.core.progress import track
from distill.data.augment import rng_for, views
from distill.data.listing import StoredPhoto
from distill.data.manifest import DRAWINGS, TEACHER, Manifest, manifest_at
from distill.data.partners import check_shapes
from distill.data.photo_table import TEACHER_FOLDERS
from distill.data.photos import BadPhoto, Photo, read_photo
from distill.data.sampler import of_one_shape
from distill.models.teachers.drawings import FolderTeacher
from distill.models.teachers.teacher import BadPicture, Teacher
from distill.prepare.drawing_folder import MISSING, DrawingFolder
from distill.prepare.pair_maker import PairJob, PairMaker, PairPictures, PairStore
from distill.prepare.teacher_check import (
    TeacherCheck,
    check_drawings,
    check_teacher,
    read_some,
    some_squares,
)
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
        drawings: DrawingFolder | None = None,
    ) -> None:
        self.teacher, self.manifest, self.device = teacher, manifest, device
        self.batch_size, self.workers, self.drawings = batch_size, workers, drawings
        self.low_priority = self.adapts = device == "cpu"
        self.read = partial(read_views, manifest, drawings)

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name() if self.device == "cuda" else super().device_name

    @torch.inference_mode()
    def pairs(self, batch: Sequence[Tensor]) -> Iterator[PairPictures]:
        # One shape at a time, and no more pixels than a batch of squares has.
        stylised: dict[int, Tensor] = {}
        lines: dict[int, Tensor] = {}
        shapes = [pixels.shape[1:3] for pixels in batch]
        for part in of_one_shape(shapes, self.batch_size * self.manifest.size**2):
            photos = from_pixels(torch.cat([batch[i] for i in part]).to(self.device))
            try:
                layers = self._inference(photos)
                output = layers["picture"]
                if output.shape[1] != 1:  # several photos without people have one matte
                    self.teacher.check_together(output, photos.cpu())
            except BadPicture as bad:  # of this part, and not of the batch
                raise BadPicture(str(bad), part[bad.index]) from None
            stylised |= dict(zip(part, output, strict=True))
            lines |= dict(zip(part, layers.get("ink", ()), strict=False))
        return (
            (
                Image.fromarray(pixels[0].numpy()),
                to_image(stylised[i]),
                *([Image.fromarray(to_uint8(lines[i][0]).numpy())] if i in lines else []),
            )
            for i, pixels in enumerate(batch)
        )

    def begin(self, root: Path, jobs: Sequence[PairJob]) -> None:
        """Measure whether the teacher is bent, once a set, and say so; teacher.json keeps it."""
        kept = root / TEACHER
        if kept.is_file():
            return
        if self.teacher.unseen:
            print(f"teacher: {self.teacher.unseen}")
        check = self.measured([job.photo for job in jobs if job.number == 0 and not job.size])
        if check is not None:
            print(check)
            if check.bent:
                print(check.advice())
            write_json(kept, {"settings": self.teacher.settings()} | check.plain())

    def measured(self, photos: Sequence[Photo]) -> TeacherCheck | None:
        """What is found of some of the photos; None of too few."""
        squares, drawn = some_squares(photos, self.manifest.size, self.manifest.crop), []

        def drawing(photo: Tensor) -> Tensor:
            drawn.append(self._inference(photo)["picture"])
            return drawn[-1]

        if squares is None:
            return None
        try:
            check = check_teacher(drawing, squares)
        except BadPicture:  # labelling comes upon it too, and names its photo
            return None
        outputs = torch.cat(drawn[::2])  # the others are of mirrored ones
        self.teacher.check_together(outputs, squares)
        if outputs.shape[1] == 1:  # a matte has few of its photo's edges to find a shift by
            return None
        if self.teacher.black_white == (-1, 1) and outputs.min() >= 0.499 and squares.min() < 0.25:
            print(
                f"warning: {self.teacher.origin}: gave no value below 0 for "
                f"{counted(len(squares), 'photo')}; if its black is 0, set "
                "teacher.output_range=[0,1]"
            )
        return check

    def _inference(self, photos: Tensor) -> dict[str, Tensor]:
        """The teacher's layers for (N, 3, S, S), in the set's precision, on the CPU."""
        rough = self.manifest.precision == "bfloat16"
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=rough):
            layers = self.teacher.to(self.device).layers(photos.to(self.device))
        return {name: layer.float().cpu() for name, layer in layers.items()}

    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        try:
            _pictures(photo, self.drawings)
        except BadPhoto as problem:
            return str(problem) == reason
        return False

    def nothing_usable(self, listed: Path, others: int) -> str:
        return f"could be read; see {listed}, repair those or add others"

    def check(self, store: PairStore, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        """A set may follow its photos to another folder, but not take others of the same names."""
        photos = (manifest_at(store.folder) or {}).get("photos", self.manifest.photos)
        if photos == self.manifest.photos:
            return
        for job in [job for job in done if job.number == 0][:3]:
            with store.picture(job) as picture:
                try:
                    now = Image.fromarray(read_views(self.manifest, None, job)[0].numpy())
                    same = store.as_stored(now).tobytes() == picture.tobytes()
                except BadPhoto:
                    same = False
            if not same:
                raise DistillError(
                    f"{store}: holds pairs of other photos, those of {photos}; name another set "
                    "with data.root=DIR"
                )

    def __getstate__(self) -> dict[str, Any]:
        """For another process, perhaps on a machine without this one's device."""
        return {**self.__dict__, "teacher": self.teacher.cpu()}


class DrawingPass(TeacherPass):
    """SIDE/photo and SIDE/stylized: a photo's view, and the same of its drawing."""

    doing = "cutting"

    def __init__(self, teacher: FolderTeacher, manifest: Manifest, workers: int = 1) -> None:
        super().__init__(teacher, manifest, 1, workers, drawings=DrawingFolder(teacher.folder))
        self.adapts = False
        self._done: set[str] = set()  # photos of which pairs are there, after these very drawings

    def lacking(self, photos: Sequence[Photo]) -> dict[str, str]:
        assert self.drawings
        return {photo.key: MISSING for photo in self.drawings.missing(photos)}

    def pairs(self, batch: Sequence[Tensor]) -> Iterator[PairPictures]:
        for photo, drawing in batch:
            yield Image.fromarray(photo.numpy()), Image.fromarray(drawing.numpy())

    def nothing_usable(self, listed: Path, others: int) -> str:
        return f"and drawing could be read; see {listed}, repair those or add others"

    def begin(self, root: Path, jobs: Sequence[PairJob]) -> None:
        """Record which drawing each pair is made of, and print how far the drawings lie off."""
        kept = _hashes(root)
        anew = [job.photo for job in jobs if job.photo.key not in self._done & kept.keys()]
        write_json(root / DRAWINGS, kept | self._hash(anew))
        super().begin(root, jobs)

    def measured(self, photos: Sequence[Photo]) -> TeacherCheck | None:
        both = read_some(photos, lambda photo: self.read(PairJob(photo, "train", 0)))
        return None if both is None else check_drawings(both)

    def check(self, store: PairStore, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        """Nor may a drawing have changed, of which there are pairs."""
        super().check(store, todo, done)
        known, now = _hashes(store.folder), self._hash([job.photo for job in done])
        if changed := [key for key in now if key in known and now[key] != known[key]]:
            raise DistillError(
                f"{store}: changed since: {counted(len(changed), 'drawing')}, the first is that "
                f"of {changed[0]!r}; delete this set and make it again, or name another with "
                "data.root=DIR"
            )
        self._done = set(now)

    def _hash(self, photos: Sequence[Photo]) -> dict[str, str]:
        """SHA-256 of the drawings, by the photos' keys."""
        assert self.drawings
        each = {photo.key: photo for photo in photos}
        hashes = {}
        for key, photo in track(each.items(), len(each), "drawing", "checking"):
            if path := self.drawings.of(photo):
                with suppress(OSError):  # reading it says what is wrong
                    hashes[key] = sha256(path)
        return hashes


def read_views(manifest: Manifest, drawings: DrawingFolder | None, job: PairJob) -> Tensor:
    """The view of a photo, and the same of its drawing where there are `drawings`.

    uint8 (1 or 2, S, S, 3), or all of it, (1 or 2, H, W, 3). Raises BadPhoto. Tensors go through
    shared memory. Pictures would fill the pipe, on which the reader of a killed command would then
    wait for ever.
    """
    m, pictures = manifest, _pictures(job.photo, drawings)
    if job.size:
        scaled = whole(pictures[0], job.size)
        lanczos = Image.Resampling.LANCZOS
        cut = [scaled, *(each.resize(scaled.size, lanczos) for each in pictures[1:])]
    else:
        rng = rng_for(m.seed, job.photo.key, job.number)
        cut = views(pictures, job.number, m.size, m.crop, m.colour, rng)
    return torch.stack([*map(to_pixels, cut)])


def _pictures(photo: Photo, drawings: DrawingFolder | None) -> list[Image.Image]:
    """A photo, and with `drawings` its own, of the same shape. Raises BadPhoto."""
    path = drawings.of(photo) if drawings else None
    if drawings and path is None:
        raise BadPhoto(MISSING)
    try:
        picture = read_photo(photo.path)
    except BadPhoto:
        if isinstance(photo.path, StoredPhoto) or os.path.lexists(photo.path):
            raise
        raise BadPhoto("no longer there") from None
    if path is None:
        return [picture]
    try:
        drawing = read_photo(path)
    except BadPhoto as reason:
        raise BadPhoto(f"its drawing {path.name!r}: {reason}") from None
    check_shapes(picture.size, drawing.size, "its drawing")
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
