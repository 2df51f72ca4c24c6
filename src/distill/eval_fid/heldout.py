"""Held-out pairs with a network's output for their inputs, and a ceiling to compare it with."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from distill.config import compose
from distill.config.groups import choices
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import PhotoSource, Prepare, SplitConfig, Train, source_of
from distill.core.arrays import over_white
from distill.core.errors import DistillError, counted
from distill.core.files import real_path
from distill.core.images import batches, from_pixels, to_uint8
from distill.core.progress import track
from distill.core.threads import adapting
from distill.data import photo_folders
from distill.data.augment import rng_for
from distill.data.datasets import PairSet
from distill.data.kinds import registry
from distill.data.manifest import is_complete, manifest_at
from distill.data.pairs import Pair, ReadablePair, find_pairs
from distill.data.photo_table import size_of
from distill.data.photos import Photo, Side, group_of
from distill.data.shifts import shifts_of
from distill.eval_fid import training_pictures
from distill.eval_fid.training_pictures import SeenPictures
from distill.eval_fid.whole_pictures import by_size, square_name
from distill.models import build
from distill.prepare import labelling

CHOSEN = "best.ckpt was chosen by these pictures: the run has no test split"
_PAIR_SUFFIX = re.compile(r"-[0-9a-f]{8}(-v\d+|-s\d+)?$")  # what Photo.pair_name adds to a stem


@dataclass(frozen=True)
class HeldOut:
    """Held-out pictures, uint8 (n, 3, H, W), in one order: input, target, output and ceiling.

    Of a student the target is the teacher's output. `about` says which run's they are, `titles`
    what the first three are called, `groups` (n,) which pictures are of one person or series.
    `wholes` are the set's whole pictures by their long side, still to be read.
    """

    input: Tensor
    target: Tensor
    output: Tensor
    ceiling: Tensor
    ceiling_name: str
    about: dict[str, Any]
    titles: tuple[str, str, str]
    groups: NDArray[Any]
    wholes: Mapping[int, Sequence[ReadablePair]] = field(default_factory=dict)

    @property
    def half(self) -> int:
        return len(self.input) // 2

    @property
    def columns(self) -> tuple[Tensor, ...]:
        """The pictures of each title."""
        return self.input, self.target, self.output


def held_out_photos(student: nn.Module, trained: Train, settings: EvalFid) -> HeldOut:
    """The held-out photos of a student's run, or other photos, with its and the teacher's output.

    Raises DistillError where they cannot be labelled.
    """
    if not registry.data_source(trained).on_disk and not settings.photos:
        raise DistillError("the run learnt from a loader: name a folder of pairs with photos=DIR")
    source = source_of(trained, settings.photos)
    root = registry.data_source(source).folder
    # A finished set whose photos are gone is taken as it is; otherwise it is checked against them.
    ours = source.data.root is None or manifest_at(root) is not None
    here = source.data.root is None and photo_folders.has_photos(source)
    taught = source.teacher is not None
    others = are_others(settings.photos, trained.photos if taught else trained.data.root or "")
    runs, unknown = training_pictures.runs_behind(trained)
    # The sides of the run's own set share nothing; what it started from may have seen them.
    seen = training_pictures.seen_by(runs if others else runs[1:], unknown)
    names, notes = None, dict[str, str]()
    if others and here:
        folder = {f"{photo.pair_name}.png": photo for photo in photo_folders.photos(source)}
        names, notes = excluded(seen, folder, settings.photos)
        root = _labelled(source, root, others, {folder[name].key for name in names})
    elif here or (ours and not is_complete(root)):
        root = _labelled(source, root, others)
    d = source.data
    sides = find_pairs(root, source.style.name, d.val_fraction, d.split_seed, d.test_fraction)
    side = scored_side(sides)
    if names is None:
        pictures = training_pictures.pictures_of(source, {side})
        names, notes = excluded(seen, pictures.pictures if pictures else {}, settings.photos)
    unseen = [pair for pair in sides[side] if square_name(pair.name) not in names]
    pairs = [pair for pair in unseen if size_of(pair.name) is None]
    data = in_groups(pairs, source.style.resolution, root, d, channels=trained.channels)
    about = {"run": trained.run, "style": trained.style.name, "decoder": trained.decoder.name}
    about |= notes | ({} if others else about_side(side))
    titles = ("photo", "teacher" if taught else "target", "student")
    squares = with_output(student, data, settings, about, titles)
    return replace(squares, wholes=by_size(sorted(unseen, key=_by_group)))


def excluded(
    seen: SeenPictures, pictures: Mapping[str, Photo], photos: str | None
) -> tuple[set[str], dict[str, str]]:
    """Which of the pictures that are to be scored must not be, since the run has seen them, by
    name, and what its results say of that.

    `photos` is the folder that was asked for. Raises DistillError where none is left.
    """
    names = seen.among(pictures, f"scored {real_path(Path(photos or ''))}") if seen.sets else set()
    if pictures and len(names) == len(pictures):
        where = f"photos={photos}" if photos else "the held-out photos"
        raise DistillError(
            f"{where}: the run was trained on all {len(names)} of them or near-duplicates of them; "
            + ("name others, or leave photos out" if photos else "name others with photos=DIR")
        )
    about = {}
    if names:
        about["left_out"] = (
            f"{len(names)} of {counted(len(pictures), 'photo')} left out: the run was trained "
            "on them or near-duplicates of them"
        )
    if seen.unknown:
        about["unchecked"] = f"could not be checked for training photos: {seen.unknown}"
    return names, about


def scored_side(sides: Mapping[Side, Sequence[Pair]]) -> Side:
    """The side that figures are taken on: the test side, or validation's where there is none."""
    return "test" if sides["test"] else "val"


