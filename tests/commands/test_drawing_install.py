"""distill.stylize and distill.lens without PyTorch: installed with tools/draw-requirements.txt."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distill.stylize import __main__ as stylize
from support import drawing_install
from support.commands import run
from support.drawing_install import LOADED, refused, required
from support.lens_page import BUILT
from support.stylize_setup import picture, put

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
# What takes most of a full installation, in bytes or seconds.
HEAVY = {
    *("torch", "torchvision", "pytorch_lightning", "kornia", "torchmetrics", "tensorboard"),
    *("scipy", "skimage", "matplotlib", "thop", "pytorch_fid", "onnxscript"),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in BUILT.items():
        path = Path("page") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def typed(*words: str, installed: str = "small") -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    script = [sys.executable, drawing_install.__file__, installed, "page", *words]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def loaded() -> set[str]:
    return set(Path(LOADED).read_text().split())


def test_every_line_is_a_dependency_of_the_package():
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    assert required()
    assert set(required()) <= set(declared)
    assert required() == sorted(required())


@pytest.mark.campaign
def test_what_is_heavy_is_left_out():
    assert refused() >= HEAVY


@pytest.mark.slow
def test_pictures_are_those_of_a_full_installation():
    put("photos/a.png", picture(200, 150))
    put("photos/b/c.jpg", picture(90, 120))
    done = typed("stylize", "photos", "style=hayao", "-o", "drawn")
    assert (done.returncode, done.stderr) == (0, "")
    assert not loaded() & HEAVY
    assert run(stylize, "photos", "style=hayao", "-o", "full") == 0
    for name in ("a-hayao.png", "b/c-hayao.jpg"):
        assert (Path("drawn") / name).read_bytes() == (Path("full") / name).read_bytes()


@pytest.mark.parametrize(
    "words", [("upscale=guided",), ("upscale=tiles", "device=cpu"), ("-m", "style=hayao,toon")]
)
@pytest.mark.campaign
def test_other_ways_to_draw(words):
    put("a.png", picture(500, 300))
    done = typed("stylize", "a.png", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert Image.open("stylized/a-hayao.png").size == (500, 300)


def test_a_comparison_says_that_the_teacher_is_left_out():
    put("a.png", picture(200, 150))
    done = typed("stylize", "a.png", "compare=true", "style=toon")
    assert done.returncode == 0
    assert done.stderr == (
        "compare=true: without the teacher, it needs PyTorch (No module named 'torch'); pip "
        "install distill\n"
    )
    compared = np.asarray(Image.open("stylized/a-toon-compare.png"))
    assert np.array_equal(compared[:, :200], np.asarray(Image.open("a.png")))


def test_the_lens_is_built():
    done = typed("lens", "serve=false", "students=[hayao,toon]")
    assert (done.returncode, done.stderr) == (0, "")
    assert not loaded() & HEAVY
    students = json.loads(Path("lens/manifest.json").read_text())["students"]
    assert [each["name"] for each in students] == ["hayao", "toon"]
    assert all((Path("lens") / each["file"]).is_file() for each in students)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stylize a.png model=a.ckpt", "a.ckpt: a checkpoint is exported by PyTorch (No module "
         "named 'torch'); pip install distill"),
        ("lens serve=false students=[a.ckpt]", "a.ckpt: a checkpoint is exported by PyTorch (No "
         "module named 'torch'); pip install distill"),
        ("stylize a.png face=paste", "detector=lbp: needs scikit-image (No module named "
         "'skimage'); pip install scikit-image, or take detector=yunet"),
        ("train photos=.", "this command needs torch, which is not installed; pip install "
         "distill"),
        ("prepare photos=.", "teacher._target_=distill_drawings.toon.Toon: needs kornia, "
         "which is not installed; pip install distill"),
    ],
)  # fmt: skip
@pytest.mark.campaign
def test_what_takes_more_ends_in_one_line(words, said):
    put("a.png")
    Path("a.ckpt").write_bytes(b"tensors")
    done = typed(*words.split())
    assert (done.returncode, done.stderr) == (1, f"error: {said}\n")


@pytest.mark.parametrize("words", ["stylize a.png", "lens serve=false"])
def test_a_full_installation_loads_none_of_it_to_draw(words):
    put("a.png")
    done = typed(*words.split(), installed="full")
    assert (done.returncode, done.stderr) == (0, "")
    assert not loaded() & HEAVY
