"""The settings of a trained run, as its checkpoint holds them, checked again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from distill.config.settings.training import PhotoSource
from distill.config.validate import check
from distill.core import nodes


def source_of(trained: dict[str, Any], photos: str | None = None) -> PhotoSource:
    """The photos, teacher and set of a trained run, or the same with other photos.

    Those of a run without a teacher are another folder of pairs.
    """
    kept = {key: trained[key] for key in ("crop", "style", "data", "label", "teacher")}
    if photos and kept["teacher"] is None:
        kept["data"] = kept["data"] | {"root": photos}
    elif photos:
        kept["data"] = kept["data"] | {"root": None, "kind": "pairs", "weights": None}
    kept["photos"] = photos or trained["photos"]
    kept["val_photos"] = None if photos else trained.get("val_photos")
    source = check(kept | {"drop": None}, PhotoSource)  # the set remembers what was dropped
    if source.teacher is not None and nodes.takes(source.teacher, "typed"):
        # The run may be somebody else's: what it names has not been typed by the one at work here.
        return replace(source, teacher=source.teacher | {"typed": False})
    return source
