"""benchmarks/fidelity.py: a yardstick that is wrong is worse than none."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from against_teacher import (
    fidelity,
    fidelity_report,
    heldout_set,
    overlap,
    scored_students,
)
from against_teacher import scores as scoring
from onnx import helper, numpy_helper
from PIL import Image
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.eval_fid.heldout import infer
from distill.eval_fid.line_scores import FLICKER
from distill.export.onnx import OnnxExporter
from distill.metrics.frechet import polynomial
from distill.models import checkpoint
from distill.prepare import __main__ as prepare
from support.commands import SMALL, go, run

SIDE = 64
SET = Path("data/pairs/toon-photos-64-crop90")


def to_graph(network: nn.Module, size: int) -> onnx.ModelProto:
    return OnnxExporter(size=size).export(network)


class Pixels:
    """Stands in for a feature network: names and mean colours."""

    fid, kid, title = "F", "K", "mean colours"
    kernel = staticmethod(polynomial)


def held(count: int = 4, root: Path = Path()) -> heldout_set.FidelitySet:
    """Grey teacher's pictures of two folders in turn."""
    photo = torch.full((count, 3, SIDE, SIDE), 30, dtype=torch.uint8)
    teacher = torch.full_like(photo, 100)
    who = [(("a", "b")[i % 2], f"person{i}") for i in range(count)]
    return heldout_set.FidelitySet(root, [f"{i}.png" for i in range(count)], who, photo, teacher)


def means(pictures: heldout_set.FidelitySet, output: Tensor) -> dict[str, float]:
    measured = scoring.measure(pictures, output, scoring.measures(), None, "it")
    scores = scoring.score(np.arange(len(output)), measured, measured, None, 0)
    return {name: row["value"] for name, row in scores.items()}


def conv(weight: float, size: int = SIDE) -> onnx.ModelProto:
    """An image-to-image graph that multiplies every value by `weight`."""
    eye = weight * np.eye(3, dtype=np.float32)[:, :, None, None]
    shape = [1, 3, size, size]
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in ("x", "y")]
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(eye, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)


def saved(model: onnx.ModelProto, path: Path) -> Path:
    onnx.save(model, str(path))
    return path


def test_a_checkerboard_beyond_the_teacher_s():
    """Up and down by 2 steps of a byte."""
    pictures = held()
    size = pictures.teacher.shape[-1]
    board = 2 * ((torch.arange(size)[:, None] + torch.arange(size)) % 2).byte()
    values = means(pictures, pictures.teacher + 2 * board)
    assert values["grid above teacher's (1/255)"] == pytest.approx(2, abs=1e-3)


def test_subsets_and_who_is_shown():
    pictures = held(6)
    found = {name: at.tolist() for name, at in pictures.subsets().items()}
    assert found == {"a": [0, 2, 4], "b": [1, 3, 5], "all": [0, 1, 2, 3, 4, 5]}
    assert pictures.some(3) == [0, 2, 1]


def test_the_lead_is_taken_picture_by_picture():
    """Pictures differ by 20 dB, the students by 1 dB on each: the lead is certain."""
    first = scoring.PictureFigures({scoring.PSNR: np.array([10.0, 20.0, 30.0])}, None)
    other = scoring.PictureFigures({scoring.PSNR: np.array([11.0, 21.0, 31.0])}, None)
    row = scoring.lead(np.arange(3), other, first, 50)
    assert row == {"value": 1, "pictures": 3, "interval": [1, 1]}


