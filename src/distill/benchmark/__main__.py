"""python -m distill.benchmark: teacher, student and other ONNX files, timed in one run."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.settings.commands import Benchmark
from distill.models.recipes import RECIPES


@entry("benchmark", Benchmark, inputs=True, recipes=RECIPES)
def main(settings: Benchmark) -> None:
    from distill.benchmark import measure, speed_report, timed_models
    from distill.core.files import home_path

    folder = home_path(settings.output)
    providers, missing = measure.providers(settings)
    models, skipped = timed_models.find_models(settings)
    folder.mkdir(parents=True, exist_ok=True)  # a place that takes none is said before the minutes
    figures = measure.measure(models, settings, providers)

    speed_report.show(figures)
    speed_report.write(figures, folder)
    measure.end(skipped, figures.skipped, missing)


if __name__ == "__main__":
    main()
