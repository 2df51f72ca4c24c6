"""The profiles that follow ONNX Runtime's tables, one fault at a time."""

from importlib.resources import files

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, helper, numpy_helper

from distill.check import nnapi_profile, snapml_profile, web_profile
from distill.check.check_report import check
from distill.check.onnx_graph import read
from distill.check.shared import Profile
from distill.models import zoo
from distill_formats import coreml_profile
from support.device_graphs import CHANNELS, SIZE, build, clean, picture, save, weight

PROFILES = {
    each.PROFILE.name: each.PROFILE
    for each in (snapml_profile, coreml_profile, nnapi_profile, web_profile)
}
ALWAYS = "NNAPI is deprecated"
PADS = numpy_helper.from_array(np.zeros(8, np.int64), "p")
CUT = numpy_helper.from_array(np.array([0, 0, -1, 0, 0, 0, 0, 0], np.int64), "p")
EMPTY = numpy_helper.from_array(np.zeros(0, np.float32), "r")
TWICE = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s")


def found(profile, model, folder):
    each = PROFILES[profile].check(read(save(model, folder)))
    return [(f.level, f.operator, f.what) for f in each if f.what != ALWAYS]


def one(operator, inputs=("x",), weights=(), opset=13, domains=(), **attributes):
    node = helper.make_node(operator, inputs, ["y"], "n", **attributes)
    return build([node], weights, opset, domains=domains)


def resize(opset=13, **attributes):
    return one("Resize", ("x", "r", "s"), [EMPTY, TWICE], opset, **attributes)


def conv(dims, opset=13, **attributes):
    return one("Conv", ("x", "w"), [weight("w", *dims)], opset, **attributes)


def computed(operator, index, name="n"):
    """An operator that takes a computed tensor at one of its inputs."""
    nodes = [
        helper.make_node("Relu", ["w"], ["v"], "computes"),
        helper.make_node(operator, ["x", *["w"] * (index - 1), "v"], ["y"], name),
    ]
    return build(nodes, [weight("w", CHANNELS, CHANNELS, 1, 1)], 13)


@pytest.mark.parametrize("profile", PROFILES)
def test_an_attribute_of_another_kind_is_no_valid_onnx(profile, tmp_path):
    model = conv((CHANNELS, CHANNELS, 1, 1), strides=[1, 1])
    wrong = model.graph.node[0].attribute.add()
    wrong.name, wrong.type = "dilations", AttributeProto.TENSOR
    found = check(save(model, tmp_path), PROFILES[profile]).findings
    assert [each.what.partition(":")[0] for each in found] == ["no valid ONNX"]


def test_a_rule_that_fails_on_a_valid_file_is_a_bug(tmp_path):
    def fails(graph):
        raise TypeError("a bug")

    profile = Profile("own", "own", (fails,))
    with pytest.raises(TypeError, match="a bug"):
        check(save(clean(), tmp_path), profile)


