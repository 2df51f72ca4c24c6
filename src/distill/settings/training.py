"""Settings of distill.prepare and distill.train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from distill.settings.base import Folders, Fraction, Given, Name, Node, Positive, Settings
from distill.settings.sketching import PairsOf, Sketch


@dataclass(frozen=True, kw_only=True)
class Style(Settings):
    """What to imitate: the teacher's weights file, where it comes from and under which terms."""

    name: Name
    resolution: Annotated[int, Field(ge=64, multiple_of=32)]
    weights: str | None
    file: str | None
    url: str | None
    sha256: str | None
    git_blob: str | None
    licence: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Data(Settings):
    """Where pictures come from and how they are fed."""

    kind: Literal["pairs", "photos", "demo"]
    root: str | None
    val_fraction: Annotated[float, Field(gt=0, lt=1)]
    split_seed: int
    views: Positive
    colour: Annotated[float, Field(ge=0, lt=1)]
    batch_size: Positive
    crop_size: Annotated[int, Field(ge=32, multiple_of=32)] | None
    flip: bool
    weights: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] | None = None
    val_limit: Positive | None
    workers: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class Loss(Settings):
    """Terms by name and the weight of each; a term of weight 0 is not built."""

    name: str
    weights: dict[str, Annotated[float, Field(ge=0)]]
    balance: bool
    terms: dict[str, Node]


@dataclass(frozen=True, kw_only=True)
class Budget(Settings):
    """Limits of an export at 256²: MACs, trained values, bytes of the file."""

    macs: int | None
    parameters: int | None
    bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Machine(Settings):
    """The machine that trains, and how often it looks at the result."""

    accelerator: Literal["cpu", "gpu", "mps", "auto"]
    devices: int | Literal["auto"]
    strategy: str
    precision: Literal["32-true", "16-mixed", "bf16-mixed"]
    val_every: Positive
    log_every: Positive
    clip: Annotated[float, Field(gt=0)] | None
    accumulate: Positive
    patience: Positive | None
    compile: bool
    fused: bool
    threads: Positive | None


@dataclass(frozen=True, kw_only=True)
class Trainer(Machine):
    """The machine and the length of a run; steps are optimiser steps."""

    max_steps: Positive


@dataclass(frozen=True, kw_only=True)
class Labelling(Settings):
    """How the teacher labels; none of it changes a pixel."""

    batch_size: Positive | None
    workers: Annotated[int, Field(ge=0)]
    device: Literal["auto", "cpu", "cuda", "mps"]


@dataclass(frozen=True, kw_only=True)
class Source(Settings):
    """What prepare and train share: photos, teacher, and the set made of them."""

    photos: Folders
    val_photos: Folders | None = None
    drop: str | None = None
    crop: Fraction
    style: Style
    data: Data
    label: Labelling
    gka_layers: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    teacher: Annotated[Node, Given(("weights",))]


@dataclass(frozen=True, kw_only=True)
class Prepare(Source):
    """distill.prepare"""

    recipe: PairsOf
    sketch: Sketch


@dataclass(frozen=True, kw_only=True)
class Decoder(Settings):
    """A decoder's name, which also names the run, its class, and what it asks of others.

    `profile` says which operators it exports to, `without` which encoder blocks it needs not.
    """

    name: Name
    profile: Literal["strict", "transposed"]
    without: list[int]
    build: Annotated[Node, Given(("channels", "strides", "out_channels"))]


@dataclass(frozen=True, kw_only=True)
class Train(Source):
    """distill.train recipe=distill"""

    recipe: Literal["distill"] = "distill"  # runs from before there were others have none
    run: Name
    runs: str
    sweep: Name | None
    resume: bool
    init: str | None = None  # runs from before it have none
    seed: int
    lr: Annotated[float, Field(gt=0)] | Literal["auto"]
    ema: Annotated[float, Field(ge=0, lt=1)]
    channels: Literal[3, 4]
    style_backbone: Literal["vgg16", "vgg19_relu3_1"]
    decoder: Decoder
    loss: Loss
    budget: Budget
    trainer: Trainer
    encoder: Annotated[Node, Given()]
    optimizer: Annotated[Node, Given(("params", "lr"))]
    schedule: Annotated[Node, Given(("optimizer", "total_steps", "val_every"))]
