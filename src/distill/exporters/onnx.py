"""ONNX that lens tools and phones read: one file, static, folded, flushed, no foreign operators.

Which operators are foreign is a matter of the profile:
  strict       what the lens models released with the paper are made of; they ran in the app.
               Transposed convolutions are rewritten in it (strict.py), exactly, at some cost
  transposed   and transposed convolutions of 2×2 with stride 2, which Snap's table of supported
               layers allows on every device (kernel = stride, no padding, no dilation)
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from torch import Tensor, nn

from distill.errors import DistillError
from distill.exporters.strict import doubles, in_strict_operators

Profile = Literal["strict", "transposed"]
STRICT_OPERATORS = frozenset(
    {"Conv", "Relu", "Add", "Resize", "Upsample", "Sigmoid", "Constant", "Mul"}
)
OPSETS = range(9, 21)
FLUSH = 1e-20  # |w| below it becomes zero: same output, and no subnormal arithmetic


@dataclass(frozen=True)
class OnnxExporter:
    """How to write a student: `opset` 9 to 20, `size` of the side (divides by 32), fixed or not.

    `profile` names the operators that may be in the file; None: what the decoder says.
    """

    opset: int = 11
    size: int = 256
    dynamic: bool = False
    profile: Profile | None = None

    def __post_init__(self) -> None:
        if self.opset not in OPSETS:
            raise DistillError(f"exporter.opset={self.opset}: from {OPSETS[0]} to {OPSETS[-1]}")
        if self.size < 32 or self.size % 32:
            raise DistillError(f"exporter.size={self.size}: must divide by 32")
        if self.profile not in (None, *get_args(Profile)):
            known = ", ".join(get_args(Profile))
            raise DistillError(f"exporter.profile={self.profile}: choose from {known}")

    def export(self, folded: nn.Module) -> onnx.ModelProto:
        """The graph of a student whose BatchNorm is folded; input `photo`, output `stylized`.

        (1, 3, size, size) in [0, 1] to (1, 3 or 4, size, size) in [0, 1]. Passes onnx.checker.
        """
        model = onnx.load_from_string(self._trace(self._in_profile(folded)))
        flush_subnormals(model)
        _inline_identities(model.graph)
        _strip(model)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _in_profile(self, network: nn.Module) -> nn.Module:
        if self.profile != "strict" or not any(map(_is_patches, network.modules())):
            return network
        if self.dynamic:
            raise DistillError(
                "exporter.dynamic=true: this decoder has transposed convolutions, and in the "
                "profile strict they hold one size; take exporter.profile=transposed"
            )
        return in_strict_operators(network)

    def _trace(self, network: nn.Module) -> bytes:
        axes = {0: "batch", 2: "height", 3: "width"}
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # The tracing exporter is deprecated, and the one that reaches opset 9 to 17 directly;
            # and what it says of sizes that become constants is meant to be so.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network.cpu().eval().to(memory_format=torch.contiguous_format),
                (torch.zeros(1, 3, self.size, self.size),),
                buffer,  # type: ignore[arg-type]  # the tracing exporter takes any file
                input_names=["photo"],
                output_names=["stylized"],
                dynamic_axes={"photo": axes, "stylized": axes} if self.dynamic else None,
                opset_version=self.opset,
                dynamo=False,
            )
        return buffer.getvalue()


def _is_patches(module: nn.Module) -> bool:
    return isinstance(module, nn.ConvTranspose2d) and doubles(module)


def foreign_operators(model: onnx.ModelProto, profile: Profile = "strict") -> list[str]:
    """Operators outside the profile, Resize in another mode than nearest among them."""
    return sorted({name for node in model.graph.node if (name := _foreign(node, profile))})


def _foreign(node: onnx.NodeProto, profile: Profile) -> str | None:
    """What to call an operator that the profile does not know; None for one that it knows."""
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type in ("Resize", "Upsample"):
        mode = values.get("mode", b"nearest").decode()
        return None if mode == "nearest" else f"{node.op_type}({mode})"
    if node.op_type == "ConvTranspose" and profile == "transposed":
        return None if _node_doubles(values) else "ConvTranspose(other than 2×2, stride 2)"
    return None if node.op_type in STRICT_OPERATORS else node.op_type


def _node_doubles(values: Mapping[str, Any]) -> bool:
    """Kernel and stride 2, nothing else: every input pixel becomes a patch of its own."""
    plain = {"pads": [0] * 4, "dilations": [1, 1], "output_padding": [0, 0], "group": 1}
    two = values.get("kernel_shape") == values.get("strides") == [2, 2]
    return two and all(values.get(name, default) == default for name, default in plain.items())


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


def parity(path: Path, network: nn.Module, photos: Tensor) -> float:
    """Largest absolute difference between the file in ONNX Runtime and the network, on photos."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    with torch.inference_mode():
        expected = network.eval()(photos).numpy()
    got = [np.asarray(session.run(None, {name: p[None].numpy()})[0]) for p in photos]
    return float(np.abs(np.concatenate(got) - expected).max())


def _inline_identities(graph: onnx.GraphProto) -> None:
    """Tensors that happen to be equal are exported once and reached through Identity: undo it."""
    outputs = {value.name for value in graph.output}
    source = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Identity" and node.output[0] not in outputs
    }
    for node in list(graph.node):
        if node.output[0] in source:
            graph.node.remove(node)
        for i, name in enumerate(node.input):
            while name in source:
                name = source[name]
            node.input[i] = name


def _strip(model: onnx.ModelProto) -> None:
    """Drop doc strings and metadata: stack traces of the machine that exported it."""
    model.doc_string = ""
    model.graph.doc_string = ""
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
