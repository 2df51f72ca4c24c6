"""A short slice of `make fuzz`, and that it finds what it looks for."""

import os
import signal
import subprocess
import sys
import time

import fuzz
import fuzz_engine
import pytest
from fuzz import READERS
from fuzz_engine import Reader, run
from hypothesis import strategies as st
from mutations import damaged, edited

from distill.core.errors import DistillError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
SLOW = {name for name in READERS if name.startswith("words-")} | {"sets", "runs", "checkpoints"}


@pytest.mark.slow
@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_a_few_cases_of_every_reader(slow, tmp_path):
    """By a process of its own: one that has computed in several threads must not be forked."""
    names = sorted(SLOW if slow else READERS.keys() - SLOW)
    words = ["--readers", *names, "--cases", "6", "--seed", "99", "--keep", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, fuzz.__file__, *words], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [name for name in names if f"{name}: 6 cases, " not in done.stdout] == []


class Numbers(Reader):
    """Does with the numbers 0 to 3 what a test says."""

    name, allowed = "numbers", (KeyError,)

    def __init__(self, what):
        self.what = what

    def cases(self):
        return st.integers(0, 3)

    def put(self, case, folder):
        (folder / "number").write_text(str(case))

    def read(self, case, folder):
        if case == 3:
            self.what()


def raising(error):
    def what():
        raise error

    return what


def busy():
    while True:
        time.sleep(0.01)


WRONG = {
    "a bug": (raising(ValueError("x")), "ValueError at "),
    "a crash": (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended by -9"),
    "a hang": (busy, "more than 0.5 s"),
    # Far more than is allowed: a system short of memory takes pages back while it is measured.
    "memory": (lambda: bytearray(os.urandom(1)) * 600_000_000, "more than "),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.campaign
def test_what_goes_wrong_is_found_and_kept(kind, tmp_path, monkeypatch):
    if kind == "a hang":  # any other one may take longer on a busy machine
        monkeypatch.setattr(fuzz_engine, "LONGEST", 0.5)
    monkeypatch.setattr(fuzz_engine, "MOST", 40_000_000)
    what, said = WRONG[kind]
    outcome = run(Numbers(what), 4, 0, tmp_path / "keep")
    (found,) = outcome.findings.values()
    assert found.what.startswith(said)
    kept = [path.read_text() for path in (tmp_path / "keep").glob("numbers-*/number")]
    assert kept
    assert set(kept) == {"3"}


@pytest.mark.parametrize("error", [DistillError("one line"), KeyError("allowed")])
@pytest.mark.slow
def test_what_is_refused_is_no_finding(error, tmp_path):
    outcome = run(Numbers(raising(error)), 4, 0, tmp_path / "keep")
    assert (outcome.cases, outcome.refused, outcome.findings) == (4, 1, {})


def test_damage_is_what_it_says():
    assert damaged(b"abc", [("set", 1, 0, ord("x"))]) == b"axc"
    assert damaged(b"abc", [("flip", 5, 0, 0)]) == b"abb"  # the place is taken modulo the length
    assert damaged(b"abcd", [("cut", 2, 0, 1)]) == b"ab"
    assert damaged(b"abcd", [("number", 0, 3, 5)]) == b"\x80\0cd"  # 2**15 in two bytes
    assert damaged(b"", [("set", 0, 0, 1)]) == b""


def test_edits_leave_the_original_alone():
    tree = {"a": [1, {"b": 2}]}
    assert edited(tree, [("set", 0, 9)]) == {"a": 9}
    assert edited(tree, [("remove", 3, None)]) == {"a": [1, {}]}
    value = {"x": 0}  # falls into itself
    assert edited({"a": 0}, [("set", 0, value), ("set", 1, value)]) == {"a": {"x": {"x": 0}}}
    assert value == {"x": 0}
    assert tree == {"a": [1, {"b": 2}]}
