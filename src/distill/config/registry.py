"""Training recipes: what is known of a run by the `recipe` in its settings.

A recipe is one object here, or a class of a plug-in: under `recipes` in its plugin.yaml, or its
dotted name is a run's `recipe`. Every other module asks the recipe of a run what it needs to know,
and never which recipe it is. What a run has, the class of its settings says.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from distill.config.settings.base import Direction
from distill.config.settings.training import Train, Training
from distill.config.validate import fit
from distill.core import nodes, plugins
from distill.core.errors import DistillError, of_the_user
from distill.core.moved import moved_names, with_current_names

Side = Literal["train", "val"]  # of a run's pictures: learnt from, chosen by
# Photos that a teacher labels (or labelled), pairs of pictures, or two domains without pairs.
Material = Literal["photos", "pairs", "domains"]


class Recipe:
    """A training algorithm's settings and networks; distill.train.recipes has the training.

    A plug-in's recipe is a subclass with `train`. Its name is that of its class, and what a run has
    of itself is what a student has.
    """

    name: ClassVar[str]
    settings: ClassVar[type[Training]] = Train  # schema of `distill.train recipe=NAME`
    # By direction, what the LightningModule calls the network, and so do checkpoints.
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "student"}
    monitor: ClassVar[str] = "val/loss"  # the best checkpoint's logged metric, the lower the better
    objective: ClassVar[Any] = "psnr"  # a figure of validation by which a search compares runs
    learns_from: ClassVar[Material] = "photos"
    stem: ClassVar[str] = "student"  # what an exported network's files are called
    published_macs: ClassVar[bool] = False  # report the papers' count of MACs beside ours
    half_precision: ClassVar[bool] = False  # of its own generators a lens loads that file

    def __init_subclass__(cls) -> None:
        cls.name = vars(cls).get("name", cls.__name__.lower())

    def train(self, settings: Any, run: Any, first: bool) -> None:
        """Train into a `Run`, or resume, as a plug-in does; the `first` process alone writes."""
        of = f"{type(self).__module__}.{type(self).__qualname__}"
        raise DistillError(f"recipe={of}: has no train(self, settings, run, first); write one")

    def pictures(self, subject: Any, side: Side) -> Any:
        """The `RunPictures` of a `Subject` of distill.export whose run had no photos to label."""
        raise DistillError(f"recipe={self.name}: has no pictures(self, subject, side); write one")

    def end_export(self, subject: Any, folder: Path, written: bool) -> None:
        """Say more of a `Subject`; not `written`: refused, files of the folder are earlier ones."""

    def scores(
        self, network: Any, trained: Any, checkpoint: Path, settings: Any, features: Any
    ) -> Any:
        """What distill.eval_fid has of a run, as its `score_run`; None: what a student has."""

    def folder_parts(self, settings: Any, swept: Mapping[str, str]) -> dict[str, str]:
        """What a sweep calls a run's folder: config groups and how each is named, in order."""
        return {"recipe": self.name}


class DistilRecipe(Recipe):
    """Photos are labelled by a teacher; the student alone is kept."""

    name = "distill"

    def folder_parts(self, settings: Train, swept: Mapping[str, str]) -> dict[str, str]:
        return {key: getattr(settings, key).name for key in ("style", "decoder", "loss")}


OURS: dict[str, Recipe] = {"distill": DistilRecipe()}


def recipes() -> dict[str, Recipe]:
    """All recipes by name, those of plug-ins too. Raises DistillError for one of wrong parts."""
    return OURS | {name: _of_plugin("recipes", of) for name, of in plugins.entries("recipes")}


def schema_of(values: Mapping[str, Any]) -> type[Training]:
    """The settings of distill.train that plain values are meant for, by their `recipe`."""
    return recipe_named(values.get("recipe", "distill")).settings  # the first runs name none


def settings_of(saved: Mapping[str, Any]) -> Training:
    """A run's settings from the plain values in its checkpoint or config.yaml.

    Of another version: what it did not know has the field's default, what this one does not know is
    left out, and classes have the names of now. What nodes name is neither imported nor built.
    Raises DistillError in one line.
    """
    return fit(with_current_names(saved), schema_of(saved), extra="ignore")


def recipe_named(name: str) -> Recipe:
    """The recipe of that name, or a plug-in's class. Raises DistillError for an unknown one."""
    if isinstance(name, str) and "." in name:
        nodes.check_part({"_target_": name}, __name__, Recipe)
        return _of_plugin("recipe", name)
    if isinstance(name, str) and name in OURS:
        return OURS[name]
    for of in plugins.values("recipes", name):
        return _of_plugin("recipes", of)
    known = [*OURS, *(name for name, _ in plugins.entries("recipes"))]
    raise DistillError(f"recipe={name}: unknown; there are {', '.join(known)}")


@cache
def _of_plugin(key: str, name: str) -> Recipe:
    """A plug-in's recipe. Raises DistillError in one line for one of wrong parts."""
    recipe: Recipe = nodes.part(key, {"_target_": name}, Recipe)
    key = f"{key}={name}"
    with of_the_user(key):  # whose parts may be properties
        schema, networks = recipe.settings, recipe.networks
        if not (isinstance(schema, type) and issubclass(schema, Training)):
            raise DistillError(f"{key}: settings is no subclass of {Training.__module__}.Training")
        try:
            inspect.signature(recipe.train).bind(None, None, None)
        except TypeError as error:
            raise DistillError(f"{key}: want train(self, settings, run, first), {error}") from None
        ways, sides = get_args(Direction), get_args(Material)
        if not isinstance(networks, Mapping) or not networks or not {*networks} <= {*ways}:
            raise DistillError(f"{key}: networks is to be a name for each of {' and '.join(ways)}")
        if not isinstance(recipe.monitor, str) or recipe.learns_from not in sides:
            raise DistillError(
                f"{key}: monitor is to be the name of a logged metric, learns_from one of "
                f"{', '.join(sides)}"
            )
    return recipe


if not TYPE_CHECKING:  # a checker would take any name
    __getattr__ = moved_names(__name__)
