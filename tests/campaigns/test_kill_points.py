"""A short slice of `make killpoints`, and that it finds what it looks for."""

import importlib
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import kill_points
import pytest
import torch
from kill_points import Workshop, campaign, compare, is_whole, prints
from killed_commands import COMMANDS, Command

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.fixture
def shop(tmp_path):
    return Workshop(tmp_path / "shop")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["stylize", pytest.param("prepare-sketches", marks=pytest.mark.campaign)]
)
def test_commands_end_as_if_nothing_had_been(name):
    """By a process of its own: one that has computed in several threads must not be forked."""
    words = [sys.executable, kill_points.__file__, "--commands", name, "--at", "0.7"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=250)
    assert f"{name}: " in done.stdout
    assert "0 failures" in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr


def made(tmp_path, **files):
    for name, content in files.items():
        path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return prints(tmp_path)


def test_what_differs_is_missing_or_too_much_is_told(tmp_path):
    wanted = made(tmp_path, same=b"1", other=b"2", gone=b"3", times_dot_json=b"{}")
    wanted["times.json"] = "of another run"
    made(tmp_path, other=b"4", _dot_x_dot_part=b"", times_dot_json=b'{"a": ')
    (tmp_path / "gone").unlink()
    assert compare(tmp_path, wanted, ["same", "other", "gone"]) == [
        "missing: gone", "left over: .x.part", "differs: other", "not whole: times.json",
    ]  # fmt: skip


def test_an_empty_folder_counts_and_a_checkpoint_by_its_tensors(tmp_path):
    saved = {"global_step": 3, "callbacks": {}, "state_dict": {"w": torch.ones(2)}}
    torch.save(saved | {"time": 1}, tmp_path / "last.ckpt")
    first = prints(tmp_path)
    torch.save(saved | {"time": 2}, tmp_path / "last.ckpt")
    assert prints(tmp_path) == first
    torch.save(saved | {"state_dict": {"w": torch.zeros(2)}}, tmp_path / "last.ckpt")
    (tmp_path / "left").mkdir()
    assert compare(tmp_path, first, first) == ["left over: left/", "differs: last.ckpt"]


@pytest.mark.parametrize(
    ("name", "content", "whole"),
    [
        ("a.json", "{}", False), ("a.json", "[1]", True), ("a.csv", "a,b\n1,2\n", True),
        ("a.csv", "a,b\n1\n", False), ("a.yaml", "a: [", False), ("a.txt", "", False),
        ("a.txt", "x", True),
    ],
)  # fmt: skip
def test_whole_files(tmp_path, name, content, whole):
    (tmp_path / name).write_text(content)
    assert is_whole(tmp_path / name) is whole


def stand_in(monkeypatch, main):
    """A command of the name `stylize` that does this."""
    command = SimpleNamespace(__name__="x", main=main)
    monkeypatch.setitem(sys.modules, "distill.stylize.__main__", command)
    monkeypatch.setitem(COMMANDS, "stand-in", Command("stylize", []))


def test_a_command_that_goes_on_wrongly_is_found(shop, monkeypatch):
    def main():
        if os.path.exists("half"):
            sys.exit(3)
        open("half", "w").close()
        signal.pause()

    stand_in(monkeypatch, main)
    importlib.import_module("distill.train.callbacks.checkpoints")  # the fork starts at once
    monkeypatch.setattr(Workshop, "must", lambda *_: 1.0)
    (failure,) = campaign(shop, "stand-in", [1.0], "seed 0").failures
    assert "--commands stand-in --at 1.000000" in failure
    assert "the same command again: status 3" in failure


def test_a_worker_that_outlives_its_command_is_found_and_ended(shop, monkeypatch):
    def main():
        if not os.fork():
            signal.pause()

    stand_in(monkeypatch, main)
    monkeypatch.setattr(kill_points, "GRACE", 0.2)
    shop.restore("pictures")
    assert shop.run(COMMANDS["stand-in"]).status == 0
    assert shop.left_running
