"""Networks of one's own that take pictures in another way: found, shown, asked, changed."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image
from skimage.data import astronaut

from distill.core.sessions import open_session
from support.chromium_page import show

SIDE = 64
SAID = ("input", "output", "channels", "layout")
OURS = ["0,1", "0,1", "rgb", "nchw"]


def network(nodes, shape, gives=None, **constants) -> bytes:
    """From `x` to `y`, float32 of this shape, or `y` of another."""
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    tensors = [helper.make_tensor(n, TensorProto.FLOAT, [], [v]) for n, v in constants.items()]
    graph = helper.make_graph(
        nodes, "g", [value("x", shape)], [value("y", gives or shape)], tensors
    )
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def inverse(shape, white) -> bytes:
    return network([helper.make_node("Sub", ["white", "x"], ["y"])], shape, white=white)


def open_network(at, content: bytes) -> None:
    at.page.set_input_files("#file", {"name": "mine.onnx", "mimeType": "", "buffer": content})


def drawn(at) -> tuple[np.ndarray, np.ndarray]:
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'mine'")
    at.settle()
    return at.last()


def shown(at) -> list[str]:
    return [at.page.input_value(f"#own-{name}") for name in SAID]


@pytest.mark.parametrize(
    ("shape", "white", "found"),
    [
        ([1, 3, SIDE, SIDE], 1.0, OURS),
        ([1, 3, SIDE, SIDE], 255.0, ["0,255", "0,255", "rgb", "nchw"]),
        ([1, 3, SIDE, SIDE], 0.0, ["-1,1", "-1,1", "rgb", "nchw"]),
        ([1, SIDE, SIDE, 3], 255.0, ["0,255", "0,255", "rgb", "nhwc"]),
    ],
)
def test_ranges_and_layout_are_found_and_shown(visit, shape, white, found):
    at = visit()
    open_network(at, inverse(shape, white))
    photo, output = drawn(at)
    assert np.abs(output - (1 - photo)).max() < 1e-5
    assert shown(at) == found
    assert at.text("own-title") == "How mine takes pictures"
    at.page.check("input[value=negative]", force=True)
    assert at.page.is_hidden("#own")


def test_one_channel_is_shown_as_grey(visit):
    mean = [helper.make_node("ReduceMean", ["x"], ["y"], axes=[1])]
    at = visit()
    open_network(at, network(mean, [1, 3, SIDE, SIDE], [1, 1, SIDE, SIDE]))
    photo, output = drawn(at)
    assert np.abs(output - photo.mean(1, keepdims=True)).max() < 1e-5
    assert output.shape == photo.shape
    assert shown(at) == OURS  # a matte is not like its photo, by which other ranges are found


def test_an_export_says_its_ranges_itself(visit):
    model = onnx.load_from_string(inverse([1, 3, SIDE, SIDE], 255.0))
    about = {end: {"range": [0, 255]} for end in ("input", "output")}
    helper.set_model_props(model, {"distill.terms": "{}", "distill.about": json.dumps(about)})
    at = visit()
    open_network(at, model.SerializeToString())
    photo, output = drawn(at)
    assert np.abs(output - (1 - photo)).max() < 1e-5


def test_white_box_cartoonization_comes_out_right(visit, assets):
    """From -1 to 1, in and out, as its authors have it."""
    path = assets / "teachers/whitebox_cartoon.onnx"
    at = visit()
    open_network(at, path.read_bytes())
    photo, output = drawn(at)
    assert shown(at) == ["-1,1", "-1,1", "rgb", "nchw"]
    session = open_session(onnx.load(path), threads=1)
    (wanted,) = session.run(None, {session.get_inputs()[0].name: 2 * photo - 1})
    assert np.abs(output - (wanted + 1) / 2).max() < 2 / 255


def test_what_photographs_do_not_tell_is_asked(visit):
    at = visit()
    double = [helper.make_node("Mul", ["x", "factor"], ["y"])]
    open_network(at, network(double, [1, 3, SIDE, SIDE], factor=9.0))
    at.wait("document.getElementById('message').textContent !== ''")
    at.wait_here(
        lambda: at.text("message").startswith(
            "Photographs do not tell which values mine takes and gives"
        )
    )
    assert at.text("tag").lower() == "negative"  # nothing is drawn wrong
    assert at.page.is_visible("#own-take")
    at.page.select_option("#own-output", "0,255")
    at.page.select_option("#own-channels", "bgr")
    at.page.click("#own-take")
    photo, output = drawn(at)
    assert np.abs(output - 9 * photo / 255).max() < 1e-5
    assert at.text("message") == ""
    at.page.select_option("#own-input", "-1,1")
    at.page.click("#own-take")
    at.wait("distill.last().then(({ output }) => Math.min(...output) < -0.01)")
    photo, output = drawn(at)
    assert np.abs(output - 9 * (2 * photo - 1) / 255).max() < 1e-5
    assert at.page.locator("input[value=mine]").count() == 1


def of_any_size(most: int = 100) -> bytes:
    """1 - x at every size, up to so many times 32 pixels across."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "across"], ["width"]),
        helper.make_node("Div", ["width", "stride"], ["count"]),
        helper.make_node("Gather", ["ones", "count"], ["white"]),
        helper.make_node("Sub", ["white", "x"], ["y"]),
    ]
    model = onnx.load_from_string(network(nodes, [1, 3, "height", "width"]))
    whole = {"across": 3, "stride": 32}
    for name, value in whole.items():
        tensor = helper.make_tensor(name, TensorProto.INT64, [], [value])
        model.graph.initializer.append(tensor)
    ones = helper.make_tensor("ones", TensorProto.FLOAT, [most + 1], [1.0] * (most + 1))
    model.graph.initializer.append(ones)
    return model.SerializeToString()


@pytest.mark.parametrize(("most", "side", "said"), [(100, 960, ""), (25, 480, "at 960")])
def test_a_picture_fills_the_screen_or_half_of_what_does_not_go(visit, most, side, said):
    """After a draft, as by the shipped students; where memory ends, or such, smaller."""
    at = visit("?compare=0&size=auto", viewport={"width": 1400, "height": 1100})
    show(at, Image.fromarray(astronaut()).resize((940, 940)))
    open_network(at, of_any_size(most))
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'mine'")
    at.wait(f"distill.last().then(({{ width }}) => width === {side})")
    at.settle()
    photo, output = at.last()
    assert photo.shape == (1, 3, side, side)
    assert np.abs(output - (1 - photo)).max() < 1e-5
    assert said in at.text("message")
    assert at.page.input_value("#size") == "auto"
    at.noise[:] = [line for line in at.noise if "onnxruntime" not in line]  # of what does not go
