"""What several test files do alike."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from distill import train

SMALL = ["style.resolution=64", "label.workers=0", "data.val_fraction=0.4", "crop=0.9"]
QUICK = [
    *SMALL,
    "encoder.weights=none",
    "data.workers=0",
    "data.batch_size=2",
    "trainer.log_every=1",
]


def run(command: ModuleType, *overrides: str) -> int:
    """Run an entry point as `python -m` would, in this process; gives the exit status."""
    argv, sys.argv = sys.argv, [command.__name__, *overrides]
    try:
        command.main()
    except SystemExit as stop:
        return stop.code
    finally:
        sys.argv = argv
    return 0


def go(*overrides: str) -> int:
    """A short training on the photos of the fixture `here`."""
    return run(train, "photos=photos", "decoder=residual", *QUICK, *overrides)


def descend(
    term: Callable[..., Tensor], student: Tensor, target: Tensor, rate: float = 0.02
) -> list[float]:
    """A loss term's values over six Adam steps on the student's picture; every gradient counts."""
    student = student.clone().requires_grad_()
    optimiser, values = torch.optim.Adam([student], lr=rate), []
    for _ in range(6):
        optimiser.zero_grad()
        value = term(student, target)
        value.backward()
        assert student.grad is not None
        assert student.grad.abs().sum() > 0
        optimiser.step()
        values.append(value.item())
    return values
