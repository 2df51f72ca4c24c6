"""`export_student` of a network that is not ours, in every format there is."""

import os
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision.transforms.functional import to_pil_image

import distill
from distill.config.groups import nodes_of
from distill.core.errors import DistillError
from distill.core.nodes import class_of
from distill.export.onnx import OnnxExporter
from support.export_photos import photos
from support.export_trials import astronaut

NEEDS = {
    "coreml": "coremltools",
    "executorch": "executorch",
    "executorch_int8": "executorch",
    "ncnn": "pnnx",
}
CONVERTER = os.environ.get("DISTILL_LITERT_PYTHON")
NOWHERE = {"coreml"}  # no runtime on Linux
# Largest mean difference to PyTorch, of values in [0, 1].
LOSS = {"onnx_int8": 0.02, "executorch_int8": 0.02, "onnx_uint8": 0.003, "onnx_fp16": 0.001}


class Drawing(nn.Module):
    """Half the size and back: layers, and ways to write them, of any small network."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.out = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, photo: Tensor) -> Tensor:
        x = self.down(photo)
        x = self.up(x + torch.relu(self.deep(x)))
        return torch.sigmoid(self.out(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*nodes_of("formats")} - {"safetensors"}))
def test_any_module_in_any_format(name, tmp_path):
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    if name == "tflite" and not CONVERTER:
        pytest.skip("no DISTILL_LITERT_PYTHON, an interpreter with litert-torch")
    torch.manual_seed(0)
    network = Drawing().eval()
    settings: dict[str, Any] = {"exporter": {"size": 64}}
    if name == "tflite":
        settings["tflite"] = {"python": CONVERTER}
    if name.endswith("int8"):
        settings["calibration"] = tmp_path / "photos"
        settings["calibration"].mkdir()
        for number, picture in enumerate(photos(4)):
            to_pil_image(picture).save(tmp_path / f"photos/{number}.png")
    files = distill.export_student(network, name, out=tmp_path, **settings)
    assert files[name].exists()
    format_ = class_of(f"formats.{name}", nodes_of("formats")[name])()
    run = format_.open(tmp_path)
    assert (run is None) == (name in NOWHERE)
    if run is None:
        return
    taken, given = format_.forms(OnnxExporter(size=64))
    photo = torch.nn.functional.interpolate(astronaut(), (64, 64))
    output = torch.from_numpy(given.decode(run(taken.encode(photo.numpy()))))
    with torch.inference_mode():
        difference = (output - network(photo)).abs().mean()
    assert difference < LOSS.get(name, 1e-3)


def test_safetensors_is_of_networks_that_distill_builds(tmp_path):
    with pytest.raises(DistillError, match=r"^formats=safetensors: of distill's own networks"):
        distill.export_student(Drawing(), "safetensors", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
