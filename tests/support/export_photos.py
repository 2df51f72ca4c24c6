"""Pictures for the exporters' tests, and a network's output for them."""

import torch
from torch import Tensor, nn

SIZE = 64


def photos(count: int, seed: int = 0) -> Tensor:
    """(count, 3, 64, 64) in [0, 1], with shapes of all sizes, as photos have."""
    generator = torch.Generator().manual_seed(seed)
    picture = torch.zeros(count, 3, SIZE, SIZE)
    for side in (2, 4, 8, 16, 32):
        noise = torch.rand(count, 3, side, side, generator=generator)
        picture += nn.functional.interpolate(noise, (SIZE, SIZE), mode="bilinear") / side**0.5
    low, high = picture.amin((1, 2, 3), keepdim=True), picture.amax((1, 2, 3), keepdim=True)
    return (picture - low) / (high - low)


@torch.inference_mode()
def output_of(network: nn.Module, pictures: Tensor) -> Tensor:
    return network.eval()(pictures)