@pytest.mark.parametrize("enough", [10, 100])
def test_intervals_resample_persons(enough, monkeypatch):
    """Of one person's pictures alone there is no interval; of two a person another one."""
    monkeypatch.setattr(scoring, "ENOUGH", enough)
    pictures, rng, network = held(20), np.random.default_rng(3), Pixels()
    teacher, first, other = (
        scoring.PictureFigures(
            {scoring.PSNR: rng.normal(size=20)}, rng.normal(size=(20, 4)), rng.random((20, 3, 2))
        )
        for _ in range(3)
    )
    measured = {"teacher": teacher, "photo": first, "first": first, "other": other}

    def ends(who: list[tuple[str, str]]) -> dict[str, Any]:
        found = fidelity.score(replace(pictures, who=who), measured, network, 40)
        rows = found["all"]["scores"]["other"]
        return {name: row["interval"] for name, row in rows.items()}

    everyone = [("x", str(i)) for i in range(20)]
    alone = ends(everyone)
    assert None not in alone.values()
    assert not any(ends([("x", "one")] * 20).values())
    pairs = [("x", str(i // 2)) for i in range(20)]
    two = ends(pairs)
    assert [name for name, found in alone.items() if two[name] == found] == []


@pytest.mark.parametrize(("enough", "columns"), [(20, {"F"}), (21, {"K"})])
def test_a_frechet_distance_wants_many_pictures(enough, columns, monkeypatch):
    monkeypatch.setattr(scoring, "ENOUGH", enough)
    x = np.random.default_rng(0).normal(size=(20, 4))
    measured = scoring.PictureFigures({}, x)
    network: Any = Pixels()
    scores = scoring.score(np.arange(20), measured, measured, network, 10)
    assert set(scores) == columns
    assert all(row["value"] == pytest.approx(0, abs=1e-9) for row in scores.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("paper", "want NAME=FILE"),
        ("=a.onnx", "want NAME=FILE"),
        ("a=missing.onnx", "a=missing.onnx: no such file"),
        ("a=photo.png", "a .ckpt of distill.train, or a .safetensors or .onnx"),
        ("a=here.ckpt@255", "only an .onnx has a range"),
        ("photo=here.onnx", "name is taken"),
    ],
)
def test_a_student_s_name_and_file(text, said, here):
    for name in ("here.ckpt", "here.onnx", "photo.png"):
        (here / name).touch()
    with pytest.raises(DistillError, match=said):
        scored_students.parse([text])


def test_parsing(here):
    for name in ("a.ckpt", "b=c.onnx"):
        (here / name).touch()
    one, two = scored_students.parse(["ours=a.ckpt", "paper=b=c.onnx@255"])
    assert (one.name, one.file, one.white) == ("ours", Path("a.ckpt"), 1)
    assert (two.name, two.file, two.white) == ("paper", Path("b=c.onnx"), 255)
    with pytest.raises(DistillError, match="name is taken"):
        scored_students.parse(["a=a.ckpt", "a=a.ckpt"])


def test_an_onnx_student_s_output_is_in_its_range(tmp_path):
    """Both copy the photo, one of them in [0, 255]: the same picture to the last bit."""
    pictures = held()
    for white in (1, 255):
        named = scored_students.StudentFile(
            "it", saved(conv(white), tmp_path / f"{white}.onnx"), white
        )
        student = scored_students.load(named, pictures, tmp_path, to_graph)
        output = infer(student.network, pictures.photo, 8, "it")
        assert torch.equal(output, pictures.photo)
        assert student.note == "training photos not known"
        assert student.cost["macs"] == 9 * SIDE * SIDE
        assert student.cost["living"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("weight", "size", "white", "said"),
    [
        (255, SIDE, 1, "up to 30; name it as FILE@255"),
        (1, SIDE, 255, "name it as FILE without @255"),
        (1, 32, 1, "a student of 32×32 pictures"),
    ],
)
def test_an_onnx_student_that_does_not_fit(weight, size, white, said, tmp_path):
    file = saved(conv(weight, size), tmp_path / "it.onnx")
    with pytest.raises(DistillError, match=said):
        scored_students.load(
            scored_students.StudentFile("it", file, white), held(), tmp_path, to_graph
        )


@pytest.fixture
def trained(here):
    """Settings of a run on the photos of `here`, and its set."""
    assert go("trainer.max_steps=1", "trainer.val_every=1", "runs=runs") == 0
    return checkpoint.load_student(Path("runs/toon-residual/checkpoints/last.ckpt"))[1]


@pytest.mark.campaign
def test_training_photos_are_searched_here(trained, here):
    pictures = heldout_set.read(SET, None)
    assert overlap.check("it", trained, pictures) == "the other side of this set"

    other = replace(trained, data=replace(trained.data, root="other"))
    assert overlap.check("it", other, pictures) == "training photos not known"

    assert run(prepare, "photos=photos", "data.root=other", "data.split_seed=3", *SMALL) == 0
    with pytest.raises(DistillError, match=r"it: .* held-out photos are in its training set other"):
        overlap.check("it", other, pictures)


@pytest.mark.campaign
def test_from_a_set_and_two_students_to_a_report(here, monkeypatch, capsys):
    monkeypatch.setattr(fidelity, "TIMINGS", 3)
    shutil.copytree(here / "photos", here / "more")
    for i, path in enumerate(sorted((here / "more").iterdir())):
        with Image.open(path) as image:
            image.rotate(90).save(here / "more" / f"Other_{i}x.png")
        path.unlink()
    root = "data.root=data/pairs/both"
    assert go("photos=[photos,more]", root, "trainer.max_steps=1", "trainer.val_every=1") == 0
    saved(conv(1), here / "copy.onnx")

    command = ["--pairs=data/pairs/both", "--rounds=5", "--features=none", "--out=out", "--sheet=2"]
    command += ["--flicker=2"]
    runs = ["copy=copy.onnx", "ours=runs/toon-residual/checkpoints/last.ckpt"]
    figures = fidelity.run(fidelity.options().parse_args([*command, *runs]), to_graph)

    assert set(figures["subsets"]) == {"photos", "more", "all"}
    for row in figures["subsets"].values():
        copied, photo = row["scores"]["copy"], row["scores"]["photo"]
        assert copied == photo  # a student that changes nothing
        assert row["scores"]["teacher"].keys() == set(FLICKER)
    assert figures["subsets"]["photos"]["scores"]["copy"]["PSNR (dB)"]["interval"] is None
    psnr = figures["subsets"]["all"]["scores"]["copy"]["PSNR (dB)"]  # more than that one person
    assert psnr["interval"][0] <= psnr["value"] <= psnr["interval"][1]
    assert figures["cost"]["copy"]["ratio"]["value"] == 1
    kept = json.loads((here / "out/fidelity.json").read_text())["figures"]
    assert kept["subsets"] == figures["subsets"]
    page = (here / "out/fidelity.md").read_text()
    assert "the other side of this set" in page
    assert str(here) not in page + json.dumps(kept)
    with Image.open(here / "out/fidelity_sheet.png") as image:
        assert min(image.size) > 100
    assert "PSNR above copy (dB)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pairs", "said"), [("photos", "no set of pairs made by distill.prepare"), ("gone", "no set")]
)
def test_bad_input_ends_in_one_line(pairs, said, here, capsys, monkeypatch):
    saved(conv(1), here / "it.onnx")
    monkeypatch.setattr(fidelity, "main", partial(fidelity.main, to_graph))
    assert run(fidelity, f"--pairs={pairs}", "--features=none", "it=it.onnx") == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {pairs}: {said}")
    assert error.count("\n") == 1


