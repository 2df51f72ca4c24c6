"""What an export prints and writes of itself: budgets, and formats beside each other."""

import re
from dataclasses import replace

import pytest

from distill.export.reports import BudgetCheck, BudgetReport, Comparison, FormatRow

BOLD_RED = "\x1b[1;31m"
FACTS = {"pictures": 12, "photos": "data/pairs/toon", "size": [64, 64]}
FLOAT = FormatRow("onnx", ("a",), 1_499_600, 1_200_400, 100.0, 99.96, 24.04, 5.04, (1, 1, 1))
HALF = FormatRow("half", ("b",), 760_000, None, 58.04, 51.96, 24.0, 9.96, (2, 1.9, 2.1))
POOR = FormatRow("int8", ("c",), 400_000, 1, 36.5, 30, 23.0, 4, (0.8, 0.7, 0.9), (37, 30))
LOST = FormatRow("coreml", problem="coreml: needs coremltools")


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def cells(said: str) -> list[list[str]]:
    """The rows of a printed table."""
    rows = [re.split("[│┃]", line)[1:-1] for line in said.splitlines() if re.match("[│┃]", line)]
    return [[cell.strip() for cell in row] for row in rows]


def test_a_budget_stands_beside_the_teacher_s_figures(capsys):
    checks = [
        BudgetCheck.at_most("MACs", 1_300, 1_200),
        BudgetCheck.at_most("bytes", 1_200, 1_200),
        BudgetCheck("ms", 12.34),
        BudgetCheck("operators", "Conv, Relu"),
    ]
    BudgetReport(checks, {"MACs": 26_000_000, "ms": 541.4}, {}).print()
    assert cells(capsys.readouterr().out) == [
        ["", "student", "limit", "teacher"],
        ["MACs", "1,300  ✗ over the limit", "1,200", "26,000,000"],
        ["bytes", "1,200", "1,200", ""],
        ["ms", "12.3", "", "541"],
        ["operators", "Conv, Relu", "", ""],
    ]
    BudgetReport(checks[1:], {}, {}, "generator").print()
    assert cells(capsys.readouterr().out)[0] == ["", "generator", "limit"]


def test_a_run_without_a_teacher_has_no_column_for_it():
    own = [replace(row, teacher=None) for row in (FLOAT, HALF)]
    assert "to teacher" in Comparison([FLOAT, HALF], FACTS).to_markdown()
    assert "teacher" not in (said := Comparison(own, FACTS).to_markdown())
    assert {line.count("|") for line in said.splitlines() if line[:1] == "|"} == {7}


@pytest.mark.parametrize(("value", "limit", "ok"), [(5, 5, True), (6, 5, False), (6, None, True)])
def test_a_limit_may_be_reached(value, limit, ok):
    assert BudgetCheck.at_most("x", value, limit).ok is ok


def test_what_is_over_a_limit_stands_out(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    BudgetReport([BudgetCheck("a", 1), BudgetCheck("b", 2, 1, False)], {}, {}).print()
    assert [BOLD_RED in line for line in capsys.readouterr().out.splitlines()[3:5]] == [False, True]
    Comparison([FLOAT, HALF, POOR, LOST], FACTS).print()
    rows = [line for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert [BOLD_RED in line for line in rows] == [False, False, True, True]


def test_formats_as_a_page():
    page = Comparison([FLOAT, HALF, POOR, LOST], FACTS).to_markdown()
    assert page == (
        "| format | kB | gzip | dB to float | to teacher | ms | verdict |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
        "| onnx | 1,500 | 1,200 | equal | 24.0 | 5.0 | the measure |\n"
        "| half | 760 | – | 58.0, 52.0 | 24.0 | 10.0 | smaller |\n"
        "| int8 | 400 | 0 | 36.5, 30.0 | 23.0 | 4.0 | smaller and faster; short of 37 dB mean, "
        "30 worst |\n"
        "| coreml | – | – | – | – | – | not made |\n"
        "\n"
        "PSNR: mean and worst to the float32 student in PyTorch, mean to the teacher, on 12 "
        "held-out photos (data/pairs/toon) of 64×64. ms: one thread, all formats in turn, median; "
        "faster means with 95 % confidence.\n"
        "\n"
        "- coreml: needs coremltools\n"
        "- int8: 36.5 dB mean, 30.0 worst to the float student, short of 37 and 30; "
        "its file is kept\n"
    )


def test_formats_on_the_terminal(capsys):
    alone = FormatRow("onnx", ("a",), 2_000, 1_000, 100.0, 99.9, None, 5.0, (1, 1, 1))
    Comparison([alone], FACTS, "generator").print()
    said = capsys.readouterr().out
    assert cells(said) == [
        ["format", "kB", "gzip", "dB to float", "ms", "verdict"],
        ["onnx", "2", "1", "equal, 99.9", "5.0", "the measure"],
    ]
    assert "to the float32 generator in PyTorch on 12 held-out photos" in said  # and no target
