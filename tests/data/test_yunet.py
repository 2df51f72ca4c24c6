"""YuNet's outputs decoded, with tensors made by hand; the network itself where it is available."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from skimage.data import astronaut
from torchvision.ops import nms

from distill.core.errors import DistillError
from distill.core.weights import matches
from distill.data.faces import OUTPUTS, OVERLAP, SIDE, STRIDES, YUNET, YuNet, decode, strongest

WIDTHS = {"cls": 1, "obj": 1, "bbox": 4, "kps": 10}


def empty(side=SIDE):
    """The twelve outputs for a picture of that side, without a face."""
    return {
        name: np.zeros((1, (side // int(stride)) ** 2, WIDTHS[kind]), np.float32)
        for name in OUTPUTS
        for kind, stride in [name.split("_")]
    }


def put(outputs, stride, row, column, box, score=1.0, side=SIDE):
    """A face in that cell; `box` is centre and size in cells, its points lie on a line."""
    cell = row * (side // stride) + column
    outputs[f"cls_{stride}"][0, cell] = score
    outputs[f"obj_{stride}"][0, cell] = score
    outputs[f"bbox_{stride}"][0, cell] = [*box[:2], *np.log(box[2:])]
    outputs[f"kps_{stride}"][0, cell] = np.arange(10) / 10


@pytest.mark.parametrize("stride", STRIDES)
def test_a_cell_s_box_and_points(stride):
    outputs = empty()
    put(outputs, stride, row=5, column=9, box=(0.25, 0.5, 4, 6), score=0.81)
    scores, boxes, points = decode(outputs, SIDE // 8, 0.5)
    np.testing.assert_allclose(scores, [0.81], rtol=1e-6)
    x, y = (9 + 0.25) * stride, (5 + 0.5) * stride
    np.testing.assert_allclose(
        boxes, [[x - 2 * stride, y - 3 * stride, x + 2 * stride, y + 3 * stride]], rtol=1e-5
    )
    expected = [((9 + i / 5) * stride, (5 + i / 5 + 0.1) * stride) for i in range(5)]
    np.testing.assert_allclose(points, [expected], rtol=1e-5)


def test_the_score_is_the_geometric_mean_of_both():
    outputs = empty()
    put(outputs, 8, 0, 0, (0, 0, 1, 1))
    outputs["cls_8"][0, 0], outputs["obj_8"][0, 0] = 0.9, 0.4
    assert decode(outputs, 80, 0.61)[0].size == 0
    assert decode(outputs, 80, 0.59)[0] == pytest.approx(0.6)


def test_of_two_that_overlap_the_better_one_stays():
    outputs = empty()
    put(outputs, 16, 10, 10, (0, 0, 8, 8), 0.8)
    put(outputs, 16, 10, 11, (0, 0, 8, 8), 0.9)  # 7 of 9 columns shared
    put(outputs, 16, 30, 30, (0, 0, 8, 8), 0.75)  # elsewhere
    scores, boxes, _ = decode(outputs, SIDE // 8, 0.7)
    np.testing.assert_allclose(scores, [0.9, 0.75], rtol=1e-6)
    assert boxes[0, 0] == 11 * 16 - 64


def test_of_many_that_overlap_those_stay_that_torchvision_keeps():
    rng = np.random.default_rng(0)
    boxes = rng.uniform(0, 100, (300, 4)).astype(np.float32)
    boxes[:, 2:] = boxes[:, :2] + rng.uniform(10, 60, (300, 2))
    scores = rng.random(300, np.float32)
    kept = nms(torch.from_numpy(boxes), torch.from_numpy(scores), OVERLAP)
    assert 20 < len(kept) < 280
    assert strongest(boxes, scores) == kept.tolist()


def network(path, outputs, names=OUTPUTS):
    """An ONNX file that gives those outputs where the picture's blue is brightest, else none.

    Blue of the top left pixel over 255 scales the scores: channel order and range are seen.
    """
    nodes = [
        helper.make_node("Slice", ["input", "from", "to"], ["pixel"]),
        helper.make_node("Reshape", ["pixel", "flat"], ["value"]),
        helper.make_node("Div", ["value", "most"], ["share"]),
    ]
    weights = [
        numpy_helper.from_array(np.array(value), name)
        for name, value in (
            ("from", [0, 0, 0, 0]), ("to", [1, 1, 1, 1]), ("flat", [1, 1, 1]),
            ("most", np.float32(255)),
        )
    ]  # fmt: skip
    for name in names:
        weights.append(numpy_helper.from_array(outputs[name], f"is_{name}"))
        kind = "Mul" if name[:3] in ("cls", "obj") else "Identity"
        inputs = [f"is_{name}", "share"] if kind == "Mul" else [f"is_{name}"]
        nodes.append(helper.make_node(kind, inputs, [name]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    picture = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, SIDE, SIDE])
    graph = helper.make_graph(nodes, "g", [picture], ends, weights)
    opset = helper.make_opsetid("", 13)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


@pytest.mark.slow
def test_faces_in_pixels_of_the_photo_the_largest_first(tmp_path):
    outputs = empty()
    put(outputs, 8, 10, 10, (0.5, 0.5, 3, 4), 0.95)
    put(outputs, 32, 8, 8, (0.5, 0.5, 3, 4), 0.85)
    find = YuNet(network(tmp_path / "y.onnx", outputs))
    photo = np.zeros((640, 1280, 3), np.uint8)  # looked at in half its size
    photo[..., 2] = 255  # blue, the first channel of BGR
    large, small = find(photo)
    assert large.box == (2 * (272 - 64), 2 * (272 - 48), 2 * 128, 2 * 96)
    assert small.box == (2 * (84 - 16), 2 * (84 - 12), 2 * 32, 2 * 24)
    assert (large.score, small.score) == pytest.approx((0.85, 0.95))
    assert large.points[0] == pytest.approx((2 * 8 * 32, 2 * (8 + 0.1) * 32))
    photo[..., :2], photo[..., 2] = 255, 0
    assert find(photo) == []


def test_a_small_photo_is_not_enlarged(tmp_path):
    outputs = empty()
    put(outputs, 8, 2, 2, (0.5, 0.5, 2, 2))
    find = YuNet(network(tmp_path / "y.onnx", outputs))
    (face,) = find(np.full((60, 70, 3), 255, np.uint8))
    assert face.box == (12, 12, 16, 16)


def test_another_network_is_refused(tmp_path):
    outputs = empty()
    path = network(tmp_path / "y.onnx", outputs, OUTPUTS[:-1])
    with pytest.raises(DistillError, match=r"y\.onnx: not YuNet, it has no output kps_32"):
        YuNet(path)
    path.write_bytes(b"nothing")
    with pytest.raises(DistillError, match="not a readable ONNX file"):
        YuNet(path)


@pytest.mark.campaign
def test_the_real_network_sees_what_opencv_sees_with_it():
    path = os.environ.get("DISTILL_YUNET")
    if path is None:
        pytest.skip(f"no DISTILL_YUNET, which names the file {YUNET.name}")
    assert matches(Path(path), YUNET)
    (face,) = YuNet(Path(path))(astronaut())
    # FaceDetectorYN of OpenCV 5.0.0, the photo in the corner of a black 640².
    assert face.box == pytest.approx((62.9, 178.2, 113.3, 89.9), abs=1)
    points = [(200.1, 101.8), (247.1, 102.6), (220.4, 124.5), (198.6, 142.8), (239.7, 143.6)]
    np.testing.assert_allclose(face.points, points, atol=0.1)
