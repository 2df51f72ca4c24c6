"""distill.benchmark as typed, with tiny networks; nothing here says how fast anything is."""

import json

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

import distill
from distill.config import compose
from distill.core import sessions
from distill.core.errors import DistillError
from distill.core.onnx_files import count_subnormals, flush_subnormals
from distill.models.teachers.teacher import Teacher
from distill_benchmark import __main__ as benchmark
from distill_benchmark import speed_report, timed_models
from distill_benchmark.measure import Figures
from distill_benchmark.settings import Benchmark
from support.commands import run
from support.device_graphs import build, picture, weight

QUICK = ["rounds=2", "sizes=[64]", "threads=[1]", "with_teacher=false"]


@pytest.fixture
def folder(shipped_students):
    """The shipped students (hayao: 9 MACs a pixel) and slow.onnx: 3 subnormal weights and 1 more
    below 1e-20."""
    onnx.save(tiny(1e-39, 1e-40, -1e-41, 1e-30), shipped_students / "slow.onnx")
    return shipped_students


def tiny(*values: float) -> onnx.ModelProto:
    """3 to 3 channels, 5×5: 225 MACs a pixel, the first weights as given."""
    weights = np.full((3, 3, 5, 5), 0.01, np.float32)
    weights.flat[: len(values)] = values
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[2] * 4)]
    sides = picture("x", 1, 3, 64, 64), picture("y", 1, 3, 64, 64)
    return build(nodes, [numpy_helper.from_array(weights, "w")], 11, sides[:1], sides[1:])


def figures(folder):
    return json.loads((folder / "runs/benchmarks/speed.json").read_text())


@pytest.mark.slow
def test_student_and_files_in_one_run(folder, capsys):
    assert run(benchmark, "style=hayao", "slow.onnx", *QUICK) == 0
    found = figures(folder)
    rows = {row["name"]: row for row in found["rows"]}
    assert list(rows) == ["student hayao", "slow, as it is", "slow, flushed"]
    assert rows["student hayao"]["macs"] == 9 * 64 * 64
    assert rows["slow, flushed"]["macs"] == 225 * 64 * 64
    assert rows["slow, flushed"]["parameters"] == 225
    for row in rows.values():
        assert row["ms_p5"] <= row["ms"] <= row["ms_p95"]
        assert row["fps"] == pytest.approx(1000 / row["ms"])
        assert row["gmacs_per_s"] == pytest.approx(row["macs"] / row["ms"] / 1e6)
        peak = found["peaks"][0]["gmacs_per_s"]
        assert row["share_of_peak"] == pytest.approx(row["gmacs_per_s"] / peak)
        assert row["memory_mib"] is not None
    assert "slow.onnx: 3 subnormal weights" in capsys.readouterr().out
    assert [ratio["name"] for ratio in found["ratios"]] == ["slow, flushed"]
    counts = [(row["subnormal_weights"], row["flushed_weights"]) for row in rows.values()]
    assert counts == [(0, 0), (3, 0), (3, 4)]
    page = (folder / "runs/benchmarks/speed.md").read_text()
    assert "## The paper's Table 3 on this machine: 64², batch 1, 1 thread" in page
    assert "| student hayao | 64² | 1 | CPU |" in page
    assert str(folder) not in page + (folder / "runs/benchmarks/speed.json").read_text()
    assert (folder / "runs/benchmarks/speed.png").read_bytes().startswith(b"\x89PNG")


def test_the_flushed_graph_has_zeros_and_the_same_output():
    model = tiny(1e-39, 1e-30)
    both = [timed_models.at_size(model, 64)]
    flush_subnormals(model)
    both.append(timed_models.at_size(model, 64))
    raw, flushed = (sessions.sample_call(sessions.open_session(graph, 1))()[0] for graph in both)
    assert count_subnormals(map(numpy_helper.to_array, both[1].graph.initializer)) == 0
    np.testing.assert_array_equal(raw, flushed)


