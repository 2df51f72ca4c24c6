"""Settings of distill.train recipe=pix2pix and recipe=cyclegan."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeFloat, NonNegativeInt
from pydantic_core import PydanticCustomError

from distill.config.settings.base import Direction, Given, Node, PathText, Positive, setting
from distill.config.settings.networks import GeneratorSettings
from distill.config.settings.training import (
    ByteCount,
    DataConfig,
    OwnRecipe,
    Pad,
    PairedKind,
    SplitConfig,
    Training,
)

Feature = Literal["auto", "inception", "mobilenet", "none"]


def _no_search(lr: Any) -> Any:
    if lr == "auto":
        raise PydanticCustomError(
            "no_search",
            "adversarial training has no loss to monitor; set a rate (lr=2e-4 is the papers')",
        )
    return lr


Share = Annotated[float, Field(ge=0, le=1)]


def _not_empty(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    if box[0] >= box[2] or box[1] >= box[3]:
        raise PydanticCustomError("box", "want [left,top,right,bottom] with an area")
    return box


Box = Annotated[tuple[Share, Share, Share, Share], AfterValidator(_not_empty)]


@dataclass(frozen=True, kw_only=True)
class AdversarialDataConfig(DataConfig):
    """What both recipes' data share."""

    size: Annotated[int, Field(ge=16)] = setting(
        "side of the pictures in pixels before the random crop"
    )
    crop_size: Annotated[int, Field(ge=32, multiple_of=32)] = setting(
        "and after it: the network's, and that of the validation pictures"
    )
    pad: Pad | None = setting("fill up what is not square; null: crop it")


@dataclass(frozen=True, kw_only=True)
class PairedDataConfig(AdversarialDataConfig, SplitConfig):
    """Pairs of pictures."""

    kind: PairedKind
    direction: Direction = setting("which side is the input and which the target")
    cache: ByteCount | None = setting("disk space for copies of a remote set here", default=None)


@dataclass(frozen=True, kw_only=True)
class UnpairedDataConfig(AdversarialDataConfig):
    """Two folders of pictures that show the same kind of thing in two domains."""

    kind: Literal["unpaired"]
    flip: bool = setting("mirror at random, each picture by itself")
    a: PathText | None = setting("instead of root: a folder of pictures")
    b: PathText | None = setting("and one of pictures in the wanted domain")


@dataclass(frozen=True, kw_only=True)
class Adversarial(GeneratorSettings, Training):
    """What recipe=pix2pix and recipe=cyclegan share."""

    data: AdversarialDataConfig
    lr: Annotated[float, BeforeValidator(_no_search), Field(gt=0)] = setting(
        "learning rate of both optimisers"
    )
    epochs: Positive = setting("passes over the pictures at that rate")
    decay_epochs: NonNegativeInt = setting("further ones, in which it falls to zero")
    init: str | None = setting(
        "folder or .ckpt of such a run: start with its generators and discriminators",
        default=None,
    )
    distance: Feature = setting("network of the Fréchet distance that shows progress")
    phases: NonNegativeFloat = setting(
        "weight against the grid of generator=student, which writes squares of 2×2 pixels",
        default=0.0,
    )
    discriminator: Annotated[Node, Given(("channels",))]
    adversarial: Annotated[Node, Given()]

    @property
    def side(self) -> int:
        return self.data.crop_size

    def of_side(self, side: int) -> Self:
        return replace(self, data=replace(self.data, crop_size=side))


@dataclass(frozen=True, kw_only=True)
class Pix2PixTrain(Adversarial):
    """distill.train recipe=pix2pix"""

    recipe: Literal["pix2pix"] | OwnRecipe
    data: PairedDataConfig
    l1: NonNegativeFloat = setting(
        "weight of the difference to the target, beside the discriminator's loss of 1"
    )
    features: NonNegativeFloat = setting(
        "weight of the difference of VGG's activations, 0: none", default=0.0
    )
    features_side: Annotated[int, Field(ge=16)] | None = setting(
        "pixels a side of the crops that it reads; null: whole pictures", default=64
    )
    style_backbone: Literal["auto", "vgg16", "vgg19_relu3_1"] = setting(
        "VGG of it; auto: the one whose weights exist", default="auto"
    )
    parts: tuple[Box, ...] = setting(
        "boxes [left,top,right,bottom], as shares of the picture, that have discriminators of "
        "their own and count as much as the whole: eyes and mouth where faces are cropped alike",
        default=(),
    )


@dataclass(frozen=True, kw_only=True)
class CycleGANTrain(Adversarial):
    """distill.train recipe=cyclegan"""

    recipe: Literal["cyclegan"] | OwnRecipe
    data: UnpairedDataConfig
    channels: Literal[3]  # pictures of both domains are a generator's input, too
    cycle: NonNegativeFloat = setting("weight of the difference after there and back")
    identity: NonNegativeFloat = setting(
        "weight of the change to pictures that are in the wanted domain already"
    )
    pool: NonNegativeInt = setting("earlier fakes that each discriminator is shown; 0: none")
