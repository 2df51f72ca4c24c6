"""A student as Python calls it: pictures in, pictures out."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from threading import BoundedSemaphore
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from distill.config.settings.commands import Part, Stylize
from distill.config.validate import fit
from distill.core import process
from distill.core.arrays import MODES
from distill.core.errors import DistillError
from distill.data.decode import to_rgb
from distill.data.photos import BadPhoto, upright
from distill.stylize import render
from distill.stylize.onnx_student import OnnxStudent
from distill.stylize.pictures import InferenceSetup, pages

WANTED = "a PIL picture, an array (H, W, 3 or 4), or several: a list, or an array (N, H, W, 3 or 4)"

# Pixels in one run. Of two pictures of 256² each takes 4 % less time than alone; eight are more
# than a core's cache has room for, and take 16 % longer.
BATCH = 2**17
ROUNDING = 1e-4  # of float32, that resizing adds to a picture in [0, 1]

Batch = TypeVar("Batch")


class Stylizer:
    """Gives stylised pictures of the kind and size that it is given, as distill.stylize does, with
    `face`, `overlay` and all that goes with them.

    A PIL picture of any mode becomes RGB, RGBA where anything is see-through, L from a grey
    student. An array is uint8 (H, W, 3 or 4), or float in [0, 1], in 256 levels then. Several are a
    list, or an array (N, H, W, 3 or 4). `size` is the long side in pixels that the student sees,
    `strength` in [0, 1] how much of its output is seen over the photo, `parts` are faces, people or
    background, what is stylised; None: as loaded. Raises DistillError for anything else, and for
    values out of range.

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
        # A picture in work for each core, and one that is converted: all threads of a server at
        # once would need hundreds of MB.
        threads = settings.threads or process.compute_threads()
        self._turns = BoundedSemaphore(1 + process.cores() // threads)

    def __repr__(self) -> str:
        return f"<distill.Stylizer of {self.name}, {self.student.ran_by}>"

    def __call__(
        self,
        pictures: Batch,
        size: int | None = None,
        strength: float | None = None,
        parts: Part | Sequence[Part] | None = None,
    ) -> Batch:
        at, named = self.settings, {"size": size, "strength": strength, "parts": parts}
        if changes := {key: value for key, value in named.items() if value is not None}:
            at = fit(asdict(at) | changes, type(at))
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
        return self._array(pictures, at)

    def _pages(self, photos: Sequence[Image.Image], at: Stylize) -> list[Image.Image]:
        """Photos of one size and mode stylised, as many in one run as are fastest."""
        (width, height), whole = photos[0].size, at.face == "off" and not at.parts
        plain = photos[0].mode == "RGB" and whole and at.strength == 1 and not self.setup.wardrobe
        several = plain and len(photos) > 1 and self.student.takes_batches
        step = max(1, BATCH // (width * height or 1)) if several else 1
        what, outputs = f"a {width}×{height} picture", list[Image.Image]()
        setup, say = replace(self.setup, settings=at), partial(print, f"{what}:", file=sys.stderr)
        try:
            for start in range(0, len(photos), step):
                batch = photos[start : start + step]
                with self._turns:
                    if plain:
                        outputs += render.stylise_batch(batch, self.student, at.size, at.upscale)
                    else:
                        outputs += pages(batch[0].convert("RGBA"), setup, say)
        except (BadPhoto, ValueError) as reason:
            raise DistillError(f"{what}: {reason}") from reason
        return outputs

    def _picture(self, picture: Image.Image, at: Stylize) -> Image.Image:
        try:
            photo = upright(picture)
            alpha = photo.mode != "RGB" or "transparency" in photo.info
            photo = to_rgb(photo, alpha)
        except (BadPhoto, ValueError) as reason:
            raise DistillError(f"a {picture.width}×{picture.height} picture: {reason}") from reason
        (page,) = self._pages([photo], at)
        if "A" in page.getbands() and page.getchannel("A").getextrema() == (255, 255):
            return page.convert(page.mode[:-1])
        return page

    def _array(self, pixels: np.ndarray, at: Stylize) -> np.ndarray:
        what, real = f"array {pixels.shape} {pixels.dtype}", pixels.dtype.kind == "f"
        if not real and pixels.dtype != np.uint8:
            raise DistillError(f"{what}: want uint8, or float in [0, 1]")
        if real and not (pixels.min() >= -ROUNDING and pixels.max() <= 1 + ROUNDING):  # NaN too
            span = f"{pixels.min():.4g} to {pixels.max():.4g}"
            raise DistillError(f"{what}: has values from {span}, want [0, 1]")
        levels = (pixels * 255).round().astype(np.uint8) if real else pixels
        mode = MODES[self.student.channels]
        mode = "RGBA" if mode == "RGB" and pixels.shape[-1] == 4 else mode
        photos = [Image.fromarray(each) for each in levels.reshape(-1, *levels.shape[-3:])]
        pages = self._pages(photos, at)
        stylised = [np.atleast_3d(np.asarray(page.convert(mode))) for page in pages]
        output = np.stack(stylised) if pixels.ndim == 4 else stylised[0]
        return (output / 255).astype(pixels.dtype) if real else output
