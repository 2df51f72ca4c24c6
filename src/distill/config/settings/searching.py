"""Settings of distill.train -m search=optuna, which belong to the jobs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

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
class Search(Settings):
    """What is drawn, how often, and what is best. `timeout` in seconds."""

    name: Literal["optuna"]
    trials: Positive
    seed: Annotated[int, Field(ge=0)]
    sampler: Literal["auto", "tpe", "nsga2", "random"]
    objectives: Annotated[
        list[ObjectiveName], Field(min_length=1), AfterValidator(_one_is_validated)
    ]
    pruner: Literal["none", "median", "hyperband"]
    timeout: Annotated[float, Field(gt=0)] | None
    storage: PathText | None


@dataclass(frozen=True, kw_only=True)
class Launcher(Settings):
    """Where trials run, how many at once, and whether this process reports on all of them."""

    name: Literal["local"]
    jobs: Positive
    report: bool


@dataclass(frozen=True, kw_only=True)
class Searching(Settings):
    """The groups that say how jobs are chosen and where they run; no part of a run's settings."""

    search: Search
    launcher: Launcher
