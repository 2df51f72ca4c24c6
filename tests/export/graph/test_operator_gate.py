"""Named sets of operators, on the generators that they are for."""

from collections.abc import Callable
from typing import Any

import pytest
from onnx import helper
from pydantic import TypeAdapter, ValidationError
from torch import nn

from distill.core.errors import DistillError
from distill.export.graph.operator_gate import (
    OPERATORS,
    STRICT_OPERATORS,
    Profile,
    foreign_operators,
    operators_of,
)
from distill.export.onnx import OnnxExporter
from distill.metrics.complexity import operators
from distill.models.batchnorm import fold_batchnorm
from distill_gan.generators.resnet import ResNetGenerator
from distill_gan.generators.unet import UNet

OPSETS = (9, 11, 13, 17, 20)
PLAIN = {"Add", "Constant", "Conv", "Mul", "Relu", "Tanh"}
RESIDUAL = PLAIN | {"ConvTranspose", "InstanceNormalization", "Pad"}
SKIPS = PLAIN | {"Concat", "LeakyRelu"}


def unet(lively: Callable[..., nn.Module], **changed: Any) -> nn.Module:
    return lively(UNet(64, encoder=0.25, decoder=0.25, **changed))


def test_a_profile_for_each_name():
    profiles = TypeAdapter(Profile)
    names = [*OPERATORS, "unet", "cyclegan"]  # those of plug-ins too
    assert [profiles.validate_python(name) for name in names] == names
    with pytest.raises(ValidationError, match="want one of strict, transposed, global, any, "):
        profiles.validate_python("other")
    assert all(operators_of(name) >= STRICT_OPERATORS for name in names if name != "any")


@pytest.mark.parametrize("opset", OPSETS)
def test_the_residual_generator(opset):
    model = OnnxExporter(opset=opset, size=32, profile="cyclegan").export(ResNetGenerator(1, 8))
    assert set(operators(model)) == RESIDUAL
    assert foreign_operators(model, "cyclegan") == []
    assert foreign_operators(model, "unet") == ["ConvTranspose", "InstanceNormalization", "Pad"]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("separable", [False, True])
def test_the_unet(opset, separable, lively):
    folded = fold_batchnorm(unet(lively, separable=separable))
    model = OnnxExporter(opset=opset, size=64, profile="unet").export(folded)
    assert set(operators(model)) == SKIPS | {"Upsample" if opset == 9 else "Resize"}
    assert foreign_operators(model, "unet") == []
    assert foreign_operators(model) == ["Concat", "LeakyRelu", "Tanh"]


def test_a_unet_of_transposed_convolutions_is_in_no_profile_but_any(lively):
    folded = fold_batchnorm(unet(lively, upsampling="transposed"))
    model = OnnxExporter(size=64, profile="any").export(folded)
    assert foreign_operators(model, "unet") == ["ConvTranspose"]
    assert foreign_operators(model, "cyclegan") == ["Concat", "LeakyRelu"]
    assert foreign_operators(model, "any") == []


@pytest.mark.parametrize("profile", ["unet", "cyclegan"])
def test_static_shapes_only(profile):
    with pytest.raises(DistillError, match=f"profile {profile} holds one size"):
        OnnxExporter(dynamic=True, profile=profile)


@pytest.mark.parametrize(
    ("written", "value"),
    [("pads", [0] * 4), ("dilations", [1, 1]), ("output_padding", [0, 0]), ("group", 1)],
)
def test_doubling_stays_doubling_with_its_defaults_written_out(written, value):
    two = {"kernel_shape": [2, 2], "strides": [2, 2]}
    for changed, foreign in ((value, []), ([2] * 4, ["ConvTranspose(other than 2×2, stride 2)"])):
        changed = changed if foreign == [] or written != "group" else 2
        node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **two, **{written: changed})
        model = helper.make_model(helper.make_graph([node], "g", [], []))
        assert foreign_operators(model, "transposed") == foreign
