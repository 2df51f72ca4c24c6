"""ONNX files in ONNX Runtime, and the float32 file as one format among the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from distill.core.sessions import session
from distill.exporters.format import ConversionSource, Format, Runner


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

    def convert(self, source: ConversionSource, folder: Path) -> None:
        (folder / self.files[0]).write_bytes(source.onnx.read_bytes())
