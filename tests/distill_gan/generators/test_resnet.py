import pytest
import torch
from torch import nn

from distill.core.errors import DistillError
from distill.metrics.complexity import module_macs, parameters
from distill_gan.generators.resnet import ResNetGenerator


@pytest.mark.parametrize(
    ("blocks", "values", "macs"), [(9, 11_378_179, 49.55e9), (6, 7_837_699, 35.06e9)]
)
def test_the_paper_s_networks(blocks, values, macs):
    network = ResNetGenerator(blocks)
    assert parameters(network) == values
    # By hand, every convolution at its output's size, transposed ones at their input's.
    side = 256 * 256
    down = 49 * 3 * 64 * side + 9 * 64 * 128 * side // 4 + 9 * 128 * 256 * side // 16
    residual = 2 * blocks * 9 * 256 * 256 * side // 16
    up = 9 * 256 * 128 * side // 16 + 9 * 128 * 64 * side // 4 + 49 * 64 * 3 * side
    assert down + residual + up == pytest.approx(macs, rel=1e-3)
    assert module_macs(ResNetGenerator(blocks, width=8), 32) == pytest.approx(
        _narrow(blocks), rel=1e-6
    )


def _narrow(blocks: int) -> int:
    side, w = 32 * 32, 8
    ends = 2 * 49 * 3 * w * side
    middle = 2 * (9 * w * 2 * w * side // 4 + 9 * 2 * w * 4 * w * side // 16)
    return ends + middle + 2 * blocks * 9 * (4 * w) ** 2 * side // 16


def test_layers_lie_as_in_the_public_implementation():
    names = [n for n, m in ResNetGenerator(9).named_modules() if isinstance(m, nn.Conv2d)]
    assert names[:4] == ["model.1", "model.4", "model.7", "model.10.conv_block.1"]
    assert names[-2:] == ["model.18.conv_block.5", "model.26"]
    state = ResNetGenerator(9).state_dict()
    assert not [k for k in state if "running" in k]
    assert state["model.1.bias"].shape == (64,)  # InstanceNorm has no shift: convolutions do


def test_borders_are_reflected():
    network = ResNetGenerator(2, 8)
    pads = [m.padding[0] for m in network.modules() if isinstance(m, nn.ReflectionPad2d)]
    assert pads == [3, 1, 1, 1, 1, 3]
    zeros = [m for m in network.modules() if type(m) is nn.Conv2d and m.padding != (0, 0)]
    assert [m.stride for m in zeros] == [(2, 2), (2, 2)]  # of the authors', the halving ones alone


@pytest.mark.parametrize("side", [32, 36])
def test_any_size_that_divides_by_four(side):
    output = ResNetGenerator(1, 8)(torch.rand(1, 3, side, 32))
    assert output.shape == (1, 3, side, 32)
    assert 0 <= output.min() <= output.max() <= 1


def test_a_size_that_does_not():
    with pytest.raises(DistillError, match=r"data.crop_size=30: .*divide by 4"):
        ResNetGenerator(size=30)
