"""Photos and a teacher to a paired set on disk, once: resumable, and never half-written.

    ROOT/train/photo/NAME.png   ROOT/train/stylized/NAME.png
    ROOT/val/photo/NAME.png     ROOT/val/stylized/NAME.png
    ROOT/dataset.json           what made it: teacher, size, crop, split, counts
    ROOT/skipped.tsv            photos that could not be used, with the reason

A pair is done when both of its files are there. Each is written aside and renamed, the drawing
last, so whatever kills the process loses at most the batch in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from distill.data.jobs import Job, plan, where_it_is
from distill.data.photos import BadPhoto, Photo, Side, read_photo
from distill.data.pictures import save_png, to_image, to_tensor
from distill.data.recipe import Recipe, check_recipe, read_manifest, write_manifest
from distill.data.views import rng_for, view
from distill.data.workers import ignore_interrupt
from distill.errors import DistillError
from distill.progress import bar
from distill.weights import aside

SKIPPED = "skipped.tsv"


@dataclass
class Report:
    """What a labelling run found and did; counts are pictures in the set afterwards."""

    root: Path
    train: int
    val: int
    made: int
    skipped: dict[str, str]

    @property
    def counts(self) -> dict[str, int]:
        return {"train": self.train, "val": self.val, "skipped": len(self.skipped)}

    def __str__(self) -> str:
        text = (
            f"{self.root}: {self.train} training and {self.val} validation pairs, {self.made} new"
        )
        if self.skipped:
            text += f"; {len(self.skipped)} photos skipped, see {self.root / SKIPPED}"
        return text


def label(
    photos: Sequence[Photo],
    teacher: nn.Module,
    recipe: Recipe,
    root: Path,
    sides: Sequence[Side] = ("train", "val"),
    batch_size: int = 1,
    workers: int = 1,
    device: str = "cpu",
) -> Report:
    """Make every pair of the recipe that is not there yet, on the `sides` asked for.

    Raises DistillError when `root` was made by another recipe or no photo can be read.
    """
    check_recipe(root, recipe)
    placed = (where_it_is(job, root) for job in plan(photos, recipe))
    jobs = [job for job in placed if job is not None and job.side in sides]
    check_photos(root, recipe, jobs)
    todo = [job for job in jobs if not job.done(root)]
    if todo:
        _sweep(root)
        write_manifest(root, recipe, None)
    skipped = _label_all(todo, teacher.to(device), recipe, root, batch_size, workers, device)
    lost = sum(job.photo.key in skipped for job in todo)
    skipped |= _still_skipped(root, {p.key for p in photos} - {job.photo.key for job in jobs})
    report = Report(root, _count(root, "train"), _count(root, "val"), len(todo) - lost, skipped)
    _write_skipped(root, skipped)
    write_manifest(root, recipe, report.counts)
    for side in sides:
        if not getattr(report, side):
            raise DistillError(f"{root}: no {side} photo could be read; see {root / SKIPPED}")
    return report


def check_photos(root: Path, recipe: Recipe, jobs: Sequence[Job]) -> None:
    """A set may follow its photos to another folder, but not take others of the same names."""
    made = (read_manifest(root) or {}).get("recipe", {}).get("photos", recipe.photos)
    done = [job for job in jobs if job.number == 0 and job.done(root)][:3]
    if made == recipe.photos or not done:
        return
    missing = _Missing(done, recipe)
    for i, job in enumerate(done):
        _, image = missing[i]
        with Image.open(job.files(root)[0]) as kept:
            if isinstance(image, str) or image.tobytes() != kept.tobytes():
                raise DistillError(
                    f"{root}: holds pairs of other photos, those of {made}; name another set with "
                    "data.root=DIR"
                )


class _Missing(Dataset):
    """Reads the photo of each job; gives (index, picture) or (index, reason)."""

    def __init__(self, jobs: Sequence[Job], recipe: Recipe) -> None:
        self.jobs, self.recipe = jobs, recipe

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: int) -> tuple[int, Image.Image | str]:
        job, recipe = self.jobs[index], self.recipe
        rng = rng_for(recipe.seed, job.photo.key, job.number)
        try:
            image = read_photo(job.photo.path)
        except BadPhoto as reason:
            return index, str(reason)
        return index, view(image, job.number, recipe.size, recipe.crop, recipe.colour, rng)


def _label_all(
    jobs: Sequence[Job],
    teacher: nn.Module,
    recipe: Recipe,
    root: Path,
    batch_size: int,
    workers: int,
    device: str,
) -> dict[str, str]:
    loader: DataLoader = DataLoader(
        _Missing(jobs, recipe),
        batch_size,
        num_workers=min(workers, len(jobs)),
        collate_fn=list,
        worker_init_fn=ignore_interrupt,
    )
    skipped: dict[str, str] = {}
    if not jobs:
        return skipped
    with bar(len(jobs), " pictures", "labelling") as progress:
        for batch in loader:
            good = [(jobs[i], item) for i, item in batch if not isinstance(item, str)]
            skipped |= {jobs[i].photo.key: item for i, item in batch if isinstance(item, str)}
            if good:
                stacked = torch.stack([to_tensor(image) for _, image in good])
                _save(good, _draw(teacher, stacked.to(device)), root)
            progress.set_postfix(skipped=len(skipped), refresh=False)
            progress.update(len(batch))
    return skipped


@torch.inference_mode()
def _draw(teacher: nn.Module, photos: Tensor) -> Tensor:
    return teacher(photos).cpu()


def _save(good: Sequence[tuple[Job, Image.Image]], drawn: Tensor, root: Path) -> None:
    for (job, image), picture in zip(good, drawn, strict=True):
        photo, stylized = job.files(root)
        save_png(image, photo)
        save_png(to_image(picture), stylized)


def _count(root: Path, side: str) -> int:
    folder = root / side / "stylized"
    return sum(1 for p in folder.glob("*.png")) if folder.is_dir() else 0


def _write_skipped(root: Path, skipped: dict[str, str]) -> None:
    lines = [f"{key!r}\t{reason}\n" for key, reason in sorted(skipped.items())]
    with aside(root / SKIPPED) as temporary:
        temporary.write_text("".join(["photo\treason\n", *lines]), encoding="utf-8")


def _still_skipped(root: Path, keys: set[str]) -> dict[str, str]:
    """What an earlier run noted of photos on a side that this run leaves alone."""
    path = root / SKIPPED
    if not path.is_file():
        return {}
    rows = (line.partition("\t") for line in path.read_text(encoding="utf-8").splitlines())
    noted = {name: reason for name, _, reason in rows}
    return {key: noted[repr(key)] for key in keys if repr(key) in noted}


def _sweep(root: Path) -> None:
    """Remove what a killed run left aside."""
    ours = [root / side / kind for side in ("train", "val") for kind in ("photo", "stylized")]
    for folder in (root, *ours):
        for path in folder.glob(".*.part"):
            path.unlink(missing_ok=True)
