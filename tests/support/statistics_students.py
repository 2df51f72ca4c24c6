"""A small untrained student that is told the whole picture, and that it matters to."""

from collections.abc import Callable

import torch
from torch import nn

from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student, global_statistics

# Shipped, right without the whole picture.
PLAIN = {"dawn", "evening", "glass", "swirl", "whitebox", "woodcut"}


def statistics_student(
    seed: int = 0,
    kind: type[nn.Module] = Detail,
    std: float = 0.1,
    lively: Callable[[nn.Module], nn.Module] = lambda network: network,
) -> Student:
    """Folded, as the exporter takes it; `std` of the weights by which statistics count."""
    torch.manual_seed(seed)
    encoder = MobileNetV2Encoder(0.35, "none")
    decoder = kind(encoder.channels, encoder.strides)
    statistics = global_statistics(encoder, decoder)
    for layer in [*statistics.gains, *statistics.biases]:
        nn.init.normal_(layer.weight, std=std)
    with torch.no_grad():  # a random network's logits are wild, and rounding errors with them
        decoder.out.weight *= 0.2
    folded = fold_batchnorm(lively(Student(encoder, decoder, statistics)))
    assert isinstance(folded, Student)
    return folded
