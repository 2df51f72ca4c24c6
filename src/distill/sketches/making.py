"""Photos to a sketch → photo set on disk: resumable, and never half-written.

    ROOT/train/A/NAME.png   the outline, RGB        ROOT/train/B/NAME.png   the picture, RGB(A)
    ROOT/val/A/NAME.png                             ROOT/val/B/NAME.png
    ROOT/dataset.json       what made it            ROOT/preview.png        every step of some
    ROOT/photos.tsv, dropped.txt, skipped.tsv       what became of each photo, see data.register

A pair is done when both of its files are there. Each is written aside and renamed, the outline
last, so whatever kills the process loses the pair in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from distill.data import register
from distill.data.arranging import Arrangement, arrange
from distill.data.files import BadPhoto
from distill.data.jobs import Job, plan
from distill.data.labelling import Report, remember
from distill.data.photos import Photo
from distill.data.pictures import save_png, to_bytes, to_image
from distill.data.recipe import is_complete, recipe_at, stamp, write_manifest
from distill.data.register import SKIPPED
from distill.data.workers import starter
from distill.data.writing import writing
from distill.errors import DistillError
from distill.progress import bar
from distill.sketches.preview import preview
from distill.sketches.recipe import SketchRecipe, check_kind
from distill.sketches.steps import Sketcher

PREVIEW, SHOWN = "preview.png", 8


def make(
    photos: Sequence[Photo],
    sketcher: Sketcher,
    recipe: SketchRecipe,
    root: Path,
    workers: int = 0,
    drop: Path | None = None,
) -> Report:
    """Make every pair of the recipe that is not there yet; a complete set is left untouched.

    `drop` lists pictures to leave out, and the set keeps to it. A photo that was skipped is tried
    again once its file, its points or its mask have changed. Raises DistillError when `root` holds
    another set, another process is at it, nothing can be written there, a network cannot be used or
    no photo can.
    """
    check_kind(root, recipe)
    before = stamp(root)
    found = arrange(photos, recipe, root, drop)
    jobs = plan(found.sides, 1)
    noted = _still_bad(root, jobs, sketcher)
    missing = [job for job in jobs if job.name not in found.disk[job.side]]
    todo = [job for job in missing if job.photo.key not in noted]
    if not todo and _finished(root, recipe, found, found.bridging | noted):
        return _checked(_report(root, found, 0, found.bridging | noted))
    if todo:
        sketcher.check()
    with writing(root):
        remember(root, recipe, found, before)
        bad = _make_all(todo, sketcher, root, workers)
        report = _report(root, found, len(todo) - len(bad), found.bridging | noted | bad)
        register.write_skipped(root, report.skipped)
        _show(root, jobs, sketcher)
        write_manifest(root, recipe, report.counts)
    return _checked(report)


def _finished(root: Path, recipe: SketchRecipe, found: Arrangement, bad: dict[str, str]) -> bool:
    listed = register.read_skipped(root) == {repr(key): why for key, why in bad.items()}
    same = is_complete(root) and found.remembered and recipe_at(root) == recipe.plain()
    return same and listed and (root / PREVIEW).is_file()


def _still_bad(root: Path, jobs: Sequence[Job], sketcher: Sketcher) -> dict[str, str]:
    """The reasons of photos that an earlier run skipped, and of which no file is newer since."""
    noted = register.read_skipped(root)
    if not noted:
        return {}
    since = (root / SKIPPED).stat().st_mtime
    return {
        job.photo.key: noted[repr(job.photo.key)]
        for job in jobs
        if repr(job.photo.key) in noted and not _newer(sketcher.sources(job.photo.path), since)
    }


def _newer(files: Sequence[Path], since: float) -> bool:
    """By the time of change, which, unlike that of writing, an unpacked archive does not keep."""
    states = [path.stat() for path in files if path.exists()]
    return any(max(state.st_mtime, state.st_ctime) > since for state in states)


class _Sketches(Dataset):
    """(index, outline and picture as bytes (S, S, C)) of each job, or (index, reason)."""

    def __init__(self, jobs: Sequence[Job], sketcher: Sketcher) -> None:
        self.jobs, self.sketcher = jobs, sketcher

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: int) -> tuple[int, tuple[torch.Tensor, torch.Tensor] | str]:
        try:
            steps = self.sketcher(self.jobs[index].photo)
        except BadPhoto as reason:
            return index, str(reason)
        return index, (to_bytes(to_image(steps.outline)), to_bytes(to_image(steps.target)))


def _make_all(jobs: Sequence[Job], sketcher: Sketcher, root: Path, workers: int) -> dict[str, str]:
    """Make the pair of every job; gives the photos that cannot be used, with the reason."""
    skipped: dict[str, str] = {}
    if not jobs:
        return skipped
    loader: DataLoader = DataLoader(
        _Sketches(jobs, sketcher),
        batch_size=None,
        num_workers=min(workers, len(jobs)),
        worker_init_fn=starter(give_way=False),
    )
    with bar(len(jobs), " pictures", "sketching") as progress:
        for index, made in loader:
            if isinstance(made, str):
                skipped[jobs[index].photo.key] = made
            else:
                _save(jobs[index], root, *made)
            progress.set_postfix(skipped=len(skipped), refresh=False)
            progress.update()
    return skipped


def _save(job: Job, root: Path, outline: torch.Tensor, picture: torch.Tensor) -> None:
    for kind, values in (("B", picture), ("A", outline)):
        save_png(Image.fromarray(values.numpy()), root / job.side / kind / job.name)


def _show(root: Path, jobs: Sequence[Job], sketcher: Sketcher) -> None:
    """The sheet of photos that lie evenly over all that are in the set."""
    disk = register.pairs_on_disk(root)
    good = [job for job in jobs if job.name in disk[job.side]]
    count = min(SHOWN, len(good))
    chosen = [good[i * len(good) // count] for i in range(count)]
    rows = [(job.name, sketcher(job.photo)) for job in chosen]
    if rows:
        save_png(preview(rows), root / PREVIEW)
    else:
        (root / PREVIEW).unlink(missing_ok=True)


def _report(root: Path, found: Arrangement, made: int, skipped: dict[str, str]) -> Report:
    pairs = register.pairs_on_disk(root)
    return Report(root, len(pairs["train"]), len(pairs["val"]), made, skipped, **found.counts)


def _checked(report: Report) -> Report:
    for side, left in (("train", report.val), ("val", report.train)):
        if not getattr(report, side):
            said = f"{report.root}: no {side} photo could be used; see {report.root / SKIPPED}"
            # Photos are placed before it is known which of them can be used.
            hint = "; add photos, or name others with val_photos=DIR data.root=DIR" if left else ""
            raise DistillError(said + hint)
    return report
