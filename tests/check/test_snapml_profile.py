"""Each rule of the profile snapml: a graph with exactly that fault gives exactly that finding."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from distill.check.onnx_graph import read
from distill.check.snapml_profile import LIMIT, PROFILE
from distill.models import zoo
from support.device_graphs import CHANNELS, SIZE, build, clean, picture, save, weight
from support.statistics_students import PLAIN

ALWAYS = "the frame rate is not known before a phone has run it"
W = weight("w", CHANNELS, CHANNELS, 3, 3)


def found(model, folder):
    """(level, operator, node, what) of everything found but the frame rate, which always is."""
    each = PROFILE.check(read(save(model, folder)))
    return [(f.level, f.operator, f.node, f.what) for f in each if f.what != ALWAYS]


def one(operator, weights=(), inputs=("x",), opset=9, **attributes):
    return build([helper.make_node(operator, inputs, ["y"], "n", **attributes)], weights, opset)


def conv(weights=W, **attributes):
    return one("Conv", [weights], ("x", "w"), **attributes)


def transposed(weights=W, **attributes):
    return one("ConvTranspose", [weights], ("x", "w"), **attributes)


def test_a_clean_graph_has_no_findings_and_only_the_note_on_frames(tmp_path):
    each = PROFILE.check(read(save(clean(), tmp_path)))
    assert [(f.level, f.what) for f in each] == [("note", ALWAYS)]


def test_every_finding_says_why_who_and_what_to_do(tmp_path):
    model = conv(weight("w", CHANNELS, 2, 1, 1), group=2)
    for finding in PROFILE.check(read(save(model, tmp_path))):
        assert finding.why
        assert finding.source
        assert finding.advice


UPSCALE = [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")]
NARROW = [weight("k", 1)]
FAULTS = {
    "operator": (one("Tanh"), ("finding", "Tanh", "Tanh is not in the profile")),
    "groups": (
        conv(weight("w", CHANNELS, 2, 1, 1), group=2),
        ("finding", "Conv", "2 groups of 4 channels: neither plain nor depthwise"),
    ),
    "strides": (
        conv(strides=[1, 2]),
        ("finding", "Conv", "strides [1, 2]: not the same in height and width"),
    ),
    "dilations": (
        conv(dilations=[2, 1]),
        ("finding", "Conv", "dilations [2, 1]: not the same in height and width"),
    ),
    "padding": (
        conv(pads=[4, 4, 4, 4]),
        ("finding", "Conv", "pads [4, 4, 4, 4] wider than its kernel [3, 3]"),
    ),
    "transposed strides": (
        transposed(strides=[1, 2]),
        ("finding", "ConvTranspose", "strides [1, 2]: not the same in height and width"),
    ),
    "transposed pads": (
        transposed(pads=[1, 0, 1, 0]),
        ("finding", "ConvTranspose", "pads [1, 0, 1, 0]: not the same in height and width"),
    ),
    "transposed kernel": (
        transposed(weight("w", CHANNELS, CHANNELS, 3, 2)),
        ("finding", "ConvTranspose", "kernel_shape [3, 2]: not the same in height and width"),
    ),
    "transposed dilations": (
        transposed(dilations=[2, 2]),
        ("finding", "ConvTranspose", "dilations [2, 2]"),
    ),
    "transposed groups": (
        transposed(weight("w", CHANNELS, 2, 3, 3), group=2),
        ("finding", "ConvTranspose", "2 groups of 4 channels: neither plain nor depthwise"),
    ),
    "output padding": (
        transposed(strides=[2, 2], output_padding=[1, 1]),
        ("note", "ConvTranspose", "output_padding [1, 1]"),
    ),
    "mode": (
        one("Upsample", UPSCALE, ("x", "s"), mode="linear"),
        ("finding", "Upsample", "Upsample in mode linear, only nearest is known to go"),
    ),
    "axis": (one("Concat", inputs=("x", "x"), axis=3), ("finding", "Concat", "along axis 3")),
    "npu": (one("Cos"), ("note", "Cos", "Cos is not on the iPhone's NPU")),
    "both": (
        one("MatMul", inputs=("x", "x")),
        ("note", "MatMul", "MatMul is not on the iPhone's NPU, nor on Android GPUs"),
    ),
    "trailing constant": (
        one("Mul", NARROW, ("x", "k")),
        ("note", "Mul", "the network's last step is with a constant"),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_one_finding(fault, tmp_path):
    model, (level, operator, what) = FAULTS[fault]
    assert found(model, tmp_path) == [(level, operator, "n", what)]


def test_a_constant_further_in_is_not_called_the_last_step(tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["m"], "scale"),
        helper.make_node("Relu", ["m"], ["y"], "relu"),
    ]
    what = found(build(nodes, NARROW), tmp_path)
    assert what == [("note", "Mul", "scale", "a step is with a constant")]


def test_the_parameters_of_a_resize_are_no_constants_of_the_picture(tmp_path):
    # As the tracing exporter writes it: Constant nodes that only a Resize takes.
    values = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32))
    nodes = [
        helper.make_node("Constant", [], ["s"], "constant", value=values),
        helper.make_node("Upsample", ["x", "s"], ["y"], "up", mode="nearest"),
    ]
    assert found(build(nodes), tmp_path) == []


@pytest.mark.parametrize("model", [conv(group=1), conv(weight("w", 8, 1, 1, 1), group=CHANNELS)])
def test_plain_and_depthwise_convolutions_go(model, tmp_path):
    assert found(model, tmp_path) == []


def test_a_dynamic_input_is_named_with_its_dimensions(tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"], "n")
    model = build([node], inputs=[picture("x", "batch", CHANNELS, SIZE, "width")])
    what = f"input of no fixed size: batch×{CHANNELS}×{SIZE}×width"
    assert found(model, tmp_path) == [("finding", "", "x", what)]


def test_another_opset_is_a_note(tmp_path):
    assert found(clean(opset=11), tmp_path) == [("note", "", "file", "opset 11")]


@pytest.mark.parametrize(("more", "level"), [(0, None), (1, "finding")])
def test_the_limit_is_10_000_000_bytes(more, level, tmp_path):
    model = clean()
    model.doc_string = "x"
    bare = model.ByteSize()
    filler = LIMIT + more - bare  # the field's length takes more digits as it grows
    model.doc_string = "x" * filler
    model.doc_string = "x" * (filler - (model.ByteSize() - LIMIT - more))
    assert model.ByteSize() == LIMIT + more
    assert [f[0] for f in found(model, tmp_path)] == ([level] if level else [])


def test_external_data_is_a_finding_and_its_bytes_count(tmp_path):
    model = clean()
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin",
              size_threshold=0)  # fmt: skip
    graph = read(tmp_path / "m.onnx")
    each = [f for f in PROFILE.check(graph) if f.level == "finding"]
    assert [f.what for f in each] == ["weights lie in a second file, m.bin"]
    sizes = [(tmp_path / name).stat().st_size for name in ("m.onnx", "m.bin")]
    assert graph.size == sum(sizes)
    (tmp_path / "m.bin").unlink()
    each = [f for f in PROFILE.check(read(tmp_path / "m.onnx")) if f.level == "finding"]
    assert [f.what for f in each] == ["weights lie in a second file, m.bin, which is not there"]


def test_subnormal_weights_are_counted(tmp_path):
    values = np.array([1e-39, 0, 1e-37, -1e-40], np.float32).reshape(CHANNELS, 1, 1, 1)
    model = conv(numpy_helper.from_array(values, "w"), group=CHANNELS)
    assert found(model, tmp_path) == [("note", "", "file", "2 subnormal weights")]


def test_what_onnx_s_checker_refuses_is_a_finding(tmp_path):
    nodes = [helper.make_node("Relu", ["nowhere"], ["y"], "n")]
    each = [f for f in PROFILE.check(read(save(build(nodes), tmp_path))) if f.level == "finding"]
    assert len(each) == 1
    assert each[0].what.startswith("no valid ONNX: ")
    assert "nowhere" in each[0].what


@pytest.mark.parametrize("name", ["face_v2", "face_v2_2", "paprika", "webtoon"])
def test_released_lens_models_pass_since_they_ran(name, assets):
    each = PROFILE.check(read(assets / f"peer/{name}.onnx"))
    assert not [f for f in each if f.level == "finding"]
    assert any("last step" in f.what for f in each)


@pytest.mark.parametrize("name", sorted(zoo.shipped()))
def test_shipped_students_pass_but_for_statistics_of_the_whole_picture(name):
    each = PROFILE.check(read(zoo.static(name)))
    refused = {f.operator for f in each if f.level == "finding"}
    expected = set() if name in PLAIN else {"GlobalAveragePool"}
    if zoo.static(name) == zoo.find(name):  # a file of any size, with its thumbnail
        expected |= {"", "Resize"} if expected else set()
    # What heads decide by; but for poster, profile=strict and formats=lens_studio do without.
    heads = {name: {"Slice"} for name in ("comic", "crayons", "neon", "pencil", "toon")}
    # Without a head, but of any size.
    heads |= {name: {""} for name in ("dawn", "evening", "glass", "swirl", "woodcut")}
    heads["screenprint"] = {"Exp", "ReduceMax", "Slice", "Sub"}
    shapes = {"Gather", "Reshape", "Shape", "Transpose", "Unsqueeze"}
    heads["poster"] = {"ReduceMax", "ReduceSum", "Slice", "Softmax", "Sub"} | shapes
    assert refused == expected | heads.get(name, set())


def test_a_teacher_is_refused_operator_by_operator(assets):
    each = PROFILE.check(read(assets / "teachers/whitebox_cartoon.onnx"))
    operators = {"", "LeakyRelu", "Slice", "Shape", "Expand", "Sub"}
    assert operators <= {f.operator for f in each if f.level == "finding"}
