"""Settings of sketch → photo sets: distill.prepare recipe=pix2pix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from distill.config.settings.base import Fraction, NameSetting, PathText, Positive, Settings

Length = Annotated[float, Field(gt=0)]


@dataclass(frozen=True, kw_only=True)
class PairsRecipe(NameSetting):
    """The recipe that the pairs are for: they come from a teacher, or are sketches of photos."""

    name: str


@dataclass(frozen=True, kw_only=True)
class FaceSquare(Settings):
    """The square around a face, in distances between its eyes."""

    least: Length
    side: Length
    eyes: Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class Saliency(Settings):
    """How a mask's network wants its picture: side in pixels, and mean and deviation."""

    size: Positive
    norm: Literal["imagenet", "none"]


@dataclass(frozen=True, kw_only=True)
class Canny(Settings):
    """Canny's edges: blur in pixels, and both thresholds of the steepness."""

    sigma: Length
    low: Fraction
    high: Fraction


@dataclass(frozen=True, kw_only=True)
class Hed(Settings):
    """Holistically nested edges: the network's weights and the least probability."""

    weights: PathText | None
    threshold: Fraction


@dataclass(frozen=True, kw_only=True)
class Stroke(Settings):
    """The pen, in pixels: the shortest line that is drawn, and how wide it is."""

    least: Annotated[int, Field(ge=0)]
    width: Annotated[float, Field(ge=1)]


@dataclass(frozen=True, kw_only=True)
class Sketch(Settings):
    """What is cut out of a photo, and how its outline is found and drawn."""

    size: Annotated[int, Field(ge=32, multiple_of=32)]
    points: Literal["cat", "faces"] | None
    face: FaceSquare
    outside: Literal["white", "edge"]
    mask: PathText | None
    saliency: Saliency
    mask_least: Annotated[float, Field(ge=0, le=1)]
    rgba: bool
    outline: Literal["canny", "hed"]
    canny: Canny
    hed: Hed
    stroke: Stroke
    marks: bool
