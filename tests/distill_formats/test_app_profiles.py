"""TFLite files and Core ML packages: what is read of them, and one finding for each fault."""

import struct
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from distill.check import web_profile
from distill.check.check_report import check, show
from distill.check.onnx_graph import Graph, Node, Tensor, read
from distill.core.errors import DistillError
from distill_formats import coreml_profile, tflite_profile, tflite_worker
from support.device_graphs import FLOAT, build, clean, save

ABOUT = {
    "style": "ink",
    "version": "1.2",
    "input": {"name": "photo", "range": [0, 1]},
    "output": {"name": "stylized", "range": [0, 255]},
}


def tflite(folder: Path, operator: str = "LOGISTIC", custom: str = "", free: bool = False) -> Path:
    """One operator from x to y, (1, 8, 8, 3) float32, by TFLite's own schema."""
    flatbuffers = pytest.importorskip("flatbuffers", reason="the extra distill[tflite]")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated", reason="distill[tflite]")
    code, model, graph = schema.OperatorCodeT(), schema.ModelT(), schema.SubGraphT()
    number = schema.BuiltinOperator.CUSTOM if custom else getattr(schema.BuiltinOperator, operator)
    code.builtinCode, code.version = number, 1
    code.deprecatedBuiltinCode, code.customCode = min(number, 127), custom or None
    graph.tensors = []
    for name in ("x", "y"):
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, [1, 8, 8, 3], 0
        tensor.type, tensor.shapeSignature = schema.TensorType.FLOAT32, [1, -1, -1, 3] * free
        graph.tensors.append(tensor)
    step = schema.OperatorT()
    step.opcodeIndex, step.inputs, step.outputs = 0, [0], [1]
    graph.inputs, graph.outputs, graph.operators = [0], [1], [step]
    model.version, model.operatorCodes, model.subgraphs = 3, [code], [graph]
    model.buffers = [schema.BufferT()]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    path = folder / "student.tflite"
    path.write_bytes(bytes(builder.Output()))
    return path


def said(path: Path, profile=tflite_profile.PROFILE) -> list[tuple[str, str]]:
    return [(each.level, each.what) for each in check(path, profile).all_findings]


def test_a_tflite_file_that_fits(tmp_path, capsys):
    path = tflite(tmp_path)
    assert said(path) == [("note", "no metadata")]
    show([check(path, tflite_profile.PROFILE)], tflite_profile.PROFILE)
    assert "1 node · tflite: fits, 1 note" in capsys.readouterr().out


def test_metadata_is_read_back_and_the_file_runs(tmp_path):
    path = tflite(tmp_path)
    tflite_worker.add_metadata(path, {"licence": "MIT", "distill.about": ABOUT})
    assert said(path) == []
    graph = tflite_profile.PROFILE.read(path)
    assert (graph.inputs[0].name, graph.outputs[0].name) == ("photo", "stylized")
    assert list(graph.about) == ["TFLITE_METADATA", "distill.about"]


