"""Pictures as bytes, by the name of a codec: how small, how fast to decode, lossless or not.

Milliseconds of CPU time to decode and bytes of a picture at 256², of benchmarks/loading.py on
photos and stylised pictures: docs/shards.md.
"""

from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.core.arrays import PNG
from distill.core.errors import DistillError

CodecName = Literal["raw", "qoi", "webp", "png", "jpeg"]
Content = bytes | memoryview


class PictureCodec(ABC):
    """8-bit RGB or RGBA pictures to bytes and back; `suffix` is that of a file that holds them."""

    suffix: str
    lossless: bool = True
    transparent: bool = True  # keeps RGBA

    @abstractmethod
    def encode(self, image: Image.Image) -> bytes:
        """The picture's bytes, the same whenever they are made."""

    @abstractmethod
    def decode(self, content: Content) -> Image.Image:
        """The picture; raises whatever its library raises for damaged bytes."""


class ArrayCodec(PictureCodec):
    """A codec whose library gives arrays, which become tensors without a picture in between."""

    @abstractmethod
    def pixels(self, content: Content) -> NDArray[np.uint8]:
        """The picture as (H, W, 3 or 4); raises as `decode`."""

    def decode(self, content: Content) -> Image.Image:
        return Image.fromarray(self.pixels(content))


class PillowCodec(PictureCodec):
    """One of Pillow's formats, with what is given to `save`; `lossy` ones keep no RGBA either."""

    def __init__(self, suffix: str, how: dict[str, Any], lossy: bool = False) -> None:
        self.suffix, self.how = suffix, how
        self.lossless = self.transparent = not lossy

    def encode(self, image: Image.Image) -> bytes:
        encoded = io.BytesIO()
        image.save(encoded, **self.how)
        return encoded.getvalue()

    def decode(self, content: Content) -> Image.Image:
        with Image.open(io.BytesIO(content), formats=[self.how["format"]]) as image:
            image.load()
            return image


class QoiCodec(ArrayCodec):
    """The Quite OK Image format."""

    suffix = "qoi"

    def __init__(self) -> None:
        try:
            import qoi  # noqa: F401
        except ImportError as error:
            raise DistillError(
                "codec=qoi: needs the package qoi; pip install 'distill[shards]', or pack with "
                "codec=raw"
            ) from error

    def encode(self, image: Image.Image) -> bytes:
        import qoi

        return qoi.encode(np.ascontiguousarray(image))

    def pixels(self, content: Content) -> NDArray[np.uint8]:
        import qoi

        return qoi.decode(content)


class RawCodec(ArrayCodec):
    """The bare pixels behind NumPy's header, which says their shape."""

    suffix = "npy"

    def encode(self, image: Image.Image) -> bytes:
        encoded = io.BytesIO()
        np.save(encoded, np.asarray(image), allow_pickle=False)
        return encoded.getvalue()

    def pixels(self, content: Content) -> NDArray[np.uint8]:
        begin = _FIXED + int.from_bytes(content[_FIXED - 2 : _FIXED], "little")
        shape = _shape(bytes(content[:begin]))
        return np.array(np.frombuffer(content, np.uint8, math.prod(shape), begin)).reshape(shape)


_FIXED = 10  # bytes of a NumPy header that say its kind and its length


@lru_cache(maxsize=64)
def _shape(header: bytes) -> tuple[int, ...]:
    """Of the picture behind a NumPy header; of pictures of one size all are the same."""
    stream = io.BytesIO(header)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("no header of raw pixels")
    shape, by_columns, kind = np.lib.format.read_array_header_1_0(stream)
    if by_columns or kind != np.uint8 or len(shape) != 3:
        raise ValueError("no 8-bit picture")
    return shape


def codec_named(name: str) -> PictureCodec:
    """The codec of that name. Raises DistillError for an unknown one, or a missing library."""
    match name:
        case "qoi":
            return QoiCodec()
        case "raw":
            return RawCodec()
        case "webp":  # a higher method is 14 % smaller, takes 17 times as long, decodes no faster
            webp = {"format": "WEBP", "lossless": True, "method": 0, "quality": 0, "exact": True}
            return PillowCodec("webp", webp)
        case "png":  # as folder sets have them
            return PillowCodec("png", {"format": "PNG", **PNG})
        case "jpeg":  # a quarter to a third of the bytes, not the same pixels
            jpeg = {"format": "JPEG", "quality": 95, "subsampling": 0}
            return PillowCodec("jpg", jpeg, lossy=True)
    raise DistillError(f"codec={name}: unknown; there are {', '.join(get_args(CodecName))}")
