from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from distill.core.licence_terms import NOTE, read_terms
from distill.export.format import ConversionSource
from distill.runs.published_student import PublishedStudent
from distill_formats.coreml import CoreML
from support.export_photos import SIZE

pytest.importorskip("coremltools", reason="the extra distill[coreml] is not installed")


def spec_of(source: ConversionSource, folder: Path) -> Any:
    import coremltools

    CoreML().convert(source, folder)
    assert [p.name for p in folder.iterdir()] == ["student.mlpackage"]
    return coremltools.models.MLModel(
        str(folder / "student.mlpackage"), skip_model_load=True
    ).get_spec()


class Subtracts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 1)
        self.register_buffer("levels", torch.rand(1, 3, 1, 1))

    def forward(self, photo: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.layer(photo) - self.get_buffer("levels"))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
def test_what_the_converter_writes_into_is_a_copy(source, tmp_path):
    network = Subtracts()
    before = network.get_buffer("levels").clone()
    spec_of(replace(source, folded=network), tmp_path)
    assert torch.equal(network.get_buffer("levels"), before)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
def test_inks_are_chosen_in_float32(source, tmp_path):
    student = PublishedStudent.shipped("poster").student
    exporter = replace(source.exporter, opset=18, size=256, profile="global")
    spec = spec_of(replace(source, folded=student, exporter=exporter), tmp_path)
    (block,) = spec.mlProgram.functions["main"].block_specializations.values()
    made = [(each.type, each.outputs[0].type.tensorType.dataType) for each in block.operations]
    float16, float32 = 10, 11  # of MIL.proto
    assert {kind for name, kind in made if name in ("softmax", "matmul", "linear")} == {float32}
    assert {kind for name, kind in made if name == "conv_transpose"} == {float16}


def operations(spec: Any) -> Counter:
    (function,) = spec.mlProgram.functions.values()
    (block,) = function.block_specializations.values()
    return Counter(operation.type for operation in block.operations)


@pytest.mark.slow
def test_an_ml_program_in_half_precision_from_picture_to_picture(source, tmp_path):
    before = {k: v.clone() for k, v in source.folded.state_dict().items()}
    spec = spec_of(source, tmp_path)
    assert all(torch.equal(before[k], v) for k, v in source.folded.state_dict().items())
    assert spec.WhichOneof("Type") == "mlProgram"
    assert spec.specificationVersion == 6  # iOS 15 and macOS 12
    photo, stylized = spec.description.input[0], spec.description.output[0]
    assert (photo.name, stylized.name) == ("photo", "stylized")
    for end in (photo, stylized):
        picture = end.type.imageType
        assert (picture.width, picture.height) == (SIZE, SIZE)
        assert picture.colorSpace == picture.ColorSpace.Value("RGB")
    metadata = spec.description.metadata
    assert metadata.license == "commercial use not allowed (CC BY-NC 4.0)"
    assert read_terms(metadata.userDefined[NOTE]).commercial == "no"
    done = operations(spec)
    convolutions = sum(isinstance(m, nn.Conv2d) for m in source.folded.modules())
    assert done["conv"] == convolutions
    assert done["conv_transpose"] == sum(
        isinstance(m, nn.ConvTranspose2d) for m in source.folded.modules()
    )
    # Two bytes a weight, each piece in the file at a multiple of 64 bytes.
    weights = next(tmp_path.rglob("weight.bin")).stat().st_size
    count = sum(p.numel() for p in source.folded.parameters())
    assert weights < 2 * count + 128 * 2 * (convolutions + 2)
    assert weights > 1.8 * sum(p.numel() for p in source.folded.parameters() if p.dim() == 4)
    assert all(p.stat().st_mode & 0o044 for p in tmp_path.rglob("*") if p.is_file())


@pytest.mark.parametrize("source", ["detail"], indirect=True)
def test_transparency_comes_as_an_array(tmp_path, source):
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Sigmoid()).eval()
    spec = spec_of(replace(source, folded=network, channels=4), tmp_path)
    end = spec.description.output[0].type
    assert end.WhichOneof("Type") == "multiArrayType"
    assert operations(spec)["sigmoid"] == 1
    assert operations(spec)["mul"] == 2  # 1/255 of the photo, and 255 of the array
