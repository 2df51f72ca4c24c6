"""distill.prepare recipe=distill: photos and a teacher to a folder of pairs, or to shards."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from distill.config.settings.training import EngineSettings, Prepare
from distill.core.engine import HERE, Engine
from distill.core.errors import DistillError
from distill.core.next_step import same_settings
from distill.data import sources
from distill.data.lock import check_writable
from distill.data.sampler import check_weights
from distill.data.shards.shard_manifest import SetMetadataStore
from distill.models import build
from distill.models.teachers.teacher import Teacher
from distill.prepare import labelling
from distill.prepare.labelled_shards import build_shards
from distill.prepare.set_builder import SetReport
from distill.prepare.shard_labelling import ShardLabeller


def carry_out(settings: Prepare) -> Path:
    """Label what is missing of the settings' set; gives its folder.

    Of shards that of their held-out pairs, which need not be there. Raises DistillError.
    """
    check(settings)  # what is wrong is said before weights are fetched
    prepare(settings, build.load_teacher(settings.style, settings.teacher))
    print(same_settings("train", without=("engine", "shard", "card")))
    if settings.data.kind == "shards":  # of which `pairs_root` would unpack a part
        return Path(str(sources.shards_root(settings)))
    return sources.pairs_root(settings)


def check(settings: Prepare) -> None:
    """Raises DistillError for settings that cannot be carried out.

    Before a teacher's weights are fetched or anything is computed.
    """
    if settings.data.kind != "shards":
        if settings.engine.name != "here":
            raise DistillError(
                f"engine={settings.engine.name}: labels into shards; add data=shards, and "
                "python -m distill.shards to=pairs makes a folder of them"
            )
        labelling.check_labelling(settings)
        return
    sources.check_sizes(settings)
    sources.check_photos(settings)
    root = sources.shards_root(settings)
    if root.local is not None:
        check_writable(root.local)
    check_weights(settings.data.weights, len(sources.training_folders(settings)))


def prepare(settings: Prepare, teacher: Teacher) -> SetReport:
    """Label what is missing of the settings' set and say what happened."""
    if settings.data.kind != "shards":
        return labelling.prepare(settings, teacher)
    desk = SetMetadataStore(sources.shards_root(settings))
    with _engine(settings.engine) as engine:
        found = sources.photos(settings)
        fast, made_with = teacher.fast(), labelling.manifest(settings, teacher, desk.folder, found)
        here, there = labelling.labelling_device(settings), engine.device(settings.label.device)
        report = build_shards(
            found,
            labelling.teacher_pass(settings, fast, made_with, here),
            made_with,
            desk,
            settings.shard,
            engine,
            ShardLabeller(
                labelling.teacher_pass(settings, fast, made_with, there),
                settings.shard.codec,
                desk.root,
            ),
            sources.drop_list(settings),
        )
    print(report)
    return report


def _engine(settings: EngineSettings) -> AbstractContextManager[Engine]:
    """The engine, as long as the block lasts. Raises DistillError where it cannot be had."""
    if settings.name == "here":
        return nullcontext(HERE)
    from distill.prepare.ray_engine import RayEngine

    return RayEngine(settings)
