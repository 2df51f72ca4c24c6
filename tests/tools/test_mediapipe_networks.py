"""The networks by which the page finds people and faces, and the tool that wrote them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from skimage.data import astronaut

from support.blazeface import faces

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools/mediapipe_networks.py"
PEOPLE = ROOT / "web/networks/selfie_segmentation/selfie_segmentation.onnx"
FACES = ROOT / "web/networks/blazeface_short_range/blazeface_short_range.onnx"
# What MediaPipe 0.10.21 itself gives for every second pixel of the astronaut, as 8-bit grey:
# mp.solutions.selfie_segmentation.SelfieSegmentation(model_selection=0)
OF_MEDIAPIPE = Path(__file__).with_name("mediapipe_astronaut.png")
# "original": what LiteRT 2.3 gives for every fourth pixel of the astronaut by the .tflite itself,
# at the twelve places that are surest of a face. "mediapipe": the face that MediaPipe 0.10.21 has.
FACE = Path(__file__).with_name("blazeface_astronaut.json")


def test_the_network_for_people_gives_what_mediapipe_gives():
    photo = astronaut()[::2, ::2].transpose(2, 0, 1)[None].astype(np.float32) / 255
    (found,) = onnxruntime.InferenceSession(PEOPLE).run(None, {"photo": photo})
    with Image.open(OF_MEDIAPIPE) as mask:
        want = np.asarray(mask)
    assert found.shape == (1, 1, 256, 256)
    assert np.abs(255 * found[0, 0] - want).max() <= 0.6  # half a level, and 3e-4
    assert 0.3 < (want > 200).mean() < 0.6  # no empty mask


def test_the_network_for_faces_gives_what_the_original_gives():
    photo = astronaut()[::4, ::4].transpose(2, 0, 1)[None].astype(np.float32) / 255
    session = onnxruntime.InferenceSession(FACES)
    boxes, scores = session.run(["boxes", "scores"], {"photo": photo})
    assert boxes.shape == (1, 896, 16)
    assert scores.shape == (1, 896, 1)
    want = json.loads(FACE.read_text())["original"]
    places = [each["place"] for each in want]
    assert np.abs(boxes[0, places] - [each["box"] for each in want]).max() < 0.002
    assert np.abs(scores[0, places, 0] - [each["score"] for each in want]).max() < 0.002
    assert set(np.argsort(-scores[0, :, 0])[: len(places)]) == set(places)


def test_of_its_boxes_comes_the_face_that_mediapipe_finds():
    """MediaPipe takes every fourth pixel, too; made smaller well, the photo has it a bit higher."""
    want = json.loads(FACE.read_text())["mediapipe"]
    for photo, off in ((astronaut()[::4, ::4], 1e-4), (astronaut(), 0.015)):
        (found,) = faces(Image.fromarray(photo))
        assert np.abs(found.box - want["box"]).max() < off
        assert np.abs(found.points - want["points"]).max() < off
        assert abs(found.score - want["score"]) < off


def written(schema, operators, tensors, weights, ends=1) -> bytes:
    """A flatbuffer of one graph from its first tensor to its last ones; `operators`: kind, options,
    inputs, outputs; `tensors`: shapes, of float32 where `weights` names no others."""
    flatbuffers = pytest.importorskip("flatbuffers")
    kinds = list(dict.fromkeys(kind for kind, *_ in operators))
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.buffers, model.operatorCodes = 3, [schema.BufferT()], []
    for kind in kinds:
        code = schema.OperatorCodeT()
        number = getattr(schema.BuiltinOperator, kind)
        code.builtinCode, code.deprecatedBuiltinCode = number, min(127, number)
        code.version = 3 if kind in ("DEQUANTIZE", "RESIZE_BILINEAR") else 1
        model.operatorCodes.append(code)
    graph.tensors, graph.operators = [], []
    numbers = {np.dtype(np.float32): "FLOAT32", np.dtype(np.float16): "FLOAT16"}
    numbers[np.dtype(np.int32)] = "INT32"
    for at, shape in enumerate(tensors):
        tensor = schema.TensorT()
        tensor.shape, tensor.name, tensor.buffer = list(shape), f"t{at}", 0
        values = weights.get(at)
        kind = numbers[np.dtype(np.float32) if values is None else values.dtype]
        tensor.type = getattr(schema.TensorType, kind)
        if values is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(values.tobytes(), np.uint8)
            tensor.buffer = len(model.buffers)
            model.buffers.append(buffer)
        graph.tensors.append(tensor)
    for kind, options, inputs, outputs in operators:
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = kinds.index(kind), inputs, outputs
        if options is not None:
            name = type(options).__name__.removesuffix("T")
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, name)
            operator.builtinOptions = options
        graph.operators.append(operator)
    graph.inputs, graph.outputs = [0], [*range(len(tensors) - ends, len(tensors))]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def convert(
    content: bytes, folder: Path, network: str = "people"
) -> subprocess.CompletedProcess[str]:
    (folder / "given.tflite").write_bytes(content)
    command = [sys.executable, TOOL, network, folder / "given.tflite", folder / "made.onnx"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(("height", "width"), [(8, 12), (7, 10)])
def test_its_operators_are_tensorflow_lites(tmp_path, height, width):
    """Strided convolutions, of which one side's padding is larger; weights of 16 bits."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    rng = np.random.default_rng(0)
    half = lambda *shape: rng.normal(0, 0.5, shape).astype(np.float16)  # noqa: E731
    wide, deep = schema.Conv2DOptionsT(), schema.DepthwiseConv2DOptionsT()
    for options in (wide, deep):
        options.padding, options.strideH, options.strideW = schema.Padding.SAME, 2, 2
        options.dilationHFactor = options.dilationWFactor = 1
    deep.depthMultiplier = 1
    resize = schema.ResizeBilinearOptionsT()
    resize.halfPixelCenters, resize.alignCorners = True, False
    small = (1, -(-height // 4), -(-width // 4), 4)
    large = (1, 2 * small[1], 2 * small[2], 4)
    middle = (1, -(-height // 2), -(-width // 2), 4)
    tensors = [(1, height, width, 3), (4, 3, 3, 3), (4, 3, 3, 3), (4,), middle, middle]
    tensors += [(1, 5, 5, 4), (4,), small, (2,), large, (1, 1, 4), large, large]
    weights = {1: half(4, 3, 3, 3), 3: half(4).astype(np.float32)}
    weights |= {6: half(1, 5, 5, 4).astype(np.float32), 7: half(4).astype(np.float32)}
    weights[9] = np.array(large[1:3], np.int32)
    weights[11] = half(1, 1, 4).astype(np.float32)
    operators = [
        ("DEQUANTIZE", schema.DequantizeOptionsT(), [1], [2]),
        ("CONV_2D", wide, [0, 2, 3], [4]),
        ("HARD_SWISH", None, [4], [5]),
        ("DEPTHWISE_CONV_2D", deep, [5, 6, 7], [8]),
        ("RESIZE_BILINEAR", resize, [8, 9], [10]),
        ("PRELU", None, [10, 11], [12]),
        ("LOGISTIC", None, [12], [13]),
    ]
    content = written(schema, operators, tensors, weights)
    done = convert(content, tmp_path)
    assert done.returncode == 0, done.stderr
    photo = rng.random(tensors[0]).astype(np.float32)
    (want,) = interpreted(content, photo)
    session = onnxruntime.InferenceSession(tmp_path / "made.onnx")
    (found,) = session.run(None, {"photo": photo.transpose(0, 3, 1, 2)})
    assert np.abs(found.transpose(0, 2, 3, 1) - want).max() < 1e-5
    assert want.std() > 0.05


@pytest.mark.parametrize(("height", "width"), [(8, 12), (7, 9)])
def test_its_operators_of_lists_are_tensorflow_lites(tmp_path, height, width):
    """Pictures made smaller and given channels, their values put in one list; input in [-1, 1]."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    pool, reshape = schema.Pool2DOptionsT(), schema.ReshapeOptionsT()
    pool.padding, pool.strideH, pool.strideW = schema.Padding.SAME, 2, 2
    pool.filterHeight = pool.filterWidth = 2
    join = schema.ConcatenationOptionsT()
    join.axis = 1
    small = (1, -(-height // 2), -(-width // 2), 3)
    counts = small[1] * small[2], (small[1] + 3) * (small[2] + 1)
    padded = (1, small[1] + 3, small[2] + 1, 6)
    tensors = [(1, height, width, 3), small, (4, 2), padded, (3,), (1, counts[0], 3), (3,)]
    tensors += [(1, 2 * counts[1], 3), (1, counts[0] + 2 * counts[1], 3), tensors[5]]
    reshape.newShape = list(tensors[5])
    more = schema.ReshapeOptionsT()
    more.newShape = list(tensors[7])
    weights = {2: np.array([[0, 0], [1, 2], [0, 1], [2, 1]], np.int32)}
    weights |= {4: np.array(tensors[5], np.int32), 6: np.array(tensors[7], np.int32)}
    operators = [
        ("MAX_POOL_2D", pool, [0], [1]),
        ("PAD", schema.PadOptionsT(), [1, 2], [3]),
        ("RESHAPE", reshape, [1, 4], [5]),
        ("RESHAPE", more, [3, 6], [7]),
        ("CONCATENATION", join, [5, 7], [8]),
        ("RELU", None, [5], [9]),
    ]
    content = written(schema, operators, tensors, weights, ends=2)
    done = convert(content, tmp_path, "faces")
    assert done.returncode == 0, done.stderr
    photo = np.random.default_rng(0).random(tensors[0]).astype(np.float32)
    session = onnxruntime.InferenceSession(tmp_path / "made.onnx")
    found = session.run(["boxes", "scores"], {"photo": photo.transpose(0, 3, 1, 2)})
    for one, want in zip(found, interpreted(content, 2 * photo - 1), strict=True):
        assert np.abs(one - want).max() < 1e-6
        assert want.std() > 0.05


def interpreted(content: bytes, photo: np.ndarray) -> list[np.ndarray]:
    """The outputs by TensorFlow Lite itself."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], photo)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.mark.parametrize(
    ("operator", "more", "said"),
    [
        ("FLOOR", [], "operator FLOOR: nothing here writes it"),
        ("RELU", ["faces"], "it has 1 outputs: another network"),
    ],
)
def test_what_it_cannot_write_ends_in_one_line(tmp_path, operator, more, said):
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    content = written(schema, [(operator, None, [0], [1])], [(1, 4, 4, 3)] * 2, {})
    done = convert(content, tmp_path, *more)
    assert (done.returncode, done.stderr) == (1, f"{tmp_path / 'given.tflite'}: {said}\n")
    assert not (tmp_path / "made.onnx").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"# distill", "no TFLite file"),
        (b"", "no TFLite file"),
        (b"\xff\xff\xff\x7fTFL3" + bytes(64), "a damaged TFLite file"),
    ],
)
def test_another_file_ends_in_one_line(tmp_path, content, words):
    pytest.importorskip("ai_edge_litert")
    done = convert(content, tmp_path, "faces")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{tmp_path / 'given.tflite'}: {words}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "made.onnx").exists()
