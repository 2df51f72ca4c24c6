from types import SimpleNamespace

import pytest
import torch
from torch import nn

from distill.train.callbacks.student import StudentEMA


class Module(nn.Module):
    device = torch.device("cpu")

    def __init__(self, start):
        super().__init__()
        self.student = nn.Linear(1, 1, bias=False)
        self.set(start)

    def set(self, value):
        with torch.no_grad():
            self.student.weight.fill_(value)


def step(ema, module, number, value):
    module.set(value)
    ema.on_train_batch_end(SimpleNamespace(global_step=number), module)


def test_average_follows_the_recurrence_with_its_warm_up():
    module, ema = Module(1.0), StudentEMA(decay=0.25)
    ema.on_train_start(SimpleNamespace(), module)
    expected = 1.0
    for number, value in enumerate([3.0, 5.0, -2.0], start=1):
        decay = min(0.25, (1 + number) / (10 + number))
        expected = decay * expected + (1 - decay) * value
        step(ema, module, number, value)
    assert float(ema.average["weight"]) == pytest.approx(expected)


def test_no_update_while_gradients_accumulate():
    module, ema = Module(1.0), StudentEMA(decay=0.5)
    ema.on_train_start(SimpleNamespace(), module)
    step(ema, module, 0, 9.0)
    assert float(ema.average["weight"]) == 1.0


def test_validation_sees_the_average_and_training_goes_on_with_its_own():
    module, ema = Module(1.0), StudentEMA(decay=0.5)
    trainer = SimpleNamespace(sanity_checking=False)
    ema.on_train_start(trainer, module)
    module.set(7.0)
    ema.on_validation_start(trainer, module)
    assert float(module.student.weight) == 1.0
    ema.on_validation_end(trainer, module)
    assert float(module.student.weight) == 7.0


def test_state_survives_a_checkpoint():
    module, ema, other = Module(1.0), StudentEMA(), StudentEMA()
    ema.on_train_start(SimpleNamespace(), module)
    step(ema, module, 1, 4.0)
    other.load_state_dict(ema.state_dict())
    other.on_train_start(SimpleNamespace(), Module(0.0))
    assert torch.equal(other.average["weight"], ema.average["weight"])
    assert other.updates == 1
