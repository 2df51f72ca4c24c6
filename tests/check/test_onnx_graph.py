"""Reading any ONNX file, also those that are hardly one."""

import onnx
import pytest
from onnx import TensorProto, helper

from distill.check.onnx_graph import read
from distill.core.errors import DistillError
from support.device_graphs import build, clean, picture, save, weight
from support.refusals import refusal

BROKEN = {
    "empty": b"",
    "text": b"not a network at all\n" * 20,
    "cut short": clean().SerializeToString()[:100],
    "no network": onnx.ModelProto(ir_version=7).SerializeToString(),
}


def test_a_name_that_is_no_text_is_one_line(tmp_path):
    content = clean().SerializeToString().replace(b"depthwise", b"depth\xff\xff\xff\xff")
    (tmp_path / "odd.onnx").write_bytes(content)
    with pytest.raises(DistillError, match=r"odd\.onnx: not a readable .* is no text"):
        read(tmp_path / "odd.onnx")


def test_a_constant_that_holds_a_graph_is_none(tmp_path):
    node = helper.make_node("Constant", [], ["k"], value_float=1.0)
    node.attribute[0].ClearField("f")
    node.attribute[0].type = onnx.AttributeProto.GRAPH
    node.attribute[0].g.CopyFrom(clean().graph)
    assert "k" not in read(save(build([node, *clean().graph.node]), tmp_path)).constants


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_one_line(kind, tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(BROKEN[kind])
    assert str(path) in refusal(read, path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(DistillError, match="no such file"):
        read(tmp_path / "none.onnx")


def test_nodes_of_inner_graphs_count(tmp_path):
    def branch(operator):
        out = helper.make_tensor_value_info(operator, TensorProto.FLOAT, None)
        return helper.make_graph(
            [helper.make_node(operator, ["x"], [operator], operator)], operator, [], [out]
        )

    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    node = helper.make_node(
        "If", ["flag"], ["y"], "if", then_branch=branch("Tanh"), else_branch=branch("Relu")
    )
    graph = read(save(build([node], opset=13, inputs=[flag, picture("x")]), tmp_path))
    assert sorted(n.operator for n in graph.nodes) == ["If", "Relu", "Tanh"]
    assert [t.name for t in graph.inputs] == ["flag", "x"]


def test_functions_are_read_through(tmp_path):
    model = build([helper.make_node("Twice", ["x"], ["y"], domain="mine")], opset=13,
                  domains=["mine"])  # fmt: skip
    inner = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 13)],
    )  # fmt: skip
    model.functions.append(inner)
    assert [n.operator for n in read(save(model, tmp_path)).nodes] == ["Add"]


def test_weights_listed_as_inputs_are_none(tmp_path):
    model = clean()
    model.graph.input.append(picture("w", 4, 4, 1, 1))
    assert [t.name for t in read(save(model, tmp_path)).inputs] == ["x"]


def test_constants_of_every_kind(tmp_path):
    nodes = [
        helper.make_node("Constant", [], ["number"], value_float=2.5),
        helper.make_node("Constant", [], ["numbers"], value_ints=[3, 4]),
        helper.make_node("Add", ["x", "number"], ["y"], "n"),
    ]
    graph = read(save(build(nodes, [weight("w", 2)], opset=13), tmp_path))
    assert graph.value("number") == 2.5
    assert graph.value("numbers").tolist() == [3, 4]
    assert graph.value("w").tolist() == [0.25, 0.25]
    assert graph.value("x") is None


@pytest.mark.parametrize(("field", "value"), [("data_type", 107), ("raw_data", b"abc")])
def test_a_constant_of_a_damaged_type_or_size_has_no_value(field, value, tmp_path):
    broken = weight("w", 2)
    setattr(broken, field, value)
    model = build([helper.make_node("Add", ["x", "x"], ["y"], "n")], [broken], opset=13)
    assert read(save(model, tmp_path)).value("w") is None
