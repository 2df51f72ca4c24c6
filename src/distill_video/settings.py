"""Settings of distill.stylize that are of videos."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from distill.config.extension import Extension
from distill.config.settings.base import Settings, setting
from distill.core.errors import needed

AS_TEXT = BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)


@dataclass(frozen=True, kw_only=True)
class VideoSettings(Settings):
    """distill.stylize"""

    camera: Annotated[str, AS_TEXT, Field(min_length=1)] | None = setting(
        "a camera by its number or device, shown as it comes; a video file plays as one"
    )
    screen: Literal["window", "virtual"] = setting(
        "of camera=: a window, or a virtual camera for other programs, which needs "
        "pyvirtualcam and v4l2loopback (Linux) or OBS"
    )
    crf: Annotated[float, Field(ge=0, le=51)] = setting(
        "of videos: H.264's constant rate factor, smaller is better"
    )
    smooth: Annotated[float, Field(ge=0, le=0.95)] = setting(
        "of videos: share of the last output that stays, moved with what it shows, against flicker"
    )
    stability: bool = setting("of videos: measure flicker, into NAME-STYLE.stability.json")


class VideoExtension(Extension):
    """A camera in the place of files."""

    settings = VideoSettings

    def takes(self, settings: Any) -> bool:
        return settings.camera is not None

    def carry_out(self, settings: Any) -> None:
        with needed("camera=: needs PyAV", "pip install 'distill[camera]'"):
            from distill_video import live
        live.carry_out(settings)
