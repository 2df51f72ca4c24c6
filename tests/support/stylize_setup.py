"""For tests of distill.stylize: pictures, and a student whose output is known at every pixel."""

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image
from torch import Tensor, nn

from distill.core.onnx_files import ABOUT, note
from distill.export.onnx import OnnxExporter
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.residual import Residual
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student
from distill.stylize.conventions import ENDS
from distill.stylize.onnx_student import OnnxStudent


def student(decoder=Residual, channels=3):
    torch.manual_seed(1)
    encoder = MobileNetV2Encoder(0.35, weights="none")
    return fold_batchnorm(
        Student(encoder, decoder(encoder.channels, encoder.strides, out_channels=channels))
    )


class Negative(nn.Module):
    """1 - x, independent of every neighbour: its output is known at every pixel."""

    def __init__(self, channels=3):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 1)
        nn.init.zeros_(self.conv.weight)
        nn.init.constant_(self.conv.bias, 0.5)  # a fourth channel: half transparent
        with torch.no_grad():
            for i in range(3):
                self.conv.weight[i, i], self.conv.bias[i] = -1, 1

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class Reshaped(nn.Module):
    """The negative by way of a shape that the graph holds on to: for 64×64 only."""

    def forward(self, x: Tensor) -> Tensor:
        return (1 - x).reshape(1, 3 * 64 * 64).reshape(1, 3, 64, 64)


def save_students(folder):
    """`hayao` (the negative) and `toon` (an untrained student) as the package holds its own."""
    for name, network in {"hayao": Negative(), "toon": student()}.items():
        model = OnnxExporter(size=64).export(network)
        note(model, ABOUT, json.dumps({end: {"range": [0, 1]} for end in ENDS}))
        onnx.save(model, folder / f"{name}.onnx")
    (folder / "README.md").write_text("no student\n")


def picture(width=48, height=40, mode="RGB"):
    """Smooth noise."""
    rng = np.random.default_rng(width * height)
    bands = len(Image.new(mode, (1, 1)).getbands())
    noise = rng.integers(0, 255, (4, 5, bands), dtype=np.uint8).squeeze()
    return Image.fromarray(noise).convert(mode).resize((width, height), Image.Resampling.BICUBIC)


def put(path, image=None, **options):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    (image or picture()).save(path, **options)


def files(folder="."):
    found = (p.relative_to(folder).as_posix() for p in Path(folder).rglob("*") if p.is_file())
    return sorted(p for p in found if not p.startswith("zoo/"))


def pixels(path, mode="RGB"):
    with Image.open(path) as image:
        return np.asarray(image.convert(mode)).astype(int)


def close(a, b, levels=2):
    return a.shape == b.shape and np.abs(a - b).max() <= levels


def shapes_run(monkeypatch):
    """The list of the shapes that networks are given from now on."""
    seen, infer = [], OnnxStudent.__call__
    monkeypatch.setattr(
        OnnxStudent, "__call__", lambda of, x, *more: (seen.append(x.shape), infer(of, x, *more))[1]
    )
    return seen
