"""--help from the fields of a schema: what may be typed, limits, defaults and lines."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from distill.config.help import Row, Section, comments, page, rows
from distill.config.settings.base import Given, NameSetting, Node, PathText, Settings, setting


@dataclass(frozen=True, kw_only=True)
class Named(NameSetting):
    name: str | None = setting("a style")


@dataclass(frozen=True, kw_only=True)
class Part(Settings):
    size: Annotated[int, Field(ge=32, le=64)] | None = setting("side in pixels")
    kind: Literal["a", "b"]  # without a line: not listed


@dataclass(frozen=True, kw_only=True)
class Whole(Settings):
    style: Named
    part: Part
    photos: PathText | list[PathText] = setting("folders")
    threads: int | Literal["auto"] = setting("CPU threads", default=1)
    network: Annotated[Node, Given()]


@dataclass(frozen=True, kw_only=True)
class Further(Whole):
    threads: Literal["auto"]


VALUES = {
    "style": {"name": None},
    "part": {"size": 32, "kind": "a"},
    "photos": "data",
    "threads": 2,
    "network": {"_target_": "x.Y", "width": 0.5, "unsaid": 1},
}
SAID = {"network.width": "width factor"}


def test_a_row_says_what_is_typed_its_limits_and_its_default():
    assert [*rows(Whole, VALUES, SAID)] == [
        Row("style", "TEXT", "null", "a style"),
        Row("part.size", "N", "32", "side in pixels [at least 32, at most 64]"),
        Row("photos", "PATH|[PATH,...]", "data", "folders"),
        Row("threads", "N|auto", "2", "CPU threads"),
        Row("network.width", "X", "0.5", "width factor"),
    ]


def test_a_field_that_is_narrowed_keeps_the_line_of_its_base_class():
    assert Row("threads", "auto", "2", "CPU threads") in [*rows(Further, VALUES, SAID)]


def test_comments_may_continue_below():
    text = "defaults: [a]\nbuild:\n  half: 16   # channels,\n             # at least 12\nx: {a: 1}"
    expected = [Row("build.half", "", "16", "channels, at least 12"), Row("x", "", "{a: 1}", "")]
    assert [*comments(text)] == expected


def test_a_page_has_the_default_behind_the_line():
    text = page("About.", ["style: a, b"], [Section("Settings", [*rows(Whole, VALUES, SAID)])])
    assert "  style: a, b\n" in text
    assert "\n  style=TEXT                a style\n" in text  # no default: nothing behind it
    assert text.endswith("\n  network.width=X           width factor  (0.5)")
