"""Which operators may be in an exported file: named sets, and what lies outside of one.

strict       what the lens models released with the paper are made of; they ran in the app.
             Transposed convolutions are rewritten in it (plain.py), exactly, at some cost
transposed   and transposed convolutions of 2×2 with stride 2, which Snap's table of supported
             layers allows on every device (kernel = stride, no padding, no dilation)
             and Exp, ReduceMax … of a head: strict makes them of sigmoids, Div and Conv
global       transposed and what a student's statistics of the whole picture need: pooling, and
             where it makes a thumbnail an antialiased linear Resize; MatMul and what shapes need
             for the inks that a palette predicts
any          no gate: a teacher for servers and pages, whatever it is made of

Those of plug-ins, under `operators` in plugin.yaml, are strict and what they list besides.
"""

from typing import Annotated

import onnx
from onnx import helper

from distill.config.settings.base import one_of
from distill.core import plugins

Profile = Annotated[str, one_of("operators", "strict", "transposed", "global", "any")]
STRICT_OPERATORS = frozenset(
    {"Conv", "Relu", "Add", "Resize", "Upsample", "Sigmoid", "Constant", "Mul"}
)
HEAD_OPERATORS = frozenset({"Div", "Exp", "ReduceMax", "Slice", "Sub"})
PREDICTED_OPERATORS = frozenset(
    {"Concat", "Gather", "MatMul", "ReduceSum", "Reshape", "Shape", "Softmax", "Transpose"}
    | {"Unsqueeze"}
)
OPERATORS: dict[Profile, frozenset[str] | None] = {
    "strict": STRICT_OPERATORS | {"Div"},
    "transposed": STRICT_OPERATORS | {"ConvTranspose"} | HEAD_OPERATORS,
    "global": STRICT_OPERATORS
    | {"ConvTranspose", "GlobalAveragePool"}
    | HEAD_OPERATORS
    | PREDICTED_OPERATORS,
    "any": None,
}
# In which a student with statistics has `summary` as an input, computed by a file of its own.
SUMMARY_INPUT: frozenset[Profile] = frozenset({"strict", "transposed"})


def operators_of(profile: Profile) -> frozenset[str] | None:
    """The operators of a profile, of distill or of a plug-in; None for all."""
    if profile in OPERATORS:
        return OPERATORS[profile]
    return STRICT_OPERATORS.union(
        *(more for name, more in plugins.entries("operators") if name == profile)
    )


def foreign_operators(model: onnx.ModelProto, profile: Profile = "strict") -> list[str]:
    """Operators outside the profile, Resize in another mode than nearest among them."""
    allowed = operators_of(profile)
    if allowed is None:
        return []
    names = {_foreign(node, allowed, profile) for node in model.graph.node}
    return sorted(name for name in names if name)


def _foreign(node: onnx.NodeProto, allowed: frozenset[str], profile: Profile) -> str | None:
    """What to call an operator that the profile does not know; None for one that it knows."""
    values = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type in ("Resize", "Upsample"):
        mode = values.get("mode", b"nearest").decode()
        if mode == "linear" and values.get("antialias") and profile == "global":
            return None
        return None if mode == "nearest" else f"{node.op_type}({mode})"
    if node.op_type == "ConvTranspose" and profile in ("transposed", "global"):
        # Kernel and stride 2, nothing else: every input pixel becomes a patch of its own.
        plain = {"pads": [0] * 4, "dilations": [1, 1], "output_padding": [0, 0], "group": 1}
        doubles = values.get("kernel_shape") == values.get("strides") == [2, 2]
        doubles &= all(values.get(name, default) == default for name, default in plain.items())
        return None if doubles else "ConvTranspose(other than 2×2, stride 2)"
    return None if node.op_type in allowed else node.op_type
