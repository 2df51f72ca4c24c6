"""Fold BatchNorm into the convolutions before it, as a phone runs the network."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


def fold_batchnorm(network: nn.Module) -> nn.Module:
    """A copy in evaluation mode in which no BatchNorm is left after a convolution.

    Both must be neighbours in an nn.Sequential, as in every encoder, decoder and generator here.
    """
    folded = deepcopy(network).eval()
    for module in list(folded.modules()):
        if not isinstance(module, nn.Sequential):
            continue
        for i in range(len(module) - 1):
            conv, norm = module[i], module[i + 1]
            if isinstance(norm, nn.BatchNorm2d) and isinstance(
                conv, nn.Conv2d | nn.ConvTranspose2d
            ):
                module[i], module[i + 1] = _fused(conv, norm), nn.Identity()
    return folded.eval()  # the Identity left behind is born in training mode


def _fused(conv: nn.Conv2d | nn.ConvTranspose2d, norm: nn.BatchNorm2d) -> nn.Module:
    if not isinstance(conv, nn.ConvTranspose2d) or conv.groups == 1:
        return fuse_conv_bn_eval(conv, norm, transpose=isinstance(conv, nn.ConvTranspose2d))
    # The weights of a transposed convolution are (in, out / groups, …): torch's own folding finds
    # no axis of all output channels in them.
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    weight, groups = conv.weight, conv.groups
    each = weight.view(groups, -1, *weight.shape[1:]) * scale.view(groups, 1, -1, 1, 1)
    bias = torch.zeros_like(scale) if conv.bias is None else conv.bias
    conv.weight = nn.Parameter(each.view_as(weight).detach())
    conv.bias = nn.Parameter((norm.bias + (bias - norm.running_mean) * scale).detach())
    return conv
