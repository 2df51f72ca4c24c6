import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from torch import nn

from distill.export.graph.equalise import FLOOR, equalise, links
from distill.export.onnx import OnnxExporter


def chain(second: nn.Module, gains: list[float]) -> nn.Sequential:
    """1×1 (channel i is gains[i] times the red of the photo), ReLU, and another convolution."""
    first = nn.Conv2d(3, len(gains), 1)
    with torch.no_grad():
        first.weight.zero_()
        first.weight[:, 0, 0, 0] = torch.tensor(gains)
        first.bias.zero_()
    return nn.Sequential(first, nn.ReLU(), second).eval()


def run(model: onnx.ModelProto, photos: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.concatenate([session.run(None, {"photo": p[None]})[0] for p in photos])


def first_gains(model: onnx.ModelProto) -> np.ndarray:
    name = model.graph.node[0].input[1]
    tensor = next(t for t in model.graph.initializer if t.name == name)
    return numpy_helper.to_array(tensor)[:, 0, 0, 0]


@pytest.fixture
def photos():
    made = np.random.default_rng(0).random((3, 3, 32, 32), np.float32)
    made[:, 0, 0, 0] = 1.0  # the range of the red is exactly 1
    return made


@pytest.mark.parametrize("groups", [1, 4])
def test_the_output_stays_the_same(photos, groups):
    second = nn.Conv2d(4, 4, 3, padding=1, groups=groups)
    model = OnnxExporter(opset=13, size=32).export(chain(second, [0.01, 1.0, 10.0, 100.0]))
    before = run(model, photos)
    assert equalise(model, photos) == 1
    np.testing.assert_allclose(run(model, photos), before, rtol=1e-4, atol=1e-4)


def test_depthwise_channels_become_alike(photos):
    """Within the room that is left to sleeping channels: a channel below a quarter of the widest
    keeps its distance to that quarter."""
    second = nn.Conv2d(4, 4, 3, padding=1, groups=4)
    model = OnnxExporter(opset=13, size=32).export(chain(second, [1.0, 40.0, 60.0, 100.0]))
    equalise(model, photos)
    gains = first_gains(model)
    np.testing.assert_allclose(gains[1:] / gains[3], 1.0, rtol=1e-5)
    np.testing.assert_allclose(gains[0] / gains[3], 0.01 / FLOOR, rtol=1e-5)
    # On the whole neither convolution's weights grow: the scales' geometric mean is 1.
    np.testing.assert_allclose(gains.prod(), 1.0 * 40.0 * 60.0 * 100.0, rtol=1e-4)


def test_a_full_convolution_takes_over_a_part(photos):
    second = nn.Conv2d(2, 3, 1)
    nn.init.ones_(second.weight)
    model = OnnxExporter(opset=13, size=32).export(chain(second, [50.0, 100.0]))
    equalise(model, photos)
    low, high = first_gains(model)
    assert high / low == pytest.approx(2 ** (1 - 0.8), rel=1e-4)


class Forked(nn.Module):
    """The tensor between two convolutions is also added: nothing of it can be rescaled."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1)

    def forward(self, photo: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(photo))
        return x + self.second(x)


def test_a_tensor_with_two_readers_is_left_alone(photos):
    model = OnnxExporter(opset=13, size=32).export(Forked().eval())
    before = model.SerializeToString()
    assert list(links(model.graph)) == []
    assert equalise(model, photos) == 0
    assert model.SerializeToString() == before


def test_dead_channels_do_no_harm(photos):
    second = nn.Conv2d(2, 2, 1)
    model = OnnxExporter(opset=13, size=32).export(chain(second, [-1.0, -2.0]))  # ReLU: all zero
    before = run(model, photos)
    equalise(model, photos)
    np.testing.assert_array_equal(run(model, photos), before)
