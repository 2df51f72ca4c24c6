"""Files that are no pictures or not whole ones, found where a decoder would wait or make it up."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from PIL import Image

# What Pillow opens and what a camera or a page may have called .jpg. Not EPS and the like, for
# which Pillow starts another program.
KINDS = {"JPEG", "MPO", "PNG", "WEBP", "AVIF", "GIF", "BMP", "TIFF"}
SECTOR = 512  # bytes; what a crash or a broken-off download leaves blank is a multiple of it


class BadPhoto(Exception):
    """This file cannot be used as a photo; the message is the reason."""


def check_file(path: Path) -> None:
    """Raises BadPhoto for an empty file and for what must not be opened: a pipe waits for ever."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise BadPhoto("not a file but a folder, pipe, socket or device")
    if not status.st_size:
        raise BadPhoto("not a picture: the file is empty")


def check_whole(stream: BinaryIO, kind: str | None) -> None:
    """Raises BadPhoto for a kind that is no photo's and whatever Pillow does for a lost end.

    Decoders draw something for a blank end. PNG says so by its checksums, which Pillow's decoder
    does not look at; JPEG and WebP have none, but never end in a sector of zeros, unless a JPEG is
    padded behind its end mark.
    """
    if kind not in KINDS:
        raise BadPhoto(f"not a photo but a file of the kind {kind}")
    stream.seek(0)
    if kind == "PNG":
        with Image.open(stream) as image:
            image.verify()
    elif kind in ("JPEG", "MPO", "WEBP") and _lost_end(stream):
        raise BadPhoto("cut short: the end of the file is blank")


def _lost_end(stream: BinaryIO) -> bool:
    """Whether the last sector holds zeros only, and not as padding behind a JPEG's end mark."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - SECTOR))
    if any(stream.read()):
        return False
    stream.seek(0)
    return not stream.read().rstrip(b"\0").endswith(b"\xff\xd9")
