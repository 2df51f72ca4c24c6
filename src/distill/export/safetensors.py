"""safetensors: the network's own weights, to go on training with or to share."""

from pathlib import Path

import numpy as np
import torch

from distill.core.threads import on_threads
from distill.export.format import ConversionSource, ConvertedFormat, Inference
from distill.export.forms import Form
from distill.export.onnx import OnnxExporter
from distill.models.network_file import read_network_file, write_network
from distill.models.teachers.teacher import at_any_size


class Safetensors(ConvertedFormat):
    """One file, read back by `init=FILE`, `teacher.path=FILE` and `model=FILE` without its run."""

    name = "safetensors"
    endings = (".safetensors",)
    runs_in = "PyTorch"
    least = (99.0, 99.0)

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        return Form(), Form()

    def convert(self, source: ConversionSource, folder: Path) -> None:
        write_network(source.network, source.description, folder / self.files[0])

    def open(self, folder: Path) -> Inference:
        network, _ = read_network_file(folder / self.files[0])

        def run(photo: np.ndarray) -> np.ndarray:
            with on_threads(1), torch.inference_mode():
                return at_any_size(network, torch.from_numpy(photo)).numpy()

        return run
