import pytest
import torch

from distill.core.errors import DistillError
from distill.metrics.similarity import psnr
from distill_formats.ncnn import Ncnn
from support.export_photos import output_of, photos

for package in ("pnnx", "ncnn"):
    pytest.importorskip(package, reason="the extra distill[ncnn] is not installed")


@pytest.mark.slow
def test_the_output_of_two_files_in_half_precision_is_that_of_pytorch(source, tmp_path):
    Ncnn().convert(source, tmp_path)
    run = Ncnn().open(tmp_path)
    assert run is not None
    got = torch.cat([torch.from_numpy(run(p[None].numpy())) for p in photos(4)])
    assert psnr(got, output_of(source.folded, photos(4))).min() >= 50
    count = sum(p.numel() for p in source.folded.parameters())
    assert (tmp_path / "student.ncnn.bin").stat().st_size < 2.2 * count + 10_000
    assert (tmp_path / "student.ncnn.param").read_text().startswith("7767517\n")  # ncnn's magic


@pytest.mark.slow
def test_a_converter_that_breaks_says_its_last_line(source, tmp_path, monkeypatch):
    fake = tmp_path / "pnnx"
    fake.write_text("#!/bin/sh\necho first >&2\necho no such operator >&2\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setattr("pnnx.EXEC_PATH", str(fake))
    with pytest.raises(DistillError, match=r"^ncnn: pnnx failed \(3: no such operator\)$"):
        Ncnn().convert(source, tmp_path)
