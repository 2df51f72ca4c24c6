"""What a generator's run learnt from: its held-out pictures, and those of training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from torch import Tensor

from distill import loading
from distill.checks import fit
from distill.data.module import DistillData
from distill.data.pictures import from_bytes
from distill.data.sets import UnpairedSet
from distill.errors import DistillError
from distill.formats.subject import Subject
from distill.settings import CycleGANTrain, Pix2PixTrain


class Inputs:
    """Pictures that a generator draws from, in order, read one at a time.

    Element i is its input (3, S, S) and, for pairs, what was wanted (3 or 4, S, S).
    `where` says whose pictures they are.
    """

    def __init__(self, found: Any, subject: Subject, where: str) -> None:
        self.found, self.where = found, where
        self.key = "photo"
        if isinstance(found, UnpairedSet):
            self.key = "a" if subject.direction == "AtoB" else "b"
        self.count = len(found.looks[self.key]) if self.key != "photo" else len(found)

    def __len__(self) -> int:
        return self.count

    def at(self, indices: list[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
        for index in indices:
            item = self.found[index]
            target = from_bytes(item["target"]) if "target" in item else None
            yield from_bytes(item[self.key]), target


def held_out(subject: Subject) -> Inputs:
    """The validation side. Raises DistillError where its pictures are not here any more."""
    data, where = _data(subject, "photos")
    return Inputs(data.val, subject, where)


def learnt(subject: Subject) -> Inputs:
    """The training side, as the training saw it: cropped and mirrored."""
    data, where = _data(subject, "calibration")
    return Inputs(data.train, subject, where)


def _data(subject: Subject, key: str) -> tuple[DistillData, str]:
    """The run's data at the subject's size; `key` is the setting that names other pictures."""
    settings: Any = fit(  # it names classes, and may come from elsewhere
        subject.trained, Pix2PixTrain if subject.recipe == "pix2pix" else CycleGANTrain
    )
    side = subject.side
    at_side = replace(settings.data, crop_size=side, size=max(side, settings.data.size))
    settings = replace(settings, data=at_side)
    where = at_side.root or getattr(at_side, subject.direction[0].lower(), None) or "?"
    with suppress(DistillError):
        load: Any = loading.paired if subject.recipe == "pix2pix" else loading.unpaired
        data = load(settings)
        if len(data.val) and len(data.train):
            return data, where
    raise DistillError(f"{where}: the run's pictures are not here; name some with {key}=DIR")
