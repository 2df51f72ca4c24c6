"""Whether a teacher's pictures lie where their photos do, measured before it labels a set.

A teacher that shifts its output, or stylizes a mirrored photo differently from the mirrored
picture, teaches a student contradictions: what it learns from them are blurred lines.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.errors import counted
from distill.core.images import from_pixels, to_pixels
from distill.core.progress import track
from distill.data.augment import rng_for
from distill.data.photos import BadPhoto, Photo, centre_square, read_photo
from distill.metrics.line_figures import displacement
from distill.metrics.similarity import psnr

PHOTOS = 16  # looked at; the median of fewer is led astray by single pictures
LEAST = 4
FAR = 0.5  # pixels
UNLIKE = 25.0  # dB


@dataclass(frozen=True)
class TeacherCheck:
    """`displacement`: how far the output lies off the photo, in pixels, where it is furthest.

    The medians over photos of rows and columns of 4×4 tiles; None where too little can be seen.
    `mirror`: PSNR in dB of the output for mirrored photos, mirrored back, to that for the photos;
    None of drawings, of which there are no others.
    """

    photos: int
    displacement: float | None
    mirror: float | None

    @property
    def bent(self) -> bool:
        return (self.displacement or 0.0) > FAR or (self.mirror or UNLIKE) < UNLIKE

    def advice(self) -> str:
        """One line for a teacher that is bent."""
        if self.mirror is None:
            return (
                "warning: these drawings are not aligned with their photos, and a student learns "
                "blurred lines from them; align them, or list those to leave out: "
                "drop=FILE"
            )
        return (
            "warning: this teacher shifts its output or stylizes mirrored photos differently, and "
            "a student learns blurred lines from it; of AnimeGANv2 try teacher.upsampling=auto"
        )

    def plain(self) -> dict[str, Any]:
        """As teacher.json has it."""
        return {
            "photos": self.photos,
            "displacement_px": None if self.displacement is None else round(self.displacement, 3),
            "mirror_db": None if self.mirror is None else round(self.mirror, 2),
        }

    def __str__(self) -> str:
        off = "too few details to measure"
        if self.displacement is not None:
            off = f"{self.displacement:.2f} px"
        if self.mirror is None:
            return f"drawings: {off} off the photos ({counted(self.photos, 'photo')})"
        return (
            f"teacher: {off} off the photos, {self.mirror:.1f} dB to itself on mirrored ones "
            f"({counted(self.photos, 'photo')})"
        )


def check_teacher(teacher: Callable[[Tensor], Tensor], squares: Tensor) -> TeacherCheck:
    """Measure on photos (N, 3, S, S) in [0, 1]; costs two inferences of each."""
    straight, mirrored = [], []
    with torch.inference_mode():
        for photo in track(squares.split(1), len(squares), "photo", "teacher"):
            straight.append(over_white(teacher(photo).float()).cpu())
            mirrored.append(over_white(teacher(photo.flip(-1)).float()).flip(-1).cpu())
    drawn, again = torch.cat(straight), torch.cat(mirrored)
    return TeacherCheck(
        len(squares), furthest(displacement(drawn, squares)), psnr(drawn, again).mean().item()
    )


def check_drawings(both: Tensor) -> TeacherCheck:
    """The same of photos and their drawings, (N, 2, 3, S, S)."""
    return TeacherCheck(len(both), furthest(displacement(both[:, 1], both[:, 0])), None)


def choose(
    teachers: Mapping[str, Callable[[Tensor], Tensor]], squares: Tensor
) -> tuple[str, dict[str, TeacherCheck]]:
    """The name of the teacher whose output lies nearest to the photos, and what was measured.

    Of equally near ones, to a tenth of a pixel, the one that mirrors best.
    """
    checks = {name: check_teacher(teacher, squares) for name, teacher in teachers.items()}

    def order(name: str) -> tuple[float, float]:
        off = checks[name].displacement
        return round(float("inf") if off is None else off, 1), -(checks[name].mirror or 0.0)

    return min(checks, key=order), checks


def furthest(shifts: Tensor) -> float | None:
    """The largest median by columns (to the side) and rows (down) of (N, T, T, 2), in pixels.

    A column holds as many tiles as there are rows: surer than a tile alone. None where a median
    cannot be had.
    """
    columns = shifts[..., 1].flatten(0, 1).nanmedian(0).values
    rows = shifts[..., 0].transpose(1, 2).flatten(0, 1).nanmedian(0).values
    both = torch.cat([columns, rows])
    return None if both.isnan().any() else both.abs().max().item()


def some_squares(photos: Sequence[Photo], size: int, crop: float) -> Tensor | None:
    """Centre squares of up to 16 photos, spread by chance, (N, 3, S, S); None of less than 4."""
    return read_some(
        photos, lambda each: to_pixels(centre_square(read_photo(each.path), size, crop))
    )


def read_some(photos: Sequence[Photo], read: Callable[[Photo], Tensor]) -> Tensor | None:
    """(N, …, 3, S, S) in [0, 1] of what `read` gives, uint8 (…, S, S, 3), of up to 16 photos by
    chance, the same each time; None of less than 4 that can be read."""
    by_chance = sorted(photos, key=lambda photo: rng_for("teacher check", photo.key).random())
    pictures: list[Tensor] = []
    for photo in by_chance:
        with suppress(BadPhoto):
            pictures.append(read(photo))
        if len(pictures) == PHOTOS:
            break
    return torch.stack([*map(from_pixels, pictures)]) if len(pictures) >= LEAST else None
