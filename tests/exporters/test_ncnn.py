from __future__ import annotations

from pathlib import Path

import pytest
import torch

from distill.exporters.format import ConversionSource
from distill.exporters.ncnn import Ncnn
from distill.metrics.similarity import psnr
from support.export_photos import output_of, photos

for package in ("pnnx", "ncnn"):
    pytest.importorskip(package, reason="the extra distill[ncnn] is not installed")


def test_the_output_of_two_files_in_half_precision_is_that_of_pytorch(
    source: ConversionSource, tmp_path: Path
) -> None:
    Ncnn().convert(source, tmp_path)
    run = Ncnn().open(tmp_path)
    assert run is not None
    got = torch.cat([torch.from_numpy(run(p[None].numpy())) for p in photos(4)])
    assert psnr(got, output_of(source.folded, photos(4))).min() >= 50
    count = sum(p.numel() for p in source.folded.parameters())
    assert (tmp_path / "student.ncnn.bin").stat().st_size < 2.2 * count + 10_000
    assert (tmp_path / "student.ncnn.param").read_text().startswith("7767517\n")  # ncnn's magic
