"""Jobs of a sweep through submitit, whose own local executor stands in for SLURM here."""

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from distill.config.multirun import Outcome
from distill.core.errors import INTERRUPTED, DistillError
from distill_search import study_sweep
from distill_search.jobs import ClusterJob, ClusterJobs, OnNode
from distill_search.settings import SubmititLauncher

pytest.importorskip("submitit")

WAITS = (
    "import sys, time\n"
    "try:\n    print('begun', flush=True); time.sleep(60)\n"
    "except KeyboardInterrupt:\n    print('saved'); sys.exit(130)"
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch, stand_ins):
    monkeypatch.chdir(tmp_path)


def launcher(*words: str) -> SubmititLauncher:
    typed = [f"launcher.{word}" for word in words]
    found = study_sweep.searching_of("train", ["launcher=submitit", *typed]).launcher
    assert isinstance(found, SubmititLauncher)
    return found


def outcome(job: ClusterJob) -> Outcome:
    while (found := job.ended()) is None:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("cluster", [pytest.param("local", marks=pytest.mark.campaign), "debug"])
def test_a_job_is_a_command_whose_end_is_told(cluster):
    log = Path("log")
    jobs = ClusterJobs(launcher(f"cluster={cluster}"), Path("jobs"))
    job = jobs.start([sys.executable, "-c", "import sys; sys.exit('error: no good')"], log)
    assert outcome(job) == Outcome(1, "no good")
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    job = jobs.start([sys.executable, "-c", kill], log)
    assert outcome(job).reason.startswith("ended by SIGKILL; log")


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_job_that_leaves_no_result_has_failed(interrupted, monkeypatch):
    """As when its node is gone; not where it was told to end, perhaps while it was queued."""
    jobs = ClusterJobs(launcher("cluster=local"), Path("jobs"))
    job = jobs.start([sys.executable, "-c", WAITS], Path("log"))
    job.job._results_timeout_s = 0
    monkeypatch.setattr(job.job, "cancel", lambda check: job.job._process.kill())
    if interrupted:
        job.interrupt()
    else:
        job.job.cancel(False)
    job.job._process.wait()
    found = outcome(job)
    if interrupted:
        assert found == Outcome(INTERRUPTED)
        return
    assert found.status == 1
    assert "ended without a result (INTERRUPTED); log has" in found.reason


@pytest.mark.skipif(shutil.which("srun") is not None, reason="there is SLURM here")
def test_without_slurm_it_is_one_line():
    with pytest.raises(DistillError, match=r"launcher=submitit: .*srun"):
        ClusterJobs(launcher("cluster=slurm"), Path("jobs"))


def test_a_parameter_that_submitit_does_not_know_is_one_line():
    with pytest.raises(DistillError, match=r"launcher=submitit: .*unknown_name"):
        ClusterJobs(launcher("cluster=local", "more={unknown_name: 1}"), Path("jobs"))


def test_a_missing_submitit_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(DistillError, match=r"needs submitit; pip install 'distill\[slurm\]'"):
        ClusterJobs(launcher(), Path("jobs"))


def test_slurm_is_told_what_a_job_needs(monkeypatch):
    monkeypatch.setattr("submitit.slurm.slurm.SlurmExecutor.affinity", lambda *_: 2)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    words = ["cpus=8", "gpus=1", "memory=16", "partition=fast", "account=us", "minutes=90"]
    jobs = ClusterJobs(launcher(*words, "more={slurm_constraint: a100}"), Path("jobs"))
    text = jobs._executor._executor._make_submission_file_text("true", "x")
    asked = {line.removeprefix("#SBATCH --") for line in text.splitlines()}
    assert asked >= {
        "cpus-per-task=8", "gpus-per-node=1", "mem=16GB", "partition=fast", "account=us",
        "time=90", "constraint=a100", "job-name=distill",
    }  # fmt: skip


def test_when_its_time_is_nearly_up_the_command_saves():
    """submitit raises an error where its signal finds the job."""

    def out_of_time(_number: int, _frame: object) -> None:
        raise RuntimeError("not queued again")

    log = Path("log").absolute()

    def send() -> None:
        while not log.is_file() or "begun" not in log.read_text():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGUSR2)

    before = signal.signal(signal.SIGUSR2, out_of_time)
    try:
        threading.Thread(target=send, daemon=True).start()
        assert OnNode([sys.executable, "-c", WAITS], log)() == INTERRUPTED
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert log.read_text().split() == ["begun", "saved"]
    assert OnNode([], log).checkpoint() is None  # what tells submitit not to queue it again
