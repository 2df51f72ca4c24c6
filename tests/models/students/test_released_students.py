from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student
from support.released_students import from_released


def student() -> Student:
    encoder = MobileNetV2Encoder(0.5, weights="none")
    return Student(encoder, NNConv(encoder.channels, encoder.strides)).eval()


def released(assets: Path, name: str) -> dict[str, torch.Tensor]:
    path = assets / "peer" / f"{name}.pth"
    return from_released(torch.load(path, map_location="cpu", weights_only=True))


def photo(assets: Path) -> np.ndarray:
    """The centre square of the release's test picture: 1×3×256×256 in [0, 1]."""
    picture = Image.open(assets / "peer/test.png").convert("RGB")
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = picture.crop((left, top, left + side, top + side)).resize((256, 256))
    return np.asarray(square, np.float32).transpose(2, 0, 1)[None] / 255


def test_names():
    names = ["features.0.0.weight", "features.16.conv.3.bias", "upscale1.1.running_var"]
    state = {n: torch.zeros(1) for n in [*names, "upscale5.bias"]}
    assert list(from_released(state)) == [
        "encoder.blocks.0.0.weight",
        "encoder.blocks.16.conv.3.bias",
        "decoder.up16.1.running_var",
        "decoder.out.bias",
    ]
    with pytest.raises(KeyError):
        from_released({"classifier.1.weight": torch.zeros(1)})


@pytest.mark.parametrize("name", ["paprika", "webtoon", "face_v2"])
def test_our_network_is_the_released_one(assets, name):
    ours = student()
    state = released(assets, name)
    assert state.keys() == ours.state_dict().keys()
    x = photo(assets)
    with torch.no_grad():
        untrained = ours(torch.from_numpy(x)).numpy()
        ours.load_state_dict(state)
        output = ours(torch.from_numpy(x)).numpy()
    session = onnxruntime.InferenceSession(
        assets / "peer" / f"{name}.onnx", providers=["CPUExecutionProvider"]
    )
    (prob,) = session.run(["prob"], {"data": x})
    assert np.abs(output - prob / 255).max() <= 1e-4
    assert np.abs(untrained - prob / 255).max() > 0.1
