"""The commands as typed, in a process of their own: exit statuses, one line, no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image

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


@pytest.mark.slow
def test_a_typo_beside_a_flag_is_one_line_too(tmp_path):
    done = distill("train", "--cfg", "job", "lrr=3", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: lrr: no such setting; did you mean lr?")


@pytest.mark.campaign
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_batch_saves_and_the_same_command_goes_on(tmp_path, number):
    pictures = tmp_path / "photos"
    pictures.mkdir()
    for i in range(4):
        Image.new("RGB", (64, 64), (60 * i, 99, 0)).save(pictures / f"{i}.png")
    small = ["photos=photos", "style.resolution=64", "encoder.weights=none", "data.batch_size=2"]
    small += ["trainer.val_every=50000"]
    command = [sys.executable, "-u", "-m", "distill.train", *small, "trainer.max_steps=100000"]
    running = subprocess.Popen(
        [*command, "trainer.log_every=1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C and a batch system's SIGTERM reach the workers too
    )
    table = tmp_path / "runs/toon-detail/metrics.csv"
    deadline = time.monotonic() + 90
    while not table.is_file() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(running.pid, number)
    _, said = running.communicate(timeout=90)
    assert running.returncode == 130
    assert "stopped at step" in said
    step = int(said.split("stopped at step ")[1].split(";")[0])
    assert step > 0
    again = distill("train", *small, f"trainer.max_steps={step + 1}", cwd=tmp_path)
    assert f"resumes at step {step}" in again.stdout
    assert again.returncode == 0


@pytest.mark.campaign
def test_no_photos_says_what_to_put_where(tmp_path):
    (tmp_path / "data/photos").mkdir(parents=True)
    done = distill("train", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "error: photos=data/photos: no pictures in it (jpg, png, webp, avif, tiff, bmp); "
        "put photos there, name another folder with photos=DIR, or try data=demo\n"
    )
