"""What a network may cost at most and at least, asked of a combination before it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from optuna.trial import Trial

from distill.config.registry import recipe_of
from distill.config.settings.searching import Costs, Search
from distill.core.errors import DistillError
from distill.train.search.objectives import counted_costs
from distill.train.search.trials import Trials

ATTEMPTS = 200  # half a second each: with all outside, limits and space hardly meet


def next_within(trials: Trials) -> Trial | None:
    """The next trial whose network is within the search's limits; None where there are enough.

    Raises DistillError where none is found in many attempts.
    """
    why: str | None = None
    for _ in range(ATTEMPTS):
        trial = trials.take()
        if trial is None:
            return None
        try:
            why = outside(trials.search, trials.settings(trial))
        except DistillError:  # values that do not go together: training says which
            return trial
        if why is None:
            return trial
        trials.refuse(trial, why)
    raise DistillError(
        f"search.most, search.least: not one of {ATTEMPTS} combinations is within them (the last: "
        f"{why}); widen the limits or what is searched"
    )


def outside(search: Search, settings: Any) -> str | None:
    """Which cost of a run's network is beyond the search's limits, in words; None where none is.

    The network is built without weights and runs once, at the run's own resolution. Raises
    DistillError where it cannot be built.
    """
    if not (_set(search.most) or _set(search.least)):
        return None
    trained = asdict(settings)
    recipe = recipe_of(trained)
    costs = counted_costs(recipe.network(trained).eval(), recipe.side(trained))
    for limits, beyond, word in ((search.most, 1, "most"), (search.least, -1, "least")):
        for name, limit in _set(limits).items():
            if beyond * (costs[name] - limit) > 0:
                return f"{costs[name]:,.0f} {name}, at {word} {limit:,.0f}"
    return None


def _set(limits: Costs) -> Mapping[str, float]:
    return {name: limit for name, limit in asdict(limits).items() if limit is not None}
