"""ExecuTorch: PyTorch's runtime for phones, by XNNPACK on the CPU."""

from __future__ import annotations

import json
import logging
from collections import Counter
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from distill.core.errors import DistillError
from distill.core.files import write_json
from distill.core.process import silent
from distill.export.format import ConversionSource, ConvertedFormat, Inference
from distill.export.forms import Form
from distill.export.onnx import OnnxExporter

PARTITION = "executorch.backends.xnnpack.partition.xnnpack_partitioner"
ABOUT_METHOD = "distill_about"  # of a file: gives JSON of what the file is
CALL = "executorch_call_delegate"
# Of a transposed convolution: bias, stride, padding, output padding, groups, dilation.
DEFAULTS = (None, [1, 1], [0, 0], [0, 0], 1, [1, 1])


class ExecuTorch(ConvertedFormat):
    """STEM.pte, and STEM.pte.json, which says what it is.

    A .pte file runs in the release of ExecuTorch that wrote it and in the next, not in older ones,
    so the file, the JSON and the report name that version. The report also names the operators that
    XNNPACK leaves to ExecuTorch's own kernels.
    """

    name = "executorch"
    endings = (".pte", ".pte.json")
    needs = "pip install 'distill[executorch]'"
    runs_in = "ExecuTorch"

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        if exporter.dynamic:
            raise DistillError(f"{self.name}: holds one size; leave exporter.dynamic out")
        return super().forms(exporter)

    def convert(self, source: ConversionSource, folder: Path) -> None:
        logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)  # of torchao's enums
        with silent():
            exir = self.package("executorch.exir")
            partitioner = import_module(PARTITION).XnnpackPartitioner()
        example = (self.example(source),)
        program = torch.export.export(self.traceable(source), example)
        program = torch.export.export(in_xnnpack(program.module(check_guards=False)), example)
        about = self.about(source.exporter, source.channels) | {
            "executorch": import_module("executorch.version").__version__.partition("+")[0],
            "terms": source.description.terms,
        }
        with silent():
            edge = exir.to_edge_transform_and_lower(
                program,
                partitioner=[partitioner],
                constant_methods={ABOUT_METHOD: json.dumps(about)},
            )
            nodes = edge.exported_program().graph.nodes
            outside = Counter(each.target.__name__ for each in nodes if each.op == "call_function")
            (folder / self.files[0]).write_bytes(edge.to_executorch().buffer)
        delegates = outside.pop(CALL, 0)
        outside.pop("getitem", None)
        about |= {"delegates": delegates, "outside": dict(outside)}
        write_json(folder / self.files[1], about)
        left = ", ".join(f"{count} {name}" for name, count in outside.items())
        self.note = f"ExecuTorch {about['executorch']}; outside XNNPACK: {left or 'nothing'}"

    def open(self, folder: Path) -> Inference | None:
        try:
            with silent():
                from executorch.extension.pybindings import portable_lib
                from executorch.runtime import Runtime
        except ImportError:
            return None
        content = (folder / self.files[0]).read_bytes()
        with silent():
            portable_lib._unsafe_reset_threadpool(1)
            program = Runtime.get().load_program(content)
            program.load_method("forward")

        def run(photo: np.ndarray) -> np.ndarray:
            method = program.load_method("forward")  # which reads what the program holds
            (output,) = method.execute([torch.from_numpy(photo)])
            return output.numpy()

        return run


def in_xnnpack(module: fx.GraphModule) -> fx.GraphModule:
    """An exported graph, in place, in operators that XNNPACK has and is fast at; the same values.

    It has no nearest neighbour: pixels times ones, broadcast to patches, with channels last, as it
    keeps them. A transposed convolution without overlap takes it longer than a 1×1 one whose
    channels are then put in place.
    """
    aten, graph = torch.ops.aten, module.graph
    call = graph.call_function
    for number, node in enumerate(list(graph.nodes)):
        if node.target not in (aten.upsample_nearest2d.vec, aten.conv_transpose2d.input):
            continue
        x: Any = node.args[0]
        count, channels, height, width = x.meta["val"].shape
        *_, high, wide = node.meta["val"].shape
        rows, columns = high // height, wide // width
        whole = (high, wide) == (height * rows, width * columns)
        name = f"_plain_{number}"
        with graph.inserting_before(node):
            if node.target is aten.upsample_nearest2d.vec and whole:
                module.register_buffer(name, torch.ones(1, rows, 1, columns, 1))
                y = call(aten.permute.default, (x, [0, 2, 3, 1]))
                y = call(aten.reshape.default, (y, [count * height, 1, width, 1, channels]))
                y = call(aten.mul.Tensor, (y, graph.get_attr(name)))
                y = call(aten.reshape.default, (y, [count, high, wide, channels]))
                y = call(aten.permute.default, (y, [0, 3, 1, 2]))
            elif whole and (layer := _without_overlap(module, node, [rows, columns])):
                outputs = layer[0].shape[1]
                weight = layer[0].permute(1, 2, 3, 0).reshape(-1, channels, 1, 1).contiguous()
                module.register_buffer(name, weight)
                module.register_buffer(name + "b", layer[1].repeat_interleave(rows * columns))
                y = call(aten.conv2d.default, (x, *map(graph.get_attr, (name, name + "b"))))
                y = call(aten.reshape.default, (y, [count, outputs, rows, columns, height, width]))
                y = call(aten.permute.default, (y, [0, 1, 4, 2, 5, 3]))
                y = call(aten.reshape.default, (y, [count, outputs, high, wide]))
            else:
                continue
        node.replace_all_uses_with(y)
        y.meta = node.meta
        graph.erase_node(node)
    graph.eliminate_dead_code()
    module.recompile()
    return module


def _without_overlap(
    module: fx.GraphModule, node: fx.Node, times: list[int]
) -> tuple[Tensor, Tensor] | None:
    """Weight and bias of a transposed convolution that makes a patch of each pixel, else None."""
    arguments: tuple[Any, ...] = (*node.args, *DEFAULTS[len(node.args) - 2 :])
    _, weight, bias, *others = arguments
    if weight.op != "get_attr" or others != [times, *DEFAULTS[2:]]:
        return None
    kernel = attrgetter(weight.target)(module).detach()
    zeros = torch.zeros(kernel.shape[1])
    offset = zeros if bias is None else attrgetter(bias.target)(module).detach()
    return (kernel, offset) if [*kernel.shape[2:]] == times else None
