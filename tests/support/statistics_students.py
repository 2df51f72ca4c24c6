"""A small untrained student that is told the whole picture, and that it matters to."""

import torch
from torch import nn

from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student, global_statistics

PLAIN = {"dawn", "swirl", "whitebox"}  # shipped, right without the whole picture


def statistics_student(seed: int = 0) -> nn.Module:
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
