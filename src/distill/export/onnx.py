"""ONNX that lens tools and phones read: one file, static, folded, flushed, no foreign operators.

Which operators are foreign is a matter of the profile (graph/operator_gate.py).
"""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnxruntime import InferenceSession
from torch import Tensor, nn
from torch.onnx.errors import OnnxExporterError

from distill.core import onnx_files
from distill.core.errors import DistillError, library_errors
from distill.core.licence_terms import NOTE
from distill.core.onnx_files import COLOURS_AT, GLOBAL_STATISTICS, SUMMARY, flush_subnormals, note
from distill.core.sessions import open_session
from distill.export.forms import Form, FormName
from distill.export.graph.operator_gate import OPERATORS, SUMMARY_INPUT, Profile
from distill.export.graph.plain import doubles, in_strict_operators, tidy
from distill.export.whole_picture import CalledAs, OnePass, add_thumbnail, by_thumbnail
from distill.models.students import global_statistics
from distill.models.students.global_statistics import THUMBNAIL, thumbnail_of
from distill.models.students.heads import PredictedPaletteHead
from distill.models.students.student import Student
from distill.models.teachers.teacher import at_any_size

OPSETS = range(9, 21)
OPSET = 11
RESIZING_OPSET = 18  # the first whose Resize has antialias
FREE_SIDES = ("32*height", "32*width")  # names of dimensions, as PyTorch writes multiples
ANOTHER_SIZE = (288, 352)  # of which 32 is the largest power of two: a dynamic file takes it
SIDE = 256  # that students are trained at, and budgets speak of


