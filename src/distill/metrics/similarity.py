"""One value per picture: PSNR, SSIM, LPIPS and of mattes to another one; patterns in itself."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from distill.core import weights as weights_files
from distill.core.errors import DistillError
from distill.core.lpips import ALEXNET, LPIPS
from distill.core.state_dicts import load_tensors
from distill.metrics.metric import Metric

WINDOW = 11  # pixels, for `ssim`
BLOCK = 16  # pixels over which a pattern must go on to count, for `grid`


def psnr(a: Tensor, b: Tensor) -> Tensor:
    """Peak signal-to-noise ratio in dB, (N,), of (N, C, H, W) in [0, 1]; 100 dB when equal."""
    error = (a.float() - b.float()).square().flatten(1).mean(1)
    return -10 * error.clamp_min(1e-10).log10()


def ssim(a: Tensor, b: Tensor) -> Tensor:
    """Structural similarity (Wang et al. 2004; Gaussian window 11), (N,), of values in [0, 1].

    Over the places where the window lies inside the picture, as in the paper's own code. Raises
    DistillError for pictures smaller than the window.
    """
    height, width = a.shape[-2:]
    if min(height, width) < WINDOW:
        raise DistillError(
            f"SSIM needs pictures of at least {WINDOW} pixels, and these are of {height}×{width}; "
            "take larger ones"
        )
    from kornia.metrics import ssim as ssim_map  # heavy, and no training step needs it

    return ssim_map(a.float(), b.float(), WINDOW, padding="valid").flatten(1).mean(1)


def lpips_or_none() -> Callable[[Tensor, Tensor], Tensor] | None:
    """LPIPS where AlexNet's weights are available; never downloads on its own."""
    path = weights_files.find_or_none(ALEXNET)
    return torch.no_grad()(LPIPS(load_tensors(path))) if path else None


class MeanError(Metric):
    """Mean absolute difference, in [0, 1]."""

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        return (output - target).abs().flatten(1).mean(1)


class MaskIoU(Metric):
    """Intersection over union of what is brighter than half; 1 where neither has any."""

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        a, b = (each.mean(1) > 0.5 for each in (output, target))
        both, either = ((a & b).sum((1, 2)), (a | b).sum((1, 2)))
        return torch.where(either > 0, both / either.clamp_min(1), 1.0)


# Nodes of the metrics of grey outputs, by name.
GREY: dict[str, dict[str, Any]] = {
    name: {"_target_": f"{__name__}.{each.__name__}"}
    for name, each in {"MAE": MeanError, "IoU at .5": MaskIoU}.items()
}


def grid(pictures: Tensor) -> Tensor:
    """Amplitude (N,) of patterns with a period of two pixels, of (N, C, H, W), sides of 18 or more.

    ±a in columns, in rows or as a checkerboard gives a. Second differences are multiplied by
    (−1)^position and averaged over blocks: a pattern adds up, texture and noise cancel out. An edge
    leaves a little, so that a sharp picture without any pattern has more than a soft one: compare
    a student with its teacher.
    """
    squares = torch.zeros(len(pictures), device=pictures.device)
    for sides in ((3,), (2,), (2, 3)):
        wave = pictures.float()
        for side in sides:
            size = wave.shape[side] - 2
            before, here, after = (wave.narrow(side, start, size) for start in range(3))
            signs = torch.ones(size, device=wave.device)
            signs[::2] = -1
            shape = [size if d == side else 1 for d in range(wave.ndim)]
            wave = (2 * here - before - after) / 4 * signs.view(shape)
        squares += F.avg_pool2d(wave, BLOCK).square().mean((1, 2, 3))
    return squares.sqrt()
