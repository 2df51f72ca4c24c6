"""Settings of distill.stylize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from distill.settings.base import Positive, Settings


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
