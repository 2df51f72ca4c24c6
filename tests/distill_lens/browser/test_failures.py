"""What the page says when a part of it is missing, and how it goes on by itself."""

import time

import numpy as np
import pytest
from onnx import TensorProto, helper

from support.chromium_page import PATIENCE, READY
from support.onnx_networks import negative

SAID = "document.getElementById('message').textContent !== ''"
SILENT = "document.getElementById('message').textContent === ''"
GONE = {"status": 404, "body": ""}
PARTS = {
    "runtime": "**/ort-wasm*.wasm*",
    "loader": "**/ort-wasm*.mjs",
    "student": "**/negative-*.onnx",
}


def own_noise(at, *names: str) -> list[str]:
    """The console's lines but for those of files that are missing; the visit then counts none."""
    lines = [line for line in at.noise if not any(name in line for name in (*names, "404"))]
    at.noise.clear()
    return lines


def drag(at) -> None:
    box = at.page.locator("#paper").bounding_box()
    at.page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    at.page.mouse.down()
    at.page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.5 * box["height"])
    at.page.mouse.up()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.campaign
def test_a_missing_part_is_named_and_asked_for_again(visit, part):
    at = visit(ready=False, routes={PARTS[part]: lambda route: route.fulfill(**GONE)})
    at.wait(SAID)
    name = PARTS[part].strip("*/").partition("*")[0]
    assert name in at.text("message")
    assert "did not arrive: the server answers 404." in at.text("message")
    assert at.text("message").endswith("tries again by itself.")
    at.page.unroute(PARTS[part])
    at.wait(READY)
    at.wait(SILENT)
    assert own_noise(at, "ort-wasm", "negative-") == []


def test_the_camera_goes_on_while_a_style_comes(visit):
    at = visit(camera=True)
    held: list = []
    at.page.route("**/hayao-*.onnx", lambda route: held.append(route))
    at.page.check("input[value=hayao]", force=True)
    at.wait_here(lambda: held)
    at.frames(5)
    assert at.text("tag").lower() == "negative"
    held[0].continue_()
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'hayao'")


def test_a_sketch_is_saved_only_once_its_picture_is_there(visit):
    at = visit()
    held: list = []
    at.page.route("**/pencil-*.onnx", lambda route: held.append(route))
    at.page.click("#view-sketch")
    drag(at)
    at.wait_here(lambda: held)
    assert at.page.is_disabled("#save-sticker")
    held[0].continue_()
    at.wait("!document.getElementById('save-sticker').disabled")


def test_without_javascript_the_page_says_so(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert "needs JavaScript" in page.inner_text("body")
    assert page.locator("button:visible").count() == 0
    context.close()


def test_an_opened_network_becomes_a_style(visit, tmp_path):
    at = visit()
    negative(side=32, reshaped=True).save(str(tmp_path / "mine.onnx"))
    at.page.set_input_files("#file", tmp_path / "mine.onnx")
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'mine'")
    assert at.page.is_checked("input[value=mine]")
    assert at.text("message") == ""
    photo, output = at.last()
    assert photo.shape == (1, 3, 32, 32)
    assert np.abs(output - (1 - photo)).max() < 1e-5
    at.page.set_input_files("#file", tmp_path / "mine.onnx")  # another one of that name
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'mine 2'")


def test_a_network_that_cannot_be_a_style_is_told_why(visit, tmp_path):
    at = visit()
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    picture = value("x", [1, 3, 8, 8])
    cases = {
        "text.onnx": (b"dear", "no ONNX network"),
        "two.onnx": (
            _network(
                [helper.make_node("Add", ["x", "z"], ["y"])], [picture, value("z", [1, 3, 8, 8])]
            ),
            "it has 2 inputs",
        ),
        "grey.onnx": (
            _network([helper.make_node("Neg", ["x"], ["y"])], [value("x", [1, 1, 8, 8])]),
            "its input is float32 1 × 1 × 8 × 8",
        ),
        "short.onnx": (
            _network([helper.make_node("ReduceMean", ["x"], ["y"])], [picture]),
            "its output is float32 1 × 1 × 1 × 1",
        ),
    }
    for name, (content, why) in cases.items():
        at.page.set_input_files("#file", {"name": name, "mimeType": "", "buffer": content})
        at.wait(f"document.getElementById('message').textContent.includes('{name}')")
        assert f"{name} cannot be a style: {why}" in at.text("message")
    assert at.page.is_checked("input[value=negative]")
    at.noise.clear()  # ONNX Runtime tells the console more


def _network(nodes, inputs) -> bytes:
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", inputs, [output])
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def test_a_page_without_its_worker_says_so(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.route("**/page/worker*", lambda route: route.abort())
    page.goto(address)
    end = time.monotonic() + PATIENCE
    while not page.inner_text("#message"):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "a part of the page did not load; reload it" in page.inner_text("#message")
    assert "by itself" not in page.inner_text("#message")
    context.close()
