"""What a metric of the user's own is: a figure of every picture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from distill.core.errors import DistillError, of_the_user
from distill.core.images import form
from distill.core.nodes import part


class Metric(ABC):
    """A function of pictures and their targets, whose means distill.eval_fid reports.

    >>> class Paler(distill.Metric):
    ...     def __call__(self, output, target):
    ...         return (output - target).mean((1, 2, 3))
    >>> Paler()(torch.ones(2, 3, 64, 64), torch.zeros(2, 3, 64, 64))
    tensor([1., 1.])
    """

    @abstractmethod
    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        """A figure (N,) for each of (N, 3, H, W) RGB in [0, 1]; both are of one size."""


def own_metrics(nodes: Mapping[str, dict[str, Any]]) -> dict[str, Metric]:
    """The user's metrics by their names, each called once. Raises DistillError for a wrong one."""
    made: dict[str, Metric] = {n: part(f"metrics.{n}", node, Metric) for n, node in nodes.items()}
    first, second = torch.rand(2, 2, 3, 64, 96, generator=torch.Generator().manual_seed(0))
    for name, metric in made.items():
        with of_the_user(f"metrics.{name}: a call with {form(first)}"):
            found: Any = metric(first, second)
        if not isinstance(found, Tensor) or found.shape != (2,) or not found.isfinite().all():
            gave = form(found) if isinstance(found, Tensor) else type(found).__name__
            raise DistillError(
                f"metrics.{name}: gave {gave}, want 2 finite figures for 2 pictures, (2,)"
            )
    return made