@dataclass(frozen=True)
class OnnxExporter:
    """How to write a network: `opset` 9 to 20, `size` a side or height and width.

    `opset` None: 11, or 18 where the graph makes a thumbnail. `size` None: 256, or what the network
    was trained for. `dynamic`: any size, and any `batch` in the place of so many pictures at once.
    `input` and `output` are what the file takes and gives; None: what its format has by itself, and
    of `output` the same as `input`. `profile` names the operators that may be in the file; None:
    what the network's own settings say. `colours_at`: distill.stylize takes the colours of larger
    outputs from one of that side; None: where the teacher normalises, the side that the student
    learnt at. `terms` is the JSON of core.licence_terms that the file carries, `about`
    JSON of what else it says of the network.

    A student with statistics of the whole picture has the value `summary` in its graph. At 256² it
    takes them from its own features; at another size, or at any, it makes a thumbnail of the photo.
    """

    opset: int | None = None
    size: int | tuple[int, int] | None = None
    batch: int = 1
    dynamic: bool = False
    input: FormName | None = None
    output: FormName | None = None
    profile: Profile | None = None
    colours_at: int | None = None
    terms: str = ""
    about: str = "{}"

    def __post_init__(self) -> None:
        if self.opset not in (None, *OPSETS):
            raise DistillError(f"exporter.opset={self.opset}: from {OPSETS[0]} to {OPSETS[-1]}")
        if isinstance(self.size, list | tuple) and len(self.size) != 2:
            raise DistillError(f"exporter.size={self.size}: want a side, or [HEIGHT,WIDTH]")
        if min(self.sides) < 32 or (self.dynamic and self.inside != self.sides):
            least = "at least 32 pixels; of a dynamic file a multiple of 32"
            raise DistillError(f"exporter.size={self.size}: {least}")
        if self.batch < 1 or (self.dynamic and self.batch > 1):
            raise DistillError(
                f"exporter.batch={self.batch}: at least 1; of a dynamic file any, leave it out"
            )
        if self.colours_at is not None and self.colours_at < 32:
            raise DistillError(f"exporter.colours_at={self.colours_at}: at least 32 pixels")
        if self.dynamic and self.profile not in (None, *OPERATORS):
            raise DistillError(
                f"exporter.dynamic=true: the profile {self.profile} holds one size; leave it out"
            )

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the input, in pixels."""
        size = SIDE if self.size is None else self.size
        return (size, size) if isinstance(size, int) else (size[0], size[1])

    @property
    def inside(self) -> tuple[int, int]:
        """Height and width that the network sees: 32 divides them."""
        height, width = self.sides
        return height + -height % 32, width + -width % 32

    @property
    def filled(self) -> tuple[int, int] | None:
        """The sides where they have to be filled up to those inside."""
        return None if self.inside == self.sides else self.sides

    @property
    def shape(self) -> tuple[Any, Any, Any]:
        """Batch, height and width; what they may be where they are free."""
        return ("batch", *FREE_SIDES) if self.dynamic else (self.batch, *self.sides)

    def forms(self, default: FormName) -> tuple[Form, Form]:
        """Forms of a file's input and output in a format with this default."""
        name = self.input or default
        return Form.named(name), Form.named(self.output or name)

    def export(self, folded: nn.Module) -> onnx.ModelProto:
        """The graph of a network whose BatchNorm is folded; input `photo`, output `stylized`.

        (batch, 3, height, width) in [0, 1] to (batch, 3 or 4, height, width) in [0, 1], of the
        size `inside`, whatever the file's forms will be (export.forms). Passes onnx.checker.
        With statistics in the profiles strict and transposed there is a second input, `summary`
        (1, 64, 1, 1), which the graph of `export_summary` computes.
        """
        network = folded
        if self.profile == "strict":
            if self.dynamic and any(map(doubles, folded.modules())):
                raise DistillError(
                    "exporter.dynamic=true: this decoder has transposed convolutions, and in the "
                    "profile strict they hold one size; take exporter.profile=transposed"
                )
            network = in_strict_operators(folded)
        if not has_statistics(network):
            return self._complete(onnx.load_from_string(self._trace(network)))
        both = ("stylized", SUMMARY)
        if self.summary_is_input(network):
            if self.filled:
                raise DistillError(
                    f"exporter.size={self.size}: 32 must divide it where a second file computes "
                    "the summary; leave exporter.profile out"
                )
            assert isinstance(network, Student)
            numbers = global_statistics.SUMMARY + (network.head.numbers if network.head else 0)
            summary = torch.zeros(self.batch, numbers, 1, 1)
            traced = self._trace(CalledAs(network, Student.stylize), {SUMMARY: summary})
        elif self.resizes(network):
            thumbnail = torch.zeros(self.batch, 3, THUMBNAIL, THUMBNAIL)
            inputs = {onnx_files.THUMBNAIL: thumbnail}
            traced = self._trace(CalledAs(network, by_thumbnail), inputs, both)
        else:
            traced = self._trace(OnePass(network, with_summary=True), outputs=both)
        model = onnx.load_from_string(traced)
        if self.resizes(network):
            add_thumbnail(model)
        return self._complete(model, statistics=True)

    def export_summary(self, folded: nn.Module) -> onnx.ModelProto:
        """The graph from a picture of 256×256, `photo`, to the second input of `export`'s graph."""
        exporter = replace(self, size=THUMBNAIL, dynamic=False, colours_at=None)
        traced = exporter._trace(CalledAs(folded, Student.summary), outputs=(SUMMARY,))
        return exporter._complete(onnx.load_from_string(traced), statistics=True)

    def summary_is_input(self, network: nn.Module) -> bool:
        """Whether `summary` is an input: the profile lacks the operators that compute it."""
        return has_statistics(network) and self.profile in SUMMARY_INPUT

    def resizes(self, network: nn.Module) -> bool:
        """Whether the graph makes the thumbnail that a student takes its statistics from."""
        whole = has_statistics(network) and not self.summary_is_input(network)
        return whole and (self.dynamic or self.inside != (THUMBNAIL, THUMBNAIL))

    def opset_of(self, network: nn.Module) -> int:
        """The opset that it is written in. Raises DistillError for one that lacks an operator."""
        least = RESIZING_OPSET if self.resizes(network) else OPSET
        if self.opset is not None and self.opset < least == RESIZING_OPSET:
            raise DistillError(
                f"exporter.opset={self.opset}: the thumbnail of the whole picture is made by an "
                f"operator of opset {RESIZING_OPSET}; leave it out, or take exporter.size="
                f"{THUMBNAIL} or exporter.profile=transposed"
            )
        # Such a head has 523 nodes with the later operators, 545 with those of opset 11.
        inks = isinstance(getattr(network, "head", None), PredictedPaletteHead)
        return self.opset or (RESIZING_OPSET if inks else least)

    def _trace(
        self,
        network: nn.Module,
        others: dict[str, Tensor] | None = None,
        outputs: Sequence[str] = ("stylized",),
    ) -> bytes:
        """`others` are its inputs after the photo."""
        inputs = {"photo": torch.zeros(self.batch, 3, *self.inside)} | (others or {})
        axes = dict(zip((0, 2, 3), ("batch", *FREE_SIDES), strict=True))
        free = {
            n: axes if n in ("photo", "stylized") else {0: "batch"} for n in (*inputs, *outputs)
        }
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # The tracing exporter is deprecated, and the one that reaches opset 9 to 17 directly;
            # and what it says of sizes that become constants is meant to be so.
            warnings.simplefilter("ignore")
            opset = self.opset_of(network)
            what = f"exporter.opset={opset}: cannot hold this network"
            with library_errors(what, OnnxExporterError):
                torch.onnx.export(
                    network.cpu().eval().to(memory_format=torch.contiguous_format),
                    tuple(inputs.values()),
                    buffer,  # type: ignore[arg-type]  # the tracing exporter takes any file
                    input_names=list(inputs),
                    output_names=list(outputs),
                    dynamic_axes=free if self.dynamic else None,
                    opset_version=opset,
                    dynamo=False,
                )
        return buffer.getvalue()

    def _complete(self, model: onnx.ModelProto, statistics: bool = False) -> onnx.ModelProto:
        flush_subnormals(model)
        tidy(model)
        del model.graph.output[1:]  # `summary` was one so that it has its name
        if statistics:
            note(model, GLOBAL_STATISTICS, "thumbnail")
        if self.colours_at:
            note(model, COLOURS_AT, self.colours_at)
        if self.terms:
            note(model, NOTE, self.terms)
        onnx.checker.check_model(model, full_check=True)
        return model


