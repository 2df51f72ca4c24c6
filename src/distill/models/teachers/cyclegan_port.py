"""A public CycleGAN generator as a teacher: files in the layout of the authors' PyTorch code."""

from __future__ import annotations

from pathlib import Path

import torch.nn.functional as F
from torch import Tensor

from distill.core import nodes
from distill.core import weights as weights_files
from distill.core.errors import DistillError
from distill.models.teachers.teacher import Teacher

_BLOCK = ".conv_block.1.weight"  # the first convolution of a residual block
_FIRST = "model.1.weight"
# Files older than PyTorch 0.4 hold statistics of InstanceNorm, which nothing uses.
_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class CycleGANTeacher(Teacher):
    """The residual generator of CycleGAN (Zhu et al. 2017), frozen: RGB in [0, 1] to the same.

    `weights` is a `latest_net_G.pth`: tensors `model.N.…`; how many residual blocks there are (9
    or 6) and how wide it is, is read from it. Sides that do not divide by 4 are filled up and the
    result is cut. Raises DistillError for a file of another network, one with dropout or with
    BatchNorm among them.
    """

    multiple = 4

    def __init__(self, weights: Path | None = None) -> None:
        super().__init__()
        if weights is None:
            raise DistillError(
                "style.weights: missing; teacher=cyclegan needs a generator's file: "
                "style.weights=latest_net_G.pth"
            )
        state = _state(weights)
        if _FIRST not in state:
            raise DistillError(f"{weights}: no generator of CycleGAN: no tensor {_FIRST}")
        node = {"_target_": "distill.models.generators.resnet.ResNetGenerator"}
        blocks, width = sum(key.endswith(_BLOCK) for key in state), len(state[_FIRST])
        self.net = nodes.build(node, blocks=blocks, width=width)
        weights_files.fill(self.net, state, weights)
        self.freeze()

    def forward(self, photo: Tensor) -> Tensor:
        height, width = photo.shape[-2:]
        edges = (0, -width % 4, 0, -height % 4)
        padded = F.pad(photo, edges, mode="replicate") if any(edges) else photo
        return self.net(padded)[..., :height, :width].clamp(0, 1)


def _state(path: Path) -> dict[str, Tensor]:
    """The file's tensors by our names: without the statistics, and DataParallel's prefix."""
    state = weights_files.load_tensors(path)
    return {
        name.removeprefix("module."): tensor
        for name, tensor in state.items()
        if not name.endswith(_STATISTICS)
    }