def row(value: float) -> dict[str, Any]:
    return {"value": value, "interval": None, "pictures": 4}


def test_ink_place_and_flicker_have_a_table_of_their_own():
    scores = {
        "photo": {"PSNR (dB)": row(30), "ink recall": row(0.9)},
        "a": {"PSNR (dB)": row(20), "ink recall": row(0.5), "displacement (px)": row(1.25)},
        "b": {"PSNR (dB)": row(21), "ink recall": row(0.6), "displacement (px)": row(0.25)},
        "teacher": {"flicker, pan (levels)": row(1.4)},
    }
    close, drawn = fidelity_report.scores_tables("faces", 4, scores)
    assert close.title == "faces: 4 pictures"
    assert drawn.title == "faces, lines and flicker: 4 pictures"
    assert "| b | **21.00** |" in str(close)
    assert "teacher" not in str(close)
    assert "| b | **0.600** | **0.25** | – |" in str(drawn)
    assert "| teacher | – | – | 1.40 |" in str(drawn)


def test_a_student_s_ink_is_that_of_its_folder():
    pictures = held()
    pictures.teacher[:, :, :, 20:60:10] = 0
    output = pictures.teacher.clone()
    output[0, :, :, 20:40] = 100  # two of four lines of one of two pictures
    measured = scoring.measure(pictures, output, scoring.measures(), None, "it")
    scores = scoring.score(pictures.subsets()["a"], measured, measured, None, 10)
    assert scores["ink recall"]["value"] == pytest.approx(6 / 8)
    assert scores["ink precision"]["value"] == 1
    assert scores["ink recall"]["interval"] == pytest.approx([0.5, 1])
    others = scoring.score(pictures.subsets()["b"], measured, measured, None, 10)
    assert others["ink recall"]["value"] == 1


