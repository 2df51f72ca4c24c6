"""Tables of docs/results.md and the commands that make them."""

import subprocess
import sys

import pytest
import results

PAGE = """# Results

## Speed of all

    python benchmarks/one.py --photos DIR \\
        --count 12; python -m distill.check FILE.onnx     # a remark
    make demo

| a | b |
| --- | --- |

## Words alone

    python benchmarks/other.py
"""


def test_a_section_with_a_table_has_its_commands():
    commands = results.tables(PAGE)
    assert [*commands] == ["speed of all"]
    first, second, third = commands["speed of all"]
    assert first == "python benchmarks/one.py --photos DIR --count 12"
    assert (second, third) == ("python -m distill.check FILE.onnx", "make demo")
    assert results.own(first) == ["DIR"]
    filled = results.filled(second, {"FILE.onnx": "my file.onnx"})
    assert filled == [sys.executable, "-m", "distill.check", "my file.onnx"]
    with pytest.raises(SystemExit, match="say DIR=…"):
        results.filled(first, {})


def test_every_table_of_the_page_has_commands():
    commands = results.tables(results.PAGE.read_text())
    assert len(commands) > 10
    assert not [title for title, each in commands.items() if not each]
    asked = {word for each in commands.values() for one in each for word in results.own(one)}
    assert asked <= {
        *("SET", "DIR", "NAME", "HAYAO", "WHITEBOX", "TOON", "PAPER.onnx", "BEFORE.onnx"),
        "NOW.onnx",
    }


def test_the_chosen_table_s_commands_are_run_in_turn(monkeypatch, tmp_path, capsys):
    (tmp_path / "results.md").write_text(PAGE)
    monkeypatch.setattr(results, "PAGE", tmp_path / "results.md")
    typed = []
    monkeypatch.setattr(subprocess, "run", lambda words, **_: typed.append(words))
    monkeypatch.setattr(sys, "argv", ["results.py", "Speed", "of", "all", "DIR=d", "FILE.onnx=f"])
    results.main()
    assert [words[-1] for words in typed] == ["12", "f", "demo"]
    monkeypatch.setattr(sys, "argv", ["results.py"])
    results.main()
    assert capsys.readouterr().out.splitlines()[-1] == "speed of all: DIR FILE.onnx"
    monkeypatch.setattr(sys, "argv", ["results.py", "weight"])
    with pytest.raises(SystemExit, match="TABLE=weight: want one of speed of all"):
        results.main()
