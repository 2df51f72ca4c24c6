"""Networks of other conventions give what the same network gives in ours."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from distill.core.errors import DistillError
from distill.core.sessions import open_session, picture_call
from distill.stylize.conventions import RANGES, adapt

SCALE = np.float32([0.9, 0.8, 0.6]).reshape(1, 3, 1, 1)  # of red, green, blue
KINDS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "uint8": TensorProto.UINT8}


def said(**given):
    values = {"input_range": None, "output_range": None, "channels": "rgb", "layout": None}
    return SimpleNamespace(**values | given)


def network(taken=(0, 1), given=(0, 1), layout="nchw", kind="float32", offset=0.0, sign=1.0):
    """A tinting network in its own convention: white to SCALE, black to `offset`."""
    scale = SCALE if layout == "nchw" else SCALE.transpose(0, 2, 3, 1)
    steps = [
        ("Sub", taken[0]), ("Div", taken[1] - taken[0]), ("Mul", sign * scale), ("Add", offset),
        ("Max", 0.0), ("Min", 1.0),
        ("Mul", given[1] - given[0]), ("Add", given[0]),
    ]  # fmt: skip
    nodes, weights = [helper.make_node("Cast", ["x"], ["v0"], to=TensorProto.FLOAT)], []
    for number, (operator, value) in enumerate(steps):
        weights.append(numpy_helper.from_array(np.asarray(value, np.float32), f"c{number}"))
        names = [f"v{number}", f"c{number}"], [f"v{number + 1}"]
        nodes.append(helper.make_node(operator, *names))
    nodes.append(helper.make_node("Cast", [f"v{len(steps)}"], ["y"], to=KINDS[kind]))
    shape = [1, 3, "h", "w"] if layout == "nchw" else [1, "h", "w", 3]
    ends = [[helper.make_tensor_value_info(name, KINDS[kind], shape)] for name in "xy"]
    graph = helper.make_graph(nodes, "tint", *ends, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def output_of(model: onnx.ModelProto, picture: np.ndarray) -> np.ndarray:
    onnx.checker.check_model(model)
    return picture_call(open_session(model, 1))(picture)


@pytest.fixture
def picture():
    return np.random.default_rng(0).random((1, 3, 32, 48), np.float32)


@pytest.mark.parametrize(("taken", "given"), list(product(RANGES, RANGES)))
def test_ranges_are_found(taken, given, picture):
    adapted, line = adapt(network(taken, given), said(), "own.onnx")
    np.testing.assert_allclose(output_of(adapted, picture), SCALE * picture, atol=1e-5)
    ours = taken == given != (-1, 1)  # a tint of [0, 255] is the same one of [0, 1]
    shown = f"input_range=[{taken[0]},{taken[1]}] output_range=[{given[0]},{given[1]}]"
    assert (line == "") if ours else (shown in line and "own.onnx" in line)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("kind", "close"), [("float16", 2e-3), ("uint8", 1.5 / 255)]
)  # cut off, and rounded
def test_layouts_and_element_types(layout, kind, close, picture):
    model = network((0, 255), (0, 255), layout, kind)
    adapted, _ = adapt(model, said(), "own.onnx")
    np.testing.assert_allclose(output_of(adapted, picture), SCALE * picture, atol=close)


def test_channels_are_as_said(picture):
    adapted, _ = adapt(network(), said(channels="bgr"), "own.onnx")
    np.testing.assert_allclose(output_of(adapted, picture), SCALE[:, ::-1] * picture, atol=1e-6)


def test_ranges_in_doubt_are_ours_or_asked_for(picture):
    negative = network(sign=-1.0, offset=1.0)
    assert adapt(negative, said(), "own.onnx") == (negative, "")
    with pytest.raises(DistillError, match=r"say output_range=\[BLACK,WHITE\] too"):
        adapt(negative, said(input_range=(-1.0, 1.0)), "own.onnx")
    both = said(input_range=(-1.0, 1.0), output_range=(0.0, 2.0))
    adapted, line = adapt(negative, both, "own.onnx")
    expected = np.clip(1 - SCALE * (2 * picture - 1), 0, 1) / 2
    np.testing.assert_allclose(output_of(adapted, picture), expected, atol=1e-6)
    assert line == ""


def test_a_range_of_one_value_is_refused():
    with pytest.raises(DistillError, match="want two different values"):
        adapt(network(), said(input_range=(1.0, 1.0)), "own.onnx")
