"""The commands as typed, in a process of their own: exit statuses, one line, no traceback."""

import subprocess
import sys

import pytest

COMMANDS = [
    *("train", "prepare", "shards", "export", "eval_fid", "stylize", "check", "benchmark", "hub"),
    "lens",
]


def distill(name, *arguments, cwd=None):
    command = [sys.executable, "-m", f"distill.{name}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.campaign
def test_help_is_for_people_and_comes_at_once(name):
    # Without torch and what needs it, which take seconds to load.
    command = [sys.executable, "-X", "importtime", "-m", f"distill.{name}", "--help", "typo=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "hydra" in loaded
    assert not loaded & {"torch", "numpy", "pytorch_lightning", "matplotlib", "PIL"}
    assert f"python -m distill.{name}" in done.stdout
    assert "hydra" not in done.stdout.lower()


@pytest.mark.slow
def test_an_export_and_its_scores_start_without_lightning():
    steps = "import sys, distill.export.conversion, distill.eval_fid.run_scores"
    code = f"{steps}; print(*{{'pytorch_lightning', 'torchmetrics'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("", 0)


@pytest.mark.campaign
def test_no_photos_says_what_to_put_where(tmp_path):
    (tmp_path / "data/photos").mkdir(parents=True)
    done = distill("train", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "error: photos=data/photos: no pictures in it (jpg, png, webp, avif, tiff, bmp); "
        "put photos there, name another folder with photos=DIR, or try data=demo\n"
    )
