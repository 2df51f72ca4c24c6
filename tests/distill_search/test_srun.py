"""Processes that srun started: Lightning finds SLURM by the environment."""

from pytorch_lightning.plugins.environments import SLURMEnvironment

from distill.train.launch import launcher


def test_processes_that_srun_started_are_known(monkeypatch):
    assert launcher() is None
    for key, value in {"NTASKS": 2, "NTASKS_PER_NODE": 1, "PROCID": 1, "JOB_NAME": "a"}.items():
        monkeypatch.setenv(f"SLURM_{key}", str(value))
    environment = launcher()
    assert isinstance(environment, SLURMEnvironment)
    assert environment.world_size() == 2
