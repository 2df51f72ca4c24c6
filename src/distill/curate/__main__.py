"""python -m distill.curate: which pairs of a set do not fit, on a page to look through."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.settings.commands import Curate


@entry("curate", Curate)
def main(settings: Curate) -> None:
    from distill.curate import curating

    curating.curate(settings)


if __name__ == "__main__":
    main()
