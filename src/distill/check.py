"""python -m distill.check: what keeps an ONNX file off a phone, a lens or a page, node by node."""

from __future__ import annotations

from distill.arguments import split_files
from distill.config import entry
from distill.settings import Check


@entry("check", Check, words=split_files)
def main(settings: Check) -> None:
    from distill import checking
    from distill.devices import report
    from distill.devices.profiles import PROFILES
    from distill.devices.result import check

    paths = checking.paths(settings.inputs)
    profile = PROFILES[settings.profile]
    results = [check(path, profile) for path in paths]

    report.show(results, profile)
    if settings.output:
        report.write(results, profile, settings.output)
    checking.end(results, profile)


if __name__ == "__main__":
    main()