def test_the_best_student_is_bold_and_the_photo_never():
    scores = {
        "photo": {"PSNR (dB)": row(30), "LPIPS": row(0.1)},
        "a": {"PSNR (dB)": row(20), "LPIPS": row(0.3)},
        "b": {"PSNR (dB)": row(21), "LPIPS": row(0.4)},
    }
    page = str(fidelity_report.scores_table("faces", 4, scores))
    assert "| b | **21.00** | 0.4000 |" in page
    assert "| a | 20.00 | **0.3000** |" in page
    assert "| photo | 30.00 | 0.1000 |" in page


def test_mass_and_sharpness_are_best_at_the_teacher_s():
    scores = {name: {"ink mass": row(value)} for name, value in (("a", 1.3), ("b", 0.9))}
    page = str(fidelity_report.scores_table("faces", 4, scores))
    assert "| a | 1.300 |" in page
    assert "| b | **0.900** |" in page


def test_so_many_of_each_folder():
    assert fidelity.first_of_each(held(7), 2).tolist() == [0, 1, 2, 3]
    assert fidelity.first_of_each(held(1), 2).tolist() == [0]
    assert fidelity.first_of_each(held(7), 0).tolist() == []


@pytest.fixture
def with_wholes(here):
    """A set of distill.prepare with whole pictures of two sizes beside its squares."""
    assert run(prepare, "photos=photos", "data.root=set", *SMALL) == 0
    for square in sorted(Path("set/test/photo").glob("*.png")):
        for kind in ("photo", "stylized"):
            with Image.open(Path("set/test") / kind / square.name) as picture:
                for size in (64, 96):
                    to = Path("set/test") / kind / f"{square.stem}-s{size}.png"
                    picture.resize((size, 64)).save(to)
    return here


@pytest.mark.campaign
def test_students_are_scored_by_size(with_wholes, monkeypatch):
    """One that copies the photo has the photo's figures, and one in [0, 255] has none."""
    monkeypatch.setattr(fidelity, "TIMINGS", 1)
    saved(conv(1), with_wholes / "copy.onnx")
    saved(conv(255), with_wholes / "wide.onnx")
    command = ["--pairs=set", "--rounds=0", "--features=none", "--out=out", "--flicker=0"]
    students = ["copy=copy.onnx", "wide=wide.onnx@255"]
    figures = fidelity.run(fidelity.options().parse_args([*command, *students]), to_graph)
    assert list(figures["sizes"]) == ["64", "96"]
    scores = figures["sizes"]["96"]["scores"]
    assert list(scores) == ["photo", "copy", "copy, alone"]
    assert scores["copy"] == scores["copy, alone"] == scores["photo"]
    assert "no figures by size: " in dict(map(tuple, figures["notes"][-1:]))["wide"]
    assert "## Whole pictures by their long side" in Path("out/fidelity.md").read_text()
