"""How a teacher labels the photos that settings name into shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distill.core.engine import HERE, Engine
from distill.core.nodes import part
from distill.data import sources
from distill.data.address import Address
from distill.data.manifest import check_writable
from distill.data.sampler import check_weights
from distill.data.set_files import SetMetadataStore
from distill.data.takedown import report_takedown
from distill.data.terms import keep_terms, kept_terms
from distill.models import build
from distill.models.teachers.teacher import Teacher
from distill.prepare.labelling import manifest, teacher_pass
from distill_scale.labelled_shards import ShardLabeller, build_shards

if TYPE_CHECKING:
    from distill_scale.source import Shards


def label(source: Shards, teacher: Teacher | None) -> Address:
    """distill.prepare data=shards, see `Source.label`: on this machine, or on the cluster of the
    settings."""
    settings, root = source.settings, source.root
    source.check_sizes()
    sources.check_photos(settings)
    if root.local is not None:
        check_writable(root.local)
    check_weights(settings.data.weights, len(sources.training_folders(settings)))
    if teacher is None:
        teacher = build.load_teacher(settings.style, settings.teacher)
    desk = SetMetadataStore(root)
    with part("engine", settings.engine, Engine) as engine:
        found = sources.photos(settings)
        fast, made_with = teacher.fast(), manifest(settings, teacher, desk.folder, found)
        before = kept_terms(desk.folder)
        here, there = HERE.device(settings.label.device), engine.device(settings.label.device)
        report = build_shards(
            found,
            teacher_pass(settings.label, fast, made_with, here),
            made_with,
            desk,
            settings.shard,
            engine,
            ShardLabeller(
                teacher_pass(settings.label, fast, made_with, there), settings.shard.codec, root
            ),
            **sources.drop_lists(settings),
        )
        keep_terms(desk.folder, settings)
        if kept_terms(desk.folder) != before:
            desk.publish()
    print(report)
    place = root.local or desk.folder
    report_takedown(place, report.newly, own=desk.folder, restored=report.restored)
    return root
