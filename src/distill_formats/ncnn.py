"""ncnn: Tencent's engine for phones, through pnnx; weights stored in half precision."""

import subprocess
import warnings
from pathlib import Path

import numpy as np
import torch

from distill.core.errors import DistillError
from distill.core.files import write_json
from distill.export.format import ConversionSource, ConvertedFormat, Inference
from distill.export.forms import Form
from distill.export.onnx import OnnxExporter
from distill.models.students.photo_palette import PhotoPalette

TIMEOUT = 300  # seconds; some 10 are usual
NOTE = "its inks want float32: opt.use_fp16_arithmetic = opt.use_fp16_storage = false"


class Ncnn(ConvertedFormat):
    """NAME.ncnn.param and NAME.ncnn.bin, blobs `in0` and `out0`; NAME.ncnn.json says what they are.

    A Mat is of floats, channels first: bytes become [0, 255] in Mat::from_pixels, to_pixels cuts
    them off again.
    """

    name = "ncnn"
    endings = (".ncnn.param", ".ncnn.bin", ".ncnn.json")
    names = ("in0", "out0")
    needs = "pip install 'distill[ncnn]'"
    runs_in = "ncnn"

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        if exporter.batch > 1:
            raise DistillError(f"{self.name}: takes one picture; leave exporter.batch out")
        forms = super().forms(exporter)
        if any(each.last and each.kind != "uint8" for each in forms):
            raise DistillError(f"{self.name}: its Mat has channels first; take float_nchw")
        input_form, output_form = (
            Form("float255" if each.white == 255 else "float") for each in forms
        )
        return input_form, output_form

    def convert(self, source: ConversionSource, folder: Path) -> None:
        pnnx = self.package("pnnx")
        height, width = source.exporter.sides
        shapes = [f"inputshape=[1,3,{height},{width}]"]
        if source.exporter.dynamic:  # a second shape tells pnnx which dimensions are free
            shapes.append(f"inputshape2=[1,3,{height + 32},{width + 64}]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tracing is deprecated, and what pnnx reads
            traced = torch.jit.trace(self.traceable(source), self.example(source))
        traced.save(str(folder / f"{self.stem}.pt"))
        command = [pnnx.EXEC_PATH, f"{self.stem}.pt", *shapes, "fp16=1"]
        try:
            process = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise DistillError(f"{self.name}: pnnx took longer than {TIMEOUT} s") from None
        if any(isinstance(each, PhotoPalette) for each in source.folded.modules()):
            self.note = NOTE
        about = self.about(source.exporter, source.channels)
        write_json(folder / self.files[2], about | {"terms": source.description.terms})
        if not all((folder / name).is_file() for name in self.files):
            message = (process.stderr or process.stdout).strip().splitlines()[-1:]
            raise DistillError(
                f"{self.name}: pnnx failed ({process.returncode}: {' '.join(message)})"
            )

    def open(self, folder: Path) -> Inference | None:
        try:
            import ncnn
        except ImportError:
            return None
        net = ncnn.Net()
        net.opt.num_threads = 1
        param, weights = (str(folder / name) for name in self.files[:2])
        if net.load_param(param) or net.load_model(weights):
            raise DistillError(f"{self.name}: ncnn cannot read {param}")

        def run(photo: np.ndarray) -> np.ndarray:
            pixels = np.ascontiguousarray(photo[0])  # a Mat has no part in what it points to
            with net.create_extractor() as extractor:
                extractor.input("in0", ncnn.Mat(pixels).clone())
                _, output = extractor.extract("out0")
                return np.array(output)[None]

        return run
