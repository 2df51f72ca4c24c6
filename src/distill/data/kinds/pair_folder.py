"""A folder of pairs: data=pairs, sizes and demo, and what a DataLoader of one's own stands for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from distill.config.settings.training import Train, Training
from distill.core import nodes
from distill.core.errors import DistillError, counted
from distill.data.datasets import PairSet
from distill.data.kinds.source import PairsBySide, Source, Split, TrainingSets, check_some
from distill.data.manifest import is_complete, manifest_at
from distill.data.pairs import Pairs, find_pairs, squares_of, whole_of
from distill.data.photo_table import (
    LAYER_FOLDER,
    RUN_PAIRS,
    TEACHER_FOLDERS,
    folders_of,
    read_sides,
)
from distill.data.photos import Side
from distill.data.regions import Regions
from distill.data.sampler import Share, shares_of
from distill.data.shifts import shifts_of


class PairFolder(Source):
    """Photos labelled once and read from disk, or pairs of one's own."""

    own_pairs: ClassVar = True
    superfluous: ClassVar = ("photos", "val_photos", "crop", "data.views", "data.weights")
    regions: ClassVar = True

    @classmethod
    def made_of(cls, root: str) -> Mapping[str, Any] | None:
        folder = Path(root)
        if not folder.is_dir():
            return None
        manifest = manifest_at(folder) or {}
        return manifest if "teacher" not in manifest or is_complete(folder) else None

    @property
    def needs_labels(self) -> bool:
        """For a set of ours that is not there yet or not complete; a folder of pairs of one's own
        is taken as it is."""
        if self.settings.teacher is None or self.data.root is None:
            return self.settings.teacher is not None
        root = Path(self.data.root)
        return not root.is_dir() or (manifest_at(root) is not None and not is_complete(root))

    def training_sets(self, split: Split | None) -> TrainingSets:
        root, d = self.folder, self.data
        how = (d.val_fraction, d.split_seed, d.test_fraction)
        name = self.settings.style.name
        sides = find_pairs(root, name, *how, whole=bool(d.sizes), remember=True)
        check_some(root, sides["train"])
        sides = _of_run(self.settings, sides)
        sets = self._of_sizes(sides) if d.sizes else self._of_squares(sides)
        lined = _reads_lines(self.settings, root)
        for whole in (sets.train, sets.val):
            for part in getattr(whole, "sets", getattr(whole, "datasets", [whole])):
                if self.settings.loss.weighed:
                    part.regions = Regions(self.settings.loss, part.pairs, root)
                part.lines = lined
        return sets

    def _of_squares(self, sides: dict[Side, Pairs]) -> TrainingSets:
        root, d, common = self.folder, self.data, self.common
        off = {side: shifts_of(sides[side], root) if d.align else None for side in ("train", "val")}
        varied = self.varied | {"shares": self._shares(sides["train"])}
        train = PairSet(sides["train"], train=True, shifts=off["train"], **varied, **common)
        val = PairSet(sides["val"], train=False, shifts=off["val"], **common)
        return TrainingSets(train, val, sides)

    def _of_sizes(self, sides: dict[Side, Pairs]) -> TrainingSets:
        squares = {side: squares_of(pairs) for side, pairs in sides.items()}
        whole = {side: whole_of(pairs, self.data.sizes) for side, pairs in sides.items()}
        of_squares = self.varied | {"shares": self._shares(squares["train"])}
        train, val = self.sets_of_sizes(squares, whole, of_squares, self.varied)
        return TrainingSets(train, val, sides)

    @property
    def varied(self) -> dict[str, Any]:
        return super().varied | {"flip": self.mirrors(manifest_at(self.folder) or {})}

    def _shares(self, pairs: Pairs) -> list[Share] | None:
        if self.data.weights is None or not pairs:
            return None
        names = (manifest_at(self.folder) or {}).get("folders", [])
        folders = folders_of(self.folder, [pair.name for pair in pairs])
        return shares_of(self.data.weights, names, folders)

    def pairs_by_side(self) -> PairsBySide:
        root, d = Path(self.data.root), self.data
        if manifest_at(root) is not None and not is_complete(root):
            raise DistillError(
                f"data.root={root}: a set that is not finished; run the same distill.prepare again "
                "to resume"
            )
        split = (d.val_fraction, d.split_seed, d.test_fraction)
        sides = _of_run(self.settings, find_pairs(root, None, *split, remember=True))
        swap, flip = d.direction == "BtoA", self.mirrors(manifest_at(root) or {})
        if d.align and d.pad is not None:
            raise DistillError(
                f"data.align=true: cuts to what both pictures show, so nothing is filled up; leave "
                f"data.pad={d.pad} out"
            )
        both = (sides["train"], sides["val"])
        train, val = (shifts_of(pairs, root, swap) if d.align else None for pairs in both)
        return PairsBySide(sides["train"], sides["val"], {"flip": flip}, (train, val), sides)


class DemoPairs(PairFolder):
    """Six photographs of scikit-image, labelled as others are."""

    own_pairs: ClassVar = False
    regions: ClassVar = False


class UserLoader(PairFolder):
    """A DataLoader of Python's, which a run's settings cannot name again."""

    live: ClassVar = True
    on_disk: ClassVar = False
    own_pairs: ClassVar = False
    regions: ClassVar = False

    @property
    def needs_labels(self) -> bool:
        return False


def _of_run(settings: Training, sides: dict[Side, Pairs]) -> dict[Side, Pairs]:
    """The pairs that a run began with, where it resumes: those added since count from the next run.

    A new run takes all.
    """
    folder = Path(settings.runs) / settings.run
    resumes = settings.resume and (folder / "checkpoints/last.ckpt").is_file()
    listed = {*read_sides(folder / RUN_PAIRS)} if resumes else set()
    if not listed:
        return sides
    kept = {
        side: pairs.take(i for i, pair in enumerate(pairs) if (pair.name, side) in listed)
        for side, pairs in sides.items()
    }
    new = {side: len(sides[side]) - len(kept[side]) for side in ("train", "val")}
    if any(new.values()):
        counts = ", ".join(f"{count} {side}" for side, count in new.items() if count)
        print(f"{counted(sum(new.values()), 'new pair')}: {counts}, which count from the next run")
    return kept


def _reads_lines(settings: Train, root: Path) -> bool:
    """Whether the student's head learns from the layer of lines beside a set's pairs.

    Raises DistillError where some pairs of the set have none.
    """
    there = [root / side / LAYER_FOLDER for side in ("train", "val")]
    if settings.head is None or not any(folder.is_dir() for folder in there):
        return False
    if not getattr(nodes.class_of("head", settings.head), "reads_lines", False):
        return False
    for folder in there:
        names = {path.name for path in (folder.parent / TEACHER_FOLDERS[1]).glob("*.png")}
        if lacking := sorted(names - {path.name for path in folder.glob("*.png")}):
            raise DistillError(
                f"{folder}: has no {lacking[0]}, nor {counted(len(lacking) - 1, 'other')}; delete "
                "the folder to learn lines from the pictures, or the set to label it again"
            )
    return True
