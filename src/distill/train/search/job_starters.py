"""Where the jobs of a sweep run, by the launcher that was asked for."""

from __future__ import annotations

from pathlib import Path

from distill.config.settings.searching import Launcher, SubmititLauncher
from distill.train.search.cluster_jobs import ClusterJobs
from distill.train.search.local_jobs import LocalJobs
from distill.train.search.parallel_jobs import JobStarter


def starter_for(launcher: Launcher, folder: Path) -> JobStarter:
    """`folder` is the sweep's. Raises DistillError for what this machine does not have."""
    if isinstance(launcher, SubmititLauncher):
        return ClusterJobs(launcher, folder / "jobs")
    return LocalJobs(launcher.jobs)
