"""Give a network whose BatchNorm is folded away its BatchNorm back, so that it can learn on.

What a layer had measured is lost, but it can be measured again: of the convolution's outputs for a
few photos. With those statistics the layer is set so that it gives what the folded one gave, in
evaluation exactly, and in training as nearly as a batch is like the photos.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

Convolution = nn.Conv2d | nn.ConvTranspose2d


def unfold_batchnorm(network: nn.Module, folded: Mapping[str, Tensor], photos: Tensor) -> None:
    """Load weights of which `fold_batchnorm` took the BatchNorm into `network`, which has it.

    `photos` (N, 3, H, W) in [0, 1] are what is measured. Raises RuntimeError for weights of
    another network.
    """
    state, own = dict(folded), network.state_dict()
    offsets: dict[str, Tensor] = {}
    for conv_name, conv, norm_name, norm in _normalised(network):
        offsets[norm_name] = state.pop(f"{conv_name}.bias", torch.zeros(norm.num_features))
        if conv.bias is not None:
            state[f"{conv_name}.bias"] = torch.zeros_like(conv.bias)
        for key in norm.state_dict():
            state[f"{norm_name}.{key}"] = own[f"{norm_name}.{key}"]
    network.load_state_dict(state)
    norms = {name: norm for _, _, name, norm in _normalised(network)}
    for name, norm in norms.items():
        zeros = torch.zeros_like(offsets[name])
        _set(norm, zeros, 1 - norm.eps + zeros, offsets[name])
    for name, (mean, variance) in _measured(network, norms, photos).items():
        _set(norms[name], mean, variance, mean + offsets[name])


def _normalised(network: nn.Module) -> Iterator[tuple[str, Convolution, str, nn.BatchNorm2d]]:
    """Every convolution with the BatchNorm behind it, neighbours in an nn.Sequential, by name."""
    for name, module in network.named_modules():
        if isinstance(module, nn.Sequential):
            prefix = f"{name}." if name else ""
            each = list(module.named_children())
            for (first, conv), (second, norm) in zip(each, each[1:], strict=False):
                if isinstance(norm, nn.BatchNorm2d) and isinstance(conv, Convolution):
                    yield prefix + first, conv, prefix + second, norm


def _set(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, bias: Tensor) -> None:
    """Statistics, and the scale by which nothing is scaled: x - mean + bias."""
    with torch.no_grad():
        norm.running_mean = mean.clone()
        norm.running_var = variance.clone()
        norm.weight.copy_((variance + norm.eps).sqrt())
        norm.bias.copy_(bias)


@torch.inference_mode()
def _measured(
    network: nn.Module, norms: Mapping[str, nn.BatchNorm2d], photos: Tensor
) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and variance of what each norm is given, over all photos at once, by channel."""
    found: dict[str, tuple[Tensor, Tensor]] = {}

    def keep(name: str) -> torch.utils.hooks.RemovableHandle:
        def hook(_: nn.Module, given: tuple[Tensor]) -> None:
            variance, mean = torch.var_mean(given[0].double(), (0, 2, 3))
            found[name] = mean.float(), variance.float()

        return norms[name].register_forward_pre_hook(hook)

    was, handles = network.training, [keep(name) for name in norms]
    try:
        network.eval()(photos)
    finally:
        network.train(was)
        for handle in handles:
            handle.remove()
    return {name: (mean.clone(), variance.clone()) for name, (mean, variance) in found.items()}
