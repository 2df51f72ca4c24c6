"""tools/prune.py: channels that say nothing go without a trace; the others are refitted."""

import sys
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from PIL import Image

import distill
from distill.runs.published_student import PublishedStudent

SHAPE = {"student": "nano", "encoder": {"weights": "none", "expansion": 4}}


@pytest.fixture
def prune(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "tools"))
    import prune

    yield prune
    sys.modules.pop("prune")


@pytest.fixture
def photos(tmp_path):
    noise = torch.Generator().manual_seed(1)
    for number in range(2):
        pixels = torch.randint(256, (256, 256, 3), generator=noise, dtype=torch.uint8)
        Image.fromarray(pixels.numpy()).save(tmp_path / f"{number}.png")
    return sorted(tmp_path.iterdir())


def test_the_rows_are_found_that_the_targets_are_made_of(prune):
    inputs = torch.randn(6, 500, dtype=torch.float64)
    inputs[-1] = 1
    targets = 2 * inputs[1:2] - 3 * inputs[4:5] + 0.5
    keep, weights = prune.fitted(inputs, targets, 2)
    assert keep == [1, 4]
    assert torch.allclose(weights, torch.tensor([[2, -3, 0.5]], dtype=torch.float64), atol=1e-5)


@pytest.mark.slow
def test_channels_that_change_nothing_go_without_a_trace(prune, photos):
    torch.manual_seed(0)
    student = distill.student_network(**SHAPE).eval()
    for block in student.student.encoder.blocks[2:]:
        if hasattr(block, "conv"):  # half of what is inside is not read
            with torch.no_grad():
                block.conv[2].weight[:, ::2] = 0
    decoder = student.student.decoder
    with torch.no_grad():
        decoder.out.weight[12:] = 0
        for block in decoder.at2:
            block.added[2].weight[:12, 12:] = 0
    picture = torch.rand(1, 3, 64, 96)
    before = student(picture)
    narrow = prune.prune(student, photos, [2] * 5, half=12)
    assert (narrow(picture) - before).abs().max() < 1e-3
    assert narrow.description.encoder["expansion"] == [2] * 5
    assert narrow.student.encoder.blocks[4].conv[1][0].weight.shape[0] == 16
    assert narrow.student.decoder.out.weight.shape[0] == 12


@pytest.mark.slow
def test_a_student_learns_what_it_gave(prune, photos, monkeypatch, tmp_path):
    student = distill.student_network(**SHAPE).eval()
    before, crop = deepcopy(student.student), next(prune.crops(photos))
    with torch.no_grad():
        student.student.decoder.out.bias += 0.3
        error = (student.student(crop) - before(crop)).abs().mean()
        monkeypatch.setattr(prune, "RATE", 0.03)
    prune.train(student.student, before, photos, 12)
    assert (student.student(crop) - before(crop)).abs().mean() < 0.5 * error
    narrow = prune.prune(student, photos, [2] * 5, steps=1)
    narrow.save(tmp_path / "narrow.safetensors")
    assert torch.equal(PublishedStudent.of(tmp_path / "narrow.safetensors")(crop), narrow(crop))
