"""Settings of the commands that take a trained run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ByteSize, Field

from distill.settings.base import Given, Node, Positive, Settings
from distill.settings.training import Budget, Decoder, Style


@dataclass(frozen=True, kw_only=True)
class RunChoice(Settings):
    """Which run: by name, by style and decoder, or (all null) the latest.

    `teacher` and `gka_layers` come along with a style's file and are not used: the run knows them.
    """

    run: str | None
    runs: str
    checkpoint: str
    output: str | None
    style: Style | None = None
    decoder: Decoder | None = None
    teacher: Node | None = None
    gka_layers: list[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class TfLite(Settings):
    """The interpreter that has litert-torch; null: this one."""

    python: str | None


@dataclass(frozen=True, kw_only=True)
class Export(RunChoice):
    """distill.export"""

    direction: Literal["AtoB", "BtoA"]
    formats: str | Annotated[list[str], Field(min_length=1)] | None
    limit: Annotated[ByteSize, Field(gt=0)] | None
    photos: str | None
    calibration: str | None
    tflite: TfLite
    parity: Annotated[float, Field(gt=0)] | None
    budget: Budget
    exporter: Annotated[Node, Given()]


@dataclass(frozen=True, kw_only=True)
class EvalFid(RunChoice):
    """distill.eval_fid"""

    photos: str | None
    a: str | None
    b: str | None
    features: Literal["inception", "mobilenet", "none"]
    ceiling: str
    direction: Literal["AtoB", "BtoA"]
    bootstrap: Annotated[int, Field(ge=0)]
    batch_size: Positive
    sheet: Positive
    seed: int
