"""distill.export of the generators of recipe=pix2pix and recipe=cyclegan, as a user types it."""

import json
import re
import shutil
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image
from torch import nn

from distill.config import compose
from distill.config.settings.commands import Export
from distill.core import nodes
from distill.export import __main__ as export
from distill.export import samples, subject
from distill.metrics.complexity import operators, parameters
from distill_gan.generators.unet import UNet
from distill_gan.settings import CycleGANTrain, Pix2PixTrain
from support.commands import run

Lively = Callable[..., nn.Module]
SIDE = 64
SMALL = [f"data.crop_size={SIDE}", "data.size=72", "data.val_fraction=0.4"]
NARROW = ["generator.build.encoder=0.25", "generator.build.decoder=0.5"]
BLUE, RED = (0, 0, 255), (255, 0, 0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working folder with ten pairs: blue pictures in A, red and half seen through in B."""
    for side, colour in (("A", BLUE), ("B", (*RED, 128))):
        (tmp_path / "own" / side).mkdir(parents=True)
        for number in range(10):
            noise = np.random.default_rng(number).integers(0, 60, (80, 80, 1), dtype=np.uint8)
            picture = np.broadcast_to(np.array(colour, np.uint8), (80, 80, len(colour))).copy()
            picture[..., 1] = noise[..., 0]
            Image.fromarray(picture).save(tmp_path / f"own/{side}/{number}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keep(name: str, settings: Any, networks: dict[str, nn.Module]) -> None:
    """A run's checkpoint, as training writes it, without training."""
    state = {
        f"{prefix}.{key}": value
        for prefix, network in networks.items()
        for key, value in network.state_dict().items()
    }
    folder = Path("runs") / name / "checkpoints"
    folder.mkdir(parents=True)
    torch.save({"distill": asdict(settings), "state_dict": state}, folder / "last.ckpt")


def pix2pix(lively: Lively, *more: str) -> nn.Module:
    """runs/p2p: a U-Net of 64², narrowed."""
    words = ["recipe=pix2pix", "data.root=own", *SMALL, *NARROW, *more]
    settings = compose.load("train", words, Pix2PixTrain)
    given = {"size": SIDE, "in_channels": 3, "out_channels": settings.channels}
    network = lively(nodes.build(settings.generator.build, **given), SIDE)
    keep("p2p", settings, {"generator": network})
    return network.eval()


def cyclegan(*more: str) -> dict[str, nn.Module]:
    """runs/cycle: two residual generators of one block."""
    blocks = ["generator.build.blocks=1", "generator.build.width=8"]
    words = ["recipe=cyclegan", "data.root=own", *SMALL, *(more or blocks)]
    settings = compose.load("train", words, CycleGANTrain)
    made = {k: nodes.build(settings.generator.build, out_channels=3) for k in ("a_to_b", "b_to_a")}
    keep("cycle", settings, made)
    return {name: network.eval() for name, network in made.items()}


def typed(run_name: str, *more: str) -> int:
    return run(export, f"run={run_name}", *more)


def report(folder: str) -> dict[str, Any]:
    return json.loads((Path("runs") / folder / "report.json").read_text())


def check(found: dict[str, Any], name: str) -> Any:
    return next(c for c in found["generator"] if c["name"] == name)


def names(folder: str) -> list[str]:
    return sorted(p.name for p in (Path("runs") / folder).iterdir())


def inferred(path: Path, photo: torch.Tensor) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["stylized"], {"photo": photo.numpy()})[0]


