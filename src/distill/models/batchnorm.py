"""BatchNorm: folded into the convolutions before it, and back; its statistics kept or measured."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights

from distill.core.process import with_attribute
from distill.models.plain_weights import plain_copy

Convolution = nn.Conv2d | nn.ConvTranspose2d


def fold_batchnorm(network: nn.Module) -> nn.Module:
    """A copy in evaluation mode in which no BatchNorm is left after a convolution.

    Both must be neighbours in an nn.Sequential, as in every encoder, decoder and generator here.
    A convolution or an nn.Sequential with a forward of its own stays, and a norm by each batch.
    """
    folded = plain_copy(network)
    for conv_name, conv, norm_name, norm in [*_normalised(folded)]:
        folded.set_submodule(conv_name, _fused(conv, norm))
        folded.set_submodule(norm_name, nn.Identity())
    return folded.eval()  # the Identity left behind is born in training mode


def _is_plain(module: nn.Module, *kinds: type[nn.Module]) -> bool:
    """Whether it computes what one of these kinds does."""
    return type(module).forward in {kind.forward for kind in kinds}


def _fused(conv: Convolution, norm: nn.BatchNorm2d) -> nn.Module:
    if not isinstance(conv, nn.ConvTranspose2d) or conv.groups == 1:
        return fuse_conv_bn_eval(conv, norm, transpose=isinstance(conv, nn.ConvTranspose2d))
    # The weights of a transposed convolution are (in, out / groups, …): torch's own folding finds
    # no axis of all output channels in them.
    assert norm.running_mean is not None
    assert norm.running_var is not None
    fused, shape, groups = deepcopy(conv), conv.weight.shape, conv.groups
    rows = conv.weight.view(groups, -1, *shape[1:]).transpose(1, 2).flatten(0, 1)
    statistics = norm.running_mean, norm.running_var, norm.eps
    rows, fused.bias = fuse_conv_bn_weights(rows, conv.bias, *statistics, norm.weight, norm.bias)
    rows = rows.detach().view(groups, -1, *rows.shape[1:]).transpose(1, 2)
    fused.weight = nn.Parameter(rows.reshape(shape))
    return fused


def unfold_batchnorm(network: nn.Module, folded: Mapping[str, Tensor], photos: Tensor) -> None:
    """Load weights of which `fold_batchnorm` took the BatchNorm into `network`, which has it.

    What a layer had measured is lost, but it can be measured again: of the convolution's outputs
    for a few photos. With those statistics the layer is set so that it gives what the folded one
    gave, in evaluation exactly, and in training as nearly as a batch is like the photos. `photos`
    (N, 3, H, W) in [0, 1] are what is measured. Raises RuntimeError for weights of
    another network.
    """
    state, untrained = dict(folded), network.state_dict()
    offsets: dict[nn.BatchNorm2d, Tensor] = {}
    for conv_name, conv, norm_name, norm in _normalised(network):
        offsets[norm] = state.pop(f"{conv_name}.bias", torch.zeros(norm.num_features))
        if conv.bias is not None:
            state[f"{conv_name}.bias"] = torch.zeros_like(conv.bias)
        for key in norm.state_dict():
            state[f"{norm_name}.{key}"] = untrained[f"{norm_name}.{key}"]
    network.load_state_dict(state)
    for norm, offset in offsets.items():
        zeros = torch.zeros_like(offset)
        _set(norm, zeros, 1 - norm.eps + zeros, offset)
    for norm, (mean, variance) in _input_moments(network, offsets, photos).items():
        _set(norm, mean, variance, mean + offsets[norm])


def _normalised(network: nn.Module) -> Iterator[tuple[str, Convolution, str, nn.BatchNorm2d]]:
    """What `fold_batchnorm` folds: each convolution and the BatchNorm behind it, by name."""
    for name, module in network.named_modules():
        if not isinstance(module, nn.Sequential) or not _is_plain(module, nn.Sequential):
            continue
        prefix = f"{name}." if name else ""
        for (first, conv), (second, norm) in pairwise(module._modules.items()):
            if not isinstance(norm, nn.BatchNorm2d) or norm.running_mean is None:
                continue
            if isinstance(conv, Convolution) and _is_plain(conv, nn.Conv2d, nn.ConvTranspose2d):
                yield prefix + first, conv, prefix + second, norm


def _set(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, bias: Tensor) -> None:
    """Statistics, and the scale by which nothing is scaled: x - mean + bias."""
    with torch.no_grad():
        norm.running_mean = mean.clone()
        norm.running_var = variance.clone()
        norm.weight.copy_((variance + norm.eps).sqrt())
        norm.bias.copy_(bias)


@torch.inference_mode()
def _input_moments(
    network: nn.Module, norms: Iterable[nn.BatchNorm2d], photos: Tensor
) -> dict[nn.BatchNorm2d, tuple[Tensor, Tensor]]:
    """Mean and variance of what each norm is given, over all photos at once, by channel."""
    moments = dict[nn.BatchNorm2d, tuple[Tensor, Tensor]]()

    def record(norm: nn.BatchNorm2d, inputs: tuple[Tensor, ...]) -> None:
        variance, mean = torch.var_mean(inputs[0].double(), (0, 2, 3))
        moments[norm] = mean.float(), variance.float()

    with _before_each(norms, record), with_attribute(network.modules(), "training", False):
        network(photos)
    return moments


@contextmanager
def _before_each(
    norms: Iterable[nn.Module], record: Callable[[Any, tuple[Tensor, ...]], None]
) -> Iterator[None]:
    """`record` gets each norm with its inputs before it is run in this block."""
    hooks = [norm.register_forward_pre_hook(record) for norm in norms]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


TRIMMED = 0.1  # of the batches, at each end, when statistics are measured
FLOOR = 0.03  # of the median variance of a layer's channels


def frozen_statistics(network: nn.Module) -> AbstractContextManager[None]:
    """Each BatchNorm that trains normalises by the current batch, as ever, and records nothing.

    For further passes of one step: else their pictures would count among those that evaluation
    goes by, and those of earlier steps for less.
    """
    return with_attribute(batchnorms(network), "track_running_stats", False)


def by_averages(network: nn.Module) -> AbstractContextManager[None]:
    """Each BatchNorm normalises by its running statistics, as in evaluation."""
    return with_attribute(batchnorms(network), "training", False)


def normalise_by_averages(network: nn.Module) -> None:
    """Each BatchNorm normalises by its running statistics, as in evaluation, and records nothing.

    Until the network's mode is set again. Scale and shift learn as ever.
    """
    for norm in batchnorms(network):
        norm.eval()


@contextmanager
def trimmed_statistics(network: nn.Module) -> Iterator[None]:
    """Running statistics become what the batches passed in this block have, in training mode.

    They are trimmed means over the batches: one picture that a layer has never seen the like of
    moves a plain average for long. No channel's variance falls below 3 % of the median of its
    layer: one that is 0 for most pictures would have a variance near 0, and the rare picture that
    it is not 0 for would leave the layer a thousand times too large.
    """
    batches_of = defaultdict[_BatchNorm, list[tuple[Tensor, Tensor]]](list)

    def record(norm: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
        if norm.training:
            variance, mean = torch.var_mean(inputs[0].float(), (0, 2, 3))
            batches_of[norm].append((mean, variance))

    with torch.no_grad(), frozen_statistics(network), _before_each(batchnorms(network), record):
        yield
    for norm, batches in batches_of.items():
        if norm.running_mean is not None and norm.running_var is not None:
            means, variances = map(torch.stack, zip(*batches, strict=True))
            variance = _trimmed_mean(variances)
            norm.running_mean.copy_(_trimmed_mean(means))
            norm.running_var.copy_(variance.clamp_min(FLOOR * float(variance.median())))


def _trimmed_mean(values: Tensor) -> Tensor:
    """Over the first dimension, without the highest and the lowest tenth."""
    out = int(TRIMMED * len(values))
    return values.sort(0).values[out : len(values) - out].mean(0)


def batchnorms(network: nn.Module) -> Iterator[_BatchNorm]:
    """Every BatchNorm, of any dimensions."""
    return (module for module in network.modules() if isinstance(module, _BatchNorm))
