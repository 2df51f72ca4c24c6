"""Settings of distill.stylize."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

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
    output: str | None
    size: Annotated[int, Field(ge=32, le=4096)] | None
    compare: bool
    threads: Positive | None
    inputs: tuple[str, ...] = ()
