"""ExecuTorch: PyTorch's runtime for phones, by XNNPACK on the CPU."""

from __future__ import annotations

import json
import logging
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

from distill.core.errors import DistillError
from distill.core.files import write_json
from distill.core.process import silent
from distill.export.format import ConversionSource, ConvertedFormat, Inference
from distill.export.forms import Form
from distill.export.onnx import OnnxExporter
from distill_formats.xnnpack_graph import in_xnnpack

PARTITION = "executorch.backends.xnnpack.partition.xnnpack_partitioner"
ABOUT_METHOD = "distill_about"  # of a file: gives JSON of what the file is
CALL = "executorch_call_delegate"


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
