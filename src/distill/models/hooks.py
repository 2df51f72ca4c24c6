"""Record the outputs of named layers while a network runs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from torch import Tensor, nn

from distill.core.errors import DistillError


class Recorder:
    """`outputs[name]` holds the latest output of every named layer of a network.

    Raises DistillError for a name the network does not have. Hooks are the one way to read a
    layer that keeps the network's own code free of bookkeeping.
    """

    def __init__(self, network: nn.Module, names: Iterable[str], key: str) -> None:
        self.outputs: dict[str, Tensor] = {}
        layers = dict(network.named_modules())
        self.wanted = tuple(names)
        for name in self.wanted:
            if name not in layers:
                known = ", ".join(n for n in layers if n and n.count(".") <= 1)
                raise DistillError(f"{key}: no layer {name!r}; try one of {known}")
            layers[name].register_forward_hook(partial(self._keep, name))

    def _keep(self, name: str, _module: nn.Module, _inputs: object, output: Tensor) -> None:
        self.outputs[name] = output
