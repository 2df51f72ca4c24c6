"""ncnn: Tencent's engine for phones, through pnnx; weights stored in half precision."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import numpy as np
import torch

from distill.core.errors import DistillError
from distill.export.format import ConversionSource, ConvertedFormat, Inference

TIMEOUT = 300  # seconds; some 10 are usual


class Ncnn(ConvertedFormat):
    """NAME.ncnn.param and NAME.ncnn.bin; blob `in0` is RGB in [0, 1], `out0` the output."""

    name = "ncnn"
    endings = (".ncnn.param", ".ncnn.bin")
    needs = "pip install 'distill[ncnn]'"
    runs_in = "ncnn"

    def convert(self, source: ConversionSource, folder: Path) -> None:
        pnnx = self.package("pnnx")
        size = source.exporter.side
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tracing is deprecated, and what pnnx reads
            traced = torch.jit.trace(self.traceable(source).eval(), torch.zeros(1, 3, size, size))
        traced.save(str(folder / f"{self.stem}.pt"))
        command = [pnnx.EXEC_PATH, f"{self.stem}.pt", f"inputshape=[1,3,{size},{size}]", "fp16=1"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise DistillError(f"{self.name}: pnnx took longer than {TIMEOUT} s") from None
        if not all((folder / name).is_file() for name in self.files):
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise DistillError(f"{self.name}: pnnx failed ({done.returncode}: {' '.join(said)})")

    def open(self, folder: Path) -> Inference | None:
        try:
            import ncnn
        except ImportError:
            return None
        net = ncnn.Net()
        net.opt.num_threads = 1
        param, weights = (str(folder / name) for name in self.files)
        if net.load_param(param) or net.load_model(weights):
            raise DistillError(f"{self.name}: ncnn cannot read {param}")

        def run(photo: np.ndarray) -> np.ndarray:
            pixels = np.ascontiguousarray(photo[0])  # a Mat has no part in what it points to
            with net.create_extractor() as extractor:
                extractor.input("in0", ncnn.Mat(pixels).clone())
                _, output = extractor.extract("out0")
                return np.array(output)[None]

        return run
