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

from distill.config.settings import Prepare
from distill.core import weights
from distill.core.errors import DistillError
from distill.core.files import sha256
from distill.core.images import save_png, to_bytes, to_image
from distill.core.process import starter
from distill.core.progress import bar
from distill.data import sources, yunet
from distill.data.decode import BadPhoto
from distill.data.labelled import register
from distill.data.labelled.droplist import check_list
from distill.data.labelled.labelling import LabellingReport, remember
from distill.data.labelled.lock import check_writable, writing
from distill.data.labelled.manifest import is_complete, recipe_at, stamp, write_manifest
from distill.data.labelled.placement import Arrangement, arrange
from distill.data.labelled.register import SKIPPED
from distill.data.labelled.teacher_pass import PairJob, plan
from distill.data.photos import Photo, folder_names
from distill.data.sketches import hed
from distill.data.sketches.masks import Folder, Network
from distill.data.sketches.preview import preview
from distill.data.sketches.sketch_manifest import SketchRecipe, check_kind, of_settings
from distill.data.sketches.sketcher import Masks, Sketcher

PREVIEW, SHOWN = "preview.png", 8


def make(
    photos: Sequence[Photo],
    sketcher: Sketcher,
    recipe: SketchRecipe,
    root: Path,
    workers: int = 0,
    drop: Path | None = None,
) -> LabellingReport:
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


def _still_bad(root: Path, jobs: Sequence[PairJob], sketcher: Sketcher) -> dict[str, str]:
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

    def __init__(self, jobs: Sequence[PairJob], sketcher: Sketcher) -> None:
        self.jobs, self.sketcher = jobs, sketcher

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: int) -> tuple[int, tuple[torch.Tensor, torch.Tensor] | str]:
        try:
            steps = self.sketcher(self.jobs[index].photo)
        except BadPhoto as reason:
            return index, str(reason)
        return index, (to_bytes(to_image(steps.outline)), to_bytes(to_image(steps.target)))


def _make_all(
    jobs: Sequence[PairJob], sketcher: Sketcher, root: Path, workers: int
) -> dict[str, str]:
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


def _save(job: PairJob, root: Path, outline: torch.Tensor, picture: torch.Tensor) -> None:
    for kind, values in (("B", picture), ("A", outline)):
        save_png(Image.fromarray(values.numpy()), root / job.side / kind / job.name)


def _show(root: Path, jobs: Sequence[PairJob], sketcher: Sketcher) -> None:
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


def _report(root: Path, found: Arrangement, made: int, skipped: dict[str, str]) -> LabellingReport:
    pairs = register.pairs_on_disk(root)
    return LabellingReport(
        root, len(pairs["train"]), len(pairs["val"]), made, skipped, **found.counts
    )


def _checked(report: LabellingReport) -> LabellingReport:
    for side, left in (("train", report.val), ("val", report.train)):
        if not getattr(report, side):
            said = f"{report.root}: no {side} photo could be used; see {report.root / SKIPPED}"
            # Photos are placed before it is known which of them can be used.
            hint = "; add photos, or name others with val_photos=DIR data.root=DIR" if left else ""
            raise DistillError(said + hint)
    return report


def prepare(settings: Prepare) -> LabellingReport:
    """Make what is missing of the settings' set and say what happened."""
    check(settings)
    photos, root = sources.photos(settings), sketches_root(settings)
    masks, files = _masks(settings), _weights(settings)
    sketcher = Sketcher(settings.sketch, settings.crop, masks, **files)
    made_by = _recipe(settings, masks, files.get("hed"))
    drop = Path(settings.drop) if settings.drop else None
    report = make(photos, sketcher, made_by, root, settings.label.workers, drop)
    print(report)
    return report


def check(settings: Prepare) -> None:
    """What settings contradict each other, before a file is fetched or read."""
    chosen = settings.sketch
    if chosen.marks and chosen.points is None:
        raise DistillError("sketch.marks=true: needs sketch.points=cat or faces, to know where")
    if chosen.rgba and chosen.mask is None:
        raise DistillError("sketch.rgba=true: needs sketch.mask=FILE, DIR or alpha, to know what")
    if chosen.canny.low > chosen.canny.high:
        raise DistillError(
            f"sketch.canny.low={chosen.canny.low}: above sketch.canny.high={chosen.canny.high}"
        )
    if settings.drop:
        check_list(Path(settings.drop))
    if not is_complete(sketches_root(settings)):
        check_writable(sketches_root(settings))


def sketches_root(settings: Prepare) -> Path:
    """Where the set lies: data.root, or data/sketches/PHOTOS-SIZE."""
    if settings.data.root:
        return Path(settings.data.root)
    train, val = _names(settings)
    name = "+".join(train) + (f"-val-{'+'.join(val)}" if val else "")
    return Path("data/sketches") / f"{name}-{settings.sketch.size}"


def _masks(settings: Prepare) -> Masks:
    chosen = settings.sketch
    if chosen.mask in (None, "alpha"):
        return None
    path = Path(chosen.mask).expanduser()
    if path.is_dir():
        return Folder(path)
    if not path.is_file():
        raise DistillError(f"sketch.mask={chosen.mask}: no such file or folder, and not alpha")
    return Network(path, chosen.saliency.size, chosen.saliency.norm)


def _weights(settings: Prepare) -> dict[str, Path]:
    """The files of the networks that the settings name, by the Sketcher's arguments."""
    chosen, found = settings.sketch, {}
    if chosen.points == "faces":
        found["detector"] = weights.find(yunet.FILE)
    if chosen.outline == "hed":
        own, key = chosen.hed.weights, "sketch.hed.weights"
        there = None if own else weights.find_or_none(hed.FILE, hed.PORT)
        found["hed"] = there or weights.find(hed.FILE, own, key)
    return found


def _recipe(settings: Prepare, masks: Masks, hed_file: Path | None) -> SketchRecipe:
    train, val = _names(settings)
    hashes = {"hed": sha256(hed_file)} if hed_file else {}
    if isinstance(masks, Network):
        hashes["mask"] = sha256(masks.path)
    return of_settings(
        settings.sketch,
        hashes,
        photos=" + ".join(str(folder.resolve()) for folder in _folders(settings)) or "scikit-image",
        crop=1.0 if settings.sketch.points else settings.crop,
        val_fraction=0.0 if val else settings.data.val_fraction,
        seed=settings.data.split_seed,
        folders=tuple(train) if len(train) > 1 or val else (),
        val_folders=tuple(val),
    )


def _folders(settings: Prepare) -> list[Path]:
    if settings.data.kind == "demo":
        return []
    given = [settings.photos, settings.val_photos or []]
    return [Path(each) for part in given for each in ([part] if isinstance(part, str) else part)]


def _names(settings: Prepare) -> tuple[list[str], list[str]]:
    """The names of the folders for training (or both sides) and of those for validation."""
    train = sources.training_folders(settings)
    return train, folder_names(_folders(settings))[len(train) :]