def about_side(side: Side) -> dict[str, str]:
    """What the results of a run say of the side of its own pictures that they were taken on."""
    return {"side": side} | ({"remark": CHOSEN} if side == "val" else {})


@torch.inference_mode()
def infer(network: nn.Module, pictures: Tensor, batch_size: int, what: str) -> Tensor:
    """A network's output for uint8 (n, 3, H, W), as such; transparency over white.

    `what` is shown beside the progress bar.
    """
    parts, loader = [], adapting(batches(pictures, batch_size))
    for batch in track(loader, len(pictures), "picture", what, len):
        parts.append(to_uint8(over_white(network(batch))))
    return torch.cat(parts)


def half_order(group: str, name: str) -> tuple[float, str]:
    """Sorts pictures so that groups are shuffled, and one person's pictures stay in one half."""
    return rng_for("half", group).random(), name


def are_others(photos: str | None, learnt: str | list[str]) -> bool:
    """Whether photos are asked for that are not the folder that the run learnt from."""
    if not photos:
        return False
    return isinstance(learnt, list) or real_path(Path(photos)) != real_path(Path(learnt))


def _labelled(
    source: PhotoSource, root: Path, others: bool, without: Set[str] = frozenset()
) -> Path:
    """The set with every held-out pair; a finished one without its teacher, where that is gone.

    Of other photos those with the keys `without` need no label.
    """
    try:
        labels = build.load_teacher(source.style, source.teacher)
    except DistillError as error:
        if others or not is_complete(root):
            raise
        print(f"{root}: taken as it is, its photos are not checked: {error}")
        return root
    return labelling.prepare_held_out(source, labels, others, without)


def in_groups(pairs: Sequence[Pair], size: int, root: Path, d: SplitConfig, **how: Any) -> PairSet:
    """The pairs of the set at `root` in the order that shuffles groups; `how` they are read, as a
    `PairSet` takes it."""
    ordered = sorted(pairs, key=_by_group)
    shifts = shifts_of(ordered, root, how.get("swap", False)) if d.align else None
    return PairSet(ordered, size, train=False, shifts=shifts, **how)


def _by_group(pair: ReadablePair) -> tuple[float, str]:
    return half_order(group_of_pair(pair), pair.name)


def group_of_pair(pair: ReadablePair) -> str:
    """The same for pictures of one person or series."""
    return group_of(_PAIR_SUFFIX.sub("", Path(pair.name).stem))


def with_output(
    network: nn.Module,
    data: PairSet,
    settings: EvalFid,
    about: dict[str, Any],
    titles: tuple[str, str, str],
) -> HeldOut:
    inputs, targets = [], []  # 8-bit: a quarter of the memory of floats
    for i in range(len(data)):
        sample = data[i]
        inputs.append(sample["photo"].permute(2, 0, 1).contiguous())
        targets.append(to_uint8(over_white(from_pixels(sample["target"])[None])[0]))
    pictures, target = torch.stack(inputs), torch.stack(targets)
    output = infer(network, pictures, settings.batch_size, f"inference of the {titles[2]}")
    ceiling, ceiling_name = pictures, f"{titles[0]}s(B)"
    if (style := settings.ceiling) != "photos":  # the output of that style's teacher
        if style not in choices("style"):
            known = ", ".join(["photos", *choices("style")])
            raise DistillError(f"ceiling={style}: no such style; allowed: {known}")
        other = compose.load("prepare", [f"style={style}"], Prepare)
        teacher = build.load_teacher(other.style, other.teacher).fast()
        ceiling = infer(teacher, pictures, settings.batch_size, f"inference of {style}")
        ceiling_name = f"{style}(B)"
    groups = np.array([group_of_pair(pair) for pair in data.pairs])
    return HeldOut(pictures, target, output, ceiling, ceiling_name, about, titles, groups)
