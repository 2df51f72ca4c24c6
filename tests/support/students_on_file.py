"""A small distilled student, and the settings of a run that would have trained it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from distill.models.build import build_student
from support.gan_runs import SIDE, STUDENT

STYLE = {
    "name": "mine", "resolution": SIDE, "weights": "/home/me/secret/heavy.pt", "file": "public.pt",
    "url": "https://example.org/public.pt", "sha256": "12" * 32, "git_blob": None,
    "licence": "mine alone", "source": "https://example.org/heavy",
}  # fmt: skip
DISTILLED: dict[str, Any] = {
    "recipe": "distill",
    "run": "mine-detail",
    "channels": 3,
    "photos": "/home/me/photos",
    "encoder": STUDENT["encoder"] | {"weights": "/home/me/secret/encoder.pth"},
    "decoder": {
        "name": "detail", "profile": "transposed", "without": [],
        "build": {"_target_": "distill.models.students.decoders.detail.Detail", "context": 1},
    },
    "style": STYLE,
    "teacher": {
        "_target_": "distill.models.teachers.trained_run.CheckpointTeacher",
        "path": "/home/me/runs/x", "direction": "AtoB",
    },
}  # fmt: skip


def distilled(channels: int = 3, seed: int = 0) -> nn.Module:
    """The student of these settings, untrained, its statistics moved off their start."""
    torch.manual_seed(seed)
    node = DISTILLED["encoder"] | {"weights": "none"}
    student = build_student(node, DISTILLED["decoder"]["build"], channels)
    for module in student.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return student.eval()
