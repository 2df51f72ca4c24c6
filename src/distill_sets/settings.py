"""Settings of sets that no teacher labels: distill.prepare recipe=pix2pix, recipe=cyclegan."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from distill.config.settings.base import (
    Fraction,
    NameSetting,
    Paths,
    PathText,
    Positive,
    Settings,
    setting,
)
from distill.config.settings.training import Prepare


@dataclass(frozen=True, kw_only=True)
class PairsRecipe(NameSetting):
    """The recipe that the pairs are for: they come from a teacher, or are sketches of photos."""

    name: str = setting(
        "distill: photos and their stylised pictures; pix2pix: sketches and photos, see sketch; "
        "cyclegan: two domains, see attributes and quickdraw"
    )


@dataclass(frozen=True, kw_only=True)
class QuickDraw(Settings):
    """Drawings of Quick, Draw!, as pictures."""

    files: Paths | None = setting("recipe=cyclegan: its simplified .ndjson files; photos=DIR is B")
    size: Annotated[int, Field(ge=32, le=2048)] = setting("side of the pictures in pixels")
    width: Annotated[float, Field(ge=1)] = setting("width of the pen in pixels")
    jitter: NonNegativeFloat = setting("deviation in pixels by which points move by chance")
    recognised: bool = setting("only drawings that were recognised when they were drawn")
    most: Positive | None = setting("drawings of each file; null: all")


@dataclass(frozen=True, kw_only=True)
class FaceSquare(Settings):
    """The square around a face, in distances between its eyes."""

    least: PositiveFloat = setting("pixels between the eyes; a smaller face is dropped")
    side: PositiveFloat = setting("side of the square around a face, in distances between its eyes")
    eyes: Annotated[float, Field(ge=0, le=1)] = setting("share of the square above the eyes")


@dataclass(frozen=True, kw_only=True)
class Saliency(Settings):
    """How a mask's network wants its picture: side in pixels, and mean and deviation."""

    size: Positive = setting("side of the mask network's input, where its file leaves it open")
    norm: Literal["imagenet", "none"] = setting("normalisation of that input")


@dataclass(frozen=True, kw_only=True)
class Canny(Settings):
    """Canny's edges: blur in pixels, and both thresholds of the steepness."""

    sigma: PositiveFloat = setting("blur in pixels")
    low: Fraction = setting("lower threshold of the gradient")
    high: Fraction = setting("and the higher one; fewer lines: raise it")


@dataclass(frozen=True, kw_only=True)
class Hed(Settings):
    """Holistically nested edges: the network's weights and the least probability."""

    weights: PathText | None = setting("HED's weights file, of your own")
    threshold: Fraction = setting("least probability of an edge")


@dataclass(frozen=True, kw_only=True)
class Stroke(Settings):
    """The pen, in pixels: the shortest line that is drawn, and how wide it is."""

    least: NonNegativeInt = setting("shortest line in pixels")
    width: Annotated[float, Field(ge=1)] = setting("width of the pen in pixels")


@dataclass(frozen=True, kw_only=True)
class Sketch(Settings):
    """What is cut out of a photo, and how its outline is found and drawn."""

    size: Annotated[int, Field(ge=32, multiple_of=32)] = setting("side of the pictures in pixels")
    points: Literal["cat", "faces"] | None = setting(
        "cat: a cat's nine points from NAME.jpg.cat beside NAME.jpg; faces: YuNet's where "
        "its file is, else BlazeFace's; null: "
        "the centre square"
    )
    face: FaceSquare
    outside: Literal["white", "edge"] = setting(
        "fill beyond the photo: white, or its outermost pixels"
    )
    mask: PathText | None = setting(
        "background removed by a saliency network's ONNX file, a folder of masks, or alpha: "
        "the photos' own"
    )
    saliency: Saliency
    mask_least: Annotated[float, Field(ge=0, le=1)] = setting(
        "least share of the square that the mask must keep"
    )
    rgba: bool = setting("background transparent instead of white")
    outline: Literal["canny", "hed"] = setting(
        "how edges are found; the settings below fit size=256: at 512 double sigma, least and"
        " width, and halve low and high"
    )
    canny: Canny
    hed: Hed
    stroke: Stroke
    marks: bool = setting("circles at the eyes and a triangle at the nose")


@dataclass(frozen=True, kw_only=True)
class SetSettings(Settings):
    """Settings that distill.prepare takes besides its own."""

    recipe: PairsRecipe
    sketch: Sketch
    attributes: PathText | None = setting(
        "recipe=cyclegan: a list of the photos' attributes, CelebA's or .csv or .parquet"
    )
    split: str | None = setting("its attribute that A has and B has not")
    identities: PathText | None = setting("a list of who is on each: nobody is on two sides")
    balance: list[str] = setting("attributes that A and B have equally often")
    quickdraw: QuickDraw


@dataclass(frozen=True, kw_only=True)
class PrepareWithSets(SetSettings, Prepare):
    """All settings of distill.prepare, for type checkers."""
