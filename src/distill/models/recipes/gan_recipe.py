"""What recipes with a generator and a discriminator have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from distill.config.registry import Direction, Recipe, Side
from distill.config.settings.training import Adversarial, Budget, Generator
from distill.config.validate import fit


class GanRecipe(Recipe):
    """Networks that train against each other, on pictures that need no teacher."""

    data_settings: ClassVar[type]  # schema of its `data`

    @abstractmethod
    def data(self, settings: Any) -> Any:
        """The run's `DistillData`. Raises DistillError where its pictures are missing."""

    @abstractmethod
    def module(self, settings: Any) -> Any:
        """The `AdversarialModule`, its networks as the settings ask."""

    def train(self, settings: Adversarial, run: Any, first: bool) -> None:
        from distill.train import gan_training

        gan_training.train(settings, run, self.data, self.module)

    def folder_parts(self, settings: Adversarial, swept: Mapping[str, str]) -> dict[str, str]:
        loss = swept.get("adversarial", settings.adversarial["kind"])  # two choices have a kind
        return {"recipe": self.name, "generator": settings.generator.name, "adversarial": loss}

    def check(self, trained: dict[str, Any]) -> None:
        trained["run"]  # raises, like `fit`, for what a file from elsewhere lacks
        fit(trained["data"], self.data_settings)
        fit(trained["generator"], Generator)
        fit(trained["budget"], Budget)

    def network(self, trained: dict[str, Any]) -> Any:
        from distill.models.checkpoint import untrained_generator

        return untrained_generator(trained)

    def description(self, trained: dict[str, Any]) -> dict[str, Any]:
        return {
            "run": trained["run"],
            "generator": trained["generator"],
            "channels": trained["channels"],
            "data": {"crop_size": trained["data"]["crop_size"]},
        }

    def side(self, trained: dict[str, Any]) -> int:
        return trained["data"]["crop_size"]

    def profile(self, trained: dict[str, Any]) -> Any:
        return trained["generator"]["profile"]

    def facts(self, trained: dict[str, Any], direction: Direction) -> dict[str, Any]:
        of = {"recipe": self.name, "run": trained["run"], "direction": direction}
        return of | {"network": trained["generator"]}

    def pictures(self, trained: dict[str, Any], side: Side, size: int, direction: Direction) -> Any:
        from distill.export.samples import LearntPictures

        settings: Any = fit(trained, self.settings)  # classes it names are not imported
        at_size = replace(settings.data, crop_size=size, size=max(size, settings.data.size))
        return LearntPictures(self.data, replace(settings, data=at_size), side, direction)

    def parity_photos(
        self, trained: dict[str, Any], size: int, direction: Direction
    ) -> Iterator[Any]:
        found = self.pictures(trained, "val", size, direction)
        return (photo for photo, _ in found.at(range(len(found))))
