"""Core ML: an ML program in half precision, picture in, picture out. Converts on Linux too."""

import contextlib
import io
import json
import logging
import shutil
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from distill.core.errors import DistillError
from distill.core.licence_terms import NOTE, read_terms
from distill.core.onnx_files import ABOUT
from distill.export.format import ConversionSource, ConvertedFormat
from distill.export.forms import Form
from distill.export.fp16 import LAYERS
from distill.export.onnx import OnnxExporter
from distill.models.students.photo_palette import PhotoPalette

SIDES, MOST = (64, 4096), 64  # pixels of a dynamic file, which needs a bound; pictures at once


class CoreML(ConvertedFormat):
    """`photo` and `stylized` are RGB pictures of the system: an app passes a camera's pixel buffer
    and shows what comes back.

    Bytes are pictures here, floats are arrays, and a student with an alpha channel gives an array
    in [0, 255] in the place of a picture: Core ML has no RGBA picture. iOS 15, macOS 12 and later.
    Nothing here runs it.
    """

    name = "coreml"
    endings = (".mlpackage",)
    needs = "pip install 'distill[coreml]'"
    default_form = "uint8_nchw"

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        input_form, output_form = (
            Form("float255") if each.kind == "uint8" else each for each in super().forms(exporter)
        )
        return input_form, output_form

    def pictures(self, exporter: OnnxExporter, channels: int) -> list[bool]:
        """Whether its input and its output are pictures; else arrays."""
        of_input, of_output = (each.kind == "uint8" for each in super().forms(exporter))
        if exporter.batch > 1 and (of_input or of_output):
            raise DistillError(f"{self.name}: a picture is one; exporter.input=float_nchw for more")
        return [of_input, of_output and channels == 3]

    def about(self, exporter: OnnxExporter, channels: int) -> dict[str, Any]:
        about = super().about(exporter, channels)
        pictures = self.pictures(exporter, channels)
        for key, picture in zip(("input", "output"), pictures, strict=True):
            about[key] |= {"type": "picture"} if picture else {}
        return about

    def convert(self, source: ConversionSource, folder: Path) -> None:
        logging.getLogger("coremltools").setLevel(logging.ERROR)  # it misses its runtime on Linux
        ct = self.package("coremltools")
        exporter, example = source.exporter, self.example(source)
        pictures = self.pictures(exporter, source.channels)
        shape: Any = tuple(example.shape)
        if exporter.dynamic:
            free = [ct.RangeDim(*SIDES, default=side) for side in exporter.sides]
            several = 1 if any(pictures) else ct.RangeDim(1, MOST, default=1)
            shape = ct.Shape(shape=self.forms(exporter)[0].shape(3, several, *free))
        rgb = {"color_layout": ct.colorlayout.RGB}
        types = [(ct.ImageType, rgb) if each else (ct.TensorType, {}) for each in pictures]
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            model = ct.convert(
                # A copy: it writes into tensors of the network, which other formats are made of.
                torch.jit.trace(deepcopy(self.traceable(source)), example),
                convert_to="mlprogram",
                inputs=[types[0][0](name="photo", shape=shape, **types[0][1])],
                outputs=[types[1][0](name="stylized", **types[1][1])],
                compute_precision=_precision(ct, source.folded),
                minimum_deployment_target=ct.target.iOS15,
                skip_model_load=True,
            )
        terms, about = read_terms(source.description.terms), self.about(exporter, source.channels)
        model.author, model.license, model.version = "distill", terms.line, about["version"]
        model.short_description = f"{about['style']}: a photo to its stylised picture"
        for end, text in (("input", model.input_description), ("output", model.output_description)):
            low, high = about[end]["range"]
            words = f"{about[end]['channels']}, values {low} to {high}, {about[end]['shape']}"
            text[about[end]["name"]] = words
        model.user_defined_metadata.update({NOTE: terms.json(), ABOUT: json.dumps(about)})
        package = folder / self.files[0]
        model.save(str(package))
        # What a scratch folder of its own left behind, and files that only their owner may read.
        shutil.rmtree(getattr(model, "package_path", "") or package / "none", ignore_errors=True)
        for path in package.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


def _precision(ct: Any, network: nn.Module) -> Any:
    """float16; of a network that predicts inks in its layers alone, see export.fp16."""
    if not any(isinstance(each, PhotoPalette) for each in network.modules()):
        return ct.precision.FLOAT16
    layers = {scope.strip("/") for scope in LAYERS}
    names = ct.converters.mil.mil.scope.ScopeSource.TORCHSCRIPT_MODULE_NAME
    return ct.transform.FP16ComputePrecision(lambda op: not layers.isdisjoint(op.scopes[names]))
