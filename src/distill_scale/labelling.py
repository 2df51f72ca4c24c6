"""How a teacher labels the photos that settings name into shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distill.core.engine import HERE, Engine
from distill.core.nodes import part
from distill.data import sources
from distill.data.address import Address
from distill.data.manifest import check_writable
from distill.data.photo_table import SIDES
from distill.data.sampler import check_weights
from distill.data.set_files import SetMetadataStore
from distill.data.terms import kept_terms
from distill.models import build
from distill.models.teachers.teacher import Teacher
from distill.prepare.labelling import conclude, manifest, teacher_pass
from distill.prepare.set_builder import build_set
from distill_scale.labelled_shards import ShardLabeller, ShardStore

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
    metadata = SetMetadataStore(root)
    with part("engine", settings.engine, Engine) as engine:
        photos = sources.photos(settings)
        fast, recipe = teacher.fast(), manifest(settings, teacher, metadata.folder, photos)
        before = kept_terms(metadata.folder)
        here, there = (
            teacher_pass(settings.label, fast, recipe, each.device(settings.label.device))
            for each in (HERE, engine)
        )
        labeller = ShardLabeller(there, settings.shard.codec, root)
        store = ShardStore(metadata, settings.shard, engine, labeller)
        drop, restore = sources.drop_lists(settings).values()
        report = build_set(photos, here, recipe, store, SIDES, drop, restore, engine)
    conclude(report, settings, root.local or metadata.folder, metadata.folder)
    if kept_terms(metadata.folder) != before:
        metadata.publish()
    return root
