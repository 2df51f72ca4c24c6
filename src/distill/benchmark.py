"""python -m distill.benchmark: teacher, student and other ONNX files, timed in one run."""

from __future__ import annotations

from distill.config.arguments import split_files
from distill.config.compose import entry
from distill.config.settings import Benchmark


@entry("benchmark", Benchmark, words=split_files)
def main(settings: Benchmark) -> None:
    from pathlib import Path

    from distill.speed import candidates, measure, speed_report

    folder = Path(settings.output).expanduser()
    providers = measure.providers(settings)
    found = candidates.gather(settings)
    folder.mkdir(parents=True, exist_ok=True)  # a place that takes none is said before the minutes
    figures = measure.measure(found.all, settings, providers)

    speed_report.show(figures)
    speed_report.write(figures, folder)
    measure.end(found.skipped, figures.skipped, providers.missing)


if __name__ == "__main__":
    main()
