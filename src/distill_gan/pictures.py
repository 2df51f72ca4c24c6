"""Pictures of a run for distill.export, as its training or its validation sees them."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from torch import Tensor

from distill.config.registry import Side
from distill.core.errors import DistillError
from distill.core.images import from_pixels
from distill.export.samples import KEY, RunPictures
from distill.export.subject import Subject
from distill_gan import loaders
from distill_gan.settings import Adversarial, CycleGANTrain
from distill_gan.unpaired_set import UnpairedSet


def domain_pictures(subject: Subject, side: Side) -> RunPictures:
    """Those of a run without a teacher, as its training or its validation sees them."""
    trained, domain, sides = subject.trained, subject.direction[0].lower(), subject.sides
    assert isinstance(trained, Adversarial)
    d = replace(trained.data, crop_size=max(sides), size=max(*sides, trained.data.size))
    where = d.root or getattr(d, domain, None) or "?"
    load: Any = loaders.unpaired if isinstance(trained, CycleGANTrain) else loaders.paired
    dataset: Any = ()
    with suppress(DistillError):
        data = load(replace(trained, data=d))
        dataset = data.train if side == "train" else data.val
    if not len(dataset):
        raise DistillError(
            f"{where}: the run's pictures are not here; name some with {KEY[side]}=DIR"
        )
    key, count = "photo", len(dataset)
    if isinstance(dataset, UnpairedSet):
        key, count = domain, len(dataset.domains[domain])

    def read(number: int) -> tuple[Tensor, Tensor | None]:
        item = dataset[number]
        both = [from_pixels(item[name]) for name in (key, "target") if name in item]
        photo, *target = (each[:, : sides[0], : sides[1]] for each in both)
        return photo, target[0] if target else None

    return RunPictures(where, count, read, shuffled=side == "train")
