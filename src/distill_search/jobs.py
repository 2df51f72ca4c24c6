"""Jobs of a sweep in processes of their own, on this machine or, through submitit, on SLURM."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pytorch_lightning as pl
from filelock import FileLock

from distill.config.multirun import Job, Outcome, attempt
from distill.config.settings.training import Training
from distill.core.errors import INTERRUPTED, DistillError, extra_package, reason_of
from distill.core.process import cores, exit_with_parent
from distill_search.settings import Launcher, SubmititLauncher

T = TypeVar("T")
StartedJob: TypeAlias = "LocalJob | ClusterJob"
Starter = Callable[[Sequence[str], Path], StartedJob]
PAUSE = 0.2  # seconds between two looks at those at work
LOOK = 0.5  # seconds between two looks at the command on a node


class StaggeredStart(pl.Callback):
    """Locks the sweep's start until the run's first step: runs would label one set twice."""

    def __init__(self, folder: Path) -> None:
        self._lock = FileLock(folder / ".start.lock")

    def __enter__(self) -> StaggeredStart:
        self._lock.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> bool | None:
        self._lock.release(force=True)
        return None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._lock.release(force=True)


def run_one(task: Callable[..., None], job: Job) -> int:
    """One job of a grid, in a process that another one started; gives its exit status."""
    start = StaggeredStart(Path(job.settings.runs))

    def held(settings: Training) -> None:
        with start:
            task(settings, callbacks=[start])

    return attempt(held, job).status or 0


def run_in_processes(name: str, launcher: Launcher, jobs: Sequence[Job]) -> list[Outcome]:
    """All jobs of a grid, each in a process of its own; gives what became of them."""
    folder = Path(jobs[0].settings.runs)
    folder.mkdir(parents=True, exist_ok=True)
    start_command = starter_for(launcher, folder)
    waiting, outcomes = deque(range(len(jobs))), [Outcome()] * len(jobs)

    def start(i: int) -> StartedJob:
        log = folder / f"{jobs[i].name}.log"
        print(f"[{i + 1}/{len(jobs)}] {jobs[i].name}: {log}", flush=True)
        return start_command(command(name, i), log)

    def ended(i: int, outcome: Outcome) -> None:
        outcomes[i] = outcome
        if outcome.status == INTERRUPTED:  # by its cluster: it resumes
            waiting.appendleft(i)
        elif outcome.status:
            print(f"error: {jobs[i].name}: {outcome.reason}", file=sys.stderr, flush=True)

    run_parallel(launcher.jobs, lambda: waiting.popleft() if waiting else None, start, ended)
    return outcomes


def command(name: str, only: int) -> list[str]:
    """This very command, distill.NAME -m …, for one of its jobs alone."""
    words = [word for word in sys.argv[1:] if re.split(r"[.=]", word.lstrip("+"))[0] != "launcher"]
    return [sys.executable, "-m", f"distill.{name}", *words, f"launcher.only={only}"]


def run_parallel(
    most: int,
    next_job: Callable[[], T | None],
    start: Callable[[T], StartedJob],
    ended: Callable[[T, Outcome], None],
) -> int:
    """Start jobs, at most so many at once, until there is no next one and all have ended.

    `next_job` is called again whenever one has ended. Ctrl-C and SIGTERM are handed on, so that
    each saves its run; then INTERRUPTED is given, else 0.
    """
    at_work: list[tuple[T, StartedJob]] = []
    forwarded = 0  # signals that those at work have got
    with _signals_caught() as signals:
        try:
            while True:
                while not signals and len(at_work) < most and (job := next_job()) is not None:
                    at_work.append((job, start(job)))
                if not at_work:
                    return INTERRUPTED if signals else 0
                if forwarded < len(signals):
                    forwarded = len(signals)
                    for _, started in at_work:
                        started.interrupt()
                for each in list(at_work):
                    if (outcome := each[1].ended()) is not None:
                        at_work.remove(each)
                        ended(each[0], outcome)
                if at_work:
                    time.sleep(PAUSE)
        except BaseException:
            for _, started in at_work:
                started.interrupt()
            raise


@contextmanager
def _signals_caught() -> Iterator[list[int]]:
    """The signals that ask this process to end, as they come; meanwhile it does not."""
    caught = list[int]()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda got, _frame: caught.append(got)) for number in numbers]
    try:
        yield caught
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def outcome_of(status: int, log: Path) -> Outcome:
    """What an exit status means, with what the command said last; below 0: a signal ended it."""
    if status in (0, INTERRUPTED):
        return Outcome(status)
    if status < 0:
        return Outcome(1, f"ended by {signal.Signals(-status).name}; {log} has what it said")
    last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    return Outcome(status, last.removeprefix("error: ") or f"exit status {status}")


def starter_for(launcher: Launcher, folder: Path) -> Starter:
    """What starts a command whose output goes to a log; `folder` is the sweep's.

    Raises DistillError for what this machine does not have.
    """
    if isinstance(launcher, SubmititLauncher):
        return ClusterJobs(launcher, folder / "jobs").start
    return partial(LocalJob, max(1, cores() // launcher.jobs))


class LocalJob:
    """A command in a process of its own with so many threads, which ends with this one."""

    def __init__(self, threads: int, words: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("a") as output:
            self.process = subprocess.Popen(
                words,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                start_new_session=True,  # Ctrl-C comes to this one alone, and is handed on once
                preexec_fn=partial(exit_with_parent, os.getpid()),
            )

    def ended(self) -> Outcome | None:
        """What became of it; None while it is at work."""
        status = self.process.poll()
        return None if status is None else outcome_of(status, self.log)

    def interrupt(self) -> None:
        """Have it save its run and end."""
        self.process.send_signal(signal.SIGINT)  # does nothing where it has ended


class ClusterJobs:
    """Submits jobs; submitit's own files go to `folder`.

    Raises DistillError without submitit or SLURM, and for settings that submitit does not take.
    """

    def __init__(self, launcher: SubmititLauncher, folder: Path) -> None:
        submitit = extra_package("submitit", "launcher=submitit", "pip install 'distill[slurm]'")
        parameters = {
            "name": "distill",
            "timeout_min": launcher.minutes,
            "cpus_per_task": launcher.cpus,
            "gpus_per_node": launcher.gpus,
            "mem_gb": launcher.memory,
            "slurm_partition": launcher.partition,
            "slurm_account": launcher.account,
        }
        try:
            self._executor = submitit.AutoExecutor(folder, cluster=launcher.cluster)
            stated = {key: value for key, value in parameters.items() if value is not None}
            self._executor.update_parameters(**stated, **(launcher.more or {}))
        except Exception as error:  # it raises several kinds, of others' classes too
            raise DistillError(f"launcher=submitit: {reason_of(error, 200)}") from error
        print(f"jobs go to {self._executor.cluster}; submitit's files are in {folder}", flush=True)

    def start(self, words: Sequence[str], log: Path) -> ClusterJob:
        try:
            return ClusterJob(self._executor.submit(OnNode(words, log.absolute())), log)
        except Exception as error:  # sbatch refuses
            raise DistillError(f"launcher=submitit: {reason_of(error, 300)}") from error


class ClusterJob:
    """One of them; `job` is submitit's."""

    def __init__(self, job: Any, log: Path) -> None:
        self.job, self.log = job, log
        self._interrupted = False

    def ended(self) -> Outcome | None:
        if not self.job.done():
            return None
        try:
            return outcome_of(self.job.result(), self.log)
        except Exception:  # no result: its node has gone, or SLURM has ended it
            if self._interrupted:  # perhaps before it had begun
                return Outcome(INTERRUPTED)
            why = f"job {self.job.job_id} ended without a result ({self.job.state})"
            return Outcome(1, f"{why}; {self.log} has what it said")

    def interrupt(self) -> None:
        self._interrupted = True
        self.job.cancel(check=False)  # SIGTERM to all its processes; it has half a minute


class OnNode:
    """A command as submitit calls it on the node; gives its exit status."""

    def __init__(self, words: Sequence[str], log: Path) -> None:
        self.words, self.log = list(words), log

    def __call__(self) -> int:
        # So named, PyTorch Lightning takes the process for a user's own, and starts further ones
        # for trainer.devices=N itself.
        environment = {**os.environ, "SLURM_JOB_NAME": "interactive"}
        with self.log.open("a") as output:
            process = subprocess.Popen(
                self.words, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        try:
            while process.poll() is None:
                time.sleep(LOOK)
        except BaseException:  # time is nearly up: submitit raises where the signal finds us
            process.send_signal(signal.SIGINT)
        return process.wait()

    def checkpoint(self) -> None:
        """Asks submitit not to queue the job again: the sweep itself does, or another one."""
