"""Students from checkpoints and ONNX files: the network, and the graph that a phone runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from against_teacher import overlap
from against_teacher.heldout_set import FidelitySet
from distill.core.errors import DistillError
from distill.core.images import to_float, to_image, to_tensor
from distill.core.onnx_files import flush_subnormals, load_model
from distill.core.sessions import open_session, picture_call
from distill.eval_fid.whole_pictures import Infer
from distill.metrics import complexity
from distill.metrics.nonzero_weights import ALIVE
from distill.models import checkpoint
from distill.models.batchnorm import fold_batchnorm
from distill.models.network_file import is_network_file
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.runs.published_student import PublishedStudent
from distill.stylize.render import stylise_rgb
from distill.stylize.stylizing import open_student

RESERVED = ("photo", "teacher")
_RANGE = re.compile(r"@(255|1)$")
Row = dict[str, Any]
ToGraph = Callable[[nn.Module, int], onnx.ModelProto]  # a folded network, for pictures of a side


@dataclass(frozen=True)
class StudentFile:
    """NAME=FILE of the command line; `white` is the network's value for white, 1 or 255."""

    name: str
    file: Path
    white: float = 1.0

    @property
    def trained(self) -> bool:
        return self.file.suffix in (".ckpt", ".safetensors")


@dataclass(frozen=True)
class ScoredStudent:
    """`network` maps [0, 1] to [0, 1]; `graph` is folded, flushed and static."""

    name: str
    network: nn.Module
    graph: onnx.ModelProto
    cost: Row
    note: str


def parse(texts: list[str]) -> list[StudentFile]:
    """NAME=FILE or NAME=FILE@255 of each. Raises DistillError for any other text."""
    found = [_parse(text) for text in texts]
    for i, each in enumerate(found):
        if each.name in [*RESERVED, *(other.name for other in found[:i])]:
            raise DistillError(f"{each.name}={each.file}: this name is taken; give another")
    return found


def _parse(text: str) -> StudentFile:
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise DistillError(
            f"{text!r}: want NAME=FILE, a .ckpt, .safetensors or .onnx, or NAME=FILE.onnx@255"
        )
    file, said = Path(_RANGE.sub("", rest)), _RANGE.search(rest)
    if file.suffix not in (".ckpt", ".safetensors", ".onnx"):
        raise DistillError(
            f"{text}: a student is a .ckpt of distill.train, or a .safetensors or .onnx of "
            "distill.export"
        )
    if not file.is_file():
        raise DistillError(f"{name}={file}: no such file")
    if said and file.suffix != ".onnx":
        raise DistillError(f"{text}: only an .onnx has a range of its own")
    return StudentFile(name, file, float(said.group(1)) if said else 1.0)


def load(given: StudentFile, held: FidelitySet, folder: Path, to_graph: ToGraph) -> ScoredStudent:
    """A student that takes the held-out photos, its graph kept in `folder`.

    Raises DistillError for a damaged file, another size, another range, or training photos that
    are held out here.
    """
    if given.trained:
        made = _from_checkpoint(given, held, to_graph)
    else:
        made = _from_onnx(given, held, folder)
    _check_range(given, made.graph, held.photo[:1])
    return made


def _from_checkpoint(given: StudentFile, held: FidelitySet, to_graph: ToGraph) -> ScoredStudent:
    if is_network_file(given.file):
        published = PublishedStudent.of(given.file)
        network, style = published.student, published.description.style.name
        note = overlap.UNKNOWN
    else:
        network, settings = checkpoint.load_student(given.file)
        style = settings.style.name
        _check_size(given, settings.side, held)
        note = overlap.check(given.name, settings, held)
    if style != held.style:
        note += f"; learnt another style, {style}"
    folded = fold_batchnorm(network)
    graph = to_graph(folded, held.size)
    counts = {"parameters": complexity.parameters(network), "bytes": graph.ByteSize()}
    return ScoredStudent(given.name, folded, graph, _cost(graph) | counts, note)


