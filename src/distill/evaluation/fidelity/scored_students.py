"""Students from checkpoints and ONNX files: the network that draws, the graph a phone runs."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.core.images import as_bytes, as_float, batches, over_white
from distill.core.progress import bar
from distill.evaluation.fidelity import overlap
from distill.evaluation.fidelity.heldout_set import HeldOut
from distill.exporters.onnx import OnnxExporter, flush_subnormals
from distill.metrics import complexity, living_weights
from distill.models import checkpoint
from distill.models.fold import fold_batchnorm
from distill.models.teachers.onnx_teacher import OnnxTeacher

RESERVED = ("photo", "teacher")
BATCH = 8
_RANGE = re.compile(r"@(255|1)$")
Row = dict[str, Any]


@dataclass(frozen=True)
class Named:
    """NAME=FILE of the command line; `white` is the network's own value for it."""

    name: str
    file: Path
    white: float = 1.0

    @property
    def trained(self) -> bool:
        return self.file.suffix == ".ckpt"


@dataclass(frozen=True)
class Student:
    """`network` draws [0, 1] to [0, 1]; `graph` is folded, flushed and static."""

    name: str
    network: nn.Module
    graph: onnx.ModelProto
    cost: Row
    note: str


def parse(texts: list[str]) -> list[Named]:
    """NAME=FILE or NAME=FILE@255 of each. Raises DistillError for any other text."""
    named = [_parse(text) for text in texts]
    for i, each in enumerate(named):
        if each.name in [*RESERVED, *(other.name for other in named[:i])]:
            raise DistillError(f"{each.name}={each.file}: this name is taken; give another")
    return named


def _parse(text: str) -> Named:
    name, equals, rest = text.partition("=")
    if not (name and equals and rest):
        raise DistillError(f"{text!r}: want NAME=FILE, a .ckpt or an .onnx, or NAME=FILE.onnx@255")
    file, said = Path(_RANGE.sub("", rest)), _RANGE.search(rest)
    if file.suffix not in (".ckpt", ".onnx"):
        raise DistillError(f"{text}: a student is a .ckpt of distill.train or an .onnx")
    if not file.is_file():
        raise DistillError(f"{name}={file}: no such file")
    if said and file.suffix == ".ckpt":
        raise DistillError(f"{text}: only an .onnx has a range of its own")
    return Named(name, file, float(said.group(1)) if said else 1.0)


def load(named: Named, held: HeldOut, folder: Path) -> Student:
    """A student that can draw the held-out photos, its graph kept in `folder`.

    Raises DistillError for a damaged file, another size, another range, or training photos that
    are held out here.
    """
    made = _from_checkpoint(named, held) if named.trained else _from_onnx(named, held, folder)
    _check_drawn(named, made.graph, held.photo[:1])
    return made


def _from_checkpoint(named: Named, held: HeldOut) -> Student:
    network, settings = checkpoint.load_student(named.file)
    _check_size(named, settings["style"]["resolution"], held)
    note = overlap.check(named.name, settings, held)
    if (style := settings["style"]["name"]) != held.style:
        note += f"; learnt another style, {style}"
    folded = fold_batchnorm(network)
    graph = OnnxExporter(size=held.size).export(folded)
    counts = {"parameters": complexity.parameters(network), "bytes": graph.ByteSize()}
    return Student(named.name, folded, graph, _cost(graph) | counts, note)


def _from_onnx(named: Named, held: HeldOut, folder: Path) -> Student:
    kept = folder / f"{named.name.replace('/', '_')}.onnx"
    try:
        graph = complexity.load_graph(named.file)
        onnx.checker.check_model(graph)
        flush_subnormals(graph)
        graph = _static(named, graph, held)
        onnx.save(graph, str(kept))
        network, cost = OnnxTeacher(kept, (0, 1), (0, named.white)), _cost(graph)
    except DistillError as error:
        raise DistillError(str(error).replace(str(kept), str(named.file))) from error
    except (
        Exception
    ) as error:  # protobuf, the checker and shape inference have classes of their own
        reason = f"not a readable ONNX file ({type(error).__name__})"
        raise DistillError(f"{named.file}: {reason}") from error
    cost |= {"parameters": cost["graph_parameters"], "bytes": named.file.stat().st_size}
    return Student(named.name, network, graph, cost, overlap.UNKNOWN)


def _cost(graph: onnx.ModelProto) -> Row:
    return {
        "macs": complexity.graph_macs(graph),
        "graph_parameters": complexity.graph_parameters(graph),
        "living": living_weights.graph_living_weight_share(graph),
    }


def _static(named: Named, graph: onnx.ModelProto, held: HeldOut) -> onnx.ModelProto:
    """The graph for one photo of the set's size; a dynamic one has no single number of MACs."""
    fixed = deepcopy(graph)
    dims = fixed.graph.input[0].type.tensor_type.shape.dim
    if len(dims) != 4 or dims[1].dim_value != 3:
        raise DistillError(f"{named.file}: its input is not (1, 3, H, W)")
    _check_size(named, dims[2].dim_value or held.size, held)
    _check_size(named, dims[3].dim_value or held.size, held)
    if any(not dim.dim_value for dim in dims):
        del fixed.graph.value_info[:]
        fixed.graph.output[0].type.tensor_type.ClearField("shape")
        for dim, value in zip(dims, (1, 3, held.size, held.size), strict=True):
            dim.dim_value = value
    return fixed


def _check_size(named: Named, size: int, held: HeldOut) -> None:
    if size != held.size:
        raise DistillError(
            f"{named.name}={named.file}: a student of {size}×{size} pictures, and those of "
            f"{held.root} are {held.size}×{held.size}"
        )


def _check_drawn(named: Named, graph: onnx.ModelProto, photo: Tensor) -> None:
    """Tell a network that draws up to 255 from one that draws up to 1, by one photo."""
    session = open_session(graph)
    feed = {session.get_inputs()[0].name: as_float(photo).numpy()}
    drawn = np.asarray(session.run(None, feed)[0])
    if drawn.shape != tuple(photo.shape) and not named.trained:
        raise DistillError(
            f"{named.name}={named.file}: draws {drawn.shape}, not {tuple(photo.shape)}"
        )
    if (drawn.max() > 2) != (named.white == 255):
        want = "FILE@255" if drawn.max() > 2 else "FILE without @255"
        raise DistillError(
            f"{named.name}={named.file}: draws values up to {drawn.max():.3g}; name it as {want}"
        )


def open_session(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """ONNX Runtime on one thread that does not spin while it waits."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    for pool in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
    options.log_severity_level = 3
    content = graph.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@torch.inference_mode()
def draw(student: Student, photos: Tensor) -> Tensor:
    """The student's pictures of uint8 (n, 3, S, S), as the 8-bit values that a PNG would hold."""
    parts = []
    with bar(len(photos), " pictures", f"{student.name} draws", leave=False) as progress:
        for batch in batches(photos, BATCH):
            parts.append(as_bytes(over_white(student.network(batch))))
            progress.update(len(batch))
    return torch.cat(parts)
