"""python -m distill.benchmark: teacher, student and other ONNX files, timed in one run."""

from __future__ import annotations

from distill.arguments import split_files
from distill.config import entry
from distill.settings import Benchmark


@entry("benchmark", Benchmark, words=split_files)
def main(settings: Benchmark) -> None:
    from pathlib import Path

    from distill import benchmarking
    from distill.speed import contenders, report

    folder = Path(settings.output).expanduser()
    providers = benchmarking.providers(settings)
    found = contenders.gather(settings)
    folder.mkdir(parents=True, exist_ok=True)  # a place that takes none is said before the minutes
    figures = benchmarking.measure(found.all, settings, providers)

    report.show(figures)
    report.write(figures, folder)
    benchmarking.end(found.skipped, figures.skipped, providers.missing)


if __name__ == "__main__":
    main()
