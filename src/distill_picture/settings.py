"""Settings of distill.train recipe=picture, and what distill.eval_fid takes of such a run."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat

from distill.config.extension import Extension
from distill.config.settings.base import Folders, Settings, setting
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import OwnRecipe, Train


@dataclass(frozen=True, kw_only=True)
class Picture(Settings):
    """How style pictures are seen, and for how long."""

    weights: Annotated[list[PositiveFloat], Field(min_length=1)] | None = setting(
        "share of each of style_image=[A,B]; null: alike"
    )
    scale: Annotated[float, Field(ge=0.25, le=4)] = setting(
        "size that the style picture is seen at, 2: strokes twice as wide"
    )
    keep_colour: bool = setting("true: the photo keeps its colours, tones alone are the style's")
    minutes: PositiveFloat | None = setting(
        "about how long to train, in all; null: trainer.max_steps", free=True
    )


@dataclass(frozen=True, kw_only=True)
class PictureTrain(Train):
    """distill.train recipe=picture"""

    files: ClassVar = ("style_image",)

    recipe: Literal["picture"] | OwnRecipe  # type: ignore[assignment]
    style_image: Folders = setting("style picture, or several that are mixed: style_image=[A,B]")
    picture: Picture


@dataclass(frozen=True, kw_only=True)
class OptimisedPictures(Settings):
    """Settings that distill.eval_fid takes besides its own."""

    optimised: NonNegativeInt = setting(
        "of recipe=picture: iterations on the pixels of four photos to compare with; 0: without"
    )


@dataclass(frozen=True, kw_only=True)
class EvalFidOfPictures(OptimisedPictures, EvalFid):
    """distill.eval_fid, with these."""


class PictureScores(Extension):
    """distill.eval_fid of a run of recipe=picture: the recipe does it."""

    settings = OptimisedPictures
