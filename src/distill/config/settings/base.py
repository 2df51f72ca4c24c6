"""What all settings share: their kinds of values, and that unknown keys are errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

Node = dict[str, Any]
Positive = Annotated[int, Field(gt=0)]
Name = Annotated[str, Field(min_length=1, pattern=r"^[^/\\]*[^/\\.][^/\\]*$")]  # of a folder
Folders = str | Annotated[list[str], Field(min_length=1)]
Fraction = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class Given:
    """Marks a Node and names the arguments that code adds to it, which a config must not set."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Unknown keys are errors; numbers are taken as text where text is wanted (run=5)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", coerce_numbers_to_str=True, arbitrary_types_allowed=True
    )
