"""python -m distill.benchmark: times a teacher, a student and other files in one run.

Time a teacher, a student and any other files on this machine, in one run, in turn.

  python -m distill.benchmark                              hayao: teacher and shipped student
  python -m distill.benchmark style=toon paper.onnx other.onnx
  python -m distill.benchmark model=student.onnx student.pte threads=[1] with_teacher=false
  python -m distill.benchmark run=NAME with_teacher=false sizes=[256,512]
  python -m distill.benchmark model=student.onnx providers=[CUDAExecutionProvider]

Files are of ONNX, or other formats of distill.export in their runtimes on one thread, of one size.

Batch 1. All are warmed up; then they take turns, so that what slows the machine slows all.
Median, 5th and 95th percentile, FPS, MACs, GMAC/s and the share of the most this machine does
(a large float32 matrix product in the same run, on as many threads), memory. How many times
the student's time each one takes is worked out round by round, with a 95 % interval.

Subnormal weights (below 1.2e-38) make a file several times slower on many processors, for
nothing: such a file is timed as it is and with them set to zero, and compared with the second.

Writes speed.json, speed.md (with the paper's Table 3 for this machine) and speed.png.

Nothing else should run meanwhile: the load is measured and shown with the figures.
A file that cannot be timed is skipped with a line; then the exit status is 1.

Everything, with its value: python -m distill.benchmark --cfg job
"""

from distill.config.command import command
from distill_benchmark.settings import Benchmark


@command("benchmark", Benchmark, files=True)
def main(settings: Benchmark) -> None:
    from distill.core.files import home_path
    from distill_benchmark import measure, speed_report, timed_models

    folder = home_path(settings.output)
    providers, missing = measure.providers(settings.providers)
    models, skipped = timed_models.find_models(settings)
    folder.mkdir(parents=True, exist_ok=True)  # a place that takes none is said before the minutes
    figures = measure.measure(models, settings, providers)

    speed_report.show(figures)
    speed_report.write(figures, folder)
    measure.end(skipped, figures.skipped, missing)


if __name__ == "__main__":
    main()
