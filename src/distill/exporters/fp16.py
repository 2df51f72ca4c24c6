"""ONNX in half precision: weights and arithmetic float16, input and output float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx

from distill.errors import DistillError
from distill.exporters.base import Source
from distill.exporters.onnx import foreign_operators
from distill.exporters.session import OnnxFormat

OPSET = 11  # Resize; the Upsample of opset 9 is no operator that the converter halves


class Float16(OnnxFormat):
    """Half the bytes. The converter is ONNX Runtime's own; Cast stands at both ends of the graph.

    The scales of every Resize stay float32: the ONNX standard has no other type for them.
    """

    name = "onnx_fp16"
    files = ("student_fp16.onnx",)
    least = (55.0, 0.0)

    def convert(self, source: Source, folder: Path) -> None:
        exporter = replace(source.exporter, opset=max(source.exporter.opset, OPSET))
        model = halved(exporter.export(source.folded))
        if foreign := set(foreign_operators(model, exporter.profile or "strict")) - {"Cast"}:
            raise DistillError(f"{self.name}: operators outside {exporter.profile}: {foreign}")
        (folder / self.files[0]).write_bytes(model.SerializeToString())


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """A float32 graph with float16 inside. Passes onnx.checker."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    half = convert_float_to_float16(model, keep_io_types=True)
    OnnxModel.graph_topological_sort(half.graph)  # the converter adds its casts at the end
    onnx.checker.check_model(half, full_check=True)
    return half
