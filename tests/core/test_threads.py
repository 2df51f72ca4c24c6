"""The number of threads follows what other programs leave."""

import random

import pytest
import torch

from distill.core import threads
from distill.core.threads import ROUNDS, SHARE, ThreadTuner, adapting, choices, process_tuner

IDLE = {1: 0.02, 2: 0.011}
BUSY = {1: 0.02, 2: 0.3}  # another program holds a core


class Machine:
    """Seconds of the fixed work and of a training step, by number of threads, and a clock."""

    def __init__(self, seconds, noise=0.0, step=20):
        self.seconds, self.noise, self.step = seconds, noise, step
        self.now, self.measured, self.rng = 100.0, 0.0, random.Random(0)

    def measure(self, count):
        took = self.seconds[count] * self.rng.uniform(1 - self.noise, 1 + self.noise)
        self.now += took
        self.measured += took
        return took

    def clock(self):
        return self.now

    def tuner(self):
        return ThreadTuner(max(self.seconds), self.measure, self.clock)

    def run(self, tuner, steps):
        """The numbers of threads of so many steps."""
        used = []
        for _ in range(steps):
            used.append(tuner.next())
            took = self.step * self.seconds[used[-1]]
            took *= self.rng.uniform(1 - self.noise, 1 + self.noise)
            self.now += took
            tuner.took(took)
        return used


def test_a_busy_machine_is_left_to_its_other_program_from_the_first_step():
    machine = Machine(BUSY)
    assert machine.run(machine.tuner(), 50) == [1] * 50


def test_a_load_that_comes_and_goes_is_followed():
    machine = Machine(IDLE)
    tuner = machine.tuner()
    assert machine.run(tuner, 100) == [2] * 100
    machine.seconds = BUSY
    used = machine.run(tuner, 100)
    assert used == sorted(used, reverse=True)
    assert used.index(1) <= 3  # as soon as three steps were slow
    machine.seconds = IDLE
    begun = machine.now
    while machine.run(tuner, 1) == [1]:
        assert machine.now - begun < 200
    assert machine.run(tuner, 100) == [2] * 100


def test_noise_changes_nothing():
    for level in (IDLE, BUSY, {1: 0.02, 2: 0.02}):
        machine = Machine(level, noise=0.1)
        used = machine.run(machine.tuner(), 2000)
        assert set(used) == {used[0]}


def test_an_idle_machine_sees_one_trial_and_no_more():
    machine = Machine(IDLE, noise=0.1)
    tuner = machine.tuner()
    machine.run(tuner, 1)
    first = machine.measured
    assert first == pytest.approx(ROUNDS * (0.02 + 0.011), rel=0.1)
    machine.run(tuner, 2000)
    assert machine.measured == first


def test_trials_take_no_more_than_their_share():
    machine = Machine(BUSY, step=5)
    tuner = machine.tuner()
    machine.run(tuner, 1)
    begun, before = machine.now, machine.measured
    machine.run(tuner, 20000)
    spent = machine.measured - before
    assert 0 < spent / (machine.now - begun) <= SHARE


def test_one_slow_step_is_no_reason_for_a_trial():
    machine = Machine(IDLE)
    tuner = machine.tuner()
    machine.run(tuner, 50)
    before = machine.measured
    tuner.took(9.0)
    machine.run(tuner, 50)
    assert machine.measured == before


def test_many_cores():
    assert choices(2) == [2, 1]
    assert choices(4) == [4, 3, 2, 1]
    assert choices(16) == [16, 15, 8, 4, 2]
    share = {n: 0.16 / n for n in choices(16)}
    one_core_taken = Machine(share | {16: 0.3})
    assert one_core_taken.run(one_core_taken.tuner(), 9) == [15] * 9
    three_left = Machine({n: t if n < 4 else 0.3 for n, t in share.items()})
    assert three_left.run(three_left.tuner(), 9) == [2] * 9


@pytest.fixture
def two_threads(monkeypatch):
    """A machine of two cores whose other program holds one; the process's own tuner is new."""
    for name in threads.CHOSEN:
        monkeypatch.delenv(name, raising=False)
    machine = Machine(BUSY)
    monkeypatch.setattr(threads, "_layers", lambda most: machine.measure)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    process_tuner.cache_clear()
    yield machine
    process_tuner.cache_clear()
    torch.set_num_threads(before)


def test_a_loop_runs_on_the_number_that_is_best_and_gives_it_back(two_threads):
    assert [(unit, torch.get_num_threads()) for unit in adapting("ab")] == [("a", 1), ("b", 1)]
    assert torch.get_num_threads() == 2
    for _ in adapting("ab"):
        break
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("name", threads.CHOSEN)
def test_a_number_that_the_user_set_is_left_alone(two_threads, monkeypatch, name):
    monkeypatch.setenv(name, "2")
    assert process_tuner() is None
    assert [torch.get_num_threads() for _ in adapting("ab")] == [2, 2]
    assert two_threads.measured == 0


def test_one_core_needs_no_trial(two_threads):
    torch.set_num_threads(1)
    assert process_tuner() is None


def test_the_fixed_work_draws_no_number_of_the_runs():
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    assert threads._layers(1)(1) > 0
    assert torch.equal(torch.rand(3), wanted)
