"""python -m distill.train: photos and a teacher, or pictures alone, to a trained network."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from distill.config.compose import entry
from distill.config.registry import schema_of
from distill.models.recipes import RECIPES
from distill.train.search.study_sweep import StudySweep


def _implied(typed: Mapping[str, Any]) -> list[str]:
    from distill.data.sources import overrides_for_user_pairs

    return overrides_for_user_pairs(typed)


@entry("train", schema_of, StudySweep(), recipes=RECIPES, implied=_implied)
def main(settings: Any) -> None:
    from pathlib import Path

    from distill.runs.run_folder import Run
    from distill.train.launch import is_rank_zero, rank_zero_first
    from distill.train.recipes import TRAIN

    run, first = Run(Path(settings.runs) / settings.run), is_rank_zero()
    with run.alone() if first else nullcontext(), rank_zero_first(first, settings.trainer):
        TRAIN[settings.recipe](settings, run, first)


if __name__ == "__main__":
    main()
