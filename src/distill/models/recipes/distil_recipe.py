"""recipe=distill: a small student learns to give a heavy teacher's output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from distill.config.registry import Direction, Recipe, Side
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import PhotoSource, Prepare, Train
from distill.config.trained import source_of
from distill.core import nodes


class DistilRecipe(Recipe):
    """Photos are labelled by a teacher; the student alone is kept."""

    name = "distill"
    settings = Train
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "student"}
    monitor = "val/loss"
    has_teacher = True
    stem = "student"

    def train(self, settings: Train, run: Any, first: bool) -> None:
        from distill.train.student_training import train

        train(settings, run, first)

    def prepare(self, settings: Prepare) -> Path:
        from distill.core.next_step import same_settings
        from distill.data import sources
        from distill.models.build import load_teacher
        from distill.prepare import labelling_job

        labelling_job.check(settings)  # what is wrong is said before weights are fetched
        labelling_job.prepare(settings, load_teacher(settings.style, settings.teacher))
        print(same_settings("train", without=("engine", "shard", "card")))
        if settings.data.kind == "shards":  # of which `pairs_root` would unpack a part
            return Path(str(sources.shards_root(settings)))
        return sources.pairs_root(settings)

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

    def evaluate(self, checkpoint: Path, settings: EvalFid, features: Any) -> tuple[Any, Any]:
        from distill.eval_fid import drawing_scores, heldout, paired_scores, whole_pictures
        from distill.models.checkpoint import load_network

        network, trained = load_network(checkpoint, settings.direction)
        pictures = heldout.held_out_photos(network, trained, settings)
        of = (network, trained, settings.photos)
        drawn_by = drawing_scores.networks_of(*of) if settings.flicker else {}
        scores = paired_scores.score_pairs(pictures, features, settings, drawn_by)
        if pictures.wholes:
            scores["sizes"] = whole_pictures.score_sizes(
                pictures.wholes, {"student": network}, features, heldout.group_of_pair,
                settings.bootstrap, settings.seed, settings.flicker,
            )  # fmt: skip
        return pictures, scores

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

    def pictures(self, trained: dict[str, Any], side: Side, size: int, direction: Direction) -> Any:
        from distill.export.samples import LabelledPictures

        return LabelledPictures(self.photo_source(trained), side, size, trained["channels"] == 4)

    def parity_photos(
        self, trained: dict[str, Any], size: int, direction: Direction
    ) -> Iterator[Any]:
        from distill.export import samples

        return samples.validation_photos(self.photo_source(trained), size)
