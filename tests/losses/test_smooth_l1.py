import pytest
import torch

from distill.losses.smooth_l1 import SmoothL1


@pytest.mark.parametrize("beta", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("gap", [0.0, 0.01, 0.05, 0.2, 0.9])
def test_by_formula(beta, gap):
    """d²/2β below β, d - β/2 above, the same for both signs."""
    expected = gap**2 / (2 * beta) if gap < beta else gap - beta / 2
    dark, light = torch.full((2, 3, 4, 5), 0.05), torch.full((2, 3, 4, 5), 0.05 + gap)
    loss = SmoothL1(beta)
    assert loss(dark, light).item() == pytest.approx(expected, abs=1e-6)
    assert loss(light, dark).item() == pytest.approx(expected, abs=1e-6)


def test_gradient_is_linear_above_beta():
    """With the default β of 0.05 a gap of 0.2 pulls with full force; with β = 1 with a fifth."""
    for beta, force in ((0.05, 1.0), (1.0, 0.2)):
        student = torch.full((1, 3, 2, 2), 0.7, requires_grad=True)
        SmoothL1(beta)(student, torch.full((1, 3, 2, 2), 0.5)).backward()
        torch.testing.assert_close(student.grad, torch.full((1, 3, 2, 2), force / 12))
