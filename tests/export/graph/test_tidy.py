import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch import nn

from distill.core.sessions import open_session
from distill.export.graph.plain import store_norms, tidy
from distill.export.onnx import OnnxExporter
from distill.metrics.complexity import graph_macs

SHAPE = (1, 2, 4, 4)


def model(nodes: list[onnx.NodeProto], **weights: np.ndarray) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    takes = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    gives = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    graph = helper.make_graph(nodes, "tiny", [takes], [gives], tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def constant(name: str, value: object) -> onnx.NodeProto:
    tensor = numpy_helper.from_array(np.asarray(value), name)
    return helper.make_node("Constant", [], [name], value=tensor)


def kinds(of: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in of.graph.node]


def output(of: onnx.ModelProto) -> np.ndarray:
    x = np.linspace(-3, 5, 32, dtype=np.float32).reshape(SHAPE)
    return ReferenceEvaluator(of).run(None, {"x": x})[0]


def test_pads_that_are_computed_become_a_constant():
    made = model(
        [
            constant("half", np.array([0, 0, 1, 1], np.int64)),
            helper.make_node("Concat", ["half", "more"], ["pads"], axis=0),
            helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect"),
        ],
        more=np.array([0, 0, 2, 3], np.int64),
    )
    before = output(made)
    tidy(made)
    onnx.checker.check_model(made, full_check=True)
    assert kinds(made) == ["Pad"]
    assert [t.name for t in made.graph.initializer] == ["pads"]
    pads = numpy_helper.to_array(made.graph.initializer[0])
    np.testing.assert_array_equal(pads, [0, 0, 1, 1, 0, 0, 2, 3])
    np.testing.assert_array_equal(output(made), before)


def test_what_is_not_computed_stays_as_it_is():
    made = model(
        [constant("two", np.float32(2)), helper.make_node("Mul", ["x", "two"], ["y"])],
    )
    tidy(made)
    assert kinds(made) == ["Constant", "Mul"]
    assert not made.graph.initializer


@pytest.mark.parametrize(
    ("kind", "by", "becomes", "number"), [("Sub", 1, "Add", -1), ("Div", 2, "Mul", 0.5)]
)
def test_a_change_of_range_is_one_of_adding_and_multiplying(kind, by, becomes, number):
    made = model(
        [constant("c", np.float32(by)), helper.make_node(kind, ["x", "c"], ["y"])],
    )
    before = output(made)
    tidy(made)
    onnx.checker.check_model(made, full_check=True)
    assert kinds(made) == [becomes]
    assert numpy_helper.to_array(made.graph.initializer[0]) == number
    np.testing.assert_array_equal(output(made), before)


def test_a_constant_that_others_read_keeps_its_value():
    made = model(
        [
            helper.make_node("Sub", ["x", "one"], ["shifted"]),
            helper.make_node("Add", ["shifted", "one"], ["y"]),
        ],
        one=np.float32(1),
    )
    before = output(made)
    tidy(made)
    np.testing.assert_array_equal(output(made), before)


def test_a_constant_less_a_tensor_is_left():
    """1 - x is no x + c."""
    made = model([helper.make_node("Sub", ["one", "x"], ["y"])], one=np.float32(1))
    tidy(made)
    assert kinds(made) == ["Sub"]


def test_norms_hold_their_numbers_as_weights():
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.InstanceNorm2d(4)).eval()
    traced = onnx.load_from_string(OnnxExporter(size=32)._trace(network))
    assert "Constant" in kinds(traced)
    store_norms(traced.graph)
    assert "Constant" not in kinds(traced)
    onnx.checker.check_model(traced, full_check=True)
    photo = torch.rand(1, 3, 32, 32)
    got = ReferenceEvaluator(traced).run(None, {"photo": photo.numpy()})[0]
    with torch.no_grad():
        np.testing.assert_allclose(got, network(photo).numpy(), atol=1e-5)


class Enlarged(nn.Module):
    """A picture of the photo's own sides, which the traced graph computes."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.act = nn.Conv2d(3, 4, 3, 2, 1), nn.Hardswish()
        self.norm, self.out = nn.GroupNorm(2, 4), nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, photo: torch.Tensor) -> torch.Tensor:
        small = self.norm(self.act(self.down(photo)))
        return self.out(nn.functional.interpolate(small, photo.shape[2:], mode="bilinear"))


@pytest.mark.parametrize("opset", [11, 17])  # 9 has no such resize
def test_a_static_file_computes_no_sizes(opset):
    network = Enlarged().eval()
    made = OnnxExporter(size=32, opset=opset, profile="any").export(network)
    assert "Shape" not in kinds(made)
    assert graph_macs(made) == 16 * 16 * 4 * 27 + 32 * 32 * 3 * 36
    photo = torch.rand(1, 3, 32, 32)
    given = open_session(made, threads=1).run(None, {"photo": photo.numpy()})[0]
    with torch.no_grad():
        np.testing.assert_allclose(given, network(photo).numpy(), atol=1e-5)
