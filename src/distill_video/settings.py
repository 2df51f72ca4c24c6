"""Settings of distill.stylize that are of videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from distill.config.extension import Extension
from distill.config.settings.base import Settings, setting


@dataclass(frozen=True, kw_only=True)
class VideoSettings(Settings):
    """distill.stylize"""

    crf: Annotated[float, Field(ge=0, le=51)] = setting(
        "of videos: H.264's constant rate factor, smaller is better"
    )
    smooth: Annotated[float, Field(ge=0, le=0.95)] = setting(
        "of videos: share of the last output that stays where nothing moves, against flicker"
    )
    stability: bool = setting("of videos: measure flicker, into NAME-STYLE.stability.json")


class VideoExtension(Extension):
    """The settings alone."""

    settings = VideoSettings
