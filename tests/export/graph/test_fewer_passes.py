"""The page's graphs: fewer passes over the picture, the same function."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from distill.core.onnx_files import load_model
from distill.core.sessions import open_session
from distill.export.graph.fewer_passes import with_fewer_passes
from distill.models import zoo


def made_of(nodes, opset=18, **weights) -> onnx.ModelProto:
    """A graph from `x`, (1, 3, H, W), to `y`."""
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, "H", "W"]) for name in "xy"
    ]
    stored = [numpy_helper.from_array(np.asarray(each), name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "graph", values[:1], values[1:], stored)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def operators(model) -> list[str]:
    return [node.op_type for node in model.graph.node]


def outputs(*models, sides=(32, 64)) -> list[np.ndarray]:
    name = models[0].graph.input[0].name
    photo = np.random.default_rng(0).random((1, 3, *sides), dtype=np.float32)
    return [np.asarray(open_session(each, 1).run(None, {name: photo})[0]) for each in models]


@pytest.mark.parametrize("name", zoo.shipped())
def test_a_shipped_student_gives_the_same_picture(name):
    model = load_model(zoo.find(name))
    sides = [dim.dim_value or 32 * (1 + axis) for axis, dim in enumerate(dims_of(model))]
    before, after = outputs(model, with_fewer_passes(model), sides=sides)
    assert before.std() > 0.01
    assert np.abs(before - after).max() < 0.01 / 255


def dims_of(model):
    return model.graph.input[0].type.tensor_type.shape.dim[2:]


def test_a_head_that_decides_has_neither_slow_operator():
    palette, tones = (with_fewer_passes(load_model(zoo.find(n))) for n in ("screenprint", "comic"))
    assert "ReduceMax" not in operators(palette)
    assert operators(palette).count("Max") == 1
    # Of its three sigmoids, those of the tones are mixed by a 1×1 convolution.
    assert (operators(tones).count("Tanh"), operators(tones).count("Sigmoid")) == (1, 2)


BEFORE = helper.make_node("Sigmoid", ["x"], ["s"])
LAYER = helper.make_node("Conv", ["s", "w", "b"], ["y"])
CONV = {"w": np.full((3, 3, 1, 1), 2, np.float32), "b": np.arange(3, dtype=np.float32)}


def test_a_sigmoid_before_a_pointwise_convolution_is_a_tanh():
    model = made_of([BEFORE, LAYER], **CONV)
    fewer = with_fewer_passes(model)
    onnx.checker.check_model(fewer)
    assert operators(fewer) == ["Mul", "Tanh", "Conv"]
    before, after = outputs(model, fewer)
    assert np.abs(before - after).max() < 1e-5


PADDED = helper.make_node("Conv", ["s", "w", "b"], ["y"], pads=[0, 0, 1, 1])
OTHER = helper.make_node("Mul", ["s", "x"], ["y"])
TWICE = [helper.make_node("Conv", ["s", "w"], ["c"]), helper.make_node("Add", ["s", "c"], ["y"])]


@pytest.mark.parametrize(
    ("behind", "opset"),
    [([LAYER], 17), ([PADDED], 18), ([OTHER], 18), (TWICE, 18)],
    ids=["opset", "padding", "no convolution", "two readers"],
)
def test_other_sigmoids_stay(behind, opset):
    model = made_of([BEFORE, *behind], opset, **CONV)
    assert operators(with_fewer_passes(model)) == operators(model)


def test_a_graph_with_branches_stays():
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Relu", ["s"], ["t"])], "branch", [], [value])
    choice = helper.make_node("If", ["yes"], ["u"], then_branch=branch, else_branch=branch)
    nodes = [BEFORE, LAYER, choice]
    model = made_of(nodes, yes=np.array(True), **CONV)
    assert with_fewer_passes(model) == model


def test_the_maximum_over_channels_alone_is_split():
    over = {"rows": np.array([2]), "channels": np.array([1])}
    for axis, made in (("rows", ["ReduceMax"]), ("channels", ["Split", "Max"])):
        nodes = [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("ReduceMax", ["r", axis], ["m"]),
            helper.make_node("Sub", ["r", "m"], ["y"]),
        ]
        model = made_of(nodes, **over)
        fewer = with_fewer_passes(model)
        assert operators(fewer) == ["Relu", *made, "Sub"]
        before, after = outputs(model, fewer)
        assert np.array_equal(before, after)


def test_a_constant_factor_is_the_second_one():
    model = made_of([helper.make_node("Mul", ["two", "x"], ["y"])], two=np.float32(2))
    assert [*with_fewer_passes(model).graph.node[0].input] == ["x", "two"]
    assert [*model.graph.node[0].input] == ["two", "x"]
