"""python -m distill.prepare: photos through the teacher to pairs on disk, once."""

from __future__ import annotations

from distill.config import entry
from distill.settings import Prepare


@entry("prepare", Prepare)
def main(settings: Prepare) -> None:
    from distill import sources

    sources.check_labelling(settings)  # what is wrong is said before weights are fetched
    sources.prepare(settings, sources.teacher(settings.style, settings.teacher))


if __name__ == "__main__":
    main()
