"""benchmarks/blind.py: the sheets show what the key says, and the count is of the answers."""

import json
import random
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from against_teacher import blind
from against_teacher.blind import GAP, MARGIN, ROWS, shuffle
from onnx import helper, numpy_helper
from PIL import Image

from distill.prepare import __main__ as prepare
from support.commands import SMALL, run

SIDE = 64
SET = "data/pairs/toon-photos-64-crop90"


def no_graph(*_: object) -> onnx.ModelProto:
    raise AssertionError("no checkpoint is given")


def scaled(weight: float, path: str) -> str:
    """A student whose every value is `weight` times the photo's."""
    eye = weight * np.eye(3, dtype=np.float32)[:, :, None, None]
    shape = [1, 3, SIDE, SIDE]
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n in ("x", "y")]
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(eye, "w")])
    opset = [helper.make_opsetid("", 11)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=7), path)
    return path


def blind_command(*words: str) -> int:
    """The exit status of the command line."""
    argv, sys.argv = sys.argv, ["blind", *words]
    try:
        blind.main(no_graph)
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        sys.argv = argv
    return 0


@pytest.fixture
def sheets(here):
    """A test of two students, one black, on every held-out photo."""
    assert run(prepare, "photos=photos", *SMALL) == 0
    students = [f"old={scaled(0.0, 'old.onnx')}", f"new={scaled(1.0, 'new.onnx')}"]
    assert blind_command("sheets", "--pairs", SET, "--out", "blind", *students) == 0
    return here / "blind"


def picture_at(sheets: Path, number: int, column: int) -> np.ndarray:
    """What a sheet shows of a pair: the photo, A or B."""
    page = np.array(Image.open(sheets / f"sheet-{(number - 1) // ROWS + 1:02d}.png"))
    top = MARGIN // 2 + (number - 1) % ROWS * (SIDE + GAP)
    left = MARGIN + column * (SIDE + GAP)
    return page[top : top + SIDE, left : left + SIDE]


@pytest.mark.slow
def test_the_sheets_show_what_the_key_says(sheets):
    key = json.loads((sheets / "key.json").read_text())
    held = {path.name: path for path in Path(SET).glob("test/photo/*.png")}
    assert {pair["file"] for pair in key["pairs"]} == held.keys()
    for number, pair in enumerate(key["pairs"], 1):
        photo = np.array(Image.open(held[pair["file"]]))
        assert {pair["A"], pair["B"]} == {"old", "new"}
        shown = [picture_at(sheets, number, column) for column in range(3)]
        for pixels, wanted in zip(shown, ["new", pair["A"], pair["B"]], strict=True):
            np.testing.assert_array_equal(pixels, photo if wanted == "new" else 0)
    assert not (sheets / "blind.md").exists()


def answer(sheets: Path, letters: list[str]) -> None:
    lines = [f"{number} {letter}" for number, letter in enumerate(letters, 1)]
    (sheets / "answers.txt").write_text("\n".join(["# a remark", *lines, ""]))


@pytest.mark.campaign
def test_answers_are_counted(sheets, capsys):
    pairs = json.loads((sheets / "key.json").read_text())["pairs"]
    right = ["A" if pair["A"] == "new" else "B" for pair in pairs]
    for wrong, share in ((0, "100%"), (len(pairs), "0%")):
        letters = ["BA"["AB".index(x)].lower() if i < wrong else x for i, x in enumerate(right)]
        answer(sheets, letters)
        assert blind_command("count", "blind") == 0
        said = capsys.readouterr().out
        assert f"| all | {len(pairs)} | {share} |" in said
        assert "new is preferred" in said
        assert (sheets / "blind.md").read_text() in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 A\n2\n", "have no answer, the first is 2"),
        ("1 C\n", "line 1: '1 C' is no pair's number and A or B"),
        ("99 A\n", "line 1: '99 A'"),
    ],
)
@pytest.mark.campaign
def test_a_missing_or_odd_answer_is_named(sheets, capsys, text, said):
    (sheets / "answers.txt").write_text(text)
    assert blind_command("count", "blind") == 1
    assert said in capsys.readouterr().err


def test_order_and_letters_are_by_chance():
    """Of 400 pairs A is each for about half (binomial: 5 standard deviations are 50)."""
    who = [("faces", f"{i}.png") for i in range(400)]
    key = shuffle(who, ["student", "teacher"], random.Random(1))
    assert sorted(pair["row"] for pair in key) == list(range(400))
    assert [pair["row"] for pair in key] != list(range(400))
    assert all(pair["file"] == f"{pair['row']}.png" for pair in key)
    assert abs(sum(pair["A"] == "teacher" for pair in key) - 200) < 50


@pytest.mark.slow
def test_whole_pictures_of_a_size_are_shown_as_they_are(here, capsys):
    assert run(prepare, "photos=photos", *SMALL, "data.sizes=[64,96]") == 0
    student = f"new={scaled(1.0, 'new.onnx')}"
    words = ["sheets", "--pairs", str(next(Path("data/pairs").iterdir())), "--out", "whole"]
    assert blind_command(*words, "--size", "96", "--count", "2", student) == 0
    key = json.loads(Path("whole/key.json").read_text())
    assert len(key["pairs"]) == 2
    for number, pair in enumerate(key["pairs"], 1):
        for letter, left in (("A", 1), ("B", 2)):
            kind = {"new": "photo", "teacher": "stylized"}[pair[letter]]
            wanted = np.array(Image.open(Path(words[2]) / "test" / kind / pair["file"]))
            height, width = wanted.shape[:2]
            assert max(height, width) == 96
            page = np.array(Image.open(f"whole/sheet-{number:02d}.png"))
            left = MARGIN + left * (width + GAP)
            shown = page[MARGIN // 2 : MARGIN // 2 + height, left : left + width]
            np.testing.assert_array_equal(shown, wanted)
    assert blind_command(*words[:4], "other", "--size", "99", student) == 1
    assert "--size 99" in capsys.readouterr().err
