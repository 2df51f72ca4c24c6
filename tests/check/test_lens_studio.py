"""Import settings: what the first and last operators of a graph allow."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from distill.check import lens_studio
from distill.check.onnx_graph import read
from distill.models import zoo
from support.device_graphs import build, picture, save

NODE = helper.make_node


def number(name, value):
    return numpy_helper.from_array(np.float32(value), name)


def graph(nodes, folder, weights=(), names=("x", "y")):
    return read(save(
        build(nodes, weights, 10, [picture(names[0], 1, 3, 8, 8)], [picture(names[1], 1, 3, 8, 8)]),
        folder,
    ))  # fmt: skip


ENDS = {
    "sigmoid": ([NODE("Sigmoid", ["x"], ["y"])], [], (0, 1)),
    "tanh": ([NODE("Tanh", ["x"], ["y"])], [], (-1, 1)),
    "clip": ([NODE("Clip", ["x"], ["y"], min=0.0, max=6.0)], [], (0, 6)),
    "times 255": (
        [NODE("Sigmoid", ["x"], ["s"]), NODE("Mul", ["s", "k"], ["y"])], [number("k", 255)],
        (0, 255),
    ),
    "one minus": (
        [NODE("Tanh", ["x"], ["s"]), NODE("Sub", ["k", "s"], ["y"])], [number("k", 1)], (0, 2),
    ),
    "shifted and halved": (
        [NODE("Tanh", ["x"], ["s"]), NODE("Add", ["s", "one"], ["t"]),
         NODE("Div", ["t", "two"], ["y"])],
        [number("one", 1), number("two", 2)], (0, 1),
    ),
    "divided by nothing": (
        [NODE("Sigmoid", ["x"], ["s"]), NODE("Div", ["s", "k"], ["y"])], [number("k", 0)], None,
    ),
    "a circle": ([NODE("Mul", ["y", "k"], ["y"])], [number("k", 2)], None),
    "nothing taken": ([NODE("Identity", [], ["y"])], [], None),
    "unknown": ([NODE("Add", ["x", "x"], ["y"])], [], None),
}  # fmt: skip


@pytest.mark.parametrize("kind", ENDS)
def test_output_range(kind, tmp_path):
    nodes, weights, expected = ENDS[kind]
    assert lens_studio.output_range(graph(nodes, tmp_path, weights)) == expected


@pytest.mark.parametrize(
    ("first", "value", "expected"),
    [("Div", 255, (0, 255)), ("Mul", 1 / 127.5, (0, 255)), ("Mul", 2, (0, 1)), ("Mul", 1e4, None)],
)
def test_input_range_from_the_network_s_own_normalisation(first, value, expected, tmp_path):
    nodes = [NODE(first, ["x", "k"], ["n"]), NODE("Sigmoid", ["n"], ["y"])]
    assert lens_studio.input_range(graph(nodes, tmp_path, [number("k", value)])) == expected


def test_a_normalisation_that_gives_nothing_is_none(tmp_path):
    nodes = [NODE("Div", ["x", "k"], []), NODE("Sigmoid", ["x"], ["y"])]
    assert lens_studio.input_range(graph(nodes[:1], tmp_path, [number("k", 255)])) is None


def test_a_long_tail_of_sums_is_walked_once(tmp_path):
    """Each node is asked once: both ways at every sum would be 2⁶⁰ questions."""
    names = ["x", *map(str, range(59)), "y"]
    nodes = [NODE("Add", [a, a], [b]) for a, b in zip(names, names[1:], strict=False)]
    assert lens_studio.output_range(graph(nodes, tmp_path)) is None


def test_a_normalisation_that_feeds_itself_ends(tmp_path):
    nodes = [NODE("Mul", ["x", "k"], ["x"]), NODE("Sigmoid", ["z"], ["y"])]
    assert lens_studio.input_range(graph(nodes, tmp_path, [number("k", 100)])) is None


@pytest.mark.parametrize(
    ("span", "taken", "given"),
    [((0, 1), (1 / 255, 0), (255, 0)), ((-1, 1), (2 / 255, -1), (127.5, 127.5)),
     ((0, 255), (1, 0), (1, 0)), (None, None, None)],
)  # fmt: skip
def test_scale_and_bias(span, taken, given):
    side = lens_studio.Side("x", "", span)
    assert side.input_scaling == taken
    assert side.output_scaling == given


def test_ours_is_known_by_its_names_and_its_sigmoid(tmp_path):
    ours = lens_studio.settings(graph([NODE("Sigmoid", ["photo"], ["stylized"])], tmp_path,
                               names=lens_studio.OURS))  # fmt: skip
    assert ours.ours
    assert ours.channels == "RGB"
    assert ours.input.range == (0, 1)
    theirs = lens_studio.settings(graph([NODE("Tanh", ["photo"], ["stylized"])], tmp_path,
                                 names=lens_studio.OURS))  # fmt: skip
    assert not theirs.ours
    assert theirs.channels is None
    assert theirs.input.range is None


def test_shipped_students_are_ours():
    settings = [lens_studio.settings(read(path)) for path in zoo.shipped().values()]
    assert all(each is not None and each.ours for each in settings)


def test_outputs_of_released_models_go_up_to_255(assets):
    settings = lens_studio.settings(read(assets / "peer/paprika.onnx"))
    assert settings is not None
    assert settings.output.range == (0, 255)
    assert settings.output.output_scaling == (1, 0)
    assert settings.input.range is None
