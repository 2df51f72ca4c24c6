import math

import pytest
import torch

from distill.core.errors import DistillError
from distill.train.schedules import constant, cosine, linear, make_schedule, plateau


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)


def rates(schedule, of, steps):
    seen = []
    for _ in range(steps):
        seen.append(of.param_groups[0]["lr"])
        of.step()
        schedule["scheduler"].step()
    return seen


def test_cosine_rises_falls_and_ends_at_the_floor():
    of = optimizer()
    seen = rates(cosine(of, total_steps=101, val_every=9, warmup=5, floor=0.1), of, 102)
    assert seen[:5] == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
    middle = 5 + 48  # half of the 96 steps after the rise
    assert seen[middle] == pytest.approx(2 * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi / 2))))
    assert seen[101] == pytest.approx(0.2)


def test_linear_holds_then_falls_to_zero():
    of = optimizer()
    seen = rates(linear(of, total_steps=40, val_every=9, epochs=100, decay_epochs=100), of, 41)
    assert seen[:21] == [2.0] * 21
    assert seen[30] == pytest.approx(1.0)
    assert seen[39] == pytest.approx(0.1)
    assert seen[40] == 0


def test_linear_without_a_fall():
    of = optimizer()
    assert rates(linear(of, 5, 1, epochs=3, decay_epochs=0), of, 5) == [2.0] * 5


def test_warm_up_takes_no_more_than_a_tenth():
    of = optimizer()
    seen = rates(cosine(of, total_steps=20, val_every=1, warmup=100), of, 3)
    assert seen[:2] == pytest.approx([1.0, 2.0])


def test_plateau_and_constant():
    of = optimizer()
    schedule = plateau(of, total_steps=9, val_every=7, factor=0.25, patience=1)
    assert (schedule["interval"], schedule["frequency"]) == ("step", 7)
    for loss in (1.0, 1.0, 1.0):
        schedule["scheduler"].step(loss)
    assert of.param_groups[0]["lr"] == 0.5
    assert constant(of, 9, 7) is None


def halved(optimizer, total_steps, val_every):
    return torch.optim.lr_scheduler.StepLR(optimizer, total_steps // 2, 0.5)


def nothing_like_it(optimizer, total_steps, val_every):
    return 5


def test_what_is_no_scheduler_is_one_line():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], 0.8)
    with pytest.raises(DistillError, match="schedule: gave a int, want a scheduler of torch"):
        make_schedule({"_target_": f"{__name__}.nothing_like_it"}, optimizer, 4, 2)


def test_a_scheduler_alone_of_one_s_own_is_of_steps():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(()))], 0.8)
    found = make_schedule({"_target_": f"{__name__}.halved"}, optimizer, 4, 2)
    assert found["interval"] == "step"
    for _ in range(2):
        optimizer.step()
        found["scheduler"].step()
    assert optimizer.param_groups[0]["lr"] == 0.4
    assert make_schedule({"_target_": "distill.train.schedules.constant"}, optimizer, 4, 2) is None
