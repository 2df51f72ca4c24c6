"""A package of another person's, tests/plugin/, installed beside distill, through every command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from distill.check import __main__ as check
from distill.config.registry import recipes
from distill.core import plugins
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill.stylize import __main__ as stylize
from distill.train import __main__ as train
from distill_lens import __main__ as lens
from support.commands import QUICK, SMALL, run

PLUGIN = Path(__file__).parents[1] / "plugin"
OWN = ["style=negative", "encoder=halves", "decoder=tiny", "loss=dark", "callbacks=marker"]
RATES = ["optimizer=momentum", "schedule=halved"]
QUICKER = [*(word for word in QUICK if "weights" not in word), "photos=photos"]
SHORT = ["trainer.val_every=2", "trainer.threads=1", "logger=[csv,lines]"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder that the package was installed into."""
    pytest.importorskip("hatchling", reason="no hatchling: pip install 'distill[dev]'")
    place = tmp_path_factory.mktemp("site")
    words = ["install", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(place)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(PLUGIN)], check=True)
    return place


@pytest.fixture
def lab(site, here, monkeypatch):
    """A working folder with photos, on a machine where the package is installed."""
    monkeypatch.setenv(plugins.NAMED, "")
    monkeypatch.syspath_prepend(site)
    return here


def line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command ended with."""
    said = capsys.readouterr().err.strip().rpartition("\n")[2]
    assert said.startswith("error: ")
    return said


@pytest.mark.slow
def test_its_parts_go_through_all_commands(lab, capsys):
    assert run(prepare, "style=negative", *SMALL, "photos=photos") == 0
    root = lab / "data/pairs/negative-photos-64-crop90"
    photo = next(root.glob("train/photo/*.png"))
    drawn = np.asarray(Image.open(root / "train/stylized" / photo.name)).astype(int)
    assert np.array_equal(drawn, 255 - np.asarray(Image.open(photo)).astype(int))

    assert run(train, *OWN, *RATES, *QUICKER, *SHORT, "trainer.max_steps=4") == 0
    assert run(train, *OWN, *RATES, *QUICKER, *SHORT, "trainer.max_steps=6") == 0
    assert "resumes at step 4" in capsys.readouterr().out
    assert (lab / "marker.txt").read_text() == "6"
    folder = lab / "runs/negative-tiny"
    assert "train/dark" in (folder / "lines.txt").read_text()
    assert run(train, "-m", *OWN, *QUICKER, *SHORT, "trainer.max_steps=2", "lr=1e-3,1e-2") == 0
    assert len(list(lab.glob("runs/sweep-lr/negative-tiny-dark-*/config.yaml"))) == 2

    capsys.readouterr()
    words = ["run=negative-tiny", "exporter.size=64", "formats=[npz,safetensors]"]
    assert run(export, *words) == 0
    weights = np.load(folder / "export/student.npz")
    saved = torch.load(folder / "checkpoints/best.ckpt", weights_only=True)["state_dict"]
    assert {f"student.{name}" for name in weights} == saved.keys()
    assert run(eval_fid, "run=negative-tiny", "features=none", "metrics=levels", "flicker=0") == 0
    scores = json.loads((folder / "eval/results.json").read_text())["similarity"]
    assert 0 < scores["levels, student to teacher"]["value"] < 255
    name = "photos/Person_1_0001.png"
    assert run(stylize, name, "run=negative-tiny", "-o", "a.png") == 0
    assert run(stylize, name, f"model={folder / 'export/student.safetensors'}", "-o", "b.png") == 0
    assert Image.open("a.png").size == Image.open("b.png").size == (90, 80)
    assert run(lens, "run=negative-tiny", "serve=false", "output=page") == 0
    assert run(check, str(folder / "export/student.onnx"), "profile=phone") == 1
    assert "do not fit phone" in line(capsys)
    noted = ["data=noted", "run=noted", "trainer.max_steps=1"]
    assert run(train, *OWN, *QUICKER, *SHORT, *noted) == 0
    assert int((lab / "pairs.txt").read_text()) == len(list(root.glob("train/photo/*.png")))
    assert run(prepare, "style=negative", *SMALL, "photos=photos", "data=shards",
               "engine=counted") == 0  # fmt: skip
    assert int((lab / "count.txt").read_text()) >= 1


@pytest.mark.slow
def test_its_head_decides_for_a_decoder_of_distill(lab):
    words = [*QUICKER, *SHORT, "style=negative", "decoder=residual", "head=print", "run=print"]
    assert run(train, *words, "trainer.max_steps=2") == 0
    assert run(stylize, "photos/Person_1_0001.png", "run=print", "-o", "a.png") == 0


@pytest.mark.slow
def test_its_recipe_is_trained_resumed_exported_scored_and_used(lab, capsys):
    for side, seed in (("A", 0), ("B", 1)):
        rng = np.random.default_rng(seed)
        (lab / "pairs" / side).mkdir(parents=True)
        for number in range(8):
            noise = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(noise).save(lab / f"pairs/{side}/Person_{number}_0001.png")
    words = [
        *("recipe=plain", "data.root=pairs", "data.size=36", "data.crop_size=32"),
        *("data.workers=0", "data.val_fraction=0.4", "generator=resnet", "trainer.log_every=1"),
        *("generator.build.blocks=1", "generator.build.width=8", "trainer.val_every=2"),
        "trainer.threads=1",
    ]
    assert run(train, *words, "trainer.max_steps=2") == 0
    assert run(train, *words, "trainer.max_steps=4") == 0
    assert "resumes at step 2" in capsys.readouterr().out
    asked = ["run=plain-pairs", "exporter.profile=any", "parity=0.01", "formats=[safetensors]"]
    assert run(export, *asked) == 0
    assert run(eval_fid, "run=plain-pairs", "features=none", "metrics=levels") == 0
    for which in ("run=plain-pairs", "model=runs/plain-pairs/export/generator.safetensors"):
        assert run(stylize, "photos/Person_1_0001.png", which) == 0
    teacher = ["style=custom", "style.name=own", "teacher.path=runs/plain-pairs"]
    assert run(prepare, *teacher, *SMALL, "photos=photos") == 0
    assert run(train, "recipe=plain", "--help") == 0
    assert "recipe=plain" in capsys.readouterr().out
    assert "plain" not in recipes()  # where it is not installed


# Exit statuses, and what was said, of commands by one interpreter: PyTorch takes seconds to import.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, runpy, sys

said = []
for words in json.loads(sys.argv[1]):
    sys.argv, status, text = ["distill", *words], 0, io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            runpy.run_module("distill", run_name="__main__")
        except SystemExit as stop:
            status = stop.code or 0
    said.append((status, text.getvalue()))
print(json.dumps(said))
"""


