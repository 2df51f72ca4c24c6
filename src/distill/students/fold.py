"""Fold BatchNorm into the convolutions before it, as a phone runs the network."""

from __future__ import annotations

from copy import deepcopy

from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


def fold_batchnorm(network: nn.Module) -> nn.Module:
    """A copy in evaluation mode in which no BatchNorm is left after a convolution.

    Both must be neighbours in an nn.Sequential, as in every encoder and decoder here.
    """
    folded = deepcopy(network).eval()
    for module in list(folded.modules()):
        if isinstance(module, nn.Sequential):
            _fold_neighbours(module)
    return folded.eval()  # the Identity left behind is born in training mode


def _fold_neighbours(sequence: nn.Sequential) -> None:
    for i in range(len(sequence) - 1):
        conv, norm = sequence[i], sequence[i + 1]
        if isinstance(conv, nn.Conv2d | nn.ConvTranspose2d) and isinstance(norm, nn.BatchNorm2d):
            transposed = isinstance(conv, nn.ConvTranspose2d)
            sequence[i] = fuse_conv_bn_eval(conv, norm, transpose=transposed)
            sequence[i + 1] = nn.Identity()
