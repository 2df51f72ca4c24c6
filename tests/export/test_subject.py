"""A run's network as a graph, without an export."""

import onnxruntime
import pytest
import torch
from torch import nn

from distill.config import compose
from distill.config.settings.commands import Export
from distill.config.settings.training import Budget
from distill.core import onnx_files
from distill.core.errors import DistillError
from distill.export import subject
from distill.export.onnx import OnnxExporter
from distill.export.subject import Subject
from support.gan_runs import RESNET, SIDE, built, settings, write
from support.students_on_file import settings_of_student

PHOTO = torch.rand(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(5))


@pytest.fixture
def cyclegan(tmp_path):
    """The checkpoint of a run with a generator for each direction, and both of them."""
    both = {"a_to_b": built(RESNET, seed=1), "b_to_a": built(RESNET, seed=2)}
    run = write(tmp_path / "r", settings("cyclegan", RESNET), **both)
    return run / "checkpoints/last.ckpt", both


@pytest.mark.parametrize(
    ("direction", "name"), [([], "a_to_b"), (["AtoB"], "a_to_b"), (["BtoA"], "b_to_a")]
)
def test_the_graph_draws_what_the_generator_of_a_direction_draws(direction, name, cyclegan):
    checkpoint, both = cyclegan
    model = subject.inference_graph(checkpoint, *direction)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (drawn,) = session.run(None, {"photo": PHOTO.numpy()})
    with torch.inference_mode():
        torch.testing.assert_close(torch.from_numpy(drawn), both[name](PHOTO), atol=1e-3, rtol=0)


def test_the_graph_says_at_which_side_its_colours_hold(cyclegan, monkeypatch):
    monkeypatch.setattr(subject, "colours_at", lambda trained: 96)
    noted = onnx_files.noted(subject.inference_graph(cyclegan[0]), onnx_files.COLOURS_AT)
    assert noted == "96"


def test_a_checkpoint_is_read_once_for_its_network_and_its_terms(cyclegan, monkeypatch):
    files, load = [], torch.load
    monkeypatch.setattr(torch, "load", lambda file, **how: files.append(file) or load(file, **how))
    subject.load(cyclegan[0], compose.load("export", ["run=r"], Export))
    assert files == [cyclegan[0]]


def of_side(side: int, channels: int, network: nn.Module) -> Subject:
    budget = Budget(macs=100_000_000, parameters=400_000, bytes=None)
    trained = settings_of_student(channels=channels, budget=budget)
    return Subject(network, trained, OnnxExporter(size=side), "AtoB")


@pytest.mark.parametrize(
    ("side", "channels", "macs", "parameters"),
    [
        (256, 3, 100_000_000, 400_000),
        (512, 3, 400_000_000, 400_000),
        (128, 3, 25_000_000, 400_000),
        (256, 4, 103_300_000, 400_200),
        (512, 4, 413_200_000, 400_200),
    ],
)
def test_limits_are_for_rgb_at_256(side, channels, macs, parameters):
    typed = compose.load("export", [], Export)
    found = subject.limits(of_side(side, channels, nn.Identity()), typed)
    assert (found.macs, found.parameters, found.bytes) == (macs, parameters, None)


def test_a_limit_that_is_typed_counts_as_it_is():
    words = ["limit=2MB", "budget.macs=7"]
    found = subject.limits(of_side(512, 4, nn.Identity()), compose.load("export", words, Export))
    assert (found.macs, found.parameters, found.bytes) == (7, 400_200, 2_000_000)


def test_a_dynamic_module_of_one_s_own_takes_another_size_too():
    """Else the file fails where it is used, in an operator of its inside."""

    class Quarters(nn.Module):
        def forward(self, photo: torch.Tensor) -> torch.Tensor:
            return photo[..., : photo.shape[-2] // 64 * 64, :]

    settings = compose.load("export", ["exporter.dynamic=true"], Export)
    with pytest.raises(DistillError, match=r"Quarters: gave \(1, 3, 256, 352\) float32, want"):
        subject.of_module(Quarters(), settings)