@pytest.mark.slow
def test_without_it_only_what_needs_it_is_refused(lab, site):
    """A fresh process: none of the package's modules is there yet."""
    words = ["style=negative", *QUICK, "photos=photos", "trainer.max_steps=2"]
    assert run(train, *words, "decoder=residual", "run=shipped") == 0
    assert run(train, *words, "decoder=tiny", "run=own") == 0
    (lab / "mylab").mkdir()
    (lab / "mylab/__init__.py").write_text("open('owned', 'w')")

    picture = "photos/Person_1_0001.png"
    words = [["stylize", picture, "run=shipped"], ["export", "run=shipped", "exporter.size=64"]]
    words += [["stylize", picture, "run=own"]]
    paths = [path for path in sys.path if path and path != str(site)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    asked = [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(words)]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    (first, _), (second, told), (third, refused) = json.loads(done.stdout)
    assert (first, second, third) == (0, 0, 1)  # to export no teacher is needed
    assert "mylab.networks.Negative: refused; only classes of distill" in told
    assert refused.count("\n") == 1
    assert "mylab.networks.Tiny: refused; only classes of distill and of plug-ins" in refused
    assert refused.endswith("if you trust mylab, add plugins=[mylab]\n")
    assert not (lab / "owned").exists()


@pytest.mark.slow
def test_a_package_that_is_not_installed_is_named(here, monkeypatch, capsys):
    monkeypatch.setenv(plugins.NAMED, "")
    monkeypatch.syspath_prepend(here / "lib")
    text = (PLUGIN / "mylab/networks.py").read_text()
    (here / "lib/otherlab").mkdir(parents=True)
    (here / "lib/otherlab/__init__.py").write_text(text)
    (here / "my conf/decoder").mkdir(parents=True)
    node = "  _target_: otherlab.Tiny\n"
    yaml = f"# Tiny.\nname: mine\nprofile: any\nbuild:\n{node}"
    (here / "my conf/decoder/mine.yaml").write_text(yaml)
    words = [*QUICK, "photos=photos", "trainer.max_steps=1"]
    assert run(train, *words, "decoder=mine", "--config-dir", "my conf") == 0
    assert run(train, *words, "decoder=mine", "hydra.searchpath=['file://my conf']") == 0
    assert "finished at step 1" in capsys.readouterr().out
    assert run(export, "run=toon-mine", "exporter.size=64") == 1
    assert "if you trust otherlab, add plugins=[otherlab]" in line(capsys)
    assert run(export, "run=toon-mine", "exporter.size=64", "plugins=[otherlab]") == 0
    assert "run=toon-mine plugins='[otherlab]'" in capsys.readouterr().out
    assert run(train, "--config-dir", "nowhere") == 1
    assert "nowhere: no such folder of settings" in line(capsys)
    typed = ["decoder.build._target_=otherlab.Tiny", "decoder.name=typed", "run=typed"]
    assert run(train, *words, *typed) == 0  # without the arguments of decoder=detail


LOSS = "+loss.weights.own=1"
WRONG = {
    "teacher._target_=support.own_parts.Cropping": "teacher._target_=support.own_parts.Cropping: ",
    f"+loss.terms.own._target_=support.own_parts.PerPicture {LOSS}": "gave (2,) float32, want",
    f"+loss.terms.own._target_=support.own_parts.Item {LOSS}": "loss.terms.own: has no gradient",
    f"+loss.terms.own._target_=support.own_parts.Flat {LOSS}": "loss.terms.own: has no gradient",
    f"+loss.terms.own._target_=support.own_parts.Infinite {LOSS}": "want one finite number, of",
    f"+loss.terms.own._target_=support.own_parts.Broken {LOSS}": "loss.terms.own: a call with (2, ",
    f"+loss.terms.own._target_=support.own_parts.half {LOSS}": "loss.terms.own.photo: missing",
    "+callbacks.own._target_=support.own_parts.Half": "callbacks.own.channels: missing",
    "+callbacks.own._target_=support.own_parts.Plain": "is no Callback; name a subclass of",
    "optimizer._target_=support.own_parts.Plain": "optimizer",
    "+logger.own.x._target_=support.own_parts.Plain": "is no Logger; name a subclass of",
}


@pytest.mark.slow
@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_one_line_before_the_labelling(here, capsys, words):
    typed = [*QUICK, "photos=photos", "decoder=residual", "trainer.max_steps=1", *words.split()]
    assert run(train, *typed) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert WRONG[words] in said
    assert {path.name for path in here.iterdir()} <= {"photos", "runs"}
    assert not any(path.is_dir() for path in here.glob("runs/*"))


@pytest.mark.slow
def test_a_right_loss_term_is_typed(here):
    typed = [*QUICK, "photos=photos", "decoder=residual", "trainer.max_steps=1"]
    own = ["+loss.terms.own._target_=support.own_parts.Error", LOSS]
    assert run(train, *typed, *own) == 0
    assert "train/own" in (here / "runs/toon-residual/metrics.csv").read_text()
