"""Processes that torchrun or srun started together: rank 0 runs first, the others wait for it.

Labelling, measuring and the run's folder are one process's work. Lightning's own further processes
(trainer.devices=2 without a launcher) are started when that is done; a launcher's are all there
from the start.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import torch
import torch.distributed as dist
from pytorch_lightning.plugins.environments import ClusterEnvironment, TorchElasticEnvironment

from distill.config.settings.training import Machine
from distill.core import nodes, plugins
from distill.core.errors import DistillError

PATIENCE = timedelta(days=30)  # with the first process, which may label a large set
_waiting: list[Callable[[], None]] = []  # for this process, the first, to release the others


def with_devices(machine: Machine) -> Machine:
    """With the number of processes on this machine in the place of `auto`: a run resumes with as
    many pictures a step as it began with."""
    if machine.devices != "auto":
        return machine
    environment = launcher()
    started = environment.world_size() // machine.num_nodes if environment else 0
    cards = torch.cuda.device_count() if machine.accelerator in ("gpu", "auto") else 0
    return replace(machine, devices=max(1, started or cards))


@contextmanager
def rank_zero_first(first: bool, machine: Machine) -> Iterator[None]:
    """The body runs at once in the `first` process, in the others when that releases them.

    It does so with `release_other_ranks`, or at its end. Where no launcher started several
    processes nothing changes. Raises DistillError where there are more or fewer of them than the
    settings say, or they do not find each other.
    """
    environment = launcher()
    if environment is None and machine.num_nodes > 1:
        raise DistillError(
            f"trainer.num_nodes={machine.num_nodes}: start the command on every machine, with "
            "torchrun or srun; docs/hardware.md has the lines"
        )
    if environment is None or environment.world_size() == 1:
        yield
        return
    devices, nodes, started = machine.devices, machine.num_nodes, environment.world_size()
    if devices * nodes != started:
        raise DistillError(
            f"trainer.devices={devices} num_nodes={nodes}: {devices * nodes} processes, but "
            f"{started} were started; num_nodes are the machines, devices the processes of each"
        )
    group = _joined(environment, machine.accelerator)

    def meet() -> None:
        """Wait until every process is here; ends this one where another has gone."""
        try:
            dist.all_reduce(torch.zeros(1), group=group)
        except RuntimeError:  # it has said why
            sys.exit(1)

    if not first:
        meet()
        yield
        return
    _waiting.append(meet)
    try:
        yield
        release_other_ranks()
    finally:
        _waiting.clear()  # after an error the launcher ends them


def release_other_ranks() -> None:
    """Call it when the first process has written what the others read."""
    while _waiting:
        _waiting.pop()()


def launcher() -> ClusterEnvironment | None:
    """What started this process beside others, None where nothing did."""
    of_plugins = (
        nodes.check_base("provides.cluster", {"_target_": name}, ClusterEnvironment)
        for name in plugins.values("provides", "cluster")
    )
    kinds = (TorchElasticEnvironment, *of_plugins)
    return next((kind() for kind in kinds if kind.detect()), None)


def _joined(environment: ClusterEnvironment, accelerator: str) -> dist.ProcessGroup:
    """The processes as a group whose timeout is PATIENCE; Lightning then trains with the same.

    Of the group that Lightning trains with the timeout is PyTorch's own, so that a node that is
    gone ends training.
    """
    where = f"{environment.main_address}:{environment.main_port}"
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = where.rsplit(":", 1)
    try:
        if not dist.is_initialized():
            dist.init_process_group(
                # Left open, PyTorch takes NCCL for what lies on GPUs and Gloo for the rest.
                "gloo" if accelerator == "cpu" else None,
                rank=environment.global_rank(),
                world_size=environment.world_size(),
            )
        group = dist.new_group(backend="gloo", timeout=PATIENCE)
        assert isinstance(group, dist.ProcessGroup)  # of all processes, so this one is in it
        return group
    except (RuntimeError, ValueError) as error:
        raise DistillError(
            f"{where}: the {environment.world_size()} processes did not find each other there "
            f"({str(error).splitlines()[0]}); the first node must be reached by that address"
        ) from error
