"""python -m distill.check: what keeps an ONNX file off a phone, a lens or a page, node by node."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.settings.commands import CheckSettings
from distill.core.errors import DistillError
from distill.core.files import home_path


@entry("check", CheckSettings, inputs=True)
def main(settings: CheckSettings) -> None:
    from distill.check import check_report
    from distill.check.result import PROFILES, check
    from distill.core.next_step import next_step

    if not settings.inputs:
        raise DistillError("no file named: python -m distill.check MODEL.onnx profile=snapml")
    profile = PROFILES[settings.profile]
    results = [check(home_path(each), profile) for each in settings.inputs]

    check_report.show(results, profile)
    if settings.output:
        check_report.write(results, profile, settings.output)
    check_report.end(results, profile)
    print(next_step("benchmark", *settings.inputs[1:], model=settings.inputs[0]))


if __name__ == "__main__":
    main()
