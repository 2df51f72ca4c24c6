"""Students and teachers for torch.hub: hubconf.py offers them."""

from __future__ import annotations

from dataclasses import replace

from torch import nn


def student(style: str = "toon", pretrained: bool = True, file: str | None = None) -> nn.Module:
    """A student: (N, 3, H, W) RGB in [0, 1] to the same in [0, 1], any size, in evaluation mode.

    `style` is one of the package: toon, hayao or whitebox. Their files are ONNX with BatchNorm
    folded; the network has these weights and gives what the file gives, but nothing is normalised
    any more as training did it. `file` is one of your own instead, as training left it: a
    .safetensors, a checkpoint or the folder of a run. Not `pretrained`: untrained, with the
    settings of distill.train.
    """
    from distill.hub.published_student import PublishedStudent
    from distill.hub.shipped_student import described, shipped_student

    if file is not None:
        return PublishedStudent.of(file)
    return shipped_student(style) if pretrained else PublishedStudent(described(style))


def teacher(style: str = "toon", weights: str | None = None) -> nn.Module:
    """A style's teacher, frozen: (N, 3, H, W) RGB in [0, 1] to the same; sides by its `multiple`.

    Its weights are `weights`, else found in the folders of $DISTILL_WEIGHTS or in the cache, else
    fetched where a published file with a known hash exists, and verified.
    """
    from distill.config import compose
    from distill.config.settings.training import Train
    from distill.hub import published_student  # noqa: F401  # makes the recipes known
    from distill.models.build import load_teacher

    settings = compose.load("train", [f"style={style}"], Train)
    return load_teacher(replace(settings.style, weights=weights), settings.teacher)
