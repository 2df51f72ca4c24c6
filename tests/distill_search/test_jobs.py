"""Jobs of a sweep in processes of their own: how many at once, how they end, what is said of it."""

import csv
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from distill.config.multirun import Outcome
from distill.core.errors import INTERRUPTED, DistillError
from distill_search import jobs
from distill_search.settings import Launcher
from support.stand_training import FATAL, Stand


class Counted:
    """A job that ends after so many looks at it."""

    at_work: Sequence[int] = ()
    most = 0

    def __init__(self, number: int, looks: int = 2, signals: int = 0) -> None:
        self.number, self.looks, self.signals = number, looks, signals
        Counted.at_work = [*Counted.at_work, number]
        Counted.most = max(Counted.most, len(Counted.at_work))

    def ended(self) -> Outcome | None:
        if self.signals:
            self.signals = 0
            os.kill(os.getpid(), signal.SIGINT)
        self.looks -= 1
        if self.looks > 0:
            return None
        Counted.at_work = [each for each in Counted.at_work if each != self.number]
        return Outcome(0)

    def interrupt(self) -> None:
        self.looks = 1


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jobs, "PAUSE", 0.01)
    monkeypatch.setattr(Counted, "at_work", ())
    monkeypatch.setattr(Counted, "most", 0)


def drawing(count: int):
    numbers = iter(range(count))
    return lambda: next(numbers, None)


def test_so_many_at_once_and_each_to_its_end():
    ended: list[int] = []
    status = jobs.run_parallel(
        2, drawing(5), lambda i: Counted(i, looks=1 + i % 3), lambda i, _: ended.append(i)
    )
    assert status == 0
    assert sorted(ended) == [0, 1, 2, 3, 4]
    assert Counted.most == 2


def test_what_is_given_back_while_others_work_is_drawn_too():
    waiting = [0]

    def ended(number: int, _: Outcome) -> None:
        if number == 0:
            waiting.append(1)  # only now there is a second one

    started: list[int] = []

    def start(number: int) -> Counted:
        started.append(number)
        return Counted(number)

    jobs.run_parallel(2, lambda: waiting.pop() if waiting else None, start, ended)
    assert started == [0, 1]


def test_ctrl_c_is_handed_on_and_nothing_more_is_begun():
    started: list[int] = []

    def start(number: int) -> Counted:
        started.append(number)
        return Counted(number, looks=10**6, signals=number)  # the second one is interrupted

    before = signal.getsignal(signal.SIGINT)
    assert jobs.run_parallel(2, drawing(5), start, lambda *_: None) == INTERRUPTED
    assert started == [0, 1]
    assert signal.getsignal(signal.SIGINT) is before


def test_where_one_cannot_be_started_the_others_are_interrupted():
    first: list[Counted] = []

    def start(number: int) -> Counted:
        if number:
            raise DistillError("no such partition")
        first.append(Counted(number, looks=10**6))
        return first[0]

    with pytest.raises(DistillError, match="no such partition"):
        jobs.run_parallel(2, drawing(2), start, lambda *_: None)
    assert first[0].looks == 1


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (0, "fine\n", Outcome(0)),
        (INTERRUPTED, "stopped\n", Outcome(INTERRUPTED)),
        (1, "going\nerror: no photos\n", Outcome(1, "no photos")),
        (3, "", Outcome(3, "exit status 3")),
        (-signal.SIGKILL, "x", Outcome(1, "ended by SIGKILL; log has what it said")),
    ],
)
def test_what_an_exit_status_means(status, said, expected):
    Path("log").write_text(said)
    assert jobs.outcome_of(status, Path("log")) == expected


def test_processes_of_this_machine_share_its_cores():
    launcher, log = Launcher(name="local", jobs=10**6, report=True, only=None), Path("log")
    says = "import os, sys; print(os.environ['OMP_NUM_THREADS']); sys.exit('error: no good')"
    job = jobs.starter_for(launcher, Path())([sys.executable, "-c", says], log)
    job.process.wait()
    assert job.ended() == Outcome(1, "no good")
    assert log.read_text().splitlines() == ["1", "error: no good"]


def test_the_command_of_one_job_is_the_typed_one_without_its_launcher(monkeypatch):
    typed = ["-m", "seed=1,2", "launcher=submitit", "launcher.jobs=3", "+launcher.x=1", "sweep=x"]
    monkeypatch.setattr(sys, "argv", ["distill.train", *typed])
    assert jobs.command("train", 1) == [
        sys.executable, "-m", "distill.train", "-m", "seed=1,2", "sweep=x", "launcher.only=1",
    ]  # fmt: skip


# As typed, with a stand-in for the training


def summed() -> list[dict[str, str]]:
    return list(csv.DictReader(Path("runs/sweep-x/summary.csv").open()))


@pytest.mark.campaign
@pytest.mark.usefixtures("stand_ins")
def test_a_job_that_dies_is_a_line_and_not_the_end(capsys):
    stand = Stand()
    assert stand.typed("-m", "sweep=x", f"seed=1,{FATAL},2", "launcher.jobs=2") == 1
    out, error = capsys.readouterr()
    assert stand.seen == []  # none ran in this process
    assert [row["state"].partition(";")[0] for row in summed()] == [
        "finished", "failed: ended by SIGKILL", "finished",
    ]  # fmt: skip
    assert [row["best val/psnr (dB)"] != "" for row in summed()] == [True, False, True]
    assert error.splitlines()[-1] == (f"error: 1 of 3 jobs failed: toon-detail-lines-seed={FATAL}")
    assert "[3/3] toon-detail-lines-seed=2: runs/sweep-x/toon-detail-lines-seed=2.log" in out


@pytest.mark.slow
def test_runs_that_begin_side_by_side_do_so_one_at_a_time():
    """While one has not come to its first step, another one waits."""
    from filelock import FileLock, Timeout

    def taken() -> bool:
        try:
            with FileLock("runs/sweep-x/.start.lock").acquire(blocking=False):
                return False
        except Timeout:
            return True

    seen: list[bool] = []
    stand = Stand(psnr=lambda _: seen.append(taken()) or 20)
    assert stand.typed("-m", "sweep=x", "seed=1,2", "launcher.only=0") == 0
    assert seen == [True, False]  # before the first step, and after it
    assert not taken()
