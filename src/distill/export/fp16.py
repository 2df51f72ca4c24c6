"""ONNX in half precision: weights and arithmetic float16, input and output float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
from torch import nn

from distill.core.errors import DistillError
from distill.export.format import ConversionSource, ConvertedFormat, OnnxFormat
from distill.export.graph.operator_sets import foreign_operators
from distill.export.onnx import OnnxExporter

OPSET = 11  # Resize; the Upsample of opset 9 is no operator that the converter halves


class Float16(OnnxFormat, ConvertedFormat):
    """Half the bytes. The converter is ONNX Runtime's own; Cast stands at both ends of the graph.

    The scales of every Resize stay float32: the ONNX standard has no other type for them.
    """

    name = "onnx_fp16"
    endings = ("_fp16.onnx",)
    least = (55.0, 0.0)

    def convert(self, source: ConversionSource, folder: Path) -> None:
        model, profile = self.graph(source.exporter, source.folded), source.exporter.profile
        if foreign := set(foreign_operators(model, profile or "strict")) - {"Cast"}:
            raise DistillError(f"{self.name}: operators outside {profile}: {foreign}")
        (folder / self.files[0]).write_bytes(model.SerializeToString())

    def graph(self, exporter: OnnxExporter, folded: nn.Module) -> onnx.ModelProto:
        """What the file holds."""
        return halved(replace(exporter, opset=max(exporter.opset or OPSET, OPSET)).export(folded))


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """A float32 graph with float16 inside. Passes onnx.checker."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    half = convert_float_to_float16(model, keep_io_types=True)
    OnnxModel.graph_topological_sort(half.graph)  # the converter adds its casts at the end
    onnx.checker.check_model(half, full_check=True)
    return half
