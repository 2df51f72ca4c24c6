"""Fixtures: networks to convert, of the tests of all formats."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from distill.core.images import to_tensor
from distill.core.licence_terms import Licence, Terms
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.export.format import ConversionSource
from distill.export.onnx import OnnxExporter
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student
from distill.runs.published_student import PublishedStudent
from support.export_photos import SIZE, photos
from support.export_trials import SIDES, pictures


@pytest.fixture(scope="session", params=["nnconv", "detail"])
def source(request, lively):
    """A small folded student of either profile and 48 soft photos."""
    torch.manual_seed(4)
    encoder = MobileNetV2Encoder(0.35, weights="none")
    decoder = {"nnconv": NNConv, "detail": Detail}[request.param]
    student = Student(encoder, decoder(encoder.channels, encoder.strides))
    with torch.no_grad():  # a random network's logits are wild, and rounding errors with them
        student.decoder.out.weight *= 0.2
    folded = fold_batchnorm(lively(student))
    profile = "strict" if request.param == "nnconv" else "transposed"
    terms = Terms((Licence.from_text("teacher", "CC BY-NC 4.0"),))
    about = '{"style": "toon", "version": "1", "weights": "0"}'
    exporter = OnnxExporter(opset=9, size=SIZE, profile=profile, terms=terms.json(), about=about)
    said: Any = SimpleNamespace(terms=terms.plain())  # what a format reads of a description
    return ConversionSource(folded, exporter, 3, lambda: photos(48, seed=1), student, said)


@pytest.fixture(scope="module", params=["toon", "hayao-small"])
def shipped(request):
    """One without and one with statistics of the whole picture, at 64×96."""
    student = PublishedStudent.shipped(request.param)
    told = student.student.statistics is not None
    about = json.dumps({"style": request.param, "version": "1", "weights": "0"})
    exporter = OnnxExporter(18 if told else 11, SIDES, profile="any", about=about)
    return ConversionSource(
        student.student, exporter, 3, lambda: pictures(48), student.student, student.description
    )


@pytest.fixture(scope="module")
def told():
    """A trained one: where weights are random, a rounding error is seen."""
    shipped = PublishedStudent.shipped("hayao-small")
    trained = shipped.student
    about = '{"style": "hayao", "version": "1", "weights": "0"}'
    exporter = OnnxExporter(opset=11, size=256, profile="global", about=about)
    return ConversionSource(trained, exporter, 3, crops, trained, shipped.description)


def crops() -> Tensor:
    """Forty of scikit-image's photographs but the astronaut, at several sizes."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for photo in demo_photos()[:-1]:
        for size in torch.randint(256, 400, (8,), generator=generator).tolist():
            square = to_tensor(centre_square(read_photo(photo.path), size))
            top, left = torch.randint(0, size - 255, (2,), generator=generator).tolist()
            found.append(square[:, top : top + 256, left : left + 256])
    return torch.stack(found)


@pytest.fixture
def photo(tmp_path):
    pixels = (pictures(1)[0].permute(1, 2, 0).numpy() * 255).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"
