"""Settings of distill.lens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from distill.settings.base import Name, Settings


@dataclass(frozen=True, kw_only=True)
class Lens(Settings):
    """distill.lens; `rate` in pictures a second, `line` in the network's pixels."""

    students: str | list[str] | None
    sketches: str | list[str]
    run: Name | None
    runs: str
    output: Annotated[str, Field(min_length=1)]
    serve: bool
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=0, le=65535)]
    https: bool
    open: bool
    rate: Annotated[float, Field(gt=0, le=60)]
    line: Annotated[float, Field(ge=1, le=8)]
