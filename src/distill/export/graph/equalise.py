"""Channels of one activation brought to like ranges, exactly, before they share one int8 scale.

Conv → (ReLU →) Conv gives the same when a channel between them is divided by s > 0 in the first
convolution and multiplied by s in the second, since ReLU(x / s) = ReLU(x) / s (Nagel et al. 2019,
Data-Free Quantization Through Weight Equalization and Bias Correction, 4.1). With one scale per
output channel the first convolution's weights lose nothing by it, nor do a depthwise second one's;
what a full second one's inputs gain in range its weights lose, so there a power parts the two, as
in SmoothQuant (Xiao et al. 2022). Ranges are measured on photos.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from distill.core.sessions import open_session

# No channel counts for less than this part of the widest: one that sleeps on the photos available
# may wake on another. With it, and 96 photos in the place of 48, the worst of 24 held-out ones rose
# from 28 to 34 dB.
FLOOR = 0.25
POWER = 0.8  # how much of the range a full convolution's weights take over


@dataclass(frozen=True)
class Link:
    """Two convolutions and the tensor that only the second one reads."""

    first: onnx.NodeProto
    tensor: str
    second: onnx.NodeProto

    @property
    def depthwise(self) -> bool:
        return any(a.name == "group" and a.i > 1 for a in self.second.attribute)


def links(graph: onnx.GraphProto) -> Iterator[Link]:
    """Every pair of convolutions with nothing, or only a ReLU, between them."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for node in graph.node:
        if node.op_type != "Conv" or len(node.input) != 3:
            continue
        tensor = node.output[0]
        after = readers.get(tensor, [])
        if [n.op_type for n in after] == ["Relu"]:
            tensor = after[0].output[0]
            after = readers.get(tensor, [])
        if [n.op_type for n in after] == ["Conv"]:
            yield Link(node, tensor, after[0])


def equalise(model: onnx.ModelProto, photos: np.ndarray, **others: np.ndarray) -> int:
    """Rescale all links in place by their ranges on photos (N, 3, S, S); gives how many.

    `others` are values of further inputs by name, a row for each photo.
    """
    pairs = list(links(model.graph))
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for link, widest in zip(pairs, _ranges(model, pairs, photos, others), strict=True):
        _rescale(link, tensors, widest)
    return len(pairs)


def _ranges(
    model: onnx.ModelProto, pairs: list[Link], photos: np.ndarray, others: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """The largest |value| of every channel of every link's tensor."""
    if not pairs:
        return []
    names = [link.tensor for link in pairs]
    observed = onnx.ModelProto()
    observed.CopyFrom(model)
    observed.graph.output.extend(helper.make_tensor_value_info(n, 1, None) for n in names)
    session = open_session(observed, threads=0)
    feeds = {session.get_inputs()[0].name: photos, **others}
    widest: list[np.ndarray] | None = None
    for number in range(len(photos)):
        feed = {name: each[number : number + 1] for name, each in feeds.items()}
        values = session.run(names, feed)
        ranges = [np.abs(np.asarray(value)).max((0, 2, 3)) for value in values]
        widest = ranges if widest is None else list(map(np.maximum, widest, ranges))
    return widest or []


def _rescale(link: Link, tensors: dict[str, onnx.TensorProto], widest: np.ndarray) -> None:
    first, bias, second = (tensors[n] for n in (*link.first.input[1:3], link.second.input[1]))
    after = numpy_helper.to_array(second)
    scale = np.maximum(widest, FLOOR * widest.max())
    if not link.depthwise:
        largest = np.abs(after).max((0, 2, 3))
        scale = scale**POWER / np.maximum(largest, 1e-3 * largest.max()) ** (1 - POWER)
    if not np.isfinite(scale).all() or (scale <= 0).any():
        return  # all channels are dead, or the weights are
    scale = (scale / np.exp(np.log(scale).mean())).astype(np.float32)
    side = scale[:, None, None, None] if link.depthwise else scale[None, :, None, None]
    _set(first, numpy_helper.to_array(first) / scale[:, None, None, None])
    _set(bias, numpy_helper.to_array(bias) / scale)
    _set(second, after * side)


def _set(tensor: onnx.TensorProto, values: np.ndarray) -> None:
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))
