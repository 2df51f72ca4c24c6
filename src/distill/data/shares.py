"""Weights of several folders of photos: which share of the training stream each one has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.errors import DistillError

Indices = NDArray[np.int64]


class Share(NamedTuple):
    """The pictures of one folder, by index, and the folder's weight in training."""

    members: Indices
    weight: float


def check_weights(weights: Sequence[float] | None, folders: int) -> None:
    """Raises DistillError where there is not one weight for every folder of photos."""
    if weights is not None and len(weights) != folders:
        raise DistillError(
            f"data.weights: {len(weights)} weights, but the photos come from {folders} "
            f"folder{'s' * (folders > 1)}; give one weight for each folder of photos=[A,B]"
        )


def shares_of(
    weights: Sequence[float] | None, names: Sequence[str], folders: Sequence[str]
) -> list[Share] | None:
    """The share of every folder in `names`; `folders` says where each picture comes from.

    None where every picture counts alike. Raises DistillError for a folder without a picture.
    """
    check_weights(weights, max(1, len(names)))
    if weights is None or len(names) < 2:
        return None
    where = np.array(folders)
    shares = [Share(np.flatnonzero(where == n), w) for n, w in zip(names, weights, strict=True)]
    for name, share in zip(names, shares, strict=True):
        if not len(share.members):
            raise DistillError(f"data.weights: {name} has no picture to train on; leave it out")
    return shares


def counts(shares: Sequence[Share], count: int) -> list[int]:
    """How many of `count` positions each share takes: the largest remainders are rounded up."""
    whole = sum(share.weight for share in shares)
    exact = [count * share.weight / whole for share in shares]
    taken = [int(value) for value in exact]
    by_rest = sorted(range(len(shares)), key=lambda i: taken[i] - exact[i])
    for i in by_rest[: count - sum(taken)]:
        taken[i] += 1
    return taken
