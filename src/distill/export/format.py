"""What every format has: a name, its files, and a way to run them; float32 ONNX is the first.

The others are a module each, here or in a plug-in, and import what only they need inside their
methods.
"""

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from distill.config.settings.networks import Description
from distill.core.errors import DistillError, extra_package
from distill.core.onnx_files import ABOUT, note, summary_file
from distill.core.sessions import open_session, picture_call
from distill.export.forms import Form, FormName, NetworkInForms, graph_in_forms
from distill.export.onnx import OnnxExporter, has_statistics
from distill.export.whole_picture import OnePass, Thumbnailed
from distill.models.students.global_statistics import THUMBNAIL, thumbnail_of

# From what a file takes to what it gives, on one thread.
Inference = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ConversionSource:
    """What a format is made from.

    `folded` is the `network` without BatchNorm, `exporter` what wrote its float32 ONNX file, which
    names its profile; `calibration` gives photos of the training, (N, 3, S, S); `description` is
    what a file says of the network (models.network_file).
    """

    folded: nn.Module
    exporter: OnnxExporter
    channels: int
    calibration: Callable[[], Tensor]
    network: nn.Module
    description: Description


class Format:
    """One way to store a network. `least`: dB to it in float32, mean and worst, to reach.

    Its files are called `stem`, what the network is, and each of `endings`.
    """

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    runs_in: ClassVar[str] = ""  # the runtime that is here, if its package is
    default_form: ClassVar[FormName] = "float_nchw"  # of input and output
    names: ClassVar[tuple[str, str]] = ("photo", "stylized")  # of its input and output
    least: ClassVar[tuple[float, float] | None] = None
    fixed: ClassVar[bool] = False  # its file has one size, beside a dynamic one too
    note: str = ""  # what the report says of it beside figures, when it is made

    def __init_subclass__(cls) -> None:
        # Formats of other packages may have the names of earlier versions.
        for name, attribute in (("default_form", "own"), ("forms", "ends")):
            if attribute in vars(cls):
                setattr(cls, name, vars(cls)[attribute])

    def __init__(self, stem: str = "student") -> None:
        self.stem = stem
        self.files = self.files_of(stem)

    @classmethod
    def files_of(cls, stem: str) -> tuple[str, ...]:
        """The names of its files and folders."""
        return tuple(stem + ending for ending in cls.endings)

    @classmethod
    def templates(cls) -> Path:
        """The folder of code for apps: FORMAT.ENDING.txt, see distill.export.snippets."""
        return Path(inspect.getfile(cls)).with_name("snippets")

    def open(self, folder: Path) -> Inference | None:
        """Runs the files in `folder`; None where nothing on this machine does."""
        return None

    def summary_in(self, folder: Path) -> str:
        """The name of the file there that computes its second input; empty without one."""
        name = summary_file(Path(self.files[0]).stem)
        return name if name in self.files and (folder / name).is_file() else ""

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        """Forms of its file's input and output. Raises DistillError for others than it has."""
        return exporter.forms(self.default_form)

    def about(self, exporter: OnnxExporter, channels: int) -> dict[str, Any]:
        """What its file says of itself: plain values."""
        input_form, output_form = self.forms(exporter)
        return json.loads(exporter.about) | {
            "format": self.name,
            "input": input_form.facts(self.names[0], input_form.shape(3, *exporter.shape)),
            "output": output_form.facts(
                self.names[1], output_form.shape(channels, *exporter.shape)
            ),
        }


class OnnxFormat(Format):
    """What all ONNX formats share: ONNX Runtime runs its file, and where that has a second input,
    the file that computes it."""

    runs_in = "ONNX Runtime"

    @classmethod
    def files_of(cls, stem: str) -> tuple[str, ...]:
        file, *more = super().files_of(stem)
        return file, summary_file(Path(file).stem), *more

    def open(self, folder: Path) -> Inference:
        session = open_session(folder / self.files[0], threads=1)
        if not self.summary_in(folder):
            return picture_call(session)
        summarise = picture_call(open_session(folder / self.files[1], threads=1))
        about = json.loads(session.get_modelmeta().custom_metadata_map[ABOUT])
        form = Form.of(about["input"])

        def run(pictures: np.ndarray) -> np.ndarray:
            thumbnails = thumbnail_of(torch.from_numpy(form.decode(pictures)))
            return picture_call(session, summary=summarise(thumbnails.numpy()))(pictures)

        return run

    def summary(self, source: ConversionSource) -> onnx.ModelProto:
        """The graph of that file."""
        return source.exporter.export_summary(source.folded)

    def write(self, model: onnx.ModelProto, source: ConversionSource, folder: Path) -> None:
        """Store the network's graph as `files`."""
        file_model = self.in_forms(model, source.exporter, source.channels)
        (folder / self.files[0]).write_bytes(file_model.SerializeToString())
        if source.exporter.summary_is_input(source.folded):
            (folder / self.files[1]).write_bytes(self.summary(source).SerializeToString())

    def in_forms(
        self, model: onnx.ModelProto, exporter: OnnxExporter, channels: int
    ) -> onnx.ModelProto:
        """A graph of ours in the forms of its file, with what that says of itself."""
        file_model = graph_in_forms(model, *self.forms(exporter), channels, exporter.filled)
        note(file_model, ABOUT, json.dumps(self.about(exporter, channels)))
        return file_model


class Float32(OnnxFormat):
    """The float32 file; the export step writes it, with its budget, before every other format."""

    name = "onnx"
    endings = (".onnx",)


class ConvertedFormat(Format, ABC):
    """One that is made from the network, beside the float32 file that the export step writes."""

    needs: ClassVar[str] = ""  # what is to be installed to convert
    one_size: ClassVar[bool] = False  # its file takes no other than exporter.size

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        if self.one_size and exporter.dynamic:
            raise DistillError(f"{self.name}: holds one size; leave exporter.dynamic out")
        return super().forms(exporter)

    @abstractmethod
    def convert(self, source: ConversionSource, folder: Path) -> None:
        """Write `files` into an empty folder. Raises DistillError in one line."""

    def traceable(self, source: ConversionSource) -> nn.Module:
        """The folded network in its forms as other converters than ONNX's take it.

        Raises DistillError for a student that makes a thumbnail of any size: these converters drop
        its antialiasing, or have no operator for it.
        """
        network, exporter = source.folded, source.exporter
        if has_statistics(network):
            if exporter.dynamic:
                raise DistillError(
                    f"{self.name}: has no resize of any size for the thumbnail that global "
                    "statistics need; take exporter.size=[HEIGHT,WIDTH], or formats=onnx"
                )
            one_pass = exporter.inside == (THUMBNAIL, THUMBNAIL)
            network = OnePass(network) if one_pass else Thumbnailed(network, exporter.inside)
        return NetworkInForms(network, *self.forms(exporter), exporter.filled).eval()

    def example(self, source: ConversionSource) -> Tensor:
        """Zeros as its file takes them."""
        input_form, _ = self.forms(source.exporter)
        shape = input_form.shape(3, source.exporter.batch, *source.exporter.sides)
        return torch.zeros(
            shape, dtype=torch.uint8 if input_form.kind == "uint8" else torch.float32
        )

    def package(self, module: str) -> Any:
        """An optional package. Raises DistillError that says what to install."""
        return extra_package(module, self.name, self.needs)
