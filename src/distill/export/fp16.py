"""ONNX in half precision: weights and arithmetic float16, input and output float32."""

from dataclasses import replace
from pathlib import Path

import onnx
from onnx import helper
from torch import nn

from distill.core.onnx_files import SUMMARY, THUMBNAIL
from distill.export.format import ConversionSource, ConvertedFormat, OnnxFormat
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
        model = self.graph(source.exporter, source.folded)
        file_model = self.in_forms(model, source.exporter, source.channels)
        (folder / self.files[0]).write_bytes(file_model.SerializeToString())

    def graph(self, exporter: OnnxExporter, folded: nn.Module) -> onnx.ModelProto:
        """What the file holds."""
        return halved(replace(exporter, opset=max(exporter.opset or OPSET, OPSET)).export(folded))


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """A float32 graph with float16 inside. Passes onnx.checker."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    half = convert_float_to_float16(model, keep_io_types=True)
    for name in (THUMBNAIL, SUMMARY):
        _in_float32(half.graph, name)
    OnnxModel.graph_topological_sort(half.graph)  # the converter adds its casts at the end
    onnx.checker.check_model(half, full_check=True)
    return half


def _in_float32(graph: onnx.GraphProto, name: str) -> None:
    """Give a value inside, if there is one of that name, the type that an input has.

    Where a student is cut in two there (see split_at_summary), both parts exchange float32.
    """
    if not any(name in node.output for node in graph.node):
        return
    for node in graph.node:
        for names, typed in ((node.input, f"{name}_again"), (node.output, f"{name}_half")):
            for place, value in enumerate(names):
                if value == name:
                    names[place] = typed
    graph.node.extend(
        helper.make_node("Cast", [source], [target], to=kind)
        for source, target, kind in (
            (f"{name}_half", name, onnx.TensorProto.FLOAT),
            (name, f"{name}_again", onnx.TensorProto.FLOAT16),
        )
    )
    others = [value for value in graph.value_info if value.name != name]
    del graph.value_info[:]
    graph.value_info.extend(others)
