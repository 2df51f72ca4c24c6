"""A student as Python calls it: pictures in, pictures out."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from distill.config.settings.commands import Stylize
from distill.config.validate import fit
from distill.core.errors import DistillError
from distill.data.decode import to_rgb
from distill.data.photos import BadPhoto, upright
from distill.stylize import render
from distill.stylize.onnx_student import OnnxStudent
from distill.stylize.pictures import InferenceSetup, pages

WANTED = "a PIL picture, an array (H, W, 3 or 4), or several: a list, or an array (N, H, W, 3 or 4)"

Pictures = TypeVar("Pictures")


class Stylizer:
    """Gives stylised pictures of the kind and size that it is given, as distill.stylize does, with
    `face`, `overlay` and all that goes with them.

    A PIL picture of any mode becomes RGB, RGBA where anything is see-through. An array is uint8
    (H, W, 3 or 4), or float in [0, 1], in 256 levels then. Several are a list, or an array (N, H,
    W, 3 or 4). `size` is the long side in pixels that the student sees, None: as loaded. Raises
    DistillError for anything else, and for values out of range.

    >>> stylize = distill.load("hayao", device="cpu")
    >>> stylize(numpy.ones((2, 48, 64, 3)), size=32).shape
    (2, 48, 64, 3)
    """

    def __init__(self, student: OnnxStudent, settings: Stylize, name: str) -> None:
        render.check_size(settings.size, student, settings.upscale)
        if settings.face == "crop" or settings.compare:
            what = "face=crop" if settings.face == "crop" else "compare=true"
            raise DistillError(f"{what}: gives pictures of another size; distill.stylize has it")
        self.setup = InferenceSetup.of(settings, student)
        self.student, self.settings, self.name = student, settings, name

    def __repr__(self) -> str:
        return f"<distill.Stylizer of {self.name}, {self.student.ran_by}>"

    def __call__(self, pictures: Pictures, size: int | None = None) -> Pictures:
        at = self.settings
        if size is not None:
            at = fit(asdict(at) | {"size": size}, type(at))
            render.check_size(at.size, self.student, at.upscale)
        return self._stylised(pictures, at)

    def _stylised(self, pictures: Any, at: Stylize) -> Any:
        if isinstance(pictures, Image.Image):
            return self._picture(pictures, at)
        if isinstance(pictures, list | tuple):
            return [self._stylised(each, at) for each in pictures]
        shape = tuple(getattr(pictures, "shape", ()))
        fits = isinstance(pictures, np.ndarray) and len(shape) in (3, 4) and shape[-1] in (3, 4)
        if not fits or not pictures.size:
            raise DistillError(f"{type(pictures).__name__} {shape or ''}: want {WANTED}")
        if len(shape) == 4:
            return np.stack([self._array(each, at) for each in pictures])
        return self._array(pictures, at)

    def _picture(self, picture: Image.Image, at: Stylize) -> Image.Image:
        what = f"a {picture.width}×{picture.height} picture"
        try:
            photo = to_rgb(upright(picture), alpha=True)
            setup = replace(self.setup, settings=at)
            (page,) = pages(photo, setup, lambda text: print(f"{what}: {text}", file=sys.stderr))
        except (BadPhoto, ValueError) as reason:
            raise DistillError(f"{what}: {reason}") from reason
        opaque = page.mode == "RGB" or page.getchannel("A").getextrema() == (255, 255)
        return page.convert("RGB") if opaque else page

    def _array(self, pixels: np.ndarray, at: Stylize) -> np.ndarray:
        what, real = f"array {pixels.shape} {pixels.dtype}", pixels.dtype.kind == "f"
        if not real and pixels.dtype != np.uint8:
            raise DistillError(f"{what}: want uint8, or float in [0, 1]")
        if real and not (pixels.min() >= 0 and pixels.max() <= 1):  # true for NaN too
            span = f"{pixels.min():.4g} to {pixels.max():.4g}"
            raise DistillError(f"{what}: has values from {span}, want [0, 1]")
        levels = (pixels * 255).round().astype(np.uint8) if real else pixels
        alpha = pixels.shape[2] == 4 or self.student.channels == 4
        stylised = self._picture(Image.fromarray(levels), at).convert("RGBA" if alpha else "RGB")
        output = np.asarray(stylised)
        return (output / 255).astype(pixels.dtype) if real else output
