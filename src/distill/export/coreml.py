"""Core ML: an ML program in half precision, picture in, picture out. Converts on Linux too."""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from distill.core.terms import NOTE, read_terms
from distill.export.format import ConversionSource, ConvertedFormat


class CoreML(ConvertedFormat):
    """`photo` is an RGB picture of the system (values 0 to 255, scaled by 1/255 at the border).

    `stylized` is one too, so an app passes a camera's pixel buffer and shows what comes back: the
    ×255 that this needs is in the program. A student with an alpha channel gives an array in
    [0, 1] instead: Core ML has no RGBA picture. iOS 15, macOS 12 and later. Nothing here runs it.
    """

    name = "coreml"
    endings = (".mlpackage",)
    needs = "pip install 'distill[coreml]'"

    def convert(self, source: ConversionSource, folder: Path) -> None:
        logging.getLogger("coremltools").setLevel(logging.ERROR)  # it misses its runtime on Linux
        ct = self.package("coremltools")
        shape, rgb = (1, 3, source.exporter.side, source.exporter.side), ct.colorlayout.RGB
        picture = source.channels == 3
        network = self.traceable(source)
        network = Scaled(network, 255.0) if picture else network
        out = {"color_layout": rgb} if picture else {}
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            model = ct.convert(
                torch.jit.trace(network.eval(), torch.zeros(shape)),
                convert_to="mlprogram",
                inputs=[ct.ImageType("photo", shape=shape, scale=1 / 255, color_layout=rgb)],
                outputs=[(ct.ImageType if picture else ct.TensorType)("stylized", **out)],
                compute_precision=ct.precision.FLOAT16,
                minimum_deployment_target=ct.target.iOS15,
                skip_model_load=True,
            )
        terms = read_terms(source.description.terms)
        model.license = terms.line
        model.user_defined_metadata[NOTE] = terms.json()
        package = folder / self.files[0]
        model.save(str(package))
        # What a scratch folder of its own left behind, and files that only their owner may read.
        shutil.rmtree(getattr(model, "package_path", "") or package / "none", ignore_errors=True)
        for path in package.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


class Scaled(nn.Module):
    """A network's output times a number."""

    def __init__(self, network: nn.Module, scale: float) -> None:
        super().__init__()
        self.network, self.scale = network, scale

    def forward(self, photo: Tensor) -> Tensor:
        return self.network(photo) * self.scale
