"""Settings of the commands that take a trained run, a finished file or pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ByteSize, Field

from distill.config.settings.base import Given, Name, Node, Positive, Settings
from distill.config.settings.training import Budget, Decoder, StyleSettings


@dataclass(frozen=True, kw_only=True)
class RunChoice(Settings):
    """Which run: by name, by style and decoder, or (all null) the latest.

    `teacher` and `gka_layers` come along with a style's file and are not used: the run knows them.
    """

    run: str | None
    runs: str
    checkpoint: str
    output: str | None
    style: StyleSettings | None = None
    decoder: Decoder | None = None
    teacher: Node | None = None
    gka_layers: list[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class TfLiteSettings(Settings):
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
    tflite: TfLiteSettings
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


@dataclass(frozen=True, kw_only=True)
class Drawer(Settings):
    """A shipped student, by name; null: hayao, where no other one is named."""

    name: str | None


@dataclass(frozen=True, kw_only=True)
class Stylize(Settings):
    """distill.stylize; `inputs` are no setting but what stands beside the settings."""

    style: Drawer
    model: str | None
    run: str | None
    runs: str
    direction: Literal["AtoB", "BtoA"]
    output: str | None
    size: Annotated[int, Field(ge=32, le=32768)] | None
    upscale: Literal["whole", "tiles", "guided"]
    face: Literal["off", "crop", "paste"]
    faces: Literal["largest", "all"]
    detector: Literal["lbp", "yunet"]
    compare: bool
    crf: Annotated[float, Field(ge=0, le=51)]
    smooth: Annotated[float, Field(ge=0, le=0.95)]
    stability: bool
    threads: Positive | None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lens(Settings):
    """distill.lens; `rate` in pictures a second, `line` in the network's pixels."""

    students: str | list[str] | None
    sketches: str | list[str]
    run: Name | None
    runs: str
    output: Annotated[str, Field(min_length=1)]
    serve: bool
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=0, le=65535)]
    https: bool
    open: bool
    rate: Annotated[float, Field(gt=0, le=60)]
    line: Annotated[float, Field(ge=1, le=8)]


@dataclass(frozen=True, kw_only=True)
class CheckSettings(Settings):
    """distill.check; `inputs` are no setting but what stands beside the settings."""

    profile: Literal["snapml", "coreml", "nnapi", "web"]
    output: str | None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Benchmark(Settings):
    """distill.benchmark; `inputs` are no setting but what stands beside the settings.

    `gka_layers` comes along with a style's file and is not used.
    """

    style: StyleSettings
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
