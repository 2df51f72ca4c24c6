"""Settings of distill.lens."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from distill.config.settings.base import Paths, PathText, TakedownSettings, setting
from distill.config.settings.commands import TakesOnnxFiles

# Scheme, host (`*.` before it: every host below it) and perhaps a port, as browsers compare them.
_ORIGIN = re.compile(
    r"https?://((\*\.)?[A-Za-z0-9_-][A-Za-z0-9._-]*|\[[0-9A-Fa-f.:]+\])(:\d{1,5})?"
)


def _origins(value: Any) -> list[Any]:
    """One, or several."""
    origins = value if isinstance(value, list) else [value]
    for each in origins:
        if not _ORIGIN.fullmatch(str(each)):
            text = "{each} is no site: want https://my.site.example, perhaps with a port, no path"
            raise PydanticCustomError("origin", text, {"each": repr(each)})
    return origins


HostName = Annotated[str, Field(pattern=r"^([A-Za-z0-9._-]+|[0-9A-Fa-f.:]+)$")]  # no port
Origins = Annotated[list[str], BeforeValidator(_origins)]  # of sites


@dataclass(frozen=True, kw_only=True)
class Lens(TakesOnnxFiles):
    """distill.lens"""

    students: Paths | None = setting(
        "students of the package by name, or .onnx, .ckpt and .safetensors files; null: all "
        "of the package and the run"
    )
    sketches: Paths | None = setting(
        "files of sketch-to-image students, for the drawing mode; null: the package's, with all "
        "students of it; []: none"
    )
    run: PathText | None = setting("a trained run's best checkpoint")
    runs: PathText = setting("folder of all runs")
    output: Annotated[PathText, Field(min_length=1)] = setting(
        "folder of the page; an earlier one is replaced"
    )
    static: Annotated[PathText, Field(min_length=1)] | None = setting(
        "build the page into this folder for any https host, with a note on how, and end"
    )
    serve: bool = setting("false: build the folder only")
    host: Annotated[str, Field(min_length=1)] = setting(
        "address to serve at; 0.0.0.0: for other devices in the network too"
    )
    port: Annotated[int, Field(ge=0, le=65535)] = setting("0: any free one")
    names: HostName | list[HostName] = setting(
        "further host names to answer to, such as that of a tunnel"
    )
    frames: Origins = setting(
        "sites whose pages may show this one in a frame: https://my.site.example"
    )
    embed: bool = setting("add the element <distill-lens> for pages of your own")
    https: bool = setting(
        "with a certificate of this machine's own: phones give the camera to https pages only"
    )
    open: bool = setting("show the page in the browser")
    takedown: TakedownSettings = field(default_factory=TakedownSettings)
    rate: Annotated[float, Field(gt=0, le=60)] = setting("drawing mode: pictures per second")
    line: Annotated[float, Field(ge=1, le=8)] | None = setting(
        "drawing mode: width of the pen in the network's pixels; null: 3 of 256, as the sketches "
        "of distill.prepare"
    )
