"""A small distilled student, and the settings of a run that would have trained it."""

from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import nn

from distill.config import compose
from distill.config.settings.networks import Decoder, StyleSettings
from distill.config.settings.training import Train
from distill.models.build import build_student
from support.gan_runs import SIDE, STUDENT

STYLE: dict[str, Any] = {
    "name": "mine", "resolution": SIDE, "weights": "/home/me/secret/heavy.pt", "file": "public.pt",
    "url": "https://example.org/public.pt", "sha256": "12" * 32, "git_blob": None,
    "licence": "mine alone", "source": "https://example.org/heavy",
}  # fmt: skip
ENCODER = STUDENT["encoder"] | {"weights": "/home/me/secret/encoder.pth"}
DETAIL = {"_target_": "distill.models.students.decoders.detail.Detail", "context": 1}
TEACHER = {
    "_target_": "distill.models.teachers.trained_run.CheckpointTeacher",
    "path": "/home/me/runs/x", "direction": "AtoB",
}  # fmt: skip


@cache
def composed() -> Train:
    return compose.load("train", ["recipe=distill", "run=mine-detail"], Train)


def settings_of_student(**changes: Any) -> Train:
    """Those of a run that would have trained `distilled`."""
    decoder = Decoder(name="detail", profile="transposed", without=[], build=DETAIL)
    own = {
        "photos": "/home/me/photos", "encoder": ENCODER, "decoder": decoder,
        "style": StyleSettings(**STYLE), "teacher": TEACHER,
    }  # fmt: skip
    return replace(composed(), **(own | changes))


def distilled(channels: int = 3, seed: int = 0) -> nn.Module:
    """The student of these settings, untrained, its statistics moved off their start."""
    torch.manual_seed(seed)
    student = build_student(ENCODER | {"weights": "none"}, DETAIL, channels)
    for module in student.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    return student.eval()
