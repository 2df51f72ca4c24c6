"""The commands as typed, in a process of their own: exit statuses, one line, no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMANDS = ["train", "prepare", "export", "eval_fid"]


def distill(name, *arguments, cwd=None):
    command = [sys.executable, "-m", f"distill.{name}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_written_for_people(name):
    done = distill(name, "--help")
    assert done.returncode == 0
    assert f"python -m distill.{name}" in done.stdout
    assert "hydra" not in done.stdout.lower()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_typo_is_one_line_and_status_1(name, tmp_path):
    done = distill(name, "phtos=x", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: phtos: no such setting; did you mean photos?")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())  # nothing is left behind


def test_no_photos_says_what_to_put_where(tmp_path):
    (tmp_path / "data/photos").mkdir(parents=True)
    done = distill("train", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "error: photos=data/photos: no jpg, jpeg, png or webp in it; put photos there, name "
        "another folder with photos=DIR, or try data=demo\n"
    )
