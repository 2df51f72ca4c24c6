"""What a report says of the teacher: counted by hand for networks of one layer."""

import pytest
from torch import Tensor, nn

from distill.export.float32_export import figures_of
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.models.teachers.teacher import Teacher
from support.onnx_networks import negative


class OneLayer(Teacher):
    """3 → 3 channels by 1×1: 12 parameters, 9 MACs a pixel."""

    def __init__(self, fixed: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.layer, self.fixed = nn.Conv2d(3, 3, 1), fixed

    def forward(self, photo: Tensor) -> Tensor:
        return self.layer(photo).sigmoid()


@pytest.mark.parametrize("fixed", [None, (32, 32)])
def test_a_network_is_counted_and_timed(fixed, capsys):
    figures = figures_of(OneLayer(fixed), (32, 32))
    assert figures.pop("ms, 1 thread of this CPU") > 0
    assert figures == {"parameters": 12, "bytes": 48, "MACs": 9 * 32 * 32}
    assert capsys.readouterr().out == ""


def test_one_of_another_size_is_only_counted(capsys):
    assert figures_of(OneLayer((64, 32)), (32, 32)) == {"parameters": 12, "bytes": 48}
    said = "no time and MACs of the teacher: it does not take 32×32\n"
    assert capsys.readouterr().out == said


def test_one_without_weights_has_no_size():
    class Plain(Teacher):
        def forward(self, photo: Tensor) -> Tensor:
            return 1 - photo

    assert set(figures_of(Plain(), (32, 32))) == {"ms, 1 thread of this CPU"}


def test_a_file_is_counted(tmp_path):
    path = tmp_path / "teacher.onnx"
    negative(side=64).save(str(path))
    size = path.stat().st_size
    expected = {"bytes": size, "parameters": 12, "MACs": 9 * 64 * 64}
    assert figures_of(OnnxTeacher(path), (64, 64)) == expected
