"""What every format has: a name, its files, how it is made, and a way to run it where there is one.

A format is a module of this folder. Packages that only it needs are imported inside its methods.
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

from distill.core.errors import DistillError
from distill.exporters.onnx import OnnxExporter

# (1, 3, S, S) float32 in [0, 1] to (1, 3 or 4, S, S) float32 in [0, 1], on one thread.
Runner = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ConversionSource:
    """What a format is made from.

    `folded` is the network without BatchNorm; `onnx` its float32 file, written by `exporter`, which
    names its profile; `calibration` gives photos of the training, (N, 3, S, S); `python` is an
    interpreter that has what the format's converter needs.
    """

    folded: nn.Module
    onnx: Path
    exporter: OnnxExporter
    channels: int
    calibration: Callable[[], Tensor]
    python: str | None = None


class Format(ABC):
    """One way to write a network. `least`: dB to it in float32, mean and worst, to reach.

    Its files are called `stem`, what the network is, and each of `endings`.
    """

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    needs: ClassVar[str] = ""  # what is to be installed to convert
    runs_in: ClassVar[str] = ""  # the runtime that is here, if its package is
    least: ClassVar[tuple[float, float] | None] = None

    def __init__(self, stem: str = "student") -> None:
        self.stem = stem
        self.files = tuple(stem + ending for ending in self.endings)

    @abstractmethod
    def convert(self, source: ConversionSource, folder: Path) -> None:
        """Write `files` into an empty folder. Raises DistillError in one line."""

    def open(self, folder: Path) -> Runner | None:
        """A runner of the files in `folder`; None where nothing on this machine runs them."""
        return None

    def package(self, module: str) -> Any:
        """An optional package. Raises DistillError that says what to install."""
        try:
            return import_module(module)
        except ImportError as error:
            if error.name and error.name.split(".")[0] != module.split(".")[0]:
                raise DistillError(f"{self.name}: {module} cannot be imported ({error})") from error
            raise DistillError(f"{self.name}: needs {module}; {self.needs}") from None
