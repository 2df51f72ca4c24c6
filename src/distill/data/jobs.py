"""What there is to label: one job per pair, on the side where it belongs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from distill.data.photos import Photo, Side


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


def plan(sides: Iterable[tuple[Photo, Side]], views: int) -> list[Job]:
    """Every pair the set shall hold, in the photos' order; only training has several views."""
    count = {"train": views, "val": 1}
    return [Job(photo, side, n) for photo, side in sides for n in range(count[side])]
