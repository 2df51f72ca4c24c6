"""A run's network as a graph, without an export."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import torch

from distill.core import onnx_files
from distill.exporters import subject
from support.gan_runs import RESNET, SIDE, built, settings, write

PHOTO = torch.rand(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(5))


@pytest.fixture
def cyclegan(tmp_path: Path):
    """The checkpoint of a run with a generator for each direction, and both of them."""
    both = {"a_to_b": built(RESNET, seed=1), "b_to_a": built(RESNET, seed=2)}
    run = write(tmp_path / "r", settings("cyclegan", RESNET), **both)
    return run / "checkpoints/last.ckpt", both


@pytest.mark.parametrize(
    ("direction", "name"), [([], "a_to_b"), (["AtoB"], "a_to_b"), (["BtoA"], "b_to_a")]
)
def test_the_graph_draws_what_the_generator_of_a_direction_draws(direction, name, cyclegan) -> None:
    checkpoint, both = cyclegan
    model = subject.inference_graph(checkpoint, *direction)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (drawn,) = session.run(None, {"photo": PHOTO.numpy()})
    with torch.inference_mode():
        torch.testing.assert_close(torch.from_numpy(drawn), both[name](PHOTO), atol=1e-3, rtol=0)


def test_the_graph_says_at_which_side_its_colours_hold(cyclegan, monkeypatch) -> None:
    monkeypatch.setattr(subject, "_colours_at", lambda trained: 96)
    noted = onnx_files.noted(subject.inference_graph(cyclegan[0]), onnx_files.COLOURS_AT)
    assert noted == "96"
