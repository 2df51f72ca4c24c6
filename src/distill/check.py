"""python -m distill.check: what keeps an ONNX file off a phone, a lens or a page, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from distill.config.arguments import split_files
from distill.config.compose import entry
from distill.config.settings import CheckSettings
from distill.core.errors import DistillError

if TYPE_CHECKING:
    from distill.devices.finding import Profile
    from distill.devices.result import Result


@entry("check", CheckSettings, words=split_files)
def main(settings: CheckSettings) -> None:
    from distill.devices import check_report
    from distill.devices.result import PROFILES, check

    paths = named_files(settings.inputs)
    profile = PROFILES[settings.profile]
    results = [check(path, profile) for path in paths]

    check_report.show(results, profile)
    if settings.output:
        check_report.write(results, profile, settings.output)
    report_end(results, profile)


def named_files(inputs: Sequence[str]) -> list[Path]:
    """The files that were named. Raises DistillError for none."""
    if not inputs:
        raise DistillError("no file named: python -m distill.check MODEL.onnx profile=snapml")
    return [Path(each).expanduser() for each in inputs]


def report_end(results: Sequence[Result], profile: Profile) -> None:
    """Raises DistillError (exit status 1) where a file does not fit or cannot be read."""
    bad = [result for result in results if not result.ok]
    if not bad:
        return
    unread = sum(1 for result in bad if result.error)
    parts = [f"{len(bad) - unread} of {len(results)} do not fit {profile.name}"]
    if unread:
        parts.append(f"{unread} cannot be read")
    raise DistillError(", ".join(parts if len(bad) > unread else parts[1:]))


if __name__ == "__main__":
    main()