@pytest.mark.campaign
def test_pix2pix_is_written_in_float_and_half_precision(place, lively):
    network = pix2pix(lively)
    assert typed("p2p") == 0
    assert names("p2p/export") == [
        "formats.json", "formats.md", "generator.onnx", "generator_fp16.onnx", "report.json",
        "snippets",
    ]  # fmt: skip
    folder = place / "runs/p2p/export"
    model = onnx.load(str(folder / "generator.onnx"))
    assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 64, 64]
    assert "Dropout" not in operators(model)
    photo = torch.rand(1, 3, SIDE, SIDE)
    with torch.no_grad():
        wanted = network(photo).numpy()
    np.testing.assert_allclose(inferred(folder / "generator.onnx", photo), wanted, atol=1e-4)
    np.testing.assert_allclose(inferred(folder / "generator_fp16.onnx", photo), wanted, atol=0.02)
    found = report("p2p/export")
    half = check(found, "bytes in half precision")
    assert half["value"] == (folder / "generator_fp16.onnx").stat().st_size
    assert half["limit"] == 10_000_000
    assert found["ok"]
    assert found["network"]["name"] == "unet"
    assert found["output"] == {
        "name": "stylized", "range": [0, 1], "type": "float32", "layout": "NCHW", "channels": "RGB",
        "shape": [1, 3, SIDE, SIDE],
    }  # fmt: skip
    assert [each["name"] for each in found["generator"]] == [
        "MACs", "MACs by thop", "parameters", "bytes", "bytes in half precision", "bytes, gzip",
        "ms, 1 thread of this CPU", "largest difference to PyTorch", "operators",
        f"operators outside {found['exporter']['profile']}",
    ]  # fmt: skip
    assert check(found, "ms, 1 thread of this CPU")["value"] > 0
    assert check(found, "parameters")["value"] == parameters(network)
    formats = json.loads((folder / "formats.json").read_text())
    assert 0 < formats["pictures"] < 10  # those held out
    assert all(row["teacher"] is not None for row in formats["formats"])


@pytest.mark.campaign
def test_the_sizes_are_computed(place, lively, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    network = pix2pix(lively)
    assert typed("p2p") == 0
    said = capsys.readouterr().out
    folder = place / "runs/p2p/export"
    rows = report("p2p/export")["sizes"]
    full = parameters(UNet(SIDE, upsampling="transposed"))
    plain = parameters(UNet(SIDE, encoder=0.25, decoder=0.5))
    own = parameters(network)
    assert [row["parameters"] for row in rows] == [full, plain, own, own, own]
    assert [row["bytes"] for row in rows] == [4 * full, 4 * plain, 4 * own, 2 * own, own]
    sizes = [(folder / f"generator{end}.onnx").stat().st_size for end in ("", "_fp16")]
    assert [row["file"] for row in rows] == [None, None, *sizes, None]
    macs = check(report("p2p/export"), "MACs")["value"]
    assert [row["macs"] for row in rows[2:]] == [macs] * 3
    assert [row["name"] for row in rows] == [
        "U-Net-64 of the paper", "width factors 0.25 and 0.5", "+ separable convolutions",
        "+ half precision", "+ int8",
    ]  # fmt: skip
    for row in rows:  # as they are printed, with "–" for what was not written
        file = "–" if row["file"] is None else f"{row['file'] / 1e6:.2f}"
        assert re.search(rf"{re.escape(row['name'])} .* {row['parameters']:,} .* {file} *│", said)


@pytest.mark.campaign
def test_over_the_limit_there_is_no_file(place, lively, capsys):
    pix2pix(lively)
    assert typed("p2p") == 0
    size = (place / "runs/p2p/export/generator_fp16.onnx").stat().st_size
    assert typed("p2p", f"limit={size - 1}") == 1
    assert "over the limit: bytes in half precision" in capsys.readouterr().err
    assert names("p2p/export") == ["report.json"]
    found = report("p2p/export")
    assert not found["ok"]
    assert [row["file"] for row in found["sizes"]] == [None] * 5
    assert typed("p2p", f"limit={size}", "formats=onnx") == 0
    assert typed("p2p", f"limit={size - 1}", "budget.parameters=1") == 1
    assert "limit: parameters, bytes in half precision; no" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["ten", "-5", "0", "10XB"])
def test_a_bad_limit_is_one_line(limit, place, capsys):
    assert typed("p2p", f"limit={limit}") == 1
    error = capsys.readouterr().err
    assert error.startswith("error: limit=")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("exporter.size=128", "exporter.size=128: UNet takes one size, here 64×64"),
        ("direction=BtoA", "direction=BtoA: recipe=pix2pix trains one network"),
        ("exporter.dynamic=true", "exporter.dynamic=true: UNet takes one size"),
        ("exporter.dynamic=true exporter.profile=any", "one size, here 64×64; leave it out"),
    ],
)
def test_what_a_unet_cannot_be(word, said, place, lively, capsys):
    pix2pix(lively)
    assert typed("p2p", *word.split()) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_both_directions_of_cyclegan(place):
    networks = cyclegan()
    assert typed("cycle") == 0
    assert typed("cycle", "direction=BtoA") == 0
    assert names("cycle/export") == ["BtoA", "generator.onnx", "report.json", "snippets"]
    photo = torch.rand(1, 3, SIDE, SIDE)
    for folder, name in (("export", "a_to_b"), ("export/BtoA", "b_to_a")):
        made = inferred(place / "runs/cycle" / folder / "generator.onnx", photo)
        with torch.no_grad():
            np.testing.assert_allclose(made, networks[name](photo).numpy(), atol=1e-3)
    found = report("cycle/export")
    assert found["teacher"] == {}
    assert "sizes" not in found
    published = check(found, "MACs as published, transposed at output size")["value"]
    # Two transposed convolutions of 3×3 and stride 2, counted at their outputs: four times.
    halves = 9 * (16 * 16 * 32 * 16 + 32 * 32 * 16 * 8)
    assert published - check(found, "MACs")["value"] == 3 * halves
    assert check(found, "largest difference to PyTorch")["limit"] == 1e-3