FAULTS = {
    ("coreml", "Pad"): (
        one("Pad", ("x", "p"), [PADS]), ("finding", "Pad", "Pad is not in the profile"),
    ),
    ("coreml", "cubic"): (
        resize(mode="cubic"), ("finding", "Resize", "mode cubic, only nearest or linear goes"),
    ),
    ("coreml", "output_padding"): (
        one("ConvTranspose", ("x", "w"), [weight("w", CHANNELS, 2, 3, 3)], strides=[2, 2],
            output_padding=[1, 1]),
        ("finding", "ConvTranspose", "output_padding [1, 1], only [0, 0] or [] goes"),
    ),
    ("coreml", "pool"): (
        one("GlobalMaxPool"), ("note", "GlobalMaxPool", "taken only if: it is of two dimensions"),
    ),
    ("nnapi", "ConvTranspose"): (
        one("ConvTranspose", ("x", "w"), [weight("w", CHANNELS, 2, 2, 2)], strides=[2, 2]),
        ("finding", "ConvTranspose", "ConvTranspose is not in the profile"),
    ),
    ("nnapi", "half_pixel"): (
        resize(nearest_mode="floor"),
        ("finding", "Resize", "nearest as half_pixel, floor; asymmetric, floor wanted"),
    ),
    ("nnapi", "weights"): (
        computed("Conv", 1), ("finding", "Conv", "its weight is computed, not a constant"),
    ),
    ("nnapi", "dilated groups"): (
        conv((CHANNELS, 2, 1, 1), group=2, dilations=[2, 2]),
        ("finding", "Conv", "2 groups with dilations [2, 2]"),
    ),
    ("nnapi", "reflect"): (
        one("Pad", ("x", "p"), [PADS], mode="reflect"),
        ("finding", "Pad", "mode reflect, only constant goes"),
    ),
    ("nnapi", "cut"): (
        one("Pad", ("x", "p"), [CUT]),
        ("finding", "Pad", "negative pads [0, 0, -1, 0, 0, 0, 0, 0]"),
    ),
    ("nnapi", "mode"): (
        one("DepthToSpace", blocksize=2, mode="CRD"),
        ("finding", "DepthToSpace", "mode CRD, only DCR goes"),
    ),
    ("web", "old"): (clean(opset=6), ("finding", "", "opset 6, 7 or newer wanted")),
    ("web", "strange"): (
        one("Sharpen", domains=["acme"], domain="acme"),
        ("finding", "Sharpen", "acme:Sharpen is no operator of ONNX Runtime's"),
    ),
    ("web", "beside"): (
        one("LpNormalization"),
        ("note", "LpNormalization", "LpNormalization is not in the profile"),
    ),
    ("web", "several"): (
        build([helper.make_node("Add", ["x", "summary"], ["y"], "n")], opset=13,
              inputs=[picture("x"), picture("summary", 1, CHANNELS, 1, 1)]),
        ("finding", "", "inputs: x, summary; one wanted"),
    ),
    ("web", "corners"): (
        resize(coordinate_transformation_mode="align_corners"),
        ("note", "Resize", "Resize by align_corners"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("profile", "fault"), FAULTS)
def test_one_fault_one_finding(profile, fault, tmp_path):
    model, expected = FAULTS[profile, fault]
    assert found(profile, model, tmp_path) == [expected]


@pytest.mark.parametrize("profile", ["coreml", "nnapi", "web"])
def test_a_clean_graph_has_none(profile, tmp_path):
    assert found(profile, clean(opset=11), tmp_path) == []


@pytest.mark.parametrize("profile", ["coreml", "nnapi"])
def test_resize_of_opset_10_is_too_old(profile, tmp_path):
    model = one("Resize", ("x", "s"), [TWICE], opset=10)
    assert found(profile, model, tmp_path) == [
        ("finding", "Resize", "Resize of opset 10, 11 or newer wanted")
    ]


@pytest.mark.parametrize(("profile", "level"), [("coreml", 1), ("nnapi", 1), ("web", 0)])
def test_a_dynamic_input_goes_in_browsers_only(profile, level, tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"], "n")
    model = build([node], opset=13, inputs=[picture("x", 1, CHANNELS, SIZE, "width")])
    assert len(found(profile, model, tmp_path)) == level


TABLES = {
    "coreml_supported_mlprogram_ops.md": coreml_profile.OPERATORS,
    "nnapi_supported_ops.md": nnapi_profile.OPERATORS,
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_onnx_runtime_s_own(name):
    table = files("onnxruntime.tools.mobile_helpers") / name
    if not table.is_file():
        pytest.skip("this onnxruntime carries no tables")
    rows = [line.split("|")[1] for line in table.read_text().splitlines() if ":" in line[:30]]
    theirs = {row.removeprefix("ai.onnx:") for row in rows if ":" in row}
    assert TABLES[name] <= theirs  # what a later version adds is welcome, what it drops is not
    assert len(theirs) < len(TABLES[name]) + 20


def test_web_s_table_has_what_students_are_made_of():
    made_of = {"Conv", "Relu", "Add", "Resize", "Sigmoid", "Mul", "ConvTranspose"}
    assert made_of <= web_profile.OPERATORS
    assert "Upsample" not in web_profile.OPERATORS


def test_shipped_students_by_profile():
    """Those with a file of one size; the others have none."""
    of_one_size = ("hayao", "hayao-small", "whitebox")
    graphs = [read(zoo.static(name)) for name in of_one_size]
    refused_by = {"coreml": set(), "web": set(), "nnapi": {"ConvTranspose"}}
    for profile, refused in refused_by.items():
        each = [f for g in graphs for f in PROFILES[profile].check(g) if f.level == "finding"]
        assert {f.operator for f in each} == refused


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_an_opset_of_the_future_keeps_a_file_off(profile, tmp_path):
    model = conv((CHANNELS, CHANNELS, 1, 1))
    model.opset_import[0].version = 99
    newest = onnx.defs.onnx_opset_version()
    found = check(save(model, tmp_path), PROFILES[profile]).findings
    assert f"opset 99: ONNX {onnx.__version__} ends at {newest}" in [each.what for each in found]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_picture_that_no_memory_holds_keeps_a_file_off(profile, tmp_path):
    """4 channels of float32 in a page of 4 GiB: at 8192² a tensor has 1 GiB, at 8224² more."""
    for side, wanted in ((8192, []), (8224, ["a tensor of 1.0 GiB, 1 allowed"])):
        model = clean(11)
        for value in (*model.graph.input, *model.graph.output):
            for dim in value.type.tensor_type.shape.dim[2:]:
                dim.dim_value = side
        del model.graph.value_info[:]
        said = [what for _, _, what in found(profile, model, tmp_path) if "tensor" in what]
        assert said == wanted


def test_the_tensor_that_is_too_large_is_named_by_its_node(tmp_path):
    node = helper.make_node("Resize", ["x", "r", "s"], ["y"], "wide")
    far = numpy_helper.from_array(np.array([1, 1, 8192, 8192], np.float32), "s")
    shape = (1, CHANNELS, SIZE * 8192, SIZE * 8192)
    model = build([node], [EMPTY, far], 13, outputs=[picture("y", *shape)])
    findings = web_profile.PROFILE.check(read(save(model, tmp_path)))
    large = [f for f in findings if "tensor of" in f.what]
    assert [(f.node, f.what) for f in large] == [("wide", "a tensor of 64.0 GiB, 1 allowed")]
