"""Weights that a norm, a mask or another parametrization computes at each call, as plain ones."""

from copy import deepcopy

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

HOOKS = (WeightNorm, SpectralNorm, BasePruningMethod)  # torch's older way to compute weights


def plain_copy(network: nn.Module) -> nn.Module:
    """A copy in evaluation mode with plain weights, so that layers can be folded and written."""
    tensors = (each for module in network.modules() for each in vars(module).values())
    # The tensors that such a hook computed: deepcopy refuses them.
    computed = {id(e): e.detach() for e in tensors if isinstance(e, torch.Tensor) and e.grad_fn}
    copy = deepcopy(network, computed).eval()
    for module in list(copy.modules()):
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, HOOKS):
                hook.remove(module)
                del module._forward_pre_hooks[key]
        if parametrize.is_parametrized(module):
            names, kind = module.parametrizations, parametrize.type_before_parametrizations(module)
            assert isinstance(names, nn.ModuleDict)
            weights = {name: nn.Parameter(getattr(module, name).detach()) for name in names}
            del module.parametrizations
            module.__class__ = kind  # remove_parametrizations would change the original's, too
            for name, weight in weights.items():
                module.register_parameter(name, weight)
    return copy
