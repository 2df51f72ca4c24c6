"""A pair as a piece of a tar file: two members side by side, which one ranged read brings.

    KEY.photo.EXT  KEY.stylized.EXT    so that webdataset takes them for one sample

KEY is the pair's number in its shard and its name, without dots, at which webdataset would end it.
A shard is the pieces of its pairs and the two empty blocks that end a tar file.
"""

from __future__ import annotations

import io
import math
import re
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePath
from typing import Any, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.core.arrays import PNG
from distill.core.errors import DistillError, extra_package
from distill.data.decode import BadPhoto
from distill_scale.settings import CodecName

PHOTO, STYLIZED = "photo", "stylized"
END = bytes(2 * tarfile.BLOCKSIZE)
Picture = TypeVar("Picture")
_LONGEST = 60  # characters of a name in its key: a header has room for 100 in all
_NAME, _SIZE = 100, slice(124, 136)  # of a header: name from the start on, size in octal digits


def key_of(number: int, name: str) -> str:
    """What webdataset calls a pair: unique in its shard, and of letters that every system takes."""
    return f"{number:05d}-{re.sub(r'[^A-Za-z0-9_-]+', '_', PurePath(name).stem)[:_LONGEST]}"


def encode_pair(key: str, photo: Image.Image, stylized: Image.Image, codec: PictureCodec) -> bytes:
    """The two members of a pair, headers and padding included."""
    return b"".join(
        _member(f"{key}.{side}.{codec.suffix}", codec.encode(image))
        for side, image in ((PHOTO, photo), (STYLIZED, stylized))
    )


def with_key(record: Content, key: str, codec: PictureCodec) -> bytes:
    """The same pair, bit for bit, under another key. Raises BadPhoto for damaged bytes."""
    contents = zip((PHOTO, STYLIZED), decoded(record, bytes), strict=True)
    return b"".join(_member(f"{key}.{side}.{codec.suffix}", each) for side, each in contents)


def decode_pair(record: Content, codec: PictureCodec) -> tuple[Image.Image, Image.Image]:
    """Photo and stylised picture, as `encode_pair` was given them. Raises BadPhoto."""
    return decoded(record, codec.decode)


def decoded(record: Content, decode: Callable[[Content], Picture]) -> tuple[Picture, Picture]:
    """What `decode` makes of photo and stylised picture. Raises BadPhoto."""
    try:
        whole = memoryview(record)
        name, photo, end = _first(whole, 0)
        other, stylized, _ = _first(whole, end)
        if not (f".{PHOTO}." in name and f".{STYLIZED}." in other):
            raise BadPhoto(f"members {name!r} and {other!r} are no pair")
        return decode(photo), decode(stylized)
    except BadPhoto:
        raise
    except Exception as error:  # decoders raise whatever damaged bytes make them raise
        raise BadPhoto(f"damaged in its shard ({type(error).__name__})") from None


def _member(name: str, content: bytes) -> bytes:
    """Header, content and padding; no time, no owner: the same pair is the same bytes."""
    header = tarfile.TarInfo(name)
    header.size = len(content)
    return header.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def _first(record: memoryview, start: int) -> tuple[str, memoryview, int]:
    """Name and content of the member that begins there, and where the next one does.

    Reads what `_member` writes; tarfile takes any kind of header, and several times as long.
    """
    name, size = record[start : start + _NAME], record[start + _SIZE.start : start + _SIZE.stop]
    begin = start + tarfile.BLOCKSIZE
    end = begin + int(bytes(size).rstrip(b"\0 "), 8)
    if end > len(record):
        raise ValueError("ends early")
    plain = bytes(name).rstrip(b"\0").decode()
    return plain, record[begin:end], end + (begin - end) % tarfile.BLOCKSIZE


Content = bytes | memoryview


class PictureCodec(ABC):
    """8-bit RGB or RGBA pictures to bytes and back; `suffix` is that of a file that holds them.

    One that is not `lossless` does not keep transparency either.
    """

    suffix: str
    lossless: bool = True

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
    """One of Pillow's formats, with what is given to `save`."""

    def __init__(self, suffix: str, how: dict[str, Any], lossless: bool = True) -> None:
        self.suffix, self.how, self.lossless = suffix, how, lossless

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
        remedy = "pip install 'distill[shards]', or pack with codec=raw"
        self.qoi = extra_package("qoi", "codec=qoi", remedy)

    def encode(self, image: Image.Image) -> bytes:
        return self.qoi.encode(np.ascontiguousarray(image))

    def pixels(self, content: Content) -> NDArray[np.uint8]:
        return self.qoi.decode(content)


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
            return PillowCodec("jpg", jpeg, lossless=False)
    raise DistillError(f"codec={name}: unknown; there are {', '.join(get_args(CodecName))}")
