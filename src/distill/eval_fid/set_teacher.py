"""The teacher that labelled a set of pairs, for further photos, if it is available."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distill.config import compose
from distill.config.settings.training import Prepare, StyleSettings
from distill.core.errors import DistillError
from distill.data.manifest import manifest_at
from distill.models import build
from distill.models.teachers.teacher import Teacher


def teacher_of(root: Path, style: StyleSettings, node: dict[str, Any] | None) -> Teacher | None:
    """The style's teacher in its fastest form, where it labelled the set at `root`.

    None where its weights are not available, and where another one labelled the set.
    """
    made = manifest_at(root)
    if made is None:
        return None
    try:
        teacher = build.available_teacher(style, node)
    except DistillError:  # its weights, or the run that it is, are gone
        return None
    return teacher.fast() if teacher and teacher.settle(made.get("teacher", "")) else None


def style_teacher(root: Path) -> Teacher | None:
    """The same for a set that no run is asked about: the teacher of the style it names."""
    style = (manifest_at(root) or {}).get("style")
    if style not in compose.choices("style"):
        return None
    settings = compose.load("prepare", [f"style={style}"], Prepare)
    return teacher_of(root, settings.style, settings.teacher)
