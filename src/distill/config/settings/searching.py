"""Settings of distill.train -m search=optuna, which belong to the jobs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from distill.config.settings.base import PathText, Positive, Settings

ObjectiveName = Literal[
    "psnr", "ssim", "loss", "frechet", "ink_recall", "ink_precision", "ms", "macs", "parameters"
]
COSTS = ("ms", "macs", "parameters")  # of the network, not of its training


def _one_is_validated(names: list[str]) -> list[str]:
    if names[0] in COSTS:
        raise PydanticCustomError("first", "name a validation figure first, such as psnr")
    if len(set(names)) < len(names):
        raise PydanticCustomError("twice", "name each objective once")
    return names


@dataclass(frozen=True, kw_only=True)
class Costs(Settings):
    """Limits on what a network costs at the run's resolution; None: without that one."""

    macs: Annotated[float, Field(gt=0)] | None
    parameters: Annotated[float, Field(gt=0)] | None


@dataclass(frozen=True, kw_only=True)
class Search(Settings):
    """How combinations are sampled, how many, and what is best. `timeout` in seconds.

    Combinations that cost more than `most` or less than `least` are not trained and do not count.
    """

    name: Literal["optuna"]
    trials: Positive
    seed: Annotated[int, Field(ge=0)]
    sampler: Literal["auto", "tpe", "nsga2", "random"]
    objectives: Annotated[
        list[ObjectiveName], Field(min_length=1), AfterValidator(_one_is_validated)
    ]
    pruner: Literal["none", "median", "hyperband"]
    most: Costs
    least: Costs
    timeout: Annotated[float, Field(gt=0)] | None
    storage: PathText | None


@dataclass(frozen=True, kw_only=True)
class Launcher(Settings):
    """How many jobs run at once, and whether this process reports on all of them.

    `only` is the number of the one job that this process is for, which another one started.
    """

    name: Literal["local", "submitit"]
    jobs: Positive
    report: bool
    only: Annotated[int, Field(ge=0)] | None

    @property
    def sequential(self) -> bool:
        """Whether jobs run one after the other in this very process."""
        return self.name == "local" and self.jobs == 1


@dataclass(frozen=True, kw_only=True)
class SubmititLauncher(Launcher):
    """What a job of SLURM is given; `memory` in GB, `more` as submitit names its parameters."""

    cluster: Literal["slurm", "local", "debug"] | None
    partition: str | None
    account: str | None
    minutes: Positive
    cpus: Positive
    gpus: Annotated[int, Field(ge=0)]
    memory: Annotated[float, Field(gt=0)] | None
    more: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Searching(Settings):
    """The groups that say how jobs are chosen and where they run; no part of a run's settings.

    `search` is None where every combination is a job.
    """

    search: Search | None
    launcher: Launcher


@dataclass(frozen=True, kw_only=True)
class SearchingOnCluster(Searching):
    """The same where jobs run elsewhere."""

    launcher: SubmititLauncher
