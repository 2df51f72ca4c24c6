"""recipe=distill: a small student learns to give a heavy teacher's output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from distill.config.registry import Direction, Recipe
from distill.config.settings.training import PhotoSource, Train
from distill.config.validate import source_of
from distill.core import nodes


class DistilRecipe(Recipe):
    """Photos are labelled by a teacher; the student alone is kept."""

    name = "distill"
    settings = Train
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "student"}
    monitor = "val/loss"
    learns_from = "photos"
    stem = "student"

    def folder_parts(self, settings: Train, swept: Mapping[str, str]) -> dict[str, str]:
        return {key: getattr(settings, key).name for key in ("style", "decoder", "loss")}

    def check(self, trained: dict[str, Any]) -> None:
        from distill.models.teachers.teacher import Teacher

        # Before anything imports what it names: the teacher is built later, from these.
        if trained["teacher"] is not None:
            nodes.check_part(trained["teacher"], "distill.models.teachers", Teacher)
        source_of(trained)

    def network(self, trained: dict[str, Any]) -> Any:
        from distill.models.checkpoint import untrained_student

        return untrained_student(trained)

    def description(self, trained: dict[str, Any]) -> dict[str, Any]:
        style, teacher = trained["style"], trained["teacher"]
        if own := style["weights"]:  # not the file that is published under that name
            style = style | {"file": Path(own).name, "url": None, "sha256": None, "git_blob": None}
        return {
            "encoder": trained["encoder"] | {"weights": "none"},
            "decoder": trained["decoder"],
            "channels": trained["channels"],
            "global_statistics": trained.get("global_statistics", "none"),
            "style": style | {"weights": None},
            "teacher": teacher and {key: v for key, v in teacher.items() if key != "path"},
        }

    def side(self, trained: dict[str, Any]) -> int:
        return trained["style"]["resolution"]

    def photo_source(self, trained: dict[str, Any]) -> PhotoSource:
        return source_of(trained)

    def profile(self, trained: dict[str, Any]) -> Any:
        return trained["decoder"].get("profile", "strict")  # older runs know of no profile

    def facts(self, trained: dict[str, Any], direction: Direction) -> dict[str, Any]:
        return {
            "style": trained["style"],
            "decoder": trained["decoder"]["name"],
            "encoder": trained["encoder"],
        }