def has_statistics(network: nn.Module) -> bool:
    """Whether it is a student with statistics of the whole picture."""
    return isinstance(network, Student) and network.statistics is not None


def parity(
    path: Path,
    network: nn.Module,
    photos: Tensor,
    summary: Path | None = None,
    forms: tuple[Form, Form] = (Form(), Form()),
) -> float:
    """Largest absolute difference between the file in ONNX Runtime and the network, on photos.

    `summary` is the file that computes the second input of the first, `forms` are the file's.
    Where it takes bytes the network sees the same ones, and half a byte is what rounding leaves.
    """
    session = open_session(path, threads=0)
    input_form, output_form = forms
    photo = input_form.encode(photos.numpy())
    feed = {session.get_inputs()[0].name: photo}
    if summary:
        thumbnails = {"photo": thumbnail_of(photos).numpy()}
        feed[SUMMARY] = _in_batches(open_session(summary, threads=0), thumbnails)
    with torch.inference_mode():
        expected = at_any_size(network.eval(), torch.from_numpy(input_form.decode(photo))).numpy()
    difference = float(np.abs(output_form.decode(_in_batches(session, feed)) - expected).max())
    return max(0.0, difference - 0.5 / 255) if output_form.kind == "uint8" else difference


def _in_batches(session: InferenceSession, feed: dict[str, np.ndarray]) -> np.ndarray:
    """The first output for all pictures, so many at a time as the session takes, or one."""
    size = session.get_inputs()[0].shape[0]
    groups = batches(len(next(iter(feed.values()))), size if isinstance(size, int) else 1)
    outputs = [session.run(None, {n: v[rows] for n, v in feed.items()})[0] for rows in groups]
    return np.concatenate(outputs)[: len(next(iter(feed.values())))]


def batches(count: int, size: int) -> list[np.ndarray]:
    """The numbers of `count` pictures, `size` at a time; the last are filled up from the first."""
    return [np.arange(first, first + size) % count for first in range(0, count, size)]
