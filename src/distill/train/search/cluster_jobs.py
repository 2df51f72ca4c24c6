"""Jobs of a sweep as jobs of SLURM, through submitit."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distill.config.multirun import Outcome
from distill.config.settings.searching import SubmititLauncher
from distill.core.errors import INTERRUPTED, DistillError, reason_of
from distill.train.search.parallel_jobs import outcome_of

LOOK = 0.5  # seconds between two looks at the command on the node


class ClusterJobs:
    """Submits jobs; submitit's own files go to `folder`.

    Raises DistillError without submitit or SLURM, and for settings that submitit does not take.
    """

    def __init__(self, launcher: SubmititLauncher, folder: Path) -> None:
        if find_spec("submitit") is None:
            raise DistillError("launcher=submitit needs submitit: pip install 'distill[slurm]'")
        import submitit

        asked = {
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
            given = {key: value for key, value in asked.items() if value is not None}
            self._executor.update_parameters(**given, **(launcher.more or {}))
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
        with self.log.open("a") as said:
            process = subprocess.Popen(
                self.words, env=environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL
            )
        try:
            while process.poll() is None:
                time.sleep(LOOK)
        except BaseException:  # time is nearly up: submitit raises where the signal finds us
            process.send_signal(signal.SIGINT)
        return process.wait()

    def checkpoint(self) -> None:
        """Asks submitit not to queue the job again: the sweep itself does, or another one."""
