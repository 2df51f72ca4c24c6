"""What of a picture is the subject: a saliency network's answer, a folder of masks, or alpha."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from onnxruntime import InferenceSession
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from distill.core.errors import DistillError
from distill.core.images import IMAGENET_MEAN, IMAGENET_STD, to_tensor
from distill.core.sessions import open_file
from distill.data.decode import PICTURES, BadPhoto
from distill.data.partners import Partners, check_shapes, match
from distill.data.photos import read_photo

SLACK = 0.1  # probabilities leave [0, 1] by so much where a file resizes them bicubically


class SaliencyNetwork:
    """A saliency network in an ONNX file, such as U²-Net (Qin et al. 2020).

    It takes one picture, N×3×S×S, and its first output is N×1×S×S: probabilities, as public files
    of U²-Net give, or logits where any value lies clearly outside of [0, 1]. `size` is S where the
    file leaves that open. The file is opened on the first call, so that the object can be handed
    to another process.

    Raises DistillError on that call for a file that is no such network.
    """

    def __init__(self, path: Path, size: int, norm: Literal["imagenet", "none"]) -> None:
        self.path, self.size, self.norm = path, size, norm
        self._named = f"sketch.mask={path}"

    def __call__(self, picture: Tensor) -> Tensor:
        """The mask (1, H, W) in [0, 1] of an RGB picture (3, H, W)."""
        session, input_name, side = self._opened
        small = F.interpolate(picture[None], (side, side), mode="bilinear", antialias=True)
        if self.norm == "imagenet":
            mean, std = (torch.tensor(v).view(3, 1, 1) for v in (IMAGENET_MEAN, IMAGENET_STD))
            small = (small - mean) / std
        try:
            output = session.run(None, {input_name: small.numpy()})[0]
        except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
            shape = tuple(small.shape)
            raise DistillError(f"{self._named}: cannot run on {shape} float32") from error
        if output.ndim != 4 or output.shape[:2] != (1, 1):
            raise DistillError(f"{self._named}: its first output is {output.shape}, not N×1×S×S")
        values = torch.from_numpy(np.asarray(output, np.float32))
        if values.min() < -SLACK or values.max() > 1 + SLACK:
            values = values.sigmoid()
        size = picture.shape[-2:]
        values = values.clamp(0, 1)
        return F.interpolate(values, size, mode="bilinear", antialias=True)[0].clamp(0, 1)

    @cached_property
    def _opened(self) -> tuple[InferenceSession, str, int]:
        """The session, the name of its input, and the side of the picture that it takes."""
        session = open_file(self.path, torch.get_num_threads(), self._named)
        inputs = session.get_inputs()
        shape = inputs[0].shape
        if len(inputs) != 1 or len(shape) != 4 or shape[1] != 3:
            raise DistillError(f"{self._named}: takes no picture N×3×S×S, but {shape}")
        height, width = shape[2:]
        if isinstance(height, int) and isinstance(width, int) and height != width:
            raise DistillError(f"{self._named}: takes {height}×{width} pixels, not a square")
        return session, inputs[0].name, height if isinstance(height, int) else self.size


class MaskFolder:
    """Masks in a folder, with the stem of their photo: grey, white is the subject, any size."""

    def __init__(self, path: Path) -> None:
        self.path = path
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
        self.names = [name for name in names if Path(name).suffix.lower() in PICTURES]
        self._partners = Partners(self.names)
        if not self.names:
            raise DistillError(f"sketch.mask={path}: no masks in it (jpg, jpeg, png or webp)")

    def check(self, photos: Sequence[Path]) -> None:
        """Raises DistillError where two masks may be one photo's, or two photos one mask's."""
        setting, names = f"sketch.mask={self.path}: ", [photo.name for photo in photos]
        match([*map(str, photos)], self.names, setting, names)

    def file(self, photo: Path) -> Path | None:
        names = self._partners.all_of(photo.name)
        return self.path / names[0] if names else None

    def __call__(self, photo: Path, size: tuple[int, int]) -> Tensor:
        """The mask (1, H, W) in [0, 1] of a photo of that width and height. Raises BadPhoto."""
        path = self.file(photo)
        if path is None:
            raise BadPhoto(f"no mask of the name {photo.stem!r}")
        try:
            mask = read_photo(path, least=1).convert("L")
        except BadPhoto as reason:
            raise BadPhoto(f"its mask {path.name!r}: {reason}") from None
        check_shapes(size, mask.size, "its mask")
        if mask.size != size:
            mask = mask.resize(size, Image.Resampling.BILINEAR)
        return torch.from_numpy(np.asarray(mask, np.float32) / 255)[None]


def of_alpha(picture: Image.Image) -> Tensor:
    """The transparency of an RGBA picture, (1, H, W). Raises BadPhoto where it has none."""
    alpha = to_tensor(picture)[3:]
    if alpha.min() == 1:
        raise BadPhoto("nothing in it is transparent")
    return alpha
