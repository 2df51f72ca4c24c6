"""A public CycleGAN generator as a teacher: files in the layout of the authors' PyTorch code."""

from pathlib import Path

from torch import Tensor

from distill.core import state_dicts
from distill.core.errors import DistillError
from distill.models.teachers.teacher import Teacher, at_any_size
from distill_gan.generators.resnet import ResNetGenerator

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
    normalises = True

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        if weights is None:
            raise DistillError(
                "style.weights: missing; teacher=cyclegan needs a generator's file: "
                "style.weights=latest_net_G.pth"
            )
        state = {  # by our names: without DataParallel's prefix
            name.removeprefix("module."): tensor
            for name, tensor in state_dicts.load_tensors(weights).items()
            if not name.endswith(_STATISTICS)
        }
        if _FIRST not in state:
            raise DistillError(f"{weights}: no generator of CycleGAN: no tensor {_FIRST}")
        blocks, width = sum(key.endswith(_BLOCK) for key in state), len(state[_FIRST])
        self.origin = str(weights)
        self.net = ResNetGenerator(blocks, width)
        state_dicts.load_state(self.net, state, Path(weights))
        self.freeze()

    def forward(self, photo: Tensor) -> Tensor:
        return at_any_size(self.net, photo, self.multiple)