@pytest.mark.slow
def test_a_residual_generator_takes_other_sizes(place):
    cyclegan()
    assert typed("cycle", "exporter.size=32", "parity=1e-4") == 0
    assert report("cycle/export")["exporter"]["size"] == 32
    assert check(report("cycle/export"), "largest difference to PyTorch")["limit"] == 1e-4


@pytest.mark.parametrize(("direction", "colour"), [("AtoB", BLUE), ("BtoA", RED)])
@pytest.mark.slow
def test_pictures_are_of_the_input_side(direction, colour, place):
    cyclegan()
    settings = compose.load("export", ["run=cycle", f"direction={direction}"], Export)
    of = subject.load(place / "runs/cycle/checkpoints/last.ckpt", settings)
    held_out, learnt = samples.held_out(of, None), samples.calibration(of, None)
    assert held_out.target is None
    dominant = int(np.argmax(colour))
    for photos in (held_out.photos, learnt, samples.parity(of, None)[:-1]):
        assert photos.shape[1:] == (3, SIDE, SIDE)
        assert (photos.mean((0, 2, 3)).argmax()) == dominant
    assert len(held_out.photos) + len(learnt) == 10


def test_pix2pix_takes_its_input_from_the_side_that_its_direction_says(place, lively):
    pix2pix(lively, "data.direction=BtoA")
    of = subject.load(
        place / "runs/p2p/checkpoints/last.ckpt", compose.load("export", ["run=p2p"], Export)
    )
    held_out = samples.held_out(of, None)
    assert held_out.target is not None
    assert held_out.photos.mean((0, 2, 3)).argmax() == 0  # red
    assert held_out.target.mean((0, 2, 3)).argmax() == 2  # blue


@pytest.mark.parametrize("which", ["p2p", "cycle"])
@pytest.mark.slow
def test_without_the_pictures_one_names_others(which, place, lively, capsys):
    pix2pix(lively)
    cyclegan()
    shutil.move("own", "elsewhere")
    assert typed(which) == 1
    assert "own: the run's pictures are not here; name some with photos=DIR" in (
        capsys.readouterr().err
    )
    assert typed(which, "photos=elsewhere/A") == 0


DAMAGED = {
    "budget": lambda said: said.pop("budget"),
    "run": lambda said: said.pop("run"),
    "profile": lambda said: said["generator"].pop("profile"),
    "name": lambda said: said["generator"].pop("name"),
    "direction": lambda said: said["data"].update(direction="up"),
    "crop_size": lambda said: said["data"].update(crop_size=64.5),
}


@pytest.mark.slow
def test_settings_of_a_file_from_elsewhere_are_looked_at(place, lively, capsys):
    pix2pix(lively)
    path = Path("runs/p2p/checkpoints/last.ckpt")
    saved = torch.load(path, weights_only=True)
    for name, damage in DAMAGED.items():
        said = deepcopy(saved["distill"])
        damage(said)
        torch.save(saved | {"distill": said}, path)
        assert typed("p2p", "photos=own/A") == 1, name
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {path}: "), name


@pytest.mark.campaign
def test_nothing_that_a_file_from_elsewhere_names_is_imported(place, lively, monkeypatch):
    """The discriminator and how it learnt matter to training alone."""
    pix2pix(lively)
    (place / "evil.py").write_text("open('owned', 'w')\nclass Thing: ...\n")
    monkeypatch.syspath_prepend(place)
    path = Path("runs/p2p/checkpoints/last.ckpt")
    saved = torch.load(path, weights_only=True)
    for part in ("discriminator", "adversarial", "optimizer", "schedule"):
        saved["distill"][part] = {"_target_": "evil.Thing"}
    torch.save(saved, path)
    assert typed("p2p", "limit=10MB") == 0
    assert not (place / "owned").exists()
