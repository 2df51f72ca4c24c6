"""Compressed forms of the page's files: NAME.gz beside NAME, made once, when the page is built."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

from distill.core.files import write_whole

SUFFIX = ".gz"
WORTH = 0.9  # of a file's bytes: a form that is larger is not kept


def compress(folder: Path) -> None:
    """Write NAME.gz beside every file of a folder that it makes at least a tenth smaller.

    Web servers look for that name: nginx with `gzip_static on`, and ours. One that does not sends
    the file itself.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != SUFFIX:
            content = path.read_bytes()
            packed = gzip.compress(content, mtime=0)  # the same bytes at every build
            if len(packed) <= WORTH * len(content):
                write_whole(path.with_name(path.name + SUFFIX), packed)


def form_of(path: Path) -> Path | None:
    """The compressed form of a file. None where there is none, or one of another file."""
    packed = path.with_name(path.name + SUFFIX)
    try:
        with packed.open("rb") as stream:
            stream.seek(-4, os.SEEK_END)  # RFC 1952: the original's size modulo 2³²
            size = int.from_bytes(stream.read(4), "little")
        same = size == path.stat().st_size % 2**32
    except OSError:
        return None
    return packed if same and not packed.is_symlink() else None


def accepted(header: str) -> bool:
    """Whether this Accept-Encoding takes gzip, and wants it no less than the plain file.

    RFC 9110, 12.5.3: a coding with q=0 is refused, `*` stands for those that are not named.
    """
    weights: dict[str, float] = {}
    for item in header.lower().split(","):
        coding, *parameters = (part.strip() for part in item.split(";"))
        given = (re.fullmatch(r"q\s*=\s*([\d.]+)", part) for part in parameters)
        try:
            weights[coding] = next((float(found[1]) for found in given if found), 1.0)
        except ValueError:
            weights[coding] = 0.0
    gzip_weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip_weight > 0 and gzip_weight >= weights.get("identity", 0.0)
