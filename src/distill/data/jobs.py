"""What there is to label: one job per pair, on the side where it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distill.data.photos import Photo, Side, split
from distill.data.recipe import Recipe


@dataclass(frozen=True)
class Job:
    """One pair to make."""

    photo: Photo
    side: Side
    number: int

    @property
    def name(self) -> str:
        return self.photo.pair_name + (f"-v{self.number:03d}" if self.number else "") + ".png"

    def files(self, root: Path) -> tuple[Path, Path]:
        return root / self.side / "photo" / self.name, root / self.side / "stylized" / self.name

    def done(self, root: Path) -> bool:
        return all(path.is_file() for path in self.files(root))


def plan(photos: Sequence[Photo], recipe: Recipe) -> list[Job]:
    """Every pair the set shall hold, in the photos' order; only training has several views."""
    sides = split(photos, recipe.val_fraction, recipe.seed)
    side_of = {photo: side for side, members in sides.items() for photo in members}
    views = {"train": recipe.views, "val": 1}
    return [Job(p, side_of[p], n) for p in photos for n in range(views[side_of[p]])]


def where_it_is(job: Job, root: Path) -> Job | None:
    """The job on the side where its photo already lies: nothing moves as photos are added."""
    there = replace(job, side="val" if job.side == "train" else "train", number=0)
    if not there.done(root):
        return job
    return there if job.number == 0 else None
