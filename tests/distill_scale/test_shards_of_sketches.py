"""recipe=pix2pix on shards: sets of sketches, folders called by a style, transparency."""

import json
from pathlib import Path

import pytest
from PIL import Image

from distill.config import compose
from distill.data.pairs import find_pairs
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill.train import __main__ as train
from distill_gan import loaders
from distill_gan.settings import Pix2PixTrain
from distill_scale.shards import __main__ as shards
from support.commands import run

pytest.importorskip("pyarrow", reason="needs the extra shards")
CODEC = ["codec=raw", "pairs=3", "workers=0"]
DATA = ["recipe=pix2pix", "data.size=72", "data.crop_size=64", "data.workers=0"]
NARROW = [
    "generator.build.encoder=0.125",
    "generator.build.decoder=0.125",
    "discriminator.width=0.125",
]
SHORT = ["distance=none", "trainer.log_every=1", "trainer.max_steps=2", "trainer.val_every=2"]
ON = ["data=shards", "data.root=packed"]


@pytest.fixture
def sketched(here, capsys):
    """The photos of `here` with their sketches in `set`, packed into `packed`."""
    words = ["photos=photos", "data.root=set", "sketch.size=64", "label.workers=0"]
    assert run(prepare, "recipe=pix2pix", *words, "data.val_fraction=0.4") == 0
    assert run(shards, "data.root=set", "output=packed", *CODEC) == 0
    assert capsys.readouterr().out.endswith(
        "next: python -m distill.train recipe=pix2pix data=shards data.root=packed\n"
    )
    return here


def data_of(*words):
    return loaders.paired(compose.load("train", [*DATA, *words], Pix2PixTrain))


@pytest.mark.campaign
def test_a_generator_is_trained_exported_and_scored(sketched, capsys):
    words = [*DATA, *NARROW, *SHORT, *ON]
    assert run(train, *words) == 0
    Path("set").rename("away")
    assert run(export, "run=pix2pix-packed", "formats=[onnx]") == 0
    said = ["run=pix2pix-packed", "features=none", "bootstrap=0"]
    assert run(eval_fid, *said) == 0
    results = json.loads(Path("runs/pix2pix-packed/eval/results.json").read_text())
    wanted = find_pairs(Path("away"), None, 0.1, 0)
    assert results["pictures"] == len(wanted["test"] or wanted["val"])
    capsys.readouterr()
    assert run(eval_fid, *said, "photos=away") == 0  # other pairs, in a folder
    results = json.loads(Path("runs/pix2pix-packed/eval/results.json").read_text())
    assert "the training pairs of the shards packed are not unpacked" in json.dumps(results)


@pytest.mark.slow
def test_targets_with_transparency_keep_it(here, capsys):
    for name, alpha in (("A", 255), ("B", 51)):
        for i in range(8):
            (here / "own" / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGBA", (72, 72), (i, 99, 30, alpha)).save(here / "own" / name / f"{i}.png")
    assert run(shards, "data.root=own", "output=packed", *CODEC) == 0
    sample = data_of(*ON, "channels=4").train[0]
    assert (sample["target"][..., 3] == 51).all()
    assert sample["photo"].shape[-1] == 3
    capsys.readouterr()
    words = [*DATA, *ON, *NARROW, *SHORT, "channels=4"]
    assert run(train, *words, "data.direction=BtoA") == 1
    assert "packed: channels=4 needs targets with transparency" in capsys.readouterr().err
