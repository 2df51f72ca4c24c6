"""Whether a loss term can be descended."""

from collections.abc import Callable

import torch
from torch import Tensor


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
