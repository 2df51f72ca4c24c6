"""Photos and a teacher to a paired set on disk, once: resumable, and never half-written.

    ROOT/train/photo/NAME.png   ROOT/train/stylized/NAME.png
    ROOT/val/photo/NAME.png     ROOT/val/stylized/NAME.png
    ROOT/dataset.json           what made it: teacher, size, crop, split, counts
    ROOT/photos.tsv, dropped.txt, skipped.tsv    what became of each photo, see register

A pair is done when both of its files are there. Each is written aside and renamed, the drawing
last, so whatever kills the process loses at most the batches in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from torch import nn

from distill.core.errors import DistillError
from distill.data.labelled import register
from distill.data.labelled.lock import writing
from distill.data.labelled.manifest import (
    Recipe,
    check_recipe,
    is_complete,
    recipe_at,
    stamp,
    write_manifest,
)
from distill.data.labelled.placement import Arrangement, arrange
from distill.data.labelled.register import SIDES, SKIPPED
from distill.data.labelled.teacher_pass import PairJob, Views, draw_all, plan, read_or_reason
from distill.data.photos import Photo, Side


@dataclass
class LabellingReport:
    """What a labelling run found and did; train and val are pairs in the set afterwards."""

    root: Path
    train: int
    val: int
    made: int
    skipped: dict[str, str]
    twins: int = 0
    bridging: int = 0
    dropped: int = 0

    @property
    def counts(self) -> dict[str, int]:
        return {
            "train": self.train,
            "val": self.val,
            "skipped": len(self.skipped),
            "near_duplicates": self.twins,
            "bridging": self.bridging,
            "dropped": self.dropped,
        }

    def __str__(self) -> str:
        text = (
            f"{self.root}: {self.train} training and {self.val} validation pairs, {self.made} new"
        )
        if self.twins:
            text += f"; near-duplicates, kept on one side: {self.twins}"
        if self.dropped:
            text += f"; dropped by the list: {self.dropped}"
        if self.skipped:
            text += f"; {len(self.skipped)} photos skipped, see {self.root / SKIPPED}"
        if self.bridging:
            text += f", {self.bridging} of them for near-duplicates on both sides"
        return text


def label(
    photos: Sequence[Photo],
    teacher: nn.Module,
    recipe: Recipe,
    root: Path,
    sides: Sequence[Side] = SIDES,
    batch_size: int = 1,
    workers: int = 1,
    device: str = "cpu",
    drop: Path | None = None,
) -> LabellingReport:
    """Make every pair of the recipe that is not there yet, on the `sides` asked for.

    A complete set is left untouched. `drop` lists pictures to leave out, and the set keeps to it.
    Raises DistillError when `root` was made by another recipe, another process is at it, nothing
    can be written there or no photo can be read.
    """
    check_recipe(root, recipe)
    before = stamp(root)
    found = arrange(photos, recipe, root, drop)
    jobs = [job for job in plan(found.sides, recipe.views) if job.side in sides]
    todo = [job for job in jobs if job.name not in found.disk[job.side]]
    check_photos(root, recipe, jobs, found)
    known = _known_skipped(root, found, jobs)
    if is_complete(root) and found.remembered and recipe_at(root) == recipe.plain():
        skipped = _still_bad(root, todo)
        if skipped is not None and _listed(root, known | skipped):
            return _checked(_report(root, found, 0, known | skipped), sides)
    with writing(root):
        remember(root, recipe, found, before)
        bad = draw_all(todo, teacher, recipe, root, batch_size, workers, device)
        made = sum(job.photo.key not in bad for job in todo)
        report = _report(root, found, made, known | bad)
        register.write_skipped(root, report.skipped)
        write_manifest(root, recipe, report.counts)
    return _checked(report, sides)


def split_for(
    photos: Sequence[Photo], recipe: Recipe, root: Path, drop: Path | None = None
) -> dict[Side, list[Photo]]:
    """The split for labelling on the fly: that of the set at `root`, which remembers it.

    So evaluation, which makes the held-out pairs of that set, holds out what training did.
    """
    check_recipe(root, recipe)
    before = stamp(root)
    found = arrange(photos, recipe, root, drop)
    if before is None or not found.remembered:
        with writing(root):
            remember(root, recipe, found, before)
    for key, reason in sorted(found.bridging.items()):
        print(f"skipped {key!r}: {reason}")
    return found.split


def remember(root: Path, recipe: Recipe, found: Arrangement, before: object) -> None:
    """Write down what the set will be, and remove the pairs it shall no longer hold."""
    if stamp(root) != before:
        raise DistillError(f"{root}: another command changed this set meanwhile; start again")
    write_manifest(root, recipe, None)
    register.write_dropped(root, found.dropped)
    register.write_rows(root, found.rows)
    for path in found.obsolete:
        path.unlink(missing_ok=True)


def check_photos(root: Path, recipe: Recipe, jobs: Sequence[PairJob], found: Arrangement) -> None:
    """A set may follow its photos to another folder, but not take others of the same names."""
    done = [job for job in jobs if job.number == 0 and job.name in found.disk[job.side]][:3]
    made = (recipe_at(root) or {}).get("photos", recipe.photos)
    if made == recipe.photos or not done:
        return
    views = Views(done, recipe)
    for i, job in enumerate(done):
        _, image = views[i]
        with Image.open(job.files(root)[0]) as kept:
            if isinstance(image, str) or image.numpy().tobytes() != kept.tobytes():
                raise DistillError(
                    f"{root}: holds pairs of other photos, those of {made}; name another set with "
                    "data.root=DIR"
                )


def _known_skipped(root: Path, found: Arrangement, jobs: Sequence[PairJob]) -> dict[str, str]:
    """What belongs to both sides, and what an earlier run noted of a side left alone now."""
    noted = register.read_skipped(root)
    others = {photo.key for photo, _ in found.sides} - {job.photo.key for job in jobs}
    kept = {key: noted[repr(key)] for key in others if repr(key) in noted}
    return found.bridging | kept


def _still_bad(root: Path, todo: Sequence[PairJob]) -> dict[str, str] | None:
    """The reasons of photos that are all bad and known for it; None where one may be usable."""
    noted, reasons = register.read_skipped(root), {}
    for job in todo:
        reason = noted.get(repr(job.photo.key))
        if reason is None or read_or_reason(job.photo) != reason:
            return None
        reasons[job.photo.key] = reason
    return reasons


def _listed(root: Path, skipped: dict[str, str]) -> bool:
    return register.read_skipped(root) == {repr(key): why for key, why in skipped.items()}


def _report(root: Path, found: Arrangement, made: int, skipped: dict[str, str]) -> LabellingReport:
    pairs = register.pairs_on_disk(root)
    return LabellingReport(
        root, len(pairs["train"]), len(pairs["val"]), made, skipped, **found.counts
    )


def _checked(report: LabellingReport, sides: Sequence[Side]) -> LabellingReport:
    for side in sides:
        if not getattr(report, side):
            listed = report.root / SKIPPED
            said = f"{report.root}: no {side} photo could be read; see {listed}"
            raise DistillError(f"{said}, mend those or add others")
    return report
