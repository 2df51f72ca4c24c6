"""Students with statistics of the whole picture, as converters call them.

Each has a student's own parts, whose weights keep their names, and another `forward`. Photos and
outputs are (N, 3 or 4, H, W) in [0, 1], a summary is (N, 64, 1, 1).
"""

from collections.abc import Callable

import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from torch import Tensor, nn

from distill.models.students.global_statistics import THUMBNAIL
from distill.models.students.student import Student


class WholePictureStudent(Student):
    """The parts of a student with statistics."""

    def __init__(self, student: nn.Module) -> None:
        assert isinstance(student, Student)
        super().__init__(student.encoder, student.decoder, student.statistics, student.head)


class CalledAs(WholePictureStudent):
    """A student that is called by a function of it and its inputs."""

    def __init__(self, student: nn.Module, call: Callable[..., Tensor | tuple[Tensor, Tensor]]):
        super().__init__(student)
        self.call = call

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.call(self, *inputs)


def by_thumbnail(student: Student, photo: Tensor, thumbnail: Tensor) -> tuple[Tensor, Tensor]:
    """The output by the summary of a thumbnail, and that summary."""
    summary = student.summary(thumbnail)
    return student.stylize(photo, summary), summary


class OnePass(WholePictureStudent):
    """One pass of the encoder, for photos of the thumbnail's size: tracers meet no branch.

    With `with_summary` the summary is a second output.
    """

    def __init__(self, student: nn.Module, with_summary: bool = False) -> None:
        super().__init__(student)
        self.with_summary = with_summary

    def forward(self, photo: Tensor) -> Tensor | tuple[Tensor, Tensor]:  # type: ignore[override]
        features = self.encoder(photo)
        summary = self.summarise(photo, features[-1])
        output = self.decode(features, summary)
        return (output, summary) if self.with_summary else output


class Thumbnailed(WholePictureStudent):
    """A student with statistics, for photos of one size: its thumbnail in plain operators.

    They have the weights of an antialiased resize, as `thumbnail_of` has them. Where 256 divides
    the sides it is a strided convolution, and `border` makes up for what a kernel lacks there;
    elsewhere it is two matrix products.
    """

    def __init__(self, student: nn.Module, sides: tuple[int, int]) -> None:
        super().__init__(student)
        rows, columns = (
            F.interpolate(
                torch.eye(side)[None, None], (THUMBNAIL, side), mode="bilinear", antialias=True
            )[0, 0]
            for side in sides
        )
        self.strides = tuple(side // THUMBNAIL for side in sides)
        self.strided = not any(side % THUMBNAIL for side in sides)
        if self.strided:
            middle = [each[THUMBNAIL // 2] for each in (rows, columns)]
            kernel = torch.outer(*(line[line != 0] for line in middle))
            border = torch.outer(*(each.amax(1) for each in (rows, columns))) / kernel.amax()
            first, second = kernel.repeat(3, 1, 1, 1), border[None, None]
        else:
            first, second = rows, columns.T.contiguous()
        self.register_buffer("first", first)
        self.register_buffer("second", second)

    def forward(self, photo: Tensor) -> Tensor:  # type: ignore[override]
        first, second = self.get_buffer("first"), self.get_buffer("second")
        if self.strided:
            padding = [stride // 2 for stride in self.strides]
            thumbnail = F.conv2d(photo, first, None, self.strides, padding, groups=3) * second
        else:
            thumbnail = torch.matmul(torch.matmul(first, photo), second)
        assert self.statistics is not None
        return self.stylize(photo, self.summarise(thumbnail, self.encoder(thumbnail)[-1]))


def add_thumbnail(model: onnx.ModelProto) -> None:
    """Have the graph compute its second input from the first, as `thumbnail_of` does.

    Tracing knows no antialiased interpolation.
    """
    graph = model.graph
    photo, thumbnail = (value.name for value in graph.input)
    del graph.input[1]
    sides = helper.make_tensor("sides", TensorProto.INT64, [2], [THUMBNAIL, THUMBNAIL])
    constant = helper.make_node("Constant", [], ["thumbnail_sides"], value=sides)
    resize = helper.make_node(
        "Resize",
        [photo, "", "", "thumbnail_sides"],
        [thumbnail],
        name="thumbnail",
        mode="linear",
        antialias=1,
        exclude_outside=1,  # at the border as PyTorch and Pillow: what is there, weighted again
        axes=[2, 3],
        coordinate_transformation_mode="half_pixel",
    )
    graph.node.insert(0, resize)
    graph.node.insert(0, constant)
