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
# Scopes of a student whose head predicts inks (see PhotoPalette). Of rounded colours its k-means
# begins with others: in half precision, photos of 384² came out up to 105 levels off.
PALETTE, LAYERS = "/palette/", ("/encoder/", "/decoder/", "/statistics/")


class Float16(OnnxFormat, ConvertedFormat):
    """Half the bytes. The converter is ONNX Runtime's own; Cast stands at both ends of the graph.

    The scales of every Resize stay float32: the ONNX standard has no other type for them.
    """

    name = "onnx_fp16"
    endings = ("_fp16.onnx",)
    least = (55.0, 50.0)

    def convert(self, source: ConversionSource, folder: Path) -> None:
        model = self.graph(source.exporter, source.folded)
        self.write(model, source, folder)

    def summary(self, source: ConversionSource) -> onnx.ModelProto:
        return halved(super().summary(source))

    def graph(self, exporter: OnnxExporter, folded: nn.Module) -> onnx.ModelProto:
        """What the file holds."""
        return halved(replace(exporter, opset=max(exporter.opset or OPSET, OPSET)).export(folded))


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """A float32 graph with float16 inside. Passes onnx.checker.

    The nodes that choose a photo's inks and decide between them stay in float32, with all that
    lies between them.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    half = convert_float_to_float16(model, keep_io_types=True, node_block_list=of_inks(model))
    for name in (THUMBNAIL, SUMMARY):
        _in_float32(half.graph, name)
    _unrounded(half.graph, {node.name for node in model.graph.node if node.name})
    del half.graph.value_info[:]  # of types and names before the casts were moved
    OnnxModel.graph_topological_sort(half.graph)  # the converter adds its casts at the end
    onnx.checker.check_model(half, full_check=True)
    return half


def of_inks(model: onnx.ModelProto) -> list[str]:
    """Names of the nodes that choose inks and decide between them; of other networks none.

    All but the layers before them, and the constants, which both may read.
    """
    names = [
        node.name
        for node in model.graph.node
        if node.op_type == "Constant" or not any(scope in node.name for scope in LAYERS)
    ]
    return names if any(PALETTE in name for name in names) else []


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


def _unrounded(graph: onnx.GraphProto, names: set[str]) -> None:
    """Drop the half precision between two nodes that are in float32 both.

    The converter casts what such a node gives to half, and back where another takes it. Nodes of
    these names are the network's own.
    """
    added = (each for each in graph.node if each.op_type == "Cast" and each.name not in names)
    casts = {node.output[0]: node for node in added}
    kinds = {name: helper.get_node_attr_value(node, "to") for name, node in casts.items()}
    direct = {
        name: casts[node.input[0]].input[0]
        for name, node in casts.items()
        if kinds[name] == onnx.TensorProto.FLOAT
        and kinds.get(node.input[0]) == onnx.TensorProto.FLOAT16
    }
    for name, source in direct.items():
        casts[name].input[0] = source
    for name in (THUMBNAIL, SUMMARY):  # which stay values of the graph
        direct.pop(name, None)
    for node in graph.node:
        node.input[:] = [direct.get(name, name) for name in node.input]
    read = {name for node in graph.node for name in node.input}
    read |= {value.name for value in graph.output}
    for name in casts.keys() - read:
        graph.node.remove(casts[name])
