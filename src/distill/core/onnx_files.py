"""ONNX files: reading them, their weights, and notes in their metadata."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.shape_inference import infer_shapes
from onnx.utils import Extractor

from distill.core.errors import DistillError
from distill.core.files import sha256

# In a graph's metadata: the side of the pictures whose colours larger outputs take, in pixels.
COLOURS_AT = "distill.colours_at"
# There too: JSON of what the network is, and what the file takes and gives.
ABOUT = "distill.about"
# There too: `thumbnail` where the graph has the value `summary`, (1, 64, 1, 1), by which a part of
# a picture is told of the whole.
GLOBAL_STATISTICS = "global_statistics"
SUMMARY = "summary"
THUMBNAIL = "thumbnail"  # what it is made of, by this name in a graph of any size
FLUSH = 1e-20  # |w| below it becomes zero: same output, and no subnormal arithmetic


def summary_file(stem: str) -> str:
    """The name of the file that computes `summary` for a student that takes it as an input."""
    return f"{stem}_summary.onnx"


def load_model(path: Path) -> onnx.ModelProto:
    """An ONNX file with its weights. Raises DistillError for a missing or damaged one."""
    model = read_graph(path)
    check_whole(path, model)
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except Exception as error:  # whatever a damaged or forbidden file raises
        raise DistillError(f"{path}: the file of its weights cannot be read") from error
    return model


def read_graph(path: Path, name: str = "") -> onnx.ModelProto:
    """An ONNX file, weights in other files left where they are; `name` stands for its path.

    Raises DistillError in one line.
    """
    shown = name or path
    if not path.is_file():
        raise DistillError(f"{shown}: no such file")
    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except Exception as error:  # protobuf's own classes, and what a damaged file makes it raise
        raise DistillError(
            f"{shown}: not a readable ONNX file (damaged, cut short, or over protobuf's 2 GB)"
        ) from error
    if not (model.ir_version and model.graph.node and model.graph.output):  # of an empty file
        raise DistillError(f"{shown}: not an ONNX file, or one without a network")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise DistillError(f"{shown}: not a readable ONNX file (a name in it is no text)")
    return model


def _texts(message: Any) -> Iterator[str | bytes]:
    """Every text in a protobuf message, at any depth; one that is no UTF-8 comes as bytes."""
    for field in message.DESCRIPTOR.fields:
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue  # weights are bytes and numbers: not so much as looked at
        value = getattr(message, field.name)
        if isinstance(value, str | bytes):
            yield value
        elif hasattr(value, "DESCRIPTOR"):  # a message
            yield from _texts(value) if message.HasField(field.name) else ()
        else:
            for inner in value:
                yield from [inner] if isinstance(inner, str | bytes) else _texts(inner)


def check_whole(path: Path, model: onnx.ModelProto, name: str = "") -> None:
    """Raises DistillError where weights lie in a file that is not there; `name` stands for path."""
    for file in external_files(model):
        if not (path.parent / file).is_file():
            raise DistillError(
                f"{name or path}: its weights lie in {file}, which is not beside it; put it there"
            )


def external_files(model: onnx.ModelProto) -> tuple[str, ...]:
    """Names of the files, beside this one, that weights and constants lie in."""
    files = set()
    for graph in graphs(model.graph):
        held = (a.t for n in graph.node for a in n.attribute if a.HasField("t"))
        for tensor in (*graph.initializer, *held):
            if tensor.data_location == TensorProto.EXTERNAL:
                files.add(next((e.value for e in tensor.external_data if e.key == "location"), "?"))
    return tuple(sorted(files))


def content_hash(path: Path) -> str:
    """SHA-256 of an ONNX file, with those of the files that its weights lie in, if any."""
    beside = [path.parent / file for file in external_files(read_graph(path))]
    return " ".join(sha256(each) for each in (path, *beside) if each.is_file())


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph, and the bodies of If, Loop and Scan in it, at any depth."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                yield from graphs(inner)


def note(model: onnx.ModelProto, key: str, value: object) -> None:
    """Write a fact about the network into the graph's metadata, in the place of an older one."""
    notes = {each.key: each.value for each in model.metadata_props} | {key: str(value)}
    onnx.helper.set_model_props(model, notes)


def noted(model: onnx.ModelProto, key: str) -> str | None:
    """What a graph's metadata says of that, None without it."""
    return {each.key: each.value for each in model.metadata_props}.get(key)


