"""Settings of distill.curate."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, PositiveFloat

from distill.config.settings.base import PathText, Positive, Settings, setting
from distill.config.settings.commands import PairsFolder


@dataclass(frozen=True, kw_only=True)
class CurationLimits(Settings):
    """Beyond which a pair is left out."""

    agreement: Annotated[float, Field(ge=0, le=1)] = setting(
        "least correlation of the directions of edges, above that by chance, once the target is "
        "shifted onto the photo, 0 to 1; below it a pair that fits significantly stays; 0: any"
    )
    shift: PositiveFloat = setting("largest displacement of a target, in pixels at 256")
    style: PositiveFloat = setting(
        "largest distance from the set's median style, in usual distances"
    )
    difference: Annotated[float, Field(ge=0, le=255)] = setting(
        "least mean difference from the photo in levels of 255; 0: any"
    )
    landmarks: PositiveFloat = setting(
        "largest move of eyes, nose and mouth, in widths of the face; measured if YuNet is "
        "available"
    )
    copies: bool = setting("list near-duplicate photos: all but the pair that fits best")


@dataclass(frozen=True, kw_only=True)
class Curate(Settings):
    """distill.curate"""

    data: PairsFolder
    output: PathText | None = setting(
        "folder for the page, the scores and the drop list; null: data/curation/SET"
    )
    limits: CurationLimits
    align: bool = setting(
        "the set will be trained with data.align=true: a shift is no reason to leave a pair out"
    )
    apply: bool = setting("also add the list to the set's dropped.txt, which training keeps to")
    drop: PathText | None = setting("file that lists pairs to add to it, and to keep copies of out")
    restore: PathText | None = setting("file that lists pairs to take out of it: the only way back")
    show: Positive = setting("pictures of each score on the page, the worst first")
