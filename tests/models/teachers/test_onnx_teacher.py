import pickle
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from distill.core.errors import DistillError
from distill.core.files import sha256
from distill.models.build import channels_of
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.models.teachers.teacher import BadPicture
from distill.stylize.onnx_student import OnnxStudent
from support.labelling import add, make
from support.refusals import refusal

Shape = Sequence[int | str]
FREE: Shape = ("n", 3, "h", "w")
UNIT = {"input_range": (0, 1), "output_range": (0, 1)}


def write(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, np.ndarray] | None = None,
    takes: Shape = FREE,
    gives: Shape = FREE,
) -> Path:
    """A model from `photo` to `stylized`."""
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("photo", TensorProto.FLOAT, takes)],
        [helper.make_tensor_value_info("stylized", TensorProto.FLOAT, gives)],
        [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def identity(path: Path, shape: Shape = FREE) -> Path:
    return write(path, [helper.make_node("Identity", ["photo"], ["stylized"])], None, shape, shape)


def scaled(path: Path, factors: np.ndarray, shape: Shape = FREE) -> Path:
    node = helper.make_node("Mul", ["photo", "factors"], ["stylized"])
    return write(path, [node], {"factors": factors.astype(np.float32)}, shape, shape)


message = partial(refusal, OnnxTeacher)


@pytest.mark.parametrize("span", [(-1, 1), (0, 1), (0, 255), (1, 0)])
def test_identity_gives_the_photo_back(tmp_path, span):
    teacher = OnnxTeacher(identity(tmp_path / "i.onnx"), input_range=span, output_range=span)
    photo = torch.rand(2, 3, 8, 10)
    torch.testing.assert_close(teacher(photo), photo)


def test_input_range_is_what_the_network_sees(tmp_path):
    """Black arrives as -1 and white as 1; read as [0, 1], that is 2p - 1, black below a half."""
    teacher = OnnxTeacher(identity(tmp_path / "i.onnx"), (-1, 1), (0, 1))
    photo = torch.tensor([0.25, 0.5, 0.625, 0.75, 1.0]).expand(1, 3, 2, 5)
    expected = torch.tensor([0.0, 0.0, 0.25, 0.5, 1.0]).expand(1, 3, 2, 5)
    torch.testing.assert_close(teacher(photo), expected)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_network_of_one_channel_gives_grey(tmp_path, layout):
    """The mean of the channels, in BGR, whose order makes no difference to it."""
    axis = 1 if layout == "nchw" else 3
    takes, gives = (["n", c, "h", "w"] if axis == 1 else ["n", "h", "w", c] for c in (3, 1))
    node = helper.make_node("ReduceMean", ["photo"], ["stylized"], axes=[axis])
    path = write(tmp_path / "m.onnx", [node], None, takes, gives)
    teacher, photo = (
        OnnxTeacher(path, **UNIT, layout=layout, channels="bgr"),
        torch.rand(2, 3, 64, 64),
    )
    torch.testing.assert_close(teacher(photo), photo.mean(1, keepdim=True))
    assert channels_of(teacher) == 1


def test_little_of_the_output_outside_its_range_is_cut(tmp_path):
    teacher = OnnxTeacher(scaled(tmp_path / "m.onnx", np.full(1, 1.2)), **UNIT)
    photo = torch.linspace(0, 1, 768).reshape(1, 3, 16, 16)  # a sixth of it
    torch.testing.assert_close(teacher(photo), (photo * 1.2).clamp(max=1))


@pytest.mark.parametrize(
    ("shape", "layout", "said"),
    [
        (("n", "h", "w", 3), "nchw", "takes (?, ?, ?, 3), channels last: set teacher.layout=nhwc"),
        ((1, 64, 64, 3), "nchw", "takes (1, 64, 64, 3), channels last: set teacher.layout=nhwc"),
        (FREE, "nhwc", "takes (?, 3, ?, ?), channels first: set teacher.layout=nchw"),
    ],
)
def test_the_other_layout_is_named(tmp_path, shape, layout, said):
    path = identity(tmp_path / "i.onnx", shape)
    assert message(path, layout=layout) == f"{path}: {said}"


def test_a_range_that_leaves_the_dark_half_empty_is_remarked(tmp_path, capsys):
    """A network of [0, 1] whose range was forgotten draws nothing darker than grey."""
    add(tmp_path / "photos", *range(4))
    for span, said in (((-1, 1), True), ((0, 1), False)):
        teacher = OnnxTeacher(identity(tmp_path / "i.onnx"), (0, 1), span)
        make(tmp_path / "photos", tmp_path / f"set {said}", teacher=teacher)
        assert ("gave no value below 0 for 4 photos" in capsys.readouterr().out) is said


@pytest.mark.parametrize(("field", "what"), [("opset", "opset"), ("ir", "IR version")])
def test_a_file_newer_than_onnx_runtime_is_told_so(tmp_path, field, what):
    path = identity(tmp_path / "i.onnx")
    model = onnx.load(path)
    if field == "opset":
        model.opset_import[0].version = 99
    else:
        model.ir_version = 99
    onnx.save(model, path)
    said = message(path)
    assert said.startswith(f"{path}: is newer than this ONNX Runtime ({onnxruntime.__version__}), ")
    assert re.search(rf"reads up to {what} \d+; export it with an older one", said)
    with pytest.raises(DistillError, match=rf"^net: is newer .* up to {what} \d+; "):
        OnnxStudent(model, "net")


@pytest.mark.parametrize(
    ("gives", "said", "hint"),
    [
        ((0, 255), (-1, 1), "values from 0 to 255, want [-1, 1]; try teacher.output_range=[0,255]"),
        ((0, 255), (0, 1), "values from 0 to 255, want [0, 1]; try teacher.output_range=[0,255]"),
        ((-1, 1), (0, 1), "values from -1 to 1, want [0, 1]; try teacher.output_range=[-1,1]"),
        ((-1, 1), (0, 255), "values from -1 to 1, want [0, 255]; try teacher.output_range=[-1,1]"),
        ((0, 1), (0, 255), "values from 0 to 1, want [0, 255]; try teacher.output_range=[0,1]"),
    ],
)
def test_an_output_range_that_was_forgotten(tmp_path, gives, said, hint):
    teacher = OnnxTeacher(identity(tmp_path / "i.onnx"), input_range=gives, output_range=said)
    photos = torch.linspace(0, 1, 192).reshape(1, 3, 8, 8).repeat(2, 1, 1, 1)
    photos[1] = photos[1].flip(1)
    with pytest.raises(BadPicture) as error:  # too little of the range is one colour
        teacher.check_together(teacher(photos), photos)
    assert str(error.value).startswith(f"{teacher.path}: gave ")
    assert str(error.value).endswith(hint)


@pytest.mark.parametrize(
    ("channels", "factors"), [("rgb", [1.0, 0.5, 0.25]), ("bgr", [0.25, 0.5, 1.0])]
)
@pytest.mark.parametrize("size", ["h", 6])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_channel_order_and_layout(tmp_path, channels, factors, layout, size):
    """A network that dims its second channel by 2 and its third by 4: blue in RGB, red in BGR."""
    last = layout == "nhwc"
    dims = np.array([1.0, 0.5, 0.25]).reshape(3 if last else (3, 1, 1))
    shape = ("n", size, size, 3) if last else ("n", 3, size, size)
    path = scaled(tmp_path / "m.onnx", dims, shape)
    photo = torch.rand(2, 3, 6, 6)
    expected = photo * torch.tensor(factors).view(3, 1, 1)
    teacher = OnnxTeacher(path, channels=channels, layout=layout, **UNIT)
    torch.testing.assert_close(teacher(photo), expected)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("pictures", [1, 2, 3, 5])
def test_fixed_batch_takes_any_number(tmp_path, batch, pictures):
    path = identity(tmp_path / "i.onnx", (batch, 3, 8, 8))
    photos = torch.rand(pictures, 3, 8, 8)
    torch.testing.assert_close(OnnxTeacher(path)(photos), photos)


def test_tensors_by_name(tmp_path):
    nodes = [
        helper.make_node("Neg", ["photo"], ["other"]),
        helper.make_node("Identity", ["photo"], ["stylized"]),
    ]
    path = write(tmp_path / "two.onnx", nodes)
    model = onnx.load(path)
    model.graph.output.insert(0, helper.make_tensor_value_info("other", TensorProto.FLOAT, FREE))
    onnx.save(model, path)
    photo = torch.rand(1, 3, 4, 4)
    assert OnnxTeacher(path).output == "other"
    torch.testing.assert_close(OnnxTeacher(path)(photo), 1 - photo)
    torch.testing.assert_close(OnnxTeacher(path, input="photo", output="stylized")(photo), photo)


def test_fingerprint_follows_file_and_settings(tmp_path):
    path = identity(tmp_path / "i.onnx")
    plain = OnnxTeacher(path).fingerprint()
    assert OnnxTeacher(path).fingerprint() == plain
    assert OnnxTeacher(path, channels="bgr").fingerprint() != plain
    assert OnnxTeacher(path, input_range=(0, 1)).fingerprint() != plain
    assert OnnxTeacher(scaled(tmp_path / "m.onnx", np.ones(1))).fingerprint() != plain


def test_not_an_onnx_file(tmp_path):
    path = tmp_path / "photo.onnx"
    path.write_bytes(b"\x89PNG not a graph\n" * 10)
    assert "photo.onnx: not a readable ONNX file" in message(path)
    assert "gone.onnx: no such file" in message(tmp_path / "gone.onnx")


@pytest.mark.parametrize(("key", "has"), [("input", "photo"), ("output", "stylized")])
def test_wrong_tensor_name(tmp_path, key, has):
    said = message(identity(tmp_path / "i.onnx"), **{key: "picture"})
    assert f"teacher.{key}=picture" in said
    assert said.endswith(has)


@pytest.mark.parametrize("span", [(0.0,), (1.0, 1.0), (0.0, 1.0, 2.0)])
@pytest.mark.parametrize("key", ["input_range", "output_range"])
def test_wrong_range(tmp_path, key, span):
    assert f"teacher.{key}={list(span)}" in message(identity(tmp_path / "i.onnx"), **{key: span})


def test_wrong_size(tmp_path):
    teacher = OnnxTeacher(identity(tmp_path / "i.onnx", (1, 3, 8, 6)))
    with pytest.raises(DistillError, match="takes pictures of 8×6 only, got 8×8"):
        teacher(torch.rand(1, 3, 8, 8))
    assert teacher(torch.rand(1, 3, 8, 6)).shape == (1, 3, 8, 6)


NOT_PICTURES = {
    "classifier": (helper.make_node("Flatten", ["photo"], ["stylized"]), ("n", "k")),
    "smaller": (
        helper.make_node("MaxPool", ["photo"], ["stylized"], kernel_shape=[2, 2], strides=[2, 2]),
        ("n", 3, "a", "b"),
    ),
    "six": (
        helper.make_node("Concat", ["photo", "photo"], ["stylized"], axis=1),
        ("n", "c", "h", "w"),
    ),
    "number": (helper.make_node("ReduceMean", ["photo"], ["stylized"], keepdims=0), ()),
}


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("kind", NOT_PICTURES)
def test_not_image_to_image(tmp_path, kind, layout):
    node, gives = NOT_PICTURES[kind]
    takes = FREE if layout == "nchw" else ("n", "h", "w", 3)
    teacher = OnnxTeacher(write(tmp_path / "n.onnx", [node], None, takes, gives), layout=layout)
    with pytest.raises(DistillError, match="not an image-to-image network"):
        teacher(torch.rand(1, 3, 8, 8))


def test_a_network_that_refuses_the_picture_says_so_in_one_line(tmp_path):
    teacher = OnnxTeacher(identity(tmp_path / "grey.onnx", ("n", 1, "h", "w")))
    with pytest.raises(DistillError, match=r"grey\.onnx"):
        teacher(torch.rand(1, 3, 8, 8))


def test_a_copy_for_another_machine_needs_no_file(tmp_path):
    factors = np.array([0.5, 0.25, 1.0]).reshape(1, 3, 1, 1)
    path = scaled(tmp_path / "s.onnx", factors)
    content = pickle.dumps(OnnxTeacher(path, **UNIT))
    path.unlink()
    photo = torch.rand(2, 3, 16, 16)
    copy = pickle.loads(content)
    assert torch.equal(copy(photo), photo * torch.from_numpy(factors).float())
    assert not copy.training


def test_weights_in_another_file_are_in_the_fingerprint(tmp_path):
    factors = np.full((1, 3, 1, 1), 0.5)
    path = scaled(tmp_path / "alone.onnx", factors)
    alone = OnnxTeacher(path, **UNIT).settings()
    assert alone.startswith(f"{sha256(path)} [")  # as older versions have it
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    before = OnnxTeacher(path, **UNIT)
    known = before.fingerprint()
    assert before(torch.ones(1, 3, 8, 8)).mean() == 0.5
    (tmp_path / "w.bin").write_bytes(factors.astype(np.float32).tobytes()[:8] + b"\0\0\0\0")
    after = OnnxTeacher(path, **UNIT)
    assert after(torch.ones(1, 3, 8, 8)).mean() < 0.5
    assert after.fingerprint() != known


def _of_type(path: Path, kind: int, *more: str) -> Path:
    model = onnx.load(identity(path))
    for name in more:
        model.graph.input.append(helper.make_tensor_value_info(name, kind, FREE))
        model.graph.node.append(helper.make_node("Identity", [name], [f"{name}_out"]))
        model.graph.output.append(helper.make_tensor_value_info(f"{name}_out", kind, FREE))
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.elem_type = kind
    onnx.save(model, path)
    return path


def test_a_file_without_an_input(tmp_path):
    model = onnx.load(identity(tmp_path / "none.onnx"))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 3, 4, 4), np.float32), "z"))
    model.graph.node[0].input[0] = "z"
    del model.graph.input[:]
    onnx.save(model, tmp_path / "none.onnx")
    assert message(tmp_path / "none.onnx").endswith("has no input, so no picture goes through it")


def test_half_precision_is_fed_and_other_inputs_are_refused(tmp_path):
    half = OnnxTeacher(_of_type(tmp_path / "half.onnx", TensorProto.FLOAT16), **UNIT)
    photo = torch.rand(1, 3, 4, 4)
    torch.testing.assert_close(half(photo), photo, atol=5e-4, rtol=0)
    found = message(_of_type(tmp_path / "bytes.onnx", TensorProto.UINT8))
    assert found.endswith("want one picture, float32 or float16 in four dimensions")
    assert "photo: tensor(uint8)" in found
    two = _of_type(tmp_path / "two.onnx", TensorProto.FLOAT, "more")
    assert "more: tensor(float)" in message(two)
    flat = identity(tmp_path / "flat.onnx", ("n", 10))
    assert "float16 in four dimensions" in message(flat)
