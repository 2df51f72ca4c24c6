"""Training for a time, by a clock of the test's."""

from types import SimpleNamespace

import pytest

from distill_picture import pace
from distill_picture.pace import Pace


def trained(monkeypatch, budget, planned, times, seconds=0.0):
    """The callback after steps that take these times, and the trainer that it was in."""
    now = [0.0]
    monkeypatch.setattr(pace, "monotonic", lambda: now[0])
    loop = SimpleNamespace(max_steps=planned)
    trainer = SimpleNamespace(
        global_step=0,
        max_steps=planned,
        should_stop=False,
        fit_loop=SimpleNamespace(epoch_loop=loop),
    )
    callback = Pace(budget)
    callback.load_state_dict({"seconds": seconds})
    callback.on_train_start(trainer, None)
    for each in times:
        now[0] += each
        trainer.global_step += 1
        callback.on_train_batch_end(trainer)
        if trainer.should_stop:
            break
    return callback, trainer


@pytest.mark.parametrize(
    ("budget", "planned", "times", "stopped", "over"),
    [
        (100, 10, [10] * 10, None, True),  # as planned
        (100, 10, [1] * 10, None, False),  # faster: to be planned again
        (100, 100, [10] * 100, 5, False),  # slower: ten times the budget
        (100, 100, [70, 70], 2, True),  # over before its pace is known
        (100, 10, [12] * 10, 9, True),  # a little slower: it ends with the time
    ],
)
def test_steps_that_are_too_slow_end_it(monkeypatch, budget, planned, times, stopped, over):
    callback, trainer = trained(monkeypatch, budget, planned, times)
    assert trainer.should_stop == (stopped is not None)
    assert trainer.fit_loop.epoch_loop.max_steps == (stopped or planned)
    assert callback.seconds == sum(times[: stopped or planned])
    assert callback.over == over


def test_time_of_before_counts(monkeypatch):
    callback, trainer = trained(monkeypatch, 100, 10, [10] * 10, seconds=50)
    assert callback.state_dict() == {"seconds": 50 + 10 * trainer.global_step}
    assert trainer.global_step == 5  # its time is over
