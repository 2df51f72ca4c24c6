"""Training recipes: what is known of a run by the `recipe` in its settings.

A recipe is one object of distill.models.recipes. Commands register those they know; every other
module asks the recipe of a run what it needs to know, and never which recipe it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from distill.config.settings.training import PhotoSource
from distill.core.errors import DistillError

Direction = Literal["AtoB", "BtoA"]
Side = Literal["train", "val"]  # of a run's pictures: learnt from, chosen by
# Photos that a teacher labels (or labelled), pairs of pictures, or two domains without pairs.
Material = Literal["photos", "pairs", "domains"]
FIRST = "distill"  # the recipe of runs that are older than the setting `recipe`

_recipes: dict[str, Recipe] = {}


class Recipe(ABC):
    """A training algorithm's settings and networks; distill.train.recipes has the training itself.

    `trained` is a run's settings as plain values, as its checkpoint holds them. What a method needs
    is imported inside it, so that a command starts quickly.
    """

    name: ClassVar[str]
    settings: ClassVar[type]  # schema of `distill.train recipe=NAME`
    networks: ClassVar[Mapping[Direction, str]]  # by direction, the network's name in checkpoints
    monitor: ClassVar[str]  # the metric of the best checkpoint, the lower the better
    learns_from: ClassVar[Material]
    stem: ClassVar[str] = "generator"  # what an exported network's files are called
    published_macs: ClassVar[bool] = False  # report the papers' count of MACs beside ours

    @property
    def has_teacher(self) -> bool:
        return self.learns_from == "photos"

    @abstractmethod
    def folder_parts(self, settings: Any, swept: Mapping[str, str]) -> dict[str, str]:
        """What a sweep calls a run's folder: config groups and how each is named, in order."""

    @abstractmethod
    def check(self, trained: dict[str, Any]) -> None:
        """Refuse settings of a checkpoint that no run of this recipe has; builds nothing."""

    @abstractmethod
    def network(self, trained: dict[str, Any]) -> Any:
        """The run's network (an nn.Module) without its weights, of classes of distill.models."""

    @abstractmethod
    def description(self, trained: dict[str, Any]) -> dict[str, Any]:
        """What an exported network says of its run: enough for `network` and `side`, no paths.

        Plain values: the network's nodes, style, teacher and terms where there are such.
        """

    @abstractmethod
    def side(self, trained: dict[str, Any]) -> int:
        """Pixels of the square pictures that the run learnt on."""

    def photo_source(self, trained: dict[str, Any]) -> PhotoSource | None:
        """Photos and teacher of a run; None without a teacher."""
        return None

    @abstractmethod
    def profile(self, trained: dict[str, Any]) -> Any:
        """The set of operators that the run's network exports to."""

    def half_precision(self, trained: dict[str, Any]) -> bool:
        """Whether the budget's bytes are those of the half-precision file."""
        return False

    @abstractmethod
    def facts(self, trained: dict[str, Any], direction: Direction) -> dict[str, Any]:
        """What an export's report says of the run."""


def register(*recipes: Recipe) -> None:
    """Make recipes known by their names; one of the same name is replaced."""
    _recipes.update({recipe.name: recipe for recipe in recipes})


def registered() -> tuple[Recipe, ...]:
    """All recipes known, in the order of their registration."""
    return tuple(_recipes.values())


def schema_of(values: Mapping[str, Any]) -> type:
    """The settings of distill.train that plain values are meant for, by their `recipe`."""
    return recipe_of(values).settings


def recipe_of(trained: Mapping[str, Any]) -> Recipe:
    """The recipe of a run, by its settings as plain values. Raises DistillError for an unknown."""
    return recipe_named(trained.get("recipe", FIRST))


def recipe_named(name: str) -> Recipe:
    """The recipe of that name. Raises DistillError for an unknown one."""
    if not isinstance(name, str) or name not in _recipes:
        known = (
            ", ".join(_recipes) or "none yet: registry.register(*RECIPES) of distill.models.recipes"
        )
        raise DistillError(f"recipe={name}: unknown; there are {known}")
    return _recipes[name]
