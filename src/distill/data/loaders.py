"""From checked settings to the pictures of a student: a data module of its datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.core.moved import moved_names
from distill.core.next_step import assigned
from distill.data.datamodule import DistillData
from distill.data.kinds.chosen import data_source
from distill.data.kinds.source import FOLDER_ONLY, Split


def data_module(settings: Train, split: Split | None = None) -> DistillData:
    """Training and validation pictures of recipe=distill, of a set that is there.

    `split` gives the photos of data=photos by their sides.
    """
    check_sizes(settings)
    d, source = settings.data, data_source(settings)
    if settings.loss.weighed and (not source.regions or d.align):
        setting = "data.align=true" if d.align else f"data={d.kind}"
        raise DistillError(f"loss.region: {FOLDER_ONLY}, not with {setting}")
    sets = source.training_sets(split)
    return DistillData(sets.train, sets.val, d.batch_size, d.workers, d.val_limit, sets.pairs)


def check_sizes(settings: Train) -> None:
    """Raises DistillError as `Source.check_sizes`, and for a set that is there, and complete,
    without whole pictures of the sizes asked for."""
    source, asked = data_source(settings), settings.data.sizes
    source.check_sizes()
    if asked is None or (there := source.sizes()) is None:
        return
    if lacking := [size for size in asked if size not in there]:
        root = source.root
        has = f"whole pictures of {there}" if there else "squares alone, of one size"
        more = f"set data.sizes={there}" if there else "leave data.sizes out"
        words = assigned("data.root", str(root)), f"'data.sizes={sorted({*asked, *there})}'"
        raise DistillError(
            f"data.sizes={asked}: {root} has {has}; {more}, or label {lacking} too: python -m "
            f"distill.prepare photos=DIR {' '.join(words)}"
        )


if not TYPE_CHECKING:  # a checker would take any name
    __getattr__ = moved_names(__name__)
