"""The steps of distill.check: which files, and the count at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from distill.devices.finding import Profile
from distill.devices.result import Result
from distill.errors import DistillError


def paths(inputs: Sequence[str]) -> list[Path]:
    """The files that were named. Raises DistillError for none."""
    if not inputs:
        raise DistillError("no file named: python -m distill.check MODEL.onnx profile=snapml")
    return [Path(each).expanduser() for each in inputs]


def end(results: Sequence[Result], profile: Profile) -> None:
    """Raises DistillError (exit status 1) where a file does not fit or cannot be read."""
    bad = [result for result in results if not result.ok]
    if not bad:
        return
    unread = sum(1 for result in bad if result.error)
    parts = [f"{len(bad) - unread} of {len(results)} do not fit {profile.name}"]
    if unread:
        parts.append(f"{unread} cannot be read")
    raise DistillError(", ".join(parts if len(bad) > unread else parts[1:]))
