"""LPIPS: a learned perceptual distance of pictures (Zhang et al. 2018), by AlexNet."""

from typing import Self

from torch import Tensor, nn

from distill.core.weights import WeightsFile

ALEXNET = WeightsFile(
    "alexnet-owt-7be5be79.pth",
    "https://download.pytorch.org/models/alexnet-owt-7be5be79.pth",
    sha256="7be5be79",
)


class LPIPS(nn.Module):
    """(N, 3, H, W) RGB in [0, 1], sides of 32 or more, to a distance each, (N,).

    The linear heads ship with torchmetrics; AlexNet's ImageNet weights must be available.
    """

    def __init__(self, alexnet: dict[str, Tensor]) -> None:
        super().__init__()
        from torchmetrics.functional.image.lpips import _LPIPS  # the one home of the heads

        self.net = _LPIPS(pretrained=True, net="alex", pnet_rand=True, eval_mode=True)
        convolutions = [m for m in self.net.net.modules() if isinstance(m, nn.Conv2d)]
        for conv, index in zip(convolutions, (0, 3, 6, 8, 10), strict=True):
            conv.weight.data.copy_(alexnet[f"features.{index}.weight"])
            conv.bias.data.copy_(alexnet[f"features.{index}.bias"])  # type: ignore[union-attr]
        self.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Self:
        """Never in training mode: the heads have dropout."""
        return super().train(False)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.net(a * 2 - 1, b * 2 - 1).flatten()
