"""One reader for all commands: what is damaged, what lies elsewhere, what is missing."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from distill.check import onnx_graph
from distill.core import onnx_files, sessions
from distill.core.errors import DistillError
from support.refusals import refusal

WEIGHTS = np.arange(3 * 3 * 40 * 40, dtype=np.float32).reshape(3, 3, 40, 40)


def inner() -> onnx.GraphProto:
    """A branch with a constant of its own."""
    held = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(WEIGHTS, "held"))
    return helper.make_graph([held], "branch", [], [value("c", WEIGHTS.shape)])


def value(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def network() -> onnx.ModelProto:
    weights = numpy_helper.from_array(WEIGHTS, "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    shapes = [value("x", (1, 3, 64, 64))], [value("y", (1, 3, 25, 25))]
    graph = helper.make_graph([node], "network", *shapes, [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.fixture
def split(tmp_path):
    """A network whose weights lie in weights.bin beside it."""
    path = tmp_path / "network.onnx"
    onnx.save(
        network(), str(path), save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    return path


def test_weights_of_another_file_are_read(split):
    assert onnx_files.external_files(onnx_files.read_graph(split)) == ("weights.bin",)
    model = onnx_files.load_model(split)
    assert np.array_equal(numpy_helper.to_array(model.graph.initializer[0]), WEIGHTS)
    photo = np.ones((1, 3, 64, 64), np.float32)
    run = sessions.picture_call(sessions.open_session(model, 1))
    assert np.array_equal(
        run(photo), sessions.picture_call(sessions.open_session(network(), 1))(photo)
    )


@pytest.mark.parametrize("open_it", [onnx_files.load_model, lambda p: sessions.open_file(p, 1)])
def test_a_missing_file_of_weights_is_named(split, open_it):
    (split.parent / "weights.bin").unlink()
    with pytest.raises(DistillError, match=r"its weights lie in weights\.bin, which is not beside"):
        open_it(split)
    assert onnx_graph.read(split).external == ("weights.bin",)  # distill.check says it by a rule


@pytest.mark.parametrize("open_it", [onnx_files.load_model, lambda p: sessions.open_file(p, 1)])
def test_a_cut_file_of_weights_ends_in_one_line(split, open_it):
    (split.parent / "weights.bin").write_bytes(b"few")
    assert refusal(open_it, split).startswith(str(split))


def test_files_of_branches_are_found_too():
    model = network()
    branch = inner()
    model.graph.node.append(
        helper.make_node("If", ["t"], ["z"], then_branch=branch, else_branch=branch)
    )
    for part in model.graph.node[-1].attribute:
        tensor = part.g.node[0].attribute[0].t
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{part.name}.bin")
    assert onnx_files.external_files(model) == ("else_branch.bin", "then_branch.bin")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "not an ONNX file, or one without a network"),
        (b"garbage" * 50, "not a readable ONNX file"),
        (network().SerializeToString()[:9000], "not a readable ONNX file"),
    ],
)
def test_what_is_no_network_is_said_alike(tmp_path, content, said):
    path = tmp_path / "some.onnx"
    if content is not None:
        path.write_bytes(content)
    for read in (onnx_files.load_model, onnx_graph.read):
        assert refusal(read, path).startswith(f"{path}: {said}")
