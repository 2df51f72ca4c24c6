"""python -m distill.stylize: pictures drawn by a trained student, one of those shipped or yours."""

from __future__ import annotations

from distill.arguments import split_inputs
from distill.config import entry
from distill.settings import Stylize


@entry("stylize", Stylize, words=split_inputs)
def main(settings: Stylize) -> None:
    from distill import stylizing
    from distill.drawing import brush, targets

    found = targets.find(settings.inputs, settings.output)
    student, name = stylizing.choose(settings)
    brush.check_size(settings.size, student, settings.upscale)
    ending = f"{name}-compare" if settings.compare else name
    alpha = student.channels == 4
    jobs = targets.plan(found, settings.inputs, settings.output, ending, alpha)

    stylizing.draw_all(jobs, student, settings)


if __name__ == "__main__":
    main()
