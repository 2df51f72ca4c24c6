"""The student, an encoder's features through a decoder; distilled, or trained as a generator."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from distill.core import nodes
from distill.core.errors import DistillError

SMALLEST = 64  # the deepest layer has then 2×2 values: BatchNorm needs more than one of a picture


class Student(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to (N, 3 or 4, H, W) in [0, 1]; sides divide by 32."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, photo: Tensor) -> Tensor:
        return self.decoder(self.encoder(photo))


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