@pytest.mark.slow
def test_a_bad_file_is_skipped_and_the_rest_goes_on(folder, capsys):
    (folder / "zero.onnx").write_bytes(b"")
    (folder / "cut.onnx").write_bytes((folder / "slow.onnx").read_bytes()[:200])
    onnx.save(build([helper.make_node("Conv", ["x", "w"], ["y"])], [weight("w", 2, 9, 1, 1)]),
              folder / "wrong.onnx")  # fmt: skip
    short = tiny()
    short.graph.initializer[0].raw_data = b"abc"
    onnx.save(short, folder / "short.onnx")
    assert run(benchmark, "style=hayao", "zero.onnx", "cut.onnx", "wrong.onnx", "none.onnx",
               "short.onnx", *QUICK) == 1  # fmt: skip
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith("skipped: ")]
    assert [line.split()[1].rstrip(":") for line in lines] == [
        "zero.onnx", "cut.onnx", "none.onnx", "short.onnx", "wrong",
    ]  # fmt: skip
    assert said.splitlines()[-1] == "error: 5 left out, see above"
    assert [row["name"] for row in figures(folder)["rows"]] == ["student hayao"]


def test_only_missing_providers_measure_nothing(folder, capsys):
    assert run(benchmark, "style=hayao", *QUICK, "providers=[NoneExecutionProvider]") == 1
    assert not (folder / "runs").exists()
    assert "error: providers=[NoneExecutionProvider]" in capsys.readouterr().err


@pytest.mark.slow
def test_a_teacher_that_cannot_be_had_is_said(folder, capsys, no_downloads):
    (folder / "zoo/hayao.onnx").rename(folder / "zoo/paprika.onnx")
    assert run(benchmark, "style=paprika", *QUICK[:3]) == 0
    assert "no teacher: paprika.pt of style=paprika is not available" in capsys.readouterr().out
    assert [row["role"] for row in figures(folder)["rows"]] == ["student"]


def test_a_teacher_s_graph_is_used_only_if_its_output_is_the_same():
    class Honest(Teacher):
        def forward(self, photo):
            return photo * 0.5

    class Changing(Teacher):
        """Traced, it keeps the number of its first call."""

        calls = 0

        def forward(self, photo):
            self.calls += 1
            return photo * float(self.calls)

    assert timed_models.traced_graph(Honest(), 32) is not None
    assert timed_models.traced_graph(Changing(), 32) is None


def test_a_style_without_a_shipped_student_says_what_to_name(folder, capsys):
    assert run(benchmark, "style=paprika", *QUICK) == 1
    assert "style=paprika: no student of it comes with the package" in capsys.readouterr().err


def test_one_student_only(folder, capsys):
    assert run(benchmark, "style=hayao", "model=slow.onnx", "run=x", *QUICK) == 1
    assert "name one student only" in capsys.readouterr().err


@pytest.mark.slow
def test_model_is_the_student_and_is_flushed(folder):
    assert run(benchmark, "style=hayao", "model=slow.onnx", *QUICK) == 0
    assert [(r["name"], r["role"]) for r in figures(folder)["rows"]] == [
        ("slow, flushed", "student")
    ]


@pytest.mark.slow
def test_a_file_of_another_format_runs_in_its_runtime_on_one_thread(folder, capsys):
    settings = {"encoder": {"weights": "none"}, "decoder": "residual"}
    distill.student_network(**settings).save("own.safetensors")
    threads = [*QUICK[:2], "threads=[1,2]", QUICK[3]]
    assert run(benchmark, "style=hayao", "own.safetensors", *threads) == 1
    row = next(row for row in figures(folder)["rows"] if row["name"] == "own.safetensors")
    size = (folder / "own.safetensors").stat().st_size
    assert (row["runtime"], row["bytes"], row["threads"]) == ("PyTorch", size, 1)
    assert ": only one thread of the CPU runs it" in capsys.readouterr().err


@pytest.mark.slow
def test_an_executorch_file_has_one_size(folder, capsys):
    exir = pytest.importorskip("executorch.exir", reason="distill[executorch] is not installed")
    program = torch.export.export(torch.nn.ReLU(), (torch.zeros(1, 3, 64, 64),))
    buffer = exir.to_edge_transform_and_lower(program).to_executorch().buffer
    (folder / "own.pte").write_bytes(buffer)
    sizes = [QUICK[0], "sizes=[32,64]", *QUICK[2:]]
    assert run(benchmark, "style=hayao", "own.pte", *sizes) == 1
    (row,) = (row for row in figures(folder)["rows"] if row["name"] == "own.pte")
    assert (row["runtime"], row["size"]) == ("ExecuTorch", 64)
    assert "skipped: own.pte at 32² on CPUExecutionProvider: " in capsys.readouterr().err


