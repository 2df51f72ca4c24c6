import pytest
import torch
from torch import nn

from distill.models.batchnorm import frozen_statistics, trimmed_statistics


def network() -> nn.Module:
    plain = nn.BatchNorm2d(4, track_running_stats=False)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Sequential(plain, nn.ReLU()))


def test_in_training_a_pass_gives_the_same_and_records_nothing():
    net, photo = network(), torch.rand(2, 3, 8, 8)
    expected = net(photo)  # by the batch's own statistics, which this pass records
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with frozen_statistics(net):
        found = net(photo)
        net(3 * photo)
    assert torch.equal(found, expected)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    found.sum().backward()
    assert net[1].weight.grad is not None
    net(photo)
    assert int(net[1].num_batches_tracked) == 2  # from then on as ever
    assert [m.track_running_stats for m in (net[1], net[2][0])] == [True, False]


def test_an_error_ends_it_too():
    net = network()
    with pytest.raises(RuntimeError, match="stop"), frozen_statistics(net):
        raise RuntimeError("stop")
    assert net[1].track_running_stats


def test_measured_statistics_leave_outliers_out_and_dead_channels_have_a_floor():
    norm = nn.BatchNorm2d(3, momentum=0.5)
    shape = torch.tensor([1.0, 2.0, 0.0]).view(1, 3, 1, 1)  # the last channel is dead
    signs = torch.tensor([-1.0, 1.0]).view(1, 1, 1, 2)  # of mean 0 and variance 2 at 2 values
    with trimmed_statistics(norm):
        for step in range(10):
            norm((1000.0 if step == 3 else 1.0) * shape * signs + step)
    # Means 0 … 9 without their ends; variances 2 and 8, the single huge ones left out.
    assert norm.running_mean.tolist() == pytest.approx([4.5] * 3)
    assert norm.running_var.tolist() == pytest.approx([2.0, 8.0, 0.03 * 2.0])
    assert norm.track_running_stats
    assert not norm._forward_pre_hooks