def _from_onnx(given: StudentFile, held: FidelitySet, folder: Path) -> ScoredStudent:
    kept = folder / f"{given.name.replace('/', '_')}.onnx"
    try:
        graph = load_model(given.file)
        onnx.checker.check_model(graph)
        flush_subnormals(graph)
        graph = _static(given, graph, held)
        onnx.save(graph, str(kept))
        network, cost = OnnxTeacher(kept, (0, 1), (0, given.white)), _cost(graph)
    except DistillError as error:
        raise DistillError(str(error).replace(str(kept), str(given.file))) from error
    except Exception as error:  # the checker and shape inference have classes of their own
        reason = f"not a readable ONNX file ({type(error).__name__})"
        raise DistillError(f"{given.file}: {reason}") from error
    cost |= {"parameters": cost["graph_parameters"], "bytes": given.file.stat().st_size}
    return ScoredStudent(given.name, network, graph, cost, overlap.UNKNOWN)


def at_any_size(given: StudentFile) -> dict[str, Infer]:
    """A student as distill.stylize runs it at the picture's size, and the network by itself.

    The second not of a network that takes one size only. Raises DistillError for what
    distill.stylize does not take.
    """
    student = open_student(given.file, threads=1)

    def stylized(photo: Tensor) -> Tensor:
        size = max(photo.shape[-2:])
        return to_tensor(stylise_rgb(to_image(photo[0]), student, size))[None]

    def alone(photo: Tensor) -> Tensor:
        return torch.from_numpy(student(photo.numpy()))

    found: dict[str, Infer] = {given.name: stylized}
    if student.fixed is None:
        found[f"{given.name}, alone"] = alone
    return found


def _cost(graph: onnx.ModelProto) -> Row:
    return {
        "macs": complexity.graph_macs(graph),
        "graph_parameters": complexity.graph_parameters(graph),
        "living": _living(graph),
    }


def _living(graph: onnx.ModelProto) -> float | None:
    """Share of convolution weights of at least 1e-3 of their layer's largest; None without any."""
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer}
    layers = (n.input[1] for n in graph.graph.node if n.op_type in ("Conv", "ConvTranspose"))
    sizes = [np.abs(tensors[name]).ravel() for name in layers if name in tensors]
    living = [(each >= ALIVE * each.max()) & (each > 0) for each in sizes]
    return float(np.concatenate(living).mean()) if living else None


def _static(given: StudentFile, graph: onnx.ModelProto, held: FidelitySet) -> onnx.ModelProto:
    """The graph for one photo of the set's size; a dynamic one has no single number of MACs."""
    fixed = deepcopy(graph)
    dims = fixed.graph.input[0].type.tensor_type.shape.dim
    if len(dims) != 4 or dims[1].dim_value != 3:
        raise DistillError(f"{given.file}: its input is not (1, 3, H, W)")
    _check_size(given, dims[2].dim_value or held.size, held)
    _check_size(given, dims[3].dim_value or held.size, held)
    if any(not dim.dim_value for dim in dims):
        del fixed.graph.value_info[:]
        fixed.graph.output[0].type.tensor_type.ClearField("shape")
        for dim, value in zip(dims, (1, 3, held.size, held.size), strict=True):
            dim.dim_value = value
    return fixed


def _check_size(given: StudentFile, size: int, held: FidelitySet) -> None:
    if size != held.size:
        raise DistillError(
            f"{given.name}={given.file}: a student of {size}×{size} pictures, and those of "
            f"{held.root} are {held.size}×{held.size}"
        )


def _check_range(given: StudentFile, graph: onnx.ModelProto, photo: Tensor) -> None:
    """Tell a network whose output goes up to 255 from one whose goes up to 1, by one photo."""
    output = picture_call(open_session(graph, 1))(to_float(photo).numpy())
    if output.shape != tuple(photo.shape) and not given.trained:
        raise DistillError(
            f"{given.name}={given.file}: its output is {output.shape}, not {tuple(photo.shape)}"
        )
    if (output.max() > 2) != (given.white == 255):
        want = "FILE@255" if output.max() > 2 else "FILE without @255"
        raise DistillError(
            f"{given.name}={given.file}: its output has values up to {output.max():.3g}; name it "
            f"as {want}"
        )
