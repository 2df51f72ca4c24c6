"""The student, an encoder's features through a decoder; distilled, or trained as a generator."""

import torch
from torch import Tensor, nn

from distill.core import nodes
from distill.core.errors import DistillError, counted
from distill.core.nodes import Node
from distill.models.batchnorm import by_averages
from distill.models.students.global_statistics import (
    SUMMARY,
    THUMBNAIL,
    GlobalStatistics,
    thumbnail_of,
)
from distill.models.students.heads import Head

SMALLEST = 64  # the deepest layer has then 2×2 values: BatchNorm needs more than one of a picture


class Student(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to (N, 3 or 4, H, W) in [0, 1]; sides divide by 32.

    With `statistics` the decoder's sums are scaled and shifted by what a thumbnail of the whole
    picture shows, see GlobalStatistics. `photo` is the whole picture then, or a part of it beside
    its `thumbnail` (N, 3, 256, 256). A `head` makes a picture of what the decoder gives, which
    are logits then.

    >>> student = distill.student_network("whitebox").student
    >>> distill.Student(student.encoder, student.decoder)(torch.rand(1, 3, 64, 96)).shape
    torch.Size([1, 3, 64, 96])
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        statistics: GlobalStatistics | None = None,
        head: Head | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.statistics = encoder, decoder, statistics
        self.head = head

    def forward(self, photo: Tensor, thumbnail: Tensor | None = None) -> Tensor:
        if self.statistics is None:
            output = self.decoder(self.encoder(photo))
            return output if self.head is None else self.head(output)
        at_hand = thumbnail is None and photo.shape[-2:] == (THUMBNAIL, THUMBNAIL)
        if at_hand and not self.training:
            features = self.encoder(photo)
            summary = self.summarise(photo, features[-1])
        else:
            # Before the photo's own pass: what is recorded of layers is of the last one.
            summary = self.summary(thumbnail_of(photo) if thumbnail is None else thumbnail)
            features = self.encoder(photo)
        return self.decode(features, summary)

    def decode(self, features: list[Tensor], summary: Tensor) -> Tensor:
        """The output by the photo's features and the summary of the whole picture."""
        assert self.statistics is not None
        if self.head is None or not self.head.numbers:
            output = self.decoder(features, self.statistics.adapting(summary))
            return output if self.head is None else self.head(output)
        statistics, description = summary[:, :SUMMARY], summary[:, SUMMARY:]
        return self.head(self.decoder(features, self.statistics.adapting(statistics)), description)

    def summary(self, thumbnail: Tensor) -> Tensor:
        """What decoder and head know of a picture, (N, 64 or more, 1, 1), by (N, 3, 256, 256).

        The encoder learns nothing by it and normalises as in evaluation: else a picture's summary
        would depend on the others of its batch.
        """
        assert self.statistics is not None
        with torch.no_grad(), by_averages(self.encoder):
            features = self.encoder(thumbnail)
        return self.summarise(thumbnail, features[-1])

    def summarise(self, thumbnail: Tensor, deepest: Tensor) -> Tensor:
        """The same by the thumbnail and its deepest features (N, C, 8, 8)."""
        assert self.statistics is not None
        summary = self.statistics(thumbnail, deepest)
        if self.head is None or not self.head.numbers:
            return summary
        return torch.cat([summary, self.head.describe(thumbnail)], 1)

    def stylize(self, photo: Tensor, summary: Tensor) -> Tensor:
        """The output for a photo, or for a tile of it, by the summary of the whole picture."""
        return self.decode(self.encoder(photo), summary)


def global_statistics(encoder: nn.Module, decoder: nn.Module) -> GlobalStatistics:
    """The part of a student that tells its decoder of the whole picture.

    Raises DistillError for a decoder that does not say which of its sums can be adapted.
    """
    adapted = getattr(decoder, "adapted", None)
    if not adapted:
        raise DistillError(
            f"global_statistics=thumbnail: {type(decoder).__name__} has no `adapted`, the channels "
            "of the sums that it calls adapt() with; use global_statistics=none"
        )
    return GlobalStatistics(encoder.channels[-1], adapted)  # type: ignore[index,arg-type]


class StudentGenerator(Student):
    """A student from the nodes of its encoder and its decoder.

    (N, 3, H, W) RGB in [0, 1] to (N, `out_channels`, H, W) in [0, 1]; sides divide by 32.

    Raises DistillError for nodes of other classes than this package's, and for other sizes.
    """

    def __init__(
        self,
        encoder: Node,
        decoder: Node,
        size: int = 256,
        in_channels: int = 3,
        out_channels: int = 3,
    ) -> None:
        if in_channels != 3 or size % 32 or size < SMALLEST:
            raise DistillError(
                f"generator=student: takes RGB of {SMALLEST} pixels a side or more that divide by "
                f"32, not {counted(in_channels, 'channel')} of {size}×{size}"
            )
        for node in (encoder, decoder):
            nodes.check_part(node, "distill.models.students", nn.Module)
        first = nodes.build(encoder)
        shape = {"channels": first.channels, "strides": first.strides}
        super().__init__(first, nodes.build(decoder, **shape, out_channels=out_channels))
