"""The teacher that drew a set of pairs, to draw more: only where it is at hand, and the same."""

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
    """The style's teacher in its quickest form, where it drew the set at `root`.

    None where its weights are not at hand, and where another one drew the set.
    """
    made = manifest_at(root)
    if made is None:
        return None
    try:
        teacher = build.teacher_at_hand(style, node)
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
