"""How many threads compute: PyTorch's number where it is loaded, else what it would take."""

import os
import subprocess
import sys

import pytest
import torch

from distill.core import process
from distill.core.process import CHOSEN, compute_threads


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    for name in CHOSEN:
        monkeypatch.delenv(name, raising=False)


def test_the_number_that_a_process_was_given_counts():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        assert compute_threads() == before + 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    "told", [{}, *({name: number} for name in CHOSEN for number in ("1", "99"))]
)
@pytest.mark.campaign
def test_without_pytorch_it_is_what_pytorch_would_take(told, without_torch, monkeypatch):
    for name, number in told.items():
        monkeypatch.setenv(name, number)
    ask = "import torch; print(torch.get_num_threads())"
    typed, told = [sys.executable, "-c", ask], {**os.environ, **told}
    assert compute_threads() == int(subprocess.check_output(typed, env=told, text=True))


@pytest.mark.parametrize("told", ["", "0", "many"])
def test_a_variable_that_is_no_number_of_threads_says_nothing(told, without_torch, monkeypatch):
    wanted = compute_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert compute_threads() == wanted


def test_of_a_core_s_halves_one_computes(without_torch, monkeypatch, tmp_path):
    for number, pair in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (tmp_path / str(number)).write_text(pair)
    monkeypatch.setattr(process, "_SIBLINGS", str(tmp_path / "{}"))
    monkeypatch.setattr(process, "_usable", lambda: [0, 1, 2, 3])
    assert compute_threads() == 2
    monkeypatch.setattr(process, "_usable", lambda: [0, 2, 7])  # of 7 nothing is known
    assert compute_threads() == 2
    assert process.cores() == 3