@pytest.mark.slow
def test_files_of_one_name_are_told_apart(folder):
    """Three files, three rows: two of one name would share one's times."""
    (folder / "more").mkdir()
    for name in ("a.onnx", "a (2).onnx", "more/a.onnx"):
        onnx.save(tiny(), folder / name)
    assert run(benchmark, "style=hayao", "a.onnx", "a (2).onnx", "more/a.onnx", *QUICK) == 0
    names = [row["name"] for row in figures(folder)["rows"]]
    assert names == ["student hayao", "a", "a (2)", "a (3)"]


@pytest.mark.campaign
def test_odd_files(folder, capsys):
    """Small weights that are not subnormal, weights in a second file, a formula in a name."""
    onnx.save(tiny(1e-30), folder / r"a$\frac$.onnx")
    onnx.save(
        tiny(), folder / "two.onnx", save_as_external_data=True, location="w", size_threshold=0
    )
    assert run(benchmark, "style=hayao", r"a$\frac$.onnx", "two.onnx", *QUICK) == 0
    assert "subnormal" not in capsys.readouterr().out
    rows = figures(folder)["rows"]
    assert [row["name"] for row in rows] == ["student hayao", r"a$\frac$", "two"]
    assert rows[2]["bytes"] >= 225 * 4
    assert (folder / "runs/benchmarks/speed.png").is_file()


@pytest.mark.campaign
def test_the_same_conditions_twice_are_measured_once(folder, monkeypatch):
    monkeypatch.setattr("distill.metrics.timing.cores", lambda: 1)
    twice = ["sizes=[64,64]", "providers=[CPUExecutionProvider,CPUExecutionProvider]"]
    assert run(benchmark, "style=hayao", "rounds=2", "with_teacher=false", *twice) == 0
    assert [row["threads"] for row in figures(folder)["rows"]] == [1]


def test_a_place_that_takes_no_figures_is_said_before_the_minutes(folder, capsys, monkeypatch):
    monkeypatch.setattr("distill_benchmark.measure.measure", lambda *_: pytest.fail("measured"))
    (folder / "taken").touch()
    assert run(benchmark, "style=hayao", *QUICK, "-o", "taken") == 1
    assert capsys.readouterr().err.startswith("error: taken: file exists")


SHAPES = {
    "picture": ((1, 3, 64, 64), [1, 3, 32, 32]),
    "dynamic": (("batch", 3, "h", "w"), [1, 3, 32, 32]),
    "channels last": ((1, 64, 64, 3), [1, 32, 32, 3]),
    "vector": (("n", 7), [1, 7]),
    "features": ((1, 64, 8, 8), [1, 64, 8, 8]),
    "summary": ((1, 64, 1, 1), [1, 64, 1, 1]),  # of a student; the name says that it is no picture
}


@pytest.mark.parametrize("kind", SHAPES)
def test_at_size(kind):
    given, expected = SHAPES[kind]
    node = helper.make_node("Relu", [kind], ["y"])
    model = build([node], inputs=[picture(kind, *given)], outputs=[picture("y", *given)])
    fixed = timed_models.at_size(model, 32)
    assert [d.dim_value for d in fixed.graph.input[0].type.tensor_type.shape.dim] == expected
    assert list(sessions.sample_call(sessions.open_session(fixed, 1))()[0].shape) == expected


def test_a_busy_machine_is_warned_of():
    facts = {"load_before": 3.0}
    assert any("busy" in line for line in speed_report._notes(Figures(facts)))
    assert not any("busy" in line for line in speed_report._notes(Figures({"load_before": 0.1})))


def test_an_unreadable_student_is_one_line(folder):
    (folder / "bad.onnx").write_bytes(b"no")
    with pytest.raises(DistillError, match="not"):
        next(timed_models.models_of_file(folder / "bad.onnx", "student"))


def test_a_shipped_student_is_timed_at_256_by_its_file_of_that_size(folder):
    onnx.save(tiny(1.0), folder / "zoo/hayao-256.onnx")
    settings = compose.load("benchmark", ["style=hayao", *QUICK], Benchmark)
    found = timed_models.student(settings, None)
    kernels = {side: found.at(side).graph.initializer[0].dims[-1] for side in (256, 512)}
    assert kernels == {256: 5, 512: 1}
