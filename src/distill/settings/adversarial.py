"""Settings of distill.train for the recipes in which networks train against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from distill.settings.base import Given, Name, Node, Positive, Settings
from distill.settings.training import Budget, Machine

Pad = Literal["white", "black", "edge"]
Feature = Literal["auto", "inception", "mobilenet", "none"]


def _no_search(lr: Any) -> Any:
    if lr == "auto":
        raise PydanticCustomError(
            "no_search",
            "networks against each other have no loss whose fall could be watched; set a rate "
            "(lr=2e-4 is the papers')",
        )
    return lr


@dataclass(frozen=True, kw_only=True)
class Pictures(Settings):
    """What both recipes' data share: `size` before, `crop_size` after the random crop."""

    root: str | None
    val_fraction: Annotated[float, Field(gt=0, lt=1)]
    split_seed: int
    size: Annotated[int, Field(ge=16)]
    crop_size: Annotated[int, Field(ge=32, multiple_of=32)]
    pad: Pad | None
    colour: Annotated[float, Field(ge=0, lt=1)]
    flip: bool
    batch_size: Positive
    val_limit: Positive | None
    workers: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class Paired(Pictures):
    """Pairs of pictures; `direction` says which side is drawn from which.

    `weights` and `views` are settings of labelled photos and come along with data=pairs.
    """

    kind: Literal["pairs"]
    direction: Literal["AtoB", "BtoA"]
    weights: None = None
    views: Literal[1] = 1


@dataclass(frozen=True, kw_only=True)
class Unpaired(Pictures):
    """Two folders of pictures that show the same kind of thing in two looks."""

    kind: Literal["unpaired"]
    a: str | None
    b: str | None


@dataclass(frozen=True, kw_only=True)
class AdversarialTrainer(Machine):
    """The machine and the length of a run in batches; null: all of its epochs."""

    max_steps: Positive | None


@dataclass(frozen=True, kw_only=True)
class Generator(Settings):
    """A generator's name, its class, and which operators it exports to."""

    name: Name
    profile: Literal["strict", "transposed", "unet", "cyclegan", "any"]
    build: Annotated[Node, Given(("size", "in_channels", "out_channels"))]


@dataclass(frozen=True, kw_only=True)
class Adversarial(Settings):
    """What recipe=pix2pix and recipe=cyclegan share."""

    recipe: Literal["pix2pix", "cyclegan"]
    data: Pictures
    run: Name
    runs: str
    sweep: Name | None
    resume: bool
    seed: int
    lr: Annotated[float, BeforeValidator(_no_search), Field(gt=0)]
    epochs: Positive
    decay_epochs: Annotated[int, Field(ge=0)]
    channels: Literal[3, 4]
    distance: Feature
    generator: Generator
    budget: Budget
    trainer: AdversarialTrainer
    discriminator: Annotated[Node, Given(("channels",))]
    adversarial: Annotated[Node, Given()]
    optimizer: Annotated[Node, Given(("params", "lr"))]
    schedule: Annotated[Node, Given(("optimizer", "total_steps", "val_every"))]


@dataclass(frozen=True, kw_only=True)
class Pix2PixTrain(Adversarial):
    """distill.train recipe=pix2pix"""

    recipe: Literal["pix2pix"]
    data: Paired
    l1: Annotated[float, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class CycleGANTrain(Adversarial):
    """distill.train recipe=cyclegan"""

    recipe: Literal["cyclegan"]
    data: Unpaired
    channels: Literal[3]  # pictures of both looks are given to a generator, too
    cycle: Annotated[float, Field(ge=0)]
    identity: Annotated[float, Field(ge=0)]
    pool: Annotated[int, Field(ge=0)]
