"""python -m distill.check: reports what in an ONNX file a device cannot run, node by node.

Report what a phone, a lens or a page cannot run, with reason, source and remedy.

  python -m distill.check student.onnx                       for Snapchat's lenses
  python -m distill.check *.onnx profile=nnapi
  python -m distill.check student.onnx profile=web -o report.json
  python -m distill.check -m student.onnx profile=snapml,nnapi,web
  python -m distill.check run=NAME report=terms              whose terms a run is under: a page

Reads any such file, not only ours. Findings mean that the device cannot run it: exit status 1.
Notes are about speed or limits; with notes alone the exit status is 0.

Profiles:
  snapml   Snapchat's lenses: Snap's table of layers, and the paper's released models, which
           ran in the app. Prints the import settings for Lens Studio too.
  nnapi    Android: ONNX Runtime's NNAPI provider
  web      browsers: onnxruntime-web, WebAssembly and WebGPU

Other makers' software changes: every rule names its source and when it was read.

Everything, with its value: python -m distill.check --cfg job
"""

from distill.config.command import command
from distill.config.settings.commands import CheckSettings
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.nodes import part


@command("check", CheckSettings, files=True)
def main(settings: CheckSettings) -> None:
    from distill.check import check_report
    from distill.check.check_report import check
    from distill.check.shared import Profile
    from distill.core.next_step import next_step
    from distill.core.report import Report

    if settings.report:
        report = part("report", settings.report, Report)
        print(f"report: {report.write(settings.run, settings.runs, settings.output)}")
        return
    if settings.run is not None:
        raise DistillError(f"run={settings.run}: of report=terms; add that, or name a file")
    if not settings.inputs:
        raise DistillError("no file named: python -m distill.check MODEL.onnx profile=snapml")
    profile = part("profile", settings.profile, Profile)
    results = [check(home_path(each), profile) for each in settings.inputs]

    check_report.show(results, profile)
    if settings.output:
        check_report.write(results, profile, settings.output)
    check_report.end(results, profile)
    if profile.of(home_path(settings.inputs[0])).form == ".onnx":
        print(next_step("benchmark", *settings.inputs[1:], model=settings.inputs[0]))


if __name__ == "__main__":
    main()