def test_tflite_s_metadata_by_its_schema():
    """Fields by their numbers in metadata_schema.fbs: 4 + 2n in a table's list of offsets."""
    table = pytest.importorskip("flatbuffers.table", reason="the extra distill[tflite]").Table
    content = tflite_worker.metadata(ABOUT, "MIT")
    assert content[4:8] == b"M001"

    def field(of, number):
        return of.Pos + of.Offset(4 + 2 * number)

    def text(of, number):
        return of.String(field(of, number)).decode()

    def tables(of, number):
        place = of.Vector(of.Offset(4 + 2 * number))
        count = of.VectorLen(of.Offset(4 + 2 * number))
        return [table(of.Bytes, of.Indirect(place + 4 * n)) for n in range(count)]

    def numbers(of, number):
        return list(struct.unpack_from("<f", of.Bytes, of.Vector(of.Offset(4 + 2 * number))))

    root = table(bytearray(content), int.from_bytes(content[:4], "little"))
    assert [text(root, n) for n in (0, 2, 4, 5)] == ["ink", "1.2", "distill", "MIT"]
    (graph,) = tables(root, 3)
    (photo,), (stylized,) = tables(graph, 2), tables(graph, 3)
    assert (text(photo, 0), text(stylized, 0)) == ("photo", "stylized")
    (unit,) = tables(photo, 4)
    options = table(unit.Bytes, unit.Indirect(field(unit, 1)))
    assert (numbers(options, 0), numbers(options, 1)) == ([0.0], [255.0])  # (v - mean) / std
    stats = table(stylized.Bytes, stylized.Indirect(field(stylized, 5)))
    assert (numbers(stats, 0), numbers(stats, 1)) == ([255.0], [0.0])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ({"operator": "SIN"}, ("note", "SIN is not in the GPU's list")),
        ({"custom": "Sharpen"}, ("finding", "Sharpen is a custom operator")),
        ({"free": True}, ("note", "input of no fixed size: 1×?×?×3")),
    ],
)
def test_one_fault_one_finding(tmp_path, made, expected):
    assert said(tflite(tmp_path, **made)) == sorted([expected, ("note", "no metadata")])


def test_what_litert_refuses(tmp_path):
    path = tflite(tmp_path, "CONV_2D")  # without weights
    assert any("LiteRT refuses it" in what for _, what in said(path))


def test_damaged_and_missing_files_are_one_line(tmp_path):
    path = tmp_path / "a.tflite"
    path.write_bytes(b"TFL3" * 5)
    assert "not a readable TFLite file" in check(path, tflite_profile.PROFILE).error
    assert "no such file" in check(tmp_path / "b.tflite", tflite_profile.PROFILE).error


def test_a_file_of_another_form_names_its_profile(tmp_path):
    (tmp_path / "a.tflite").write_bytes(b"")
    error = check(tmp_path / "a.tflite", web_profile.PROFILE).error
    assert error.endswith("profile=web reads .onnx; take profile=tflite")
    save(clean(), tmp_path)
    with pytest.raises(DistillError, match=r"tflite reads .tflite; take profile=snapml"):
        tflite_profile.PROFILE.of(tmp_path / "model.onnx")


def package(**about: str) -> Graph:
    ends = [Tensor("photo", (64, None), "64×?, a picture"), Tensor("stylized", (1, 3), "1×3")]
    facts = {"kind": "mlProgram", "version": "6"} | about
    node = Node("n", "conv", "", ("photo",), ("stylized",), {})
    return Graph(Path("a"), 9, (), 0, (node,), (ends[0],), (ends[1],), {}, {}, facts)


def test_core_ml_packages():
    found = [f.what for f in coreml_profile.PACKAGE.check(package())]
    assert found == [
        "specification 6: iOS 15",
        "stylized is an array, 1×3",
        "input of no fixed size: 64×?, a picture",
    ]
    old = [f.what for f in coreml_profile.PACKAGE.check(package(kind="neuralNetwork", version="4"))]
    assert "neuralNetwork, no ML program" in old


@pytest.mark.parametrize(
    ("kind", "shape", "wanted"),
    [
        (FLOAT, (1, 3, 8, 8), []),
        (FLOAT, (1, 8, 8, 3), [("note", "input float 1×8×8×3")]),
        (TensorProto.UINT8, (1, 8, 8, 3), [("finding", "input uint8 1×8×8×3")]),
    ],
)
def test_what_the_page_does_not_feed(tmp_path, kind, shape, wanted):
    node = helper.make_node("Relu", ["x"], ["y"], "n")
    ends = [[helper.make_tensor_value_info(name, kind, shape)] for name in "xy"]
    model = build([node], opset=13, inputs=ends[0], outputs=ends[1])
    found = web_profile.PROFILE.check(read(save(model, tmp_path)))
    assert [(e.level, e.what) for e in found if e.what.startswith("input")] == wanted
