"""A TensorFlow Lite network of 32- or 16-bit floats, written as ONNX.

It is read as a flatbuffer, not run: MediaPipe's networks hold its own operators, which nothing else
runs. Weights stay the floats that the file holds. tools/mediapipe_networks.py is the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from ai_edge_litert import schema_py_generated as schema
from onnx import TensorProto, helper, numpy_helper

from distill.core.errors import DistillError

OPSET = 13
IR = 8
BUILTINS = {value: name for name, value in vars(schema.BuiltinOperator).items() if name[0] != "_"}
FLOATS = {schema.TensorType.FLOAT16: np.float16, schema.TensorType.FLOAT32: np.float32}
WHOLE = {schema.TensorType.INT32: np.int32}
TRANSPOSED = "Convolution2DTransposeBias"


@dataclass(frozen=True)
class Ends:
    """What the ONNX file calls itself, its input and its outputs, in the file's order.

    `low`: what black is to the network, where white is 1; the input is in [0, 1] at any rate.
    """

    graph: str
    input: str
    outputs: tuple[str, ...]
    low: float = 0.0


class Conversion:
    """One graph: TensorFlow's (N, H, W, C) becomes ONNX's (N, C, H, W), name by name; tensors of
    fewer dimensions stay as they are."""

    def __init__(self, model: Any, ends: Ends) -> None:
        if len(model.subgraphs) != 1:
            raise DistillError(f"it has {len(model.subgraphs)} graphs, wanted one")
        self.model, self.ends = model, ends
        self.graph = model.subgraphs[0]
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.stored: dict[int, int] = {}  # a tensor: the one that holds its 16-bit floats

    def convert(self) -> onnx.ModelProto:
        """Raises DistillError for an operator or an option that is not written here."""
        if len(self.graph.outputs) != len(self.ends.outputs):
            raise DistillError(f"it has {len(self.graph.outputs)} outputs: another network")
        (first,) = self.graph.inputs
        if self.ends.low:
            self.scale(1 - self.ends.low, self.ends.low)
        for operator in self.graph.operators:
            kind = self.kind(operator)
            if kind == "DEQUANTIZE":
                self.stored[operator.outputs[0]] = operator.inputs[0]
                continue
            write = getattr(self, f"write_{kind.lower()}", None)
            if write is None:
                raise DistillError(f"operator {kind}: nothing here writes it")
            write(operator)
        outputs = list(zip(self.graph.outputs, self.ends.outputs, strict=True))
        self.nodes += [helper.make_node("Identity", [self.name(t)], [out]) for t, out in outputs]
        graph = helper.make_graph(
            self.nodes,
            self.ends.graph,
            [self.value(first, self.ends.input)],
            [self.value(tensor, name) for tensor, name in outputs],
            self.weights,
        )
        opset = helper.make_opsetid("", OPSET)
        found = helper.make_model(
            graph, opset_imports=[opset], ir_version=IR, producer_name="distill"
        )
        onnx.checker.check_model(found, full_check=True)
        return found

    def scale(self, factor: float, low: float) -> None:
        """What the network's own input is made of: the photo, [0, 1], as it wants it."""
        for name, value in (("factor", factor), ("low", low)):
            self.weights.append(numpy_helper.from_array(np.float32(value), name))
        self.nodes.append(helper.make_node("Mul", [self.ends.input, "factor"], ["wide"]))
        self.nodes.append(helper.make_node("Add", ["wide", "low"], ["scaled"]))

    def kind(self, operator: Any) -> str:
        code = self.model.operatorCodes[operator.opcodeIndex]
        if code.customCode is not None:
            return code.customCode.decode()
        return BUILTINS[max(code.builtinCode, code.deprecatedBuiltinCode)]

    # One method an operator, under its TensorFlow Lite name.

    def write_conv_2d(self, operator: Any) -> None:
        photo, kernel, bias = operator.inputs
        options = operator.builtinOptions
        weight = self.numbers(kernel).transpose(0, 3, 1, 2)  # (out, H, W, in)
        self.convolve(operator, photo, weight, bias, options, groups=1)

    def write_depthwise_conv_2d(self, operator: Any) -> None:
        photo, kernel, bias = operator.inputs
        options = operator.builtinOptions
        if options.depthMultiplier != 1:
            raise DistillError("several outputs a channel: nothing here writes it")
        weight = self.numbers(kernel).transpose(3, 0, 1, 2)  # (1, H, W, channels)
        self.convolve(operator, photo, weight, bias, options, groups=weight.shape[0])

    def convolve(
        self, operator: Any, photo: int, weight: np.ndarray, bias: int, options: Any, groups: int
    ) -> None:
        if (options.dilationHFactor, options.dilationWFactor) != (1, 1):
            raise DistillError("a dilated convolution: nothing here writes it")
        plain(options)
        strides = [options.strideH, options.strideW]
        pads = [0, 0, 0, 0]
        if options.padding == schema.Padding.SAME:
            sides = self.graph.tensors[photo].shape[1:3]
            pads = same(sides, weight.shape[2:], strides)
        names = [
            self.weight(f"w{operator.outputs[0]}", weight),
            self.weight(f"b{bias}", self.numbers(bias)),
        ]
        self.add(
            "Conv", operator, [self.name(photo), *names], strides=strides, pads=pads, group=groups
        )

    def write_convolution2dtransposebias(self, operator: Any) -> None:
        photo, kernel, bias = operator.inputs
        # TfLiteTransposeConvParams: padding, strides.
        _padding, wide, high = np.frombuffer(bytes(operator.customOptions), np.int32)
        weight = self.numbers(kernel).transpose(3, 0, 1, 2)  # (out, H, W, in)
        if weight.shape[2:] != (high, wide):
            raise DistillError(f"{TRANSPOSED} whose patches overlap: nothing here writes it")
        names = [self.weight(f"w{kernel}", weight), self.weight(f"b{bias}", self.numbers(bias))]
        strides = [int(high), int(wide)]
        self.add("ConvTranspose", operator, [self.name(photo), *names], strides=strides)

    def write_average_pool_2d(self, operator: Any) -> None:
        options = operator.builtinOptions
        plain(options)
        sides = tuple(self.graph.tensors[operator.inputs[0]].shape[1:3])
        if (options.filterHeight, options.filterWidth) != sides:
            raise DistillError("an average of a part of the picture: nothing here writes it")
        self.add("GlobalAveragePool", operator)

    def write_max_pool_2d(self, operator: Any) -> None:
        options = operator.builtinOptions
        plain(options)
        kernel = [options.filterHeight, options.filterWidth]
        strides = [options.strideH, options.strideW]
        pads = [0, 0, 0, 0]
        if options.padding == schema.Padding.SAME:
            pads = same(self.graph.tensors[operator.inputs[0]].shape[1:3], kernel, strides)
        self.add("MaxPool", operator, kernel_shape=kernel, strides=strides, pads=pads)

    def write_pad(self, operator: Any) -> None:
        """By zeros; the file has a pair of counts a dimension, ONNX all the first ones, then all
        the second ones."""
        photo, pairs = operator.inputs
        counts = self.numbers(pairs, WHOLE)
        if len(counts) == 4:
            counts = counts[[0, 3, 1, 2]]
        name = f"pads{operator.outputs[0]}"
        self.weights.append(numpy_helper.from_array(counts.T.astype(np.int64).reshape(-1), name))
        self.add("Pad", operator, [self.name(photo), name])

    def write_reshape(self, operator: Any) -> None:
        """Values keep TensorFlow's order: channels go last before it."""
        (photo, *_), (output,) = operator.inputs, operator.outputs
        before, after = (self.graph.tensors[each].shape for each in (photo, output))
        if len(before) != 4 or len(after) == 4:
            raise DistillError("a reshape that does not end the picture: nothing here writes it")
        last, shape = f"last{output}", f"shape{output}"
        self.weights.append(numpy_helper.from_array(np.asarray(after, np.int64), shape))
        turn = helper.make_node("Transpose", [self.name(photo)], [last], perm=[0, 2, 3, 1])
        self.nodes.append(turn)
        self.add("Reshape", operator, [last, shape])

    def write_concatenation(self, operator: Any) -> None:
        options = operator.builtinOptions
        plain(options)
        if len(self.graph.tensors[operator.outputs[0]].shape) == 4:
            raise DistillError("pictures put together: nothing here writes it")
        self.add("Concat", operator, axis=options.axis)

    def write_resize_bilinear(self, operator: Any) -> None:
        photo, result = (
            self.graph.tensors[i].shape for i in (operator.inputs[0], operator.outputs[0])
        )
        options = operator.builtinOptions
        if options.alignCorners or not options.halfPixelCenters:
            raise DistillError("a resize that is not by pixels' centres: nothing here writes it")
        factors = np.array([1, 1, result[1] / photo[1], result[2] / photo[2]], np.float32)
        scales = f"scales{operator.outputs[0]}"
        self.weights.append(numpy_helper.from_array(factors, scales))
        inputs = [self.name(operator.inputs[0]), "", scales]
        self.add(
            "Resize", operator, inputs, mode="linear", coordinate_transformation_mode="half_pixel"
        )

    def write_hard_swish(self, operator: Any) -> None:
        """x · max(0, min(1, x / 6 + 1 / 2)): ONNX has it in one operator from opset 14 only."""
        photo, gate = self.name(operator.inputs[0]), f"gate{operator.outputs[0]}"
        self.nodes.append(helper.make_node("HardSigmoid", [photo], [gate], alpha=1 / 6, beta=0.5))
        self.add("Mul", operator, [photo, gate])

    def write_relu(self, operator: Any) -> None:
        self.add("Relu", operator)

    def write_prelu(self, operator: Any) -> None:
        photo, slopes = operator.inputs
        weight = self.numbers(slopes).transpose(2, 0, 1)  # (channels, 1, 1)
        names = [self.name(photo), self.weight(f"s{operator.outputs[0]}", weight)]
        self.add("PRelu", operator, names)

    def write_logistic(self, operator: Any) -> None:
        self.add("Sigmoid", operator)

    def write_add(self, operator: Any) -> None:
        plain(operator.builtinOptions)
        self.add("Add", operator)

    def write_mul(self, operator: Any) -> None:
        plain(operator.builtinOptions)
        self.add("Mul", operator)

    def add(
        self, kind: str, operator: Any, inputs: list[str] | None = None, **options: Any
    ) -> None:
        inputs = inputs or [self.name(each) for each in operator.inputs]
        (output,) = operator.outputs
        self.nodes.append(helper.make_node(kind, inputs, [self.name(output)], **options))

    def name(self, tensor: int) -> str:
        if tensor != self.graph.inputs[0]:
            return f"t{tensor}"
        return "scaled" if self.ends.low else self.ends.input

    def value(self, tensor: int, name: str) -> onnx.ValueInfoProto:
        shape = [int(side) for side in self.graph.tensors[tensor].shape]
        if len(shape) == 4:
            shape = [shape[0], shape[3], *shape[1:3]]
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    def numbers(self, tensor: int, types: dict[int, Any] = FLOATS) -> np.ndarray:
        """A tensor that stands in the file."""
        found = self.graph.tensors[self.stored.get(tensor, tensor)]
        data = self.model.buffers[found.buffer].data
        if data is None or found.type not in types:
            raise DistillError(f"tensor {tensor}: not in the file, as a weight should be")
        return np.frombuffer(bytes(data), types[found.type]).reshape(found.shape)

    def weight(self, name: str, values: np.ndarray) -> str:
        """Kept as it stands; of 16 bits, with a Cast that a session does once, at its start."""
        if any(each.name in (name, f"{name}.half") for each in self.weights):
            return name
        half = values.dtype == np.float16
        stored = numpy_helper.from_array(
            np.ascontiguousarray(values), f"{name}.half" if half else name
        )
        self.weights.append(stored)
        if half:
            cast = helper.make_node("Cast", [stored.name], [name], to=TensorProto.FLOAT)
            self.nodes.append(cast)
        return name


def read(path: Path, start: int = 0) -> Any:
    """The model at that byte of a file, as `Conversion` takes it. Raises DistillError for none."""
    content = path.read_bytes()[start:]
    if content[4:8] != b"TFL3":
        raise DistillError("no TFLite file")
    try:
        return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    except Exception as error:  # flatbuffers follows whatever offsets damaged bytes hold
        raise DistillError(f"a damaged TFLite file ({type(error).__name__})") from None


def plain(options: Any) -> None:
    """Raises DistillError for an activation inside an operator: the file has none such."""
    if options.fusedActivationFunction != schema.ActivationFunctionType.NONE:
        raise DistillError("an operator with an activation inside: nothing here writes it")


def same(sides: Any, kernel: Any, strides: list[int]) -> list[int]:
    """TensorFlow's SAME: what does not divide by two goes to the bottom and the right."""
    totals = list(_totals(sides, kernel, strides))
    return [total // 2 for total in totals] + [total - total // 2 for total in totals]


def _totals(sides: Any, kernel: Any, strides: list[int]) -> Iterator[int]:
    for side, reach, stride in zip(sides, kernel, strides, strict=True):
        yield max(0, (-(-int(side) // stride) - 1) * stride + int(reach) - int(side))
