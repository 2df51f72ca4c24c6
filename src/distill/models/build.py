"""Networks from their nodes: students, and teachers with their weights."""

from __future__ import annotations

from typing import Any, Literal

from distill.config.settings.training import StyleSettings
from distill.core import nodes, weights
from distill.core.errors import DistillError
from distill.core.weights import WeightsFile
from distill.models.students.student import Student, global_statistics
from distill.models.teachers.teacher import Teacher


def build_student(
    encoder: dict[str, Any],
    decoder: dict[str, Any],
    channels: int,
    statistics: Literal["none", "thumbnail"] = "none",
) -> Student:
    """Encoder and decoder from their nodes, and what tells the decoder of the whole picture."""
    built = nodes.build(encoder)
    out = nodes.build(
        decoder, channels=built.channels, strides=built.strides, out_channels=channels
    )
    return Student(built, out, None if statistics == "none" else global_statistics(built, out))


def load_teacher(style: StyleSettings, node: dict[str, Any] | None) -> Teacher:
    """The style's teacher with its weights found, verified and loaded.

    Raises DistillError where they cannot be had, and for pairs of one's own.
    """
    if node is None:
        raise DistillError(
            f"style={style.name}: pairs of your own, there is no teacher; name one: style=NAME"
        )
    if style.file is None and style.weights is None:
        return nodes.build(node)
    if not nodes.takes(node, "weights"):  # another teacher than the style's own
        if style.weights:
            raise DistillError(f"style.weights={style.weights}: this teacher takes none; leave it")
        return nodes.build(node)
    file = WeightsFile(style.file or "", style.url, style.sha256, style.git_blob)
    return nodes.build(node, weights=weights.find(file, style.weights, "style.weights"))


def available_teacher(style: StyleSettings, node: dict[str, Any] | None) -> Teacher | None:
    """The same without a download: None where a published file would have to be fetched first."""
    file = WeightsFile(style.file or "", style.url, style.sha256, style.git_blob)
    if style.file and style.weights is None and weights.find_or_none(file) is None:
        return None
    return inference_teacher(style, node)


def inference_teacher(style: StyleSettings, node: dict[str, Any] | None) -> Teacher:
    """The teacher for inference on any picture. Raises DistillError as `load_teacher`, and for one
    that only has drawings of certain photos."""
    teacher = load_teacher(style, node)
    if teacher.by_name:
        raise DistillError(
            f"style={style.name}: its teacher is a folder of drawings and stylizes no photo"
        )
    return teacher
