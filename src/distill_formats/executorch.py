"""ExecuTorch: PyTorch's runtime for phones, by XNNPACK on the CPU, Core ML or Vulkan."""

import json
import logging
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from distill.core.files import write_json
from distill.core.process import silent
from distill.export.format import ConversionSource, ConvertedFormat, Inference
from distill_formats.xnnpack_graph import in_xnnpack

BACKENDS = {  # their names, what ExecuTorch's classes for them begin with, and whose module has one
    "xnnpack": ("XNNPACK", "Xnnpack", "xnnpack.partition.xnnpack_partitioner"),
    "coreml": ("Core ML", "CoreML", "apple.coreml.partition.coreml_partitioner"),
    "vulkan": ("Vulkan", "Vulkan", "vulkan.partitioner.vulkan_partitioner"),
}
ABOUT_METHOD = "distill_about"  # of a file: gives JSON of what the file is
CALL = "executorch_call_delegate"


class ExecuTorch(ConvertedFormat):
    """STEM.pte, and STEM.pte.json, which says what it is.

    A .pte file runs in the release of ExecuTorch that wrote it and in the next, not in older ones,
    so the file, the JSON and the report name that version. The report also names the operators that
    the `backend`, one of BACKENDS, leaves to ExecuTorch's own kernels.
    """

    name = "executorch"
    endings = (".pte", ".pte.json")
    needs = "pip install 'distill[executorch]'"
    runs_in = "ExecuTorch"
    one_size = True

    def __init__(self, stem: str = "student", backend: str = "xnnpack") -> None:
        super().__init__(stem)
        self.backend = backend

    def convert(self, source: ConversionSource, folder: Path) -> None:
        logging.getLogger("torch.utils._pytree").setLevel(logging.ERROR)  # of torchao's enums
        name, prefix, module = BACKENDS[self.backend]
        level = logging.root.level
        with silent():
            exir = self.package("executorch.exir")
            partition = self.package(f"executorch.backends.{module}")
        logging.root.setLevel(level)  # Vulkan's partitioner lowers it
        example = self.example(source)
        program = torch.export.export(self.graph(source, example), (example,))
        about = self.about(source.exporter, source.channels) | {
            "executorch": import_module("executorch.version").__version__.partition("+")[0],
            "terms": source.description.terms,
        }
        with silent():
            edge = exir.to_edge_transform_and_lower(
                program,
                partitioner=[getattr(partition, f"{prefix}Partitioner")()],
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
        self.note = f"ExecuTorch {about['executorch']}; outside {name}: {left or 'nothing'}"

    def graph(self, source: ConversionSource, example: Tensor) -> nn.Module:
        """The network in operators that the backend has and is fast at."""
        network = self.traceable(source)
        if self.backend != "xnnpack":
            return network
        return in_xnnpack(torch.export.export(network, (example,)).module(check_guards=False))

    def open(self, folder: Path) -> Inference | None:
        try:
            with silent():
                from executorch.extension.pybindings import portable_lib
                from executorch.runtime import Runtime
        except ImportError:
            return None
        if not Runtime.get().backend_registry.is_available(f"{BACKENDS[self.backend][1]}Backend"):
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
