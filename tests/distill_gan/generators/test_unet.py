import pytest
import torch
from torch import nn

from distill.core.errors import DistillError
from distill.metrics.complexity import module_macs, parameters
from distill_gan.generators.unet import UNet


def test_the_paper_s_network():
    full = UNet(upsampling="transposed").eval()
    assert parameters(full) == 54_414_531  # of the public implementation's unet_256
    assert module_macs(full, 256) == pytest.approx(6.05e9, rel=1e-3)


@pytest.mark.parametrize(("size", "blocks"), [(16, 4), (64, 6), (256, 8)])
def test_depth_follows_the_size(size, blocks):
    network = UNet(size, encoder=0.1, decoder=0.1).eval()
    assert (len(network.down), len(network.up)) == (blocks, blocks)
    seen = []
    network.down[-1].register_forward_hook(lambda *args: seen.append(args[-1].shape[-2:]))
    assert network(torch.rand(2, 3, size, size)).shape == (2, 3, size, size)
    assert seen == [(1, 1)]


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("upsampling", ["nearest", "transposed"])
@pytest.mark.parametrize("channels", [3, 4])
def test_every_form_s_output_is_in_range(separable, upsampling, channels):
    network = UNet(32, 3, channels, 0.2, 0.3, separable, upsampling)
    output = network(torch.rand(2, 3, 32, 32))
    assert output.shape == (2, channels, 32, 32)
    assert output.min() >= 0
    assert output.max() <= 1
    output.sum().backward()
    assert all(p.grad is not None for p in network.parameters())


def test_widths_of_both_ways():
    network = UNet(256, encoder=0.4, decoder=2.0)
    down = [next(m for m in block if isinstance(m, nn.Conv2d)) for block in network.down]
    up = [next(m for m in block if isinstance(m, nn.Conv2d)) for block in network.up]
    assert [c.out_channels for c in down] == [26, 51, 102, *[205] * 5]
    assert [c.out_channels for c in up] == [*[1024] * 4, 512, 256, 128, 3]
    assert up[1].in_channels == 1024 + 205  # the block before it and the skip


def test_a_separable_block_is_depthwise_then_pointwise():
    plain, separable = UNet(64, separable=False), UNet(64, separable=True)
    block = [m for m in separable.down[2] if isinstance(m, nn.Conv2d)]
    assert [(c.groups, c.kernel_size) for c in block] == [(128, (4, 4)), (1, (1, 1))]
    assert parameters(separable) < parameters(plain) / 5
    # The layers that see and give pictures stay plain: three channels have nothing to separate.
    assert [m.groups for m in separable.down[0] if isinstance(m, nn.Conv2d)] == [1]


def test_activations_are_the_paper_s():
    network = UNet(64)
    down = [[m for m in block if isinstance(m, nn.LeakyReLU)] for block in network.down]
    assert [[m.negative_slope for m in found] for found in down] == [[], *[[0.2]] * 5]
    assert all(type(block[0]) is nn.ReLU for block in network.up)


def test_dropout_in_the_three_innermost_blocks_and_in_training_only():
    network = UNet(256, encoder=0.1, decoder=0.1)
    held = [any(isinstance(m, nn.Dropout) for m in block) for block in network.up]
    assert held == [True, True, True, False, False, False, False, False]
    photo = torch.rand(2, 3, 256, 256)
    assert not torch.equal(network(photo), network(photo))
    network.eval()
    assert torch.equal(network(photo), network(photo))


@pytest.mark.parametrize("size", [8, 100, 255])
def test_sizes_that_cannot_be_halved(size):
    with pytest.raises(DistillError, match=f"data.crop_size={size}: .*power of two"):
        UNet(size)
