from __future__ import annotations

import pytest
import torch

from distill.metrics.similarity import grid

ROW, COLUMN = torch.arange(34)[:, None], torch.arange(50)
WAYS = {"columns": COLUMN + 0 * ROW, "rows": ROW + 0 * COLUMN, "checkerboard": ROW + COLUMN}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("amplitude", [0.02, 0.3])
def test_a_pattern_has_its_amplitude(way: str, amplitude: float) -> None:
    pattern = 0.5 + amplitude * (1 - 2 * (WAYS[way] % 2))
    pictures = torch.stack([pattern.expand(3, -1, -1), torch.full((3, 34, 50), 0.5)])
    assert grid(pictures).tolist() == pytest.approx([amplitude, 0], abs=1e-6)


def test_slopes_and_wider_patterns_have_none() -> None:
    slope = (0.01 * COLUMN + 0.005 * ROW).expand(1, 3, -1, -1)
    stripes = (COLUMN // 2 % 2 + 0.0 * ROW).expand(1, 3, -1, -1)  # a period of four
    assert grid(slope).item() == pytest.approx(0, abs=1e-6)
    assert grid(stripes).item() == pytest.approx(0, abs=1e-6)


def test_noise_cancels_out() -> None:
    noise = 0.1 * torch.randn(4, 3, 258, 258, generator=torch.Generator().manual_seed(0))
    assert grid(noise).max() < 0.1 / 8
