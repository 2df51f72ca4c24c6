"""From checked settings to the pictures of a run: a data module of each recipe's datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from distill.config.settings.training import (
    AdversarialDataConfig,
    CycleGANTrain,
    DataConfig,
    Pix2PixTrain,
    SplitConfig,
    Train,
)
from distill.core import nodes
from distill.core.errors import DistillError, counted
from distill.core.next_step import assigned
from distill.data import sources
from distill.data.datamodule import DistillData
from distill.data.datasets import HeldOutPairs, MixedPairs, PairSet, PhotoSet, UnpairedSet
from distill.data.domains import find_unpaired
from distill.data.manifest import is_complete, manifest_at
from distill.data.pairs import (
    Pairs,
    ReadablePair,
    check_transparency,
    find_pairs,
    squares_of,
    whole_of,
)
from distill.data.photo_table import (
    LAYER_FOLDER,
    RUN_PAIRS,
    TEACHER_FOLDERS,
    folders_of,
    read_sides,
)
from distill.data.photos import Photo, Side
from distill.data.regions import Regions
from distill.data.sampler import ShardOrder, Share, shares_of
from distill.data.shards.address import Address
from distill.data.shards.node_cache import NodeCache
from distill.data.shards.shard_index import Catalogue
from distill.data.shards.shard_manifest import ShardManifest, finished_shards
from distill.data.shards.sharded_pairs import ShardedPairs
from distill.data.shifts import Shifts, shifts_with

Split = Callable[[], Mapping[Side, Sequence[Photo]]]

OF_SHARDS = "of a folder of pairs only; train on that, or leave it out"


def labelled(settings: Train, split: Split | None = None) -> DistillData:
    """Training and validation pictures of recipe=distill, of a set that is there.

    `split` gives the photos of data=photos by their sides.
    """
    check_sizes(settings)
    if settings.loss.weighed and (settings.data.kind != "pairs" or settings.data.align):
        said = "data.align=true" if settings.data.align else f"data={settings.data.kind}"
        raise DistillError(f"loss.region: {OF_SHARDS}, not with {said}")
    train: Dataset
    val: Dataset
    pairs: dict[Side, Pairs] | None = None
    if settings.data.kind == "shards":
        _check_no_align(settings.data, OF_SHARDS)
        train, val = _shard_sets(settings)
    elif settings.data.kind == "photos":
        _check_no_align(settings.data, "a teacher's output is aligned already; leave it out")
        for name in ("zoom", "photo_colour"):
            if value := getattr(settings.data, name):
                raise DistillError(
                    f"data.{name}={value}: of pairs; the random squares of data=photos, and their "
                    "colours (data.colour), are the teacher's too"
                )
        assert split is not None
        train, val = _photo_sets(settings, split())
    else:
        pairs = _pairs_of(settings)
        train, val = _pair_sets(settings, pairs)
        root, lined = sources.pairs_root(settings), _reads_lines(settings)
        for whole in (train, val):
            for part in getattr(whole, "sets", getattr(whole, "datasets", [whole])):
                if settings.loss.weighed:
                    part.regions = Regions(settings.loss, part.pairs, root)
                part.lines = lined
    return _data_module(train, val, settings.data, pairs)


def _reads_lines(settings: Train) -> bool:
    """Whether the student's head learns from the layer of lines beside a set's pairs.

    Raises DistillError where some pairs of the set have none.
    """
    root = sources.pairs_root(settings)
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


def check_sizes(settings: Train) -> None:
    """Raises DistillError as `sources.check_sizes`, and for a set that is there, and complete,
    without whole pictures of the sizes asked for."""
    sources.check_sizes(settings)
    asked = settings.data.sizes
    root: Path | Address
    if asked is None:
        return
    if settings.data.kind == "shards":
        root = sources.shards_root(settings)
        there = finished_shards(root).recipe.get("sizes", [])
    elif not sources.needs_labels(settings):
        root = sources.pairs_root(settings)
        there = (manifest_at(root) or {}).get("sizes", [])
    else:
        return
    if lacking := [size for size in asked if size not in there]:
        has = f"whole pictures of {there}" if there else "squares alone, of one size"
        more = f"set data.sizes={there}" if there else "leave data.sizes out"
        words = assigned("data.root", str(root)), f"'data.sizes={sorted({*asked, *there})}'"
        raise DistillError(
            f"data.sizes={asked}: {root} has {has}; {more}, or label {lacking} too: python -m "
            f"distill.prepare photos=DIR {' '.join(words)}"
        )


def _photo_sets(
    settings: Train, sides: Mapping[Side, Sequence[Photo]]
) -> tuple[PhotoSet, PhotoSet]:
    d, size = settings.data, settings.style.resolution
    for side in ("train", "val"):
        if not sides[side]:
            raise DistillError(f"no {side} photo is left; add photos, or change drop=FILE")
    folders = sources.training_folders(settings)
    shares = shares_of(d.weights, folders, [photo.folder for photo in sides["train"]])
    common: dict[str, Any] = {"crop": settings.crop, "colour": d.colour, "seed": settings.seed}
    train = PhotoSet(sides["train"], d.crop_size or size, train=True, shares=shares, **common)
    return train, PhotoSet(sides["val"], size, train=False, crop=settings.crop)


def _pairs_of(settings: Train) -> dict[Side, Pairs]:
    root, d = sources.pairs_root(settings), settings.data
    split = (d.val_fraction, d.split_seed, d.test_fraction)
    sides = find_pairs(root, settings.style.name, *split, whole=bool(d.sizes), remember=True)
    _check_some(root, sides["train"])
    return _of_run(settings, sides)


def _pair_sets(settings: Train, sides: dict[Side, Pairs]) -> tuple[Dataset, Dataset]:
    root, d = sources.pairs_root(settings), settings.data
    made = manifest_at(root) or {}
    common: dict[str, Any] = {"size": settings.style.resolution, "alpha": settings.channels == 4}
    varied = _varied(settings)
    varied["flip"] = _mirrors(root, d.flip)

    def shares(pairs: Pairs, names: Sequence[str]) -> list[Share] | None:
        folders = folders_of(root, [pair.name for pair in pairs]) if d.weights else []
        return shares_of(d.weights, names, folders)

    if d.sizes:
        squares = {side: squares_of(pairs) for side, pairs in sides.items()}
        whole = {side: whole_of(pairs, d.sizes) for side, pairs in sides.items()}
        own = shares(squares["train"], made["folders"]) if squares["train"] else None
        varied_squares = varied | {"shares": own}
        return _sets_of_sizes(settings, root, squares, whole, varied_squares, varied, common)
    off = {side: shifts_with(d, root, sides[side]) for side in ("train", "val")}
    varied["shares"] = shares(sides["train"], made.get("folders", []))
    train = PairSet(sides["train"], train=True, shifts=off["train"], **varied, **common)
    return train, PairSet(sides["val"], train=False, shifts=off["val"], **common)


def _of_run(settings: Train | Pix2PixTrain, sides: dict[Side, Pairs]) -> dict[Side, Pairs]:
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
        said = ", ".join(f"{count} {side}" for side, count in new.items() if count)
        print(f"{counted(sum(new.values()), 'new pair')}: {said}, which count from the next run")
    return kept


def _sets_of_sizes(
    settings: Train,
    root: Path | Address,
    squares: Mapping[Side, Sequence[ReadablePair]],
    whole: Mapping[Side, Sequence[ReadablePair]],
    of_squares: dict[str, Any],
    of_whole: dict[str, Any],
    common: dict[str, Any],
) -> tuple[Dataset, Dataset]:
    """Training and validation of a set of several sizes: squares and whole pictures by side, how
    each kind is varied, and what all have in common. It may have no squares."""
    d, common = settings.data, common | {"thumbnail": True}
    if not whole["train"]:
        raise DistillError(
            f"{root}: has no whole picture of data.sizes={d.sizes} to train on; add larger photos"
        )
    side = settings.style.resolution
    crop = d.crop_size or side
    as_they_are = common | {"size": None}
    own_stream = {"crop_size": crop, "seed": f"{settings.seed}:whole"}
    crops = PairSet(whole["train"], train=True, **(of_whole | as_they_are | own_stream))
    train: Dataset = crops
    if len(squares["train"]) and d.share_of_sizes < 1:
        cut = {"crop_size": min(crop, side)}
        own = PairSet(squares["train"], train=True, **(of_squares | common | cut))
        together = d.batch_size if crop > side else 1
        train = MixedPairs(own, crops, d.share_of_sizes, settings.seed, together)
    held_out = ((squares, common), (whole, as_they_are))
    return train, HeldOutPairs(
        [PairSet(pairs["val"], train=False, **how) for pairs, how in held_out if len(pairs["val"])]
    )


def _varied(settings: Train) -> dict[str, Any]:
    """How pairs are shown to a student, but for mirroring, which goes by who made them."""
    d = settings.data
    of_pairs = {"crop_size": d.crop_size, "zoom": d.zoom, "photo_colour": d.photo_colour}
    return of_pairs | {"seed": settings.seed}


def _check_no_align(d: SplitConfig, where: str) -> None:
    if d.align:
        raise DistillError(f"data.align=true: {where}")


def _shard_sets(settings: Train) -> tuple[Dataset, Dataset]:
    root, d = sources.shards_root(settings), settings.data
    made, sides = _sides_of_shards(root, d.cache)
    pairs = sides["train"]
    common: dict[str, Any] = {"size": settings.style.resolution, "alpha": settings.channels == 4}
    varied = _varied(settings)
    varied["flip"] = not made.made_by_teacher if d.flip is None else d.flip

    def order(pairs: ShardedPairs) -> ShardOrder:
        folders = pairs.catalogue.folders[pairs.shards].tolist()
        shares = shares_of(d.weights, made.recipe.get("folders", []), folders)
        return ShardOrder(pairs.sizes, settings.seed, shares)

    if d.sizes:
        _, whole = _sides_of_shards(root, d.cache, whole=True)
        own = varied | ({"order": order(pairs)} if len(pairs) else {})
        large = dict(varied)
        if len(whole["train"]):
            large["order"] = ShardOrder(whole["train"].sizes, f"{settings.seed}:whole")
        return _sets_of_sizes(settings, root, sides, whole, own, large, common)
    _check_some(root, pairs)
    train = PairSet(pairs, train=True, order=order(pairs), **varied, **common)
    return train, PairSet(sides["val"], train=False, **common)


def _sides_of_shards(
    root: Address, cache: int | None, whole: bool = False
) -> tuple[ShardManifest, dict[Side, ShardedPairs]]:
    """What the shards at `root` say, and their squares, or their whole pictures. Raises
    DistillError where there are none."""
    made, catalogue = finished_shards(root), Catalogue(root)
    copies = NodeCache(root, cache) if cache and root.local is None else None
    return made, {
        side: ShardedPairs(root, catalogue, side, made.codec, copies, whole)
        for side in ("train", "val")
    }


def paired(settings: Pix2PixTrain) -> DistillData:
    """Training and validation pairs of recipe=pix2pix, the latter at the side of the crops."""
    d, alpha = settings.data, settings.channels == 4
    if d.root is None:
        raise DistillError(
            "data.root=null: recipe=pix2pix learns from pairs; give a folder with A/ + B/ or "
            "pictures side by side as data.root=DIR (distill.prepare recipe=pix2pix makes some)"
        )
    _check_sizes(d)
    swap = d.direction == "BtoA"
    common: dict[str, Any] = {"alpha": alpha, "swap": swap, "pad": d.pad}
    varied: dict[str, Any] = {"seed": settings.seed, "colour": d.colour}
    off: list[Shifts | None] = [None, None]
    pairs: Sequence[ReadablePair]
    held_out: Sequence[ReadablePair]
    sides: dict[Side, Pairs] | None = None
    if d.kind == "shards":
        _check_no_align(d, OF_SHARDS)
        made, packed = _sides_of_shards(Address(d.root), d.cache)
        pairs, held_out = packed["train"], packed["val"]
        varied["flip"] = not made.made_by_teacher if d.flip is None else d.flip
        varied["order"] = ShardOrder(packed["train"].sizes, settings.seed) if pairs else None
    else:
        root = Path(d.root)
        if manifest_at(root) is not None and not is_complete(root):
            raise DistillError(
                f"data.root={root}: a set that is not finished; run the same distill.prepare again "
                "to resume"
            )
        split = (d.val_fraction, d.split_seed, d.test_fraction)
        sides = _of_run(settings, find_pairs(root, None, *split, remember=True))
        pairs, held_out = sides["train"], sides["val"]
        varied["flip"] = _mirrors(root, d.flip)
        off = [shifts_with(d, root, sides[side], swap, d.pad) for side in ("train", "val")]
    _check_some(d.root, pairs)
    if alpha:
        check_transparency(d.root, pairs, swap)
    train = PairSet(
        pairs, d.size, train=True, crop_size=d.crop_size, shifts=off[0], **varied, **common
    )
    val = PairSet(held_out, d.crop_size, train=False, shifts=off[1], **common)
    return _data_module(train, val, d, sides)


def unpaired(settings: CycleGANTrain) -> DistillData:
    """Training and validation pictures of recipe=cyclegan, the latter at the side of the crops."""
    d = settings.data
    _check_sizes(d)
    root, a, b = (Path(folder) if folder else None for folder in (d.root, d.a, d.b))
    sides = find_unpaired(root, a, b, d.val_fraction, d.split_seed)
    _check_some(d.root, sides["train"][0])
    common: dict[str, Any] = {"crop_size": d.crop_size, "pad": d.pad}
    varied: dict[str, Any] = {"flip": d.flip, "seed": settings.seed, "colour": d.colour}
    train = UnpairedSet(*sides["train"], d.size, train=True, **varied | common)
    return _data_module(train, UnpairedSet(*sides["val"], d.crop_size, train=False, **common), d)


def _data_module(
    train: Dataset, val: Dataset, d: DataConfig, pairs: Mapping[Side, Pairs] | None = None
) -> DistillData:
    return DistillData(train, val, d.batch_size, d.workers, d.val_limit, pairs)


def _mirrors(root: Path, asked: bool | None) -> bool:
    """Whether pairs are mirrored at random: as asked for, else where no teacher made the targets.

    T(mirrored photo) is not the mirrored T(photo): of hayao they are 29 dB apart, and half of the
    targets would contradict the other half.
    """
    # A set of sketches has a manifest without a teacher.
    return asked if asked is not None else "teacher" not in (manifest_at(root) or {})


def _check_some(root: Path | str | Address | None, found: Sequence[object]) -> None:
    if not found:
        raise DistillError(f"{root}: has val/ but no train/, nothing to learn from; add it")


def _check_sizes(data: AdversarialDataConfig) -> None:
    if data.size < data.crop_size:
        raise DistillError(
            f"data.size={data.size}: smaller than the crop taken from it, data.crop_size="
            f"{data.crop_size}; make it equal (no crop) or larger"
        )
