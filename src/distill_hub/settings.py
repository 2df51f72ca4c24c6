"""Settings of distill.hub."""

from dataclasses import dataclass, field
from typing import Literal

from distill.config.settings.base import (
    LicenceSettings,
    PathText,
    RunName,
    Settings,
    TakedownSettings,
    setting,
)


@dataclass(frozen=True, kw_only=True)
class PublishedPairs(Settings):
    """A set of pairs on this machine."""

    root: PathText | None = setting(
        "a set of pairs instead: what is pushed, or where it is pulled to"
    )


@dataclass(frozen=True, kw_only=True)
class HubSettings(Settings):
    """distill.hub; `inputs` are no setting but the word beside the settings, push or pull."""

    run: RunName | None = setting("name of the run whose student is pushed; null: the latest")
    runs: PathText = setting("folder of all runs")
    checkpoint: Literal["best", "last"] = setting("of that run")
    model: PathText | None = setting(
        "a student's file: what is pushed (.safetensors, .ckpt), or where it is pulled to"
    )
    data: PublishedPairs
    repo: PathText | None = setting("USER/NAME on the Hub, or a folder: ./DIR, /DIR, ~/DIR")
    revision: str | None = setting("branch, tag or commit there; null: main")
    private: bool = setting("of a repository that the push creates; false: everybody sees it")
    replace: bool = setting("replace files of other content")
    licence: LicenceSettings
    takedown: TakedownSettings = field(default_factory=TakedownSettings)
    inputs: tuple[str, ...] = ()
