"""What every format has: a name, its files, and a way to run them; float32 ONNX is the first.

The others are a module of this folder each, and import what only they need inside their methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from distill.config.settings.networks import Description
from distill.core.errors import DistillError
from distill.core.sessions import open_session, picture_call
from distill.export.onnx import OnePass, OnnxExporter
from distill.models.students.global_statistics import THUMBNAIL
from distill.models.students.student import Student

# (1, 3, S, S) float32 in [0, 1] to (1, 3 or 4, S, S) float32 in [0, 1], on one thread.
Inference = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ConversionSource:
    """What a format is made from.

    `folded` is the `network` without BatchNorm, `exporter` what wrote its float32 ONNX file, which
    names its profile; `calibration` gives photos of the training, (N, 3, S, S); `description` is
    what a file says of the network (models.network_file); `python` is an interpreter that has what
    the format's converter needs.
    """

    folded: nn.Module
    exporter: OnnxExporter
    channels: int
    calibration: Callable[[], Tensor]
    network: nn.Module
    description: Description
    python: str | None = None


class Format:
    """One way to store a network. `least`: dB to it in float32, mean and worst, to reach.

    Its files are called `stem`, what the network is, and each of `endings`.
    """

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    runs_in: ClassVar[str] = ""  # the runtime that is here, if its package is
    least: ClassVar[tuple[float, float] | None] = None

    def __init__(self, stem: str = "student") -> None:
        self.stem = stem
        self.files = tuple(stem + ending for ending in self.endings)

    def open(self, folder: Path) -> Inference | None:
        """Runs the files in `folder`; None where nothing on this machine does."""
        return None


class OnnxFormat(Format):
    """What all ONNX formats share: one file, and ONNX Runtime runs it."""

    runs_in = "ONNX Runtime"

    def open(self, folder: Path) -> Inference:
        return picture_call(open_session(folder / self.files[0], threads=1))


class Float32(OnnxFormat):
    """The float32 file; the export step writes it, with its budget, before every other format."""

    name = "onnx"
    endings = (".onnx",)


class ConvertedFormat(Format, ABC):
    """One that is made from the network, beside the float32 file that the export step writes."""

    needs: ClassVar[str] = ""  # what is to be installed to convert

    @abstractmethod
    def convert(self, source: ConversionSource, folder: Path) -> None:
        """Write `files` into an empty folder. Raises DistillError in one line."""

    def traceable(self, source: ConversionSource) -> nn.Module:
        """The folded network as other converters than ONNX's take it, at the exporter's size.

        Raises DistillError for a student that makes a thumbnail: of these converters coremltools
        drops its antialiasing, and the others have no operator for it.
        """
        network, side = source.folded, source.exporter.side
        if not isinstance(network, Student) or network.statistics is None:
            return network
        if side != THUMBNAIL:
            raise DistillError(
                f"{self.name}: has no antialiased resize for the thumbnail that global statistics "
                f"need at {side}×{side}; take exporter.size={THUMBNAIL}, or formats=onnx"
            )
        return OnePass(network.encoder, network.decoder, network.statistics).eval()

    def package(self, module: str) -> Any:
        """An optional package. Raises DistillError that says what to install."""
        try:
            return import_module(module)
        except ImportError as error:
            if error.name and error.name.split(".")[0] != module.split(".")[0]:
                raise DistillError(f"{self.name}: {module} cannot be imported ({error})") from error
            raise DistillError(f"{self.name}: needs {module}; {self.needs}") from None
