"""The sizes of conf/student/: what each promises, exports and lets the user say."""

from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

from distill.config import compose, groups
from distill.config.settings.training import Train
from distill.export.onnx import OnnxExporter, parity
from distill.metrics import complexity
from distill.models.batchnorm import fold_batchnorm
from distill.models.build import build_student
from distill.models.students.student import Student

MACS = {  # at most, and nearly that
    "nano": 31.3e6,
    "small": 62.65e6,
    "strokes": 117e6,
    "strokes_wide": 261e6,
    "base": 125e6,
    "base_plus": 125e6,
    "wide": 250e6,
}
SIZES = groups.choices("student")


def settings(*overrides: str) -> Train:
    return compose.load("train", [*overrides, "encoder.weights=none"], Train)


def student(of: Train) -> Student:
    return build_student(of.encoder, of.decoder.build, of.channels)


def exported(of: Train, network: nn.Module, path: Path, size: int) -> onnx.ModelProto:
    model = OnnxExporter(size=size, profile=of.decoder.profile).export(network)
    onnx.save(model, path)
    return model


def test_there_are_these_sizes_and_base_is_the_default():
    assert set(SIZES) == set(MACS)
    assert settings("student=base") == settings()


@pytest.mark.slow
def test_global_statistics_add_the_parameters_that_the_docs_say():
    added = {}
    for size in SIZES:
        chosen = settings(f"student={size}")
        plain, whole = (
            build_student(chosen.encoder, chosen.decoder.build, 3, statistics)
            for statistics in ("none", "thumbnail")
        )
        added[size] = complexity.parameters(whole) - complexity.parameters(plain)
    least, most = min(added, key=added.get), max(added, key=added.get)
    text = f"{added[least]:,} (`{least}`) to {added[most]:,} (`{most}`) parameters"
    assert text in (Path(__file__).parents[3] / "docs/students.md").read_text()


@pytest.mark.parametrize("statistics", ["none", "thumbnail"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.slow
def test_costs_what_it_promises_and_keeps_its_budget(size, statistics, tmp_path):
    chosen = settings(f"student={size}", f"global_statistics={statistics}")
    network = build_student(chosen.encoder, chosen.decoder.build, 3, statistics).eval()
    for values in network.parameters():  # zeros would be folded away
        if not values.any():
            nn.init.normal_(values, 0, 0.01)
    path = tmp_path / "s.onnx"
    profile = chosen.decoder.profile if statistics == "none" else "global"
    model = OnnxExporter(profile=profile).export(fold_batchnorm(network))
    onnx.save(model, path)
    macs = complexity.graph_macs(model)
    if statistics == "none":
        assert 0.95 * MACS[size] < macs <= MACS[size]
    assert macs <= (chosen.budget.macs or 0)
    assert complexity.parameters(network) <= (chosen.budget.parameters or 0)
    assert path.stat().st_size <= (chosen.budget.bytes or 0)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(
    "words",
    [
        *([f"student={size}"] for size in SIZES),
        ["student=nano", "encoder.stages=4"],
        ["encoder.stages=4", "decoder=fastdepth"],
        ["encoder.stages=4", "decoder=residual"],
        ["encoder.width=0.3", "encoder.expansion=2", "decoder.build.context_kernel=5"],
    ],
)
@pytest.mark.campaign
def test_exports_as_pytorch_draws(lively, tmp_path, words, channels):
    chosen = settings(*words, f"channels={channels}")
    network = fold_batchnorm(lively(student(chosen)))
    exported(chosen, network, tmp_path / "s.onnx", 64)
    photos = torch.rand(2, 3, 64, 64)
    assert parity(tmp_path / "s.onnx", network, photos) <= 1e-4
    with torch.no_grad():
        output = network(photos)
    assert output.shape == (2, channels, 64, 64)
    assert output.std() > 0.01


@pytest.mark.parametrize("size", ["strokes", "base"])  # the others have parts of these
def test_gradients_reach_every_parameter(size):
    network = student(settings(f"student={size}")).train()
    (network(torch.rand(4, 3, 64, 64)) - torch.rand(4, 3, 64, 64)).square().mean().backward()
    dead = [n for n, p in network.named_parameters() if p.grad is None or not p.grad.any()]
    assert not dead


@pytest.mark.campaign
def test_what_is_typed_wins_over_the_size():
    small = settings("student=small")
    wider = settings("decoder.build.quarter=40", "encoder.width=0.5", "student=small")
    assert wider.decoder.build == small.decoder.build | {"quarter": 40}
    assert wider.encoder == small.encoder | {"width": 0.5}
    mixed = settings("encoder=mobilenetv2_100", "student=nano")
    assert (mixed.encoder["width"], mixed.encoder["expansion"]) == (1.0, 6)
    assert mixed.budget == settings("encoder=mobilenetv2_100").budget
    assert mixed.decoder == settings("student=nano").decoder
    assert settings("decoder=nnconv", "student=nano").decoder == settings("decoder=nnconv").decoder
