"""From checked settings to the pictures of a run: a data module of each recipe's datasets."""

from typing import Any

from distill.core.errors import DistillError
from distill.data.datamodule import DistillData
from distill.data.datasets import PairSet
from distill.data.kinds.registry import data_source
from distill.data.kinds.source import check_some
from distill.data.pairs import check_transparency
from distill_gan.domains import find_unpaired
from distill_gan.settings import AdversarialDataConfig, CycleGANTrain, Pix2PixTrain
from distill_gan.unpaired_set import UnpairedSet


def paired(settings: Pix2PixTrain) -> DistillData:
    """Training and validation pairs of recipe=pix2pix, the latter at the side of the crops."""
    d = settings.data
    if d.root is None:
        raise DistillError(
            "data.root=null: recipe=pix2pix learns from pairs; give a folder with A/ + B/ or "
            "pictures side by side as data.root=DIR (distill.prepare recipe=pix2pix makes some)"
        )
    _check_sizes(d)
    swap = d.direction == "BtoA"
    common: dict[str, Any] = {"channels": settings.channels, "swap": swap, "pad": d.pad}
    varied: dict[str, Any] = {"seed": settings.seed, "colour": d.colour}
    pairs = data_source(settings).pairs_by_side()
    check_some(d.root, pairs.train)
    if settings.channels == 4:
        check_transparency(d.root, pairs.train, swap)
    varied |= {"crop_size": d.crop_size, "shifts": pairs.shifts[0], **pairs.how}
    train = PairSet(pairs.train, d.size, train=True, **varied, **common)
    val = PairSet(pairs.val, d.crop_size, train=False, shifts=pairs.shifts[1], **common)
    return DistillData(train, val, d.batch_size, d.workers, d.val_limit, pairs.pairs)


def unpaired(settings: CycleGANTrain) -> DistillData:
    """Training and validation pictures of recipe=cyclegan, the latter at the side of the crops."""
    d = settings.data
    _check_sizes(d)
    sides = find_unpaired(d.root, d.a, d.b, d.val_fraction, d.split_seed)
    check_some(d.root, sides["train"][0])
    common: dict[str, Any] = {"crop_size": d.crop_size, "pad": d.pad}
    varied: dict[str, Any] = {"flip": d.flip, "seed": settings.seed, "colour": d.colour}
    train = UnpairedSet(*sides["train"], d.size, train=True, **varied | common)
    val = UnpairedSet(*sides["val"], d.crop_size, train=False, **common)
    return DistillData(train, val, d.batch_size, d.workers, d.val_limit)


def _check_sizes(data: AdversarialDataConfig) -> None:
    if data.size < data.crop_size:
        raise DistillError(
            f"data.size={data.size}: smaller than the crop taken from it, data.crop_size="
            f"{data.crop_size}; make it equal (no crop) or larger"
        )
