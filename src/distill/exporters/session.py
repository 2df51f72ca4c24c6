"""ONNX files in ONNX Runtime, and the float32 file as one format among the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from distill.exporters.base import Format, Runner, Source


def session(path: Path) -> onnxruntime.InferenceSession:
    """On the CPU and one thread, as metrics.latency measures."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class OnnxFormat(Format):
    """What all ONNX formats share: one file, and ONNX Runtime runs it."""

    runs_in = "ONNX Runtime"

    def open(self, folder: Path) -> Runner:
        opened = session(folder / self.files[0])
        name = opened.get_inputs()[0].name
        return lambda photo: np.asarray(opened.run(None, {name: photo})[0])


class Float32(OnnxFormat):
    """The float32 file; the export step writes it, with its budget, before every other format."""

    name = "onnx"
    endings = (".onnx",)

    def convert(self, source: Source, folder: Path) -> None:
        (folder / self.files[0]).write_bytes(source.onnx.read_bytes())
