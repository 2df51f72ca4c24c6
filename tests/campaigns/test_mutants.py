"""A short slice of `make mutants`, and that it tells what is tested from what is not."""

import shutil
import subprocess
import sys

import mutants
import pytest
from mutants import Outcome, Part, table

pytest.importorskip("mutmut", reason="mutmut is not installed: pip install 'distill[mutants]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("git"), reason="there is no git"),
]

CODE = """
def more(a):
    return a + 1


def untested(a):
    if a:
        return a + 2
    return a - 2
"""
TESTS = """
from tiny.numbers import more, untested


def test_more():
    assert more(2) == 3


def test_it_runs():
    untested(2)
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A project of two functions, one of which is tested."""
    files = {"pyproject.toml": "", "src/tiny/__init__.py": "", "conf/x": "", "README.md": ""}
    files |= {"src/tiny/numbers.py": CODE, "tests/test_numbers.py": TESTS, "campaigns/x": ""}
    for name, content in files.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tmp_path / "project", check=True)
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "project")
    monkeypatch.setitem(mutants.PARTS, "tiny", Part(("src/tiny/*.py",), ("tests",)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_mutants_of_what_no_test_looks_at_survive(tiny):
    outcome = mutants.run("tiny", tiny / "kept", 100, 0, 1)
    survived = set(outcome.survivors)
    assert outcome.there_are == len(outcome.ends)
    assert survived
    assert all(".x_untested__" in name for name in survived)
    assert any(".x_more__" in name for name in outcome.ends.keys() - survived)
    shown = (tiny / "kept/survivors.diff").read_text()
    assert "-        return a + 2" in shown
    assert "return a + 1" not in shown


@pytest.mark.campaign
def test_a_few_mutants_of_the_losses(tmp_path):
    """By a process of its own: mutants are forked from it."""
    words = ["--parts", "losses", "--mutants", "6", "--seed", "5", "--least", "0"]
    done = subprocess.run(
        [sys.executable, mutants.__file__, *words, "--keep", str(tmp_path)],
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| losses | " in done.stdout


def test_the_table():
    ends = {"a": "killed", "b": "timeout", "c": "survived", "d": "no tests", "e": "segfault"}
    outcome = Outcome("split", 1234, ends)
    assert outcome.survivors == ["c", "d"]
    assert table([outcome]).splitlines()[-1] == "| split | 1,234 | 5 | 3 | 1 | 1 | 60.0% |"
