"""Forms of a file's input and output: how an app's pictures become a network's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from distill.core.arrays import MODES
from distill.core.errors import DistillError
from distill.core.onnx_files import Step, model_inputs, wrapped
from distill.models.teachers.teacher import at_any_size

FormName = Literal[
    "float_nchw", "float_nhwc", "float255_nchw", "float255_nhwc", "uint8_nchw", "uint8_nhwc"
]
PADDING_OPSET = 11  # where pads and cuts are constants that a graph holds
WHITE = np.asarray(255, np.float32)
# Rounded without Round, which opset 9 lacks; Cast cuts off, and wraps what is out of range.
HALF, BLACK = np.asarray(0.5, np.float32), np.asarray(0, np.float32)


@dataclass(frozen=True)
class Form:
    """Pictures of an input or output: `kind` float ([0, 1]), float255 ([0, 255]) or uint8."""

    kind: str = "float"
    layout: str = "nchw"

    @classmethod
    def named(cls, name: FormName) -> Form:
        return cls(*name.split("_"))

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Form:
        """The one that these `facts` are of."""
        floats = "float" if facts["range"][1] == 1 else "float255"
        kind = "uint8" if facts["type"] == "uint8" else floats
        return cls(kind, facts["layout"].lower())

    @property
    def last(self) -> bool:
        """Whether channels are the last dimension."""
        return self.layout == "nhwc"

    @property
    def white(self) -> int:
        return 1 if self.kind == "float" else 255

    def shape(self, channels: int, batch: Any, height: Any, width: Any) -> list[Any]:
        inside = [height, width, channels] if self.last else [channels, height, width]
        return [batch, *inside]

    def facts(self, name: str, shape: list[Any]) -> dict[str, Any]:
        """What metadata and snippets say of it."""
        return {
            "name": name,
            "type": "uint8" if self.kind == "uint8" else "float32",
            "layout": self.layout.upper(),
            "range": [0, self.white],
            "channels": MODES[shape[3 if self.last else 1]],
            "shape": shape,
        }

    def encode(self, pictures: np.ndarray) -> np.ndarray:
        """(N, C, H, W) in [0, 1] in this form."""
        values = pictures * np.float32(self.white)
        values = np.rint(values).astype(np.uint8) if self.kind == "uint8" else values
        return np.ascontiguousarray(values.transpose(0, 2, 3, 1) if self.last else values)

    def decode(self, values: np.ndarray) -> np.ndarray:
        """Values in this form as (N, C, H, W) in [0, 1]."""
        plain = np.ascontiguousarray(values.transpose(0, 3, 1, 2) if self.last else values)
        return plain.astype(np.float32) / np.float32(self.white)


class NetworkInForms(nn.Module):
    """A network from (N, 3, H, W) in [0, 1] to the same, its input and output in other forms.

    `sides` are those of its pictures where 32 does not divide them: see `at_any_size`.
    """

    def __init__(
        self,
        network: nn.Module,
        input_form: Form,
        output_form: Form,
        sides: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.sides = network, sides
        self.input_form, self.output_form = input_form, output_form

    def forward(self, photo: Tensor) -> Tensor:
        photo = photo.permute(0, 3, 1, 2) if self.input_form.last else photo
        photo = photo.to(torch.float32) if self.input_form.kind == "uint8" else photo
        photo = photo if self.input_form.white == 1 else photo * (1 / 255)
        sides = self.sides
        output = at_any_size(self.network, photo, sides=sides) if sides else self.network(photo)
        output = output if self.output_form.white == 1 else output * 255.0
        if self.output_form.kind == "uint8":
            output = (output + 0.5).clamp(0, 255).to(torch.uint8)
        return output.permute(0, 2, 3, 1) if self.output_form.last else output


def graph_in_forms(
    model: onnx.ModelProto,
    input_form: Form,
    output_form: Form,
    channels: int,
    sides: tuple[int, int] | None = None,
) -> onnx.ModelProto:
    """The same for a graph of ours, which passes onnx.checker; `channels` are its output's.

    Raises DistillError for `sides` in an opset that has no padding by edges computed.
    """
    first: list[Step] = [("Transpose", None, {"perm": [0, 3, 1, 2]})] if input_form.last else []
    first += [("Cast", None, {"to": TensorProto.FLOAT})] if input_form.kind == "uint8" else []
    first += [("Mul", np.asarray(1 / WHITE), {})] if input_form.white == 255 else []
    last: list[Step] = []
    if sides:
        if model.opset_import[0].version < PADDING_OPSET:
            raise DistillError(
                f"exporter.size={[*sides]}: 32 does not divide it, and padding inside the file "
                f"needs exporter.opset={PADDING_OPSET} or more; leave that out"
            )
        height, width = sides
        pads = np.array([0, 0, 0, 0, 0, 0, -height % 32, -width % 32], np.int64)
        first.append(("Pad", pads, {"mode": "edge"}))
        bounds = [np.array(each, np.int64) for each in ([0, 0], sides, [2, 3])]
        last.append(("Slice", bounds, {}))
    last += [("Mul", WHITE, {})] if output_form.white == 255 else []
    if output_form.kind == "uint8":
        last += [("Add", HALF, {}), ("Max", BLACK, {}), ("Min", WHITE, {})]
        last += [("Cast", None, {"to": TensorProto.UINT8})]
    last += [("Transpose", None, {"perm": [0, 2, 3, 1]})] if output_form.last else []
    if not first and not last:
        return model
    dims = model_inputs(model)[0].type.tensor_type.shape.dim
    batch, _, *inner = (dim.dim_value or dim.dim_param for dim in dims)
    kinds = {"uint8": TensorProto.UINT8}
    entry, exit = (
        helper.make_tensor_value_info(
            "", kinds.get(form.kind, TensorProto.FLOAT), form.shape(count, batch, *(sides or inner))
        )
        for form, count in ((input_form, 3), (output_form, channels))
    )
    file_model = wrapped(model, first, last, entry, exit)
    onnx.checker.check_model(file_model, full_check=True)
    return file_model
