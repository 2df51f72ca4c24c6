"""Settings of the commands that measure and check finished files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from distill.settings.base import Given, Node, Positive, Settings
from distill.settings.training import Style


@dataclass(frozen=True, kw_only=True)
class Check(Settings):
    """distill.check; `inputs` are no setting but what stands beside the settings."""

    profile: Literal["snapml", "coreml", "nnapi", "web"]
    output: str | None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Benchmark(Settings):
    """distill.benchmark; `inputs` are no setting but what stands beside the settings.

    `gka_layers` comes along with a style's file and is not used.
    """

    style: Style
    teacher: Annotated[Node, Given(("weights",))]
    gka_layers: list[Any] | None = None
    with_teacher: bool
    model: str | None
    run: str | None
    runs: str
    sizes: Annotated[list[Annotated[int, Field(ge=32, le=4096)]], Field(min_length=1)]
    threads: Annotated[list[Positive | Literal["all"]], Field(min_length=1)]
    providers: Annotated[list[str], Field(min_length=1)]
    rounds: Annotated[int, Field(ge=2)]
    output: str
    inputs: tuple[str, ...] = ()
