"""A small untrained student that is told the whole picture, and that it matters to."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student, global_statistics
from distill.stylize.onnx_student import OnnxStudent

RIM = 8  # pixels of the page's mirrored rim

UNTOLD = {"dawn", "swirl", "toon", "whitebox"}  # shipped, right without the whole picture


def told_student(seed: int = 0) -> nn.Module:
    """Folded, as the exporter takes it."""
    torch.manual_seed(seed)
    encoder = MobileNetV2Encoder(0.35, "none")
    decoder = Detail(encoder.channels, encoder.strides)
    statistics = global_statistics(encoder, decoder)
    for layer in [*statistics.gains, *statistics.biases]:
        nn.init.normal_(layer.weight, std=0.1)
    with torch.no_grad():  # a random network's logits are wild
        decoder.out.weight *= 0.2
    return fold_batchnorm(Student(encoder, decoder, statistics))


def page_output(student: OnnxStudent, photo: np.ndarray) -> np.ndarray:
    """What the page makes of a picture with its rim: by the summary of what lies within."""
    if not student.told:
        return student(photo)
    return student(photo, student.summary(photo[..., RIM:-RIM, RIM:-RIM]))
