"""A pair as a piece of a tar file: two members side by side, which one ranged read brings.

    KEY.photo.EXT  KEY.stylized.EXT    so that webdataset takes them for one sample

KEY is the pair's number in its shard and its name, without dots, at which webdataset would end it.
A shard is the pieces of its pairs and the two empty blocks that end a tar file.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable
from pathlib import PurePath
from typing import TypeVar

from PIL import Image

from distill.data.decode import BadPhoto
from distill.data.shards.picture_codec import Content, PictureCodec

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