def model_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs proper: old files list their weights as inputs too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def free_size(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose first input and outputs have any height and width, its operators untouched."""
    free = onnx.ModelProto()
    free.CopyFrom(model)
    del free.graph.value_info[:]  # shapes of inner tensors, which no longer hold
    for value in (model_inputs(free)[0], *free.graph.output):
        dims = value.type.tensor_type.shape.dim[2:]
        for dim, name in zip(dims, ("height", "width"), strict=False):
            dim.dim_param = name
    return free


# An operator, its constant or constants, its attributes.
Step = tuple[str, np.ndarray | list[np.ndarray] | None, dict[str, Any]]


def wrapped(
    model: onnx.ModelProto,
    before: Sequence[Step],
    behind: Sequence[Step],
    entry: onnx.ValueInfoProto,
    exit: onnx.ValueInfoProto,
) -> onnx.ModelProto:
    """A copy with operators before its first input and behind its first output, its only one then.

    `entry` and `exit` say what it takes and gives; the names stay those of the model.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    first, last = model_inputs(copy)[0], graph.output[0]
    names = [name for node in graph.node for name in node.output]
    tags = (f"/inside{number}" for number in count())  # one that is wrapped may be wrapped again
    tag = next(each for each in tags if not any(each in name for name in names))
    inside = {value.name: value.name + tag for value in (first, last)}
    for node in (node for each in graphs(graph) for node in each.node):
        node.input[:] = [inside.get(name, name) for name in node.input]
        node.output[:] = [inside.get(name, name) for name in node.output]
    identity: Sequence[Step] = [("Identity", None, {})]

    def chain(source: str, steps: Sequence[Step], target: str) -> Iterator[onnx.NodeProto]:
        for number, (operator, constant, attributes) in enumerate(steps, 1):
            into = target if number == len(steps) else f"{target}{tag}/{number}"
            one = [] if constant is None else constant
            several = one if isinstance(one, list) else [one]
            names, place = [source], f"{target}{tag}/{number}/constant"
            for index, each in enumerate(several):
                names.append(f"{place}{index or ''}")
                graph.initializer.append(numpy_helper.from_array(each, names[-1]))
            yield onnx.helper.make_node(operator, names, [into], **attributes)
            source = into

    for node in reversed([*chain(first.name, before or identity, inside[first.name])]):
        graph.node.insert(0, node)
    graph.node.extend(chain(inside[last.name], behind or identity, last.name))
    for old, new in ((first, entry), (last, exit)):
        new.name = old.name
        old.CopyFrom(new)
    del graph.output[1:], graph.value_info[:]
    return copy


def split_at_summary(model: onnx.ModelProto) -> tuple[onnx.ModelProto, onnx.ModelProto] | None:
    """The two parts of a student that is told the whole picture; None for any other network.

    From `photo`, the whole picture, to `summary` (1, 64, 1, 1), and from `photo`, it or a part of
    it, and `summary` to the output. The shapes of inputs and outputs are those of the model.
    """
    values = (output for node in model.graph.node for output in node.output)
    if noted(model, GLOBAL_STATISTICS) is None or SUMMARY not in values:
        return None
    extractor = Extractor(infer_shapes(model))
    inputs = [value.name for value in model_inputs(model)]
    outputs = [value.name for value in model.graph.output]
    summary = extractor.extract_model(inputs, [SUMMARY])
    stylize = extractor.extract_model([*inputs, SUMMARY], outputs)
    return summary, stylize


def count_subnormals(arrays: Iterable[np.ndarray]) -> int:
    """How many float32 values are subnormal: not zero, and below 1.18e-38."""
    tiny = np.finfo(np.float32).tiny
    floats = (array for array in arrays if array.dtype == np.float32)
    return sum(int(((a != 0) & (np.abs(a) < tiny)).sum()) for a in floats)


def flush_subnormals(model: onnx.ModelProto) -> int:
    """Set every |w| < 1e-20 to zero, in place; gives how many there were."""
    count = 0
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32:
            continue
        tiny = (values != 0) & (np.abs(values) < FLUSH)
        if tiny.any():
            count += int(tiny.sum())
            tensor.CopyFrom(numpy_helper.from_array(np.where(tiny, 0, values), tensor.name))
    return count
