from types import SimpleNamespace
from typing import Any

import pytest
import torch

from distill.core.terms import Licence, Terms
from distill.export.format import ConversionSource
from distill.export.onnx import OnnxExporter
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student
from support.export_photos import SIZE, photos


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
