"""python -m distill.stylize: pictures and videos through a trained student."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.settings.commands import Stylize
from distill.models.recipes import RECIPES


@entry("stylize", Stylize, inputs=True, recipes=RECIPES)
def main(settings: Stylize) -> None:
    from distill.stylize import render, stylizing
    from distill.stylize.jobs import find, plan

    found = find(settings.inputs, settings.output)
    student, name = stylizing.choose(settings)
    render.check_size(settings.size, student, settings.upscale)
    ending = f"{name}-compare" if settings.compare else name
    alpha = student.channels == 4
    jobs = plan(found, settings.inputs, settings.output, ending, alpha)

    stylizing.stylise_all(jobs, student, settings)


if __name__ == "__main__":
    main()
