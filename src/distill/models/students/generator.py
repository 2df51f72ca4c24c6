"""The student network as a generator, to be trained directly and not distilled."""

from __future__ import annotations

from typing import Any

from torch import nn

from distill.core import nodes
from distill.core.errors import DistillError
from distill.models.students.student import Student

SMALLEST = 64  # its deepest layer has then 2×2 values: BatchNorm needs more than one of a picture


class StudentGenerator(Student):
    """A student from the nodes of its encoder and its decoder.

    (N, 3, H, W) RGB in [0, 1] to (N, `out_channels`, H, W) in [0, 1]; sides divide by 32.

    Raises DistillError for nodes of other classes than this package's, and for other sizes.
    """

    def __init__(
        self,
        encoder: dict[str, Any],
        decoder: dict[str, Any],
        size: int = 256,
        in_channels: int = 3,
        out_channels: int = 3,
    ) -> None:
        if in_channels != 3 or size % 32 or size < SMALLEST:
            raise DistillError(
                f"generator=student: takes RGB of {SMALLEST} pixels a side or more that divide by "
                f"32, not {in_channels} channels of {size}×{size}"
            )
        for node in (encoder, decoder):
            nodes.check_part(node, "distill.models.students", nn.Module)
        first = nodes.build(encoder)
        given = {"channels": first.channels, "strides": first.strides}
        super().__init__(first, nodes.build(decoder, **given, out_channels=out_channels))
