"""ONNX that takes and gives bytes, as bitmaps of apps have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from distill.core.onnx_files import Step, wrapped
from distill.core.sessions import open_session, picture_call
from distill.export.format import ConversionSource, ConvertedFormat, Inference, OnnxFormat

WHITE = np.asarray(255, np.float32)
# Rounded without Round, which opset 9 lacks; Cast cuts off, and wraps what is out of range.
HALF, BLACK = np.asarray(0.5, np.float32), np.asarray(0, np.float32)


class Uint8(OnnxFormat, ConvertedFormat):
    """(1, H, W, 3) uint8 RGB to (1, H, W, 3 or 4) uint8, the float32 network between them.

    Rounding alone leaves 58.9 dB, 20 log10(255 √12).
    """

    name = "onnx_uint8"
    endings = ("_uint8.onnx",)
    least = (57.0, 50.0)

    def convert(self, source: ConversionSource, folder: Path) -> None:
        model = source.exporter.export(source.folded)
        first: list[Step] = [
            ("Transpose", None, {"perm": [0, 3, 1, 2]}),
            ("Cast", None, {"to": TensorProto.FLOAT}),
            ("Div", WHITE, {}),
        ]
        last: list[Step] = [
            *(("Mul", WHITE, {}), ("Add", HALF, {}), ("Max", BLACK, {}), ("Min", WHITE, {})),
            ("Cast", None, {"to": TensorProto.UINT8}),
            ("Transpose", None, {"perm": [0, 2, 3, 1]}),
        ]
        shape = [
            d.dim_value or d.dim_param for d in model.graph.input[0].type.tensor_type.shape.dim
        ]
        ends = (
            helper.make_tensor_value_info("", TensorProto.UINT8, [shape[0], *shape[2:], channels])
            for channels in (3, source.channels)
        )
        made = wrapped(model, first, last, *ends)
        onnx.checker.check_model(made, full_check=True)
        (folder / self.files[0]).write_bytes(made.SerializeToString())

    def open(self, folder: Path) -> Inference:
        run = picture_call(open_session(folder / self.files[0], threads=1))

        def call(photo: np.ndarray) -> np.ndarray:
            pixels = np.rint(photo * 255).astype(np.uint8).transpose(0, 2, 3, 1)
            return run(pixels).transpose(0, 3, 1, 2).astype(np.float32) / 255

        return call
