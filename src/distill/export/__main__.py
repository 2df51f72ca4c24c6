"""python -m distill.export: writes a run as a checked ONNX file, and in other formats.

Turn a trained student or generator into one ONNX file for phones, lenses and web pages.

  python -m distill.export                              the latest run
  python -m distill.export style=paprika decoder=fastdepth exporter.opset=9
  python -m distill.export run=NAME limit=10MiB formats=[onnx,onnx_fp16,onnx_int8]
  python -m distill.export -m run=A,B runs=runs/sweep-NAME     several, one after the other

Writes RUN/export/student.onnx (of another recipe generator.onnx) and report.json.
Checks MACs, parameters, bytes, operators and that ONNX Runtime and PyTorch agree. Over a limit:
exit status 1 and no file.

Everything, with its value: python -m distill.export --cfg job
"""

from distill.config.command import command
from distill.config.settings.commands import Export


@command("export", Export)
def main(settings: Export) -> None:
    from distill.core.next_step import next_step
    from distill.export import conversion

    run, _ = conversion.carry_out(settings)
    if run.is_there:
        way = {} if settings.direction == "AtoB" else {"direction": settings.direction}
        print(next_step("eval_fid", **run.words, **way))


if __name__ == "__main__":
    main()
