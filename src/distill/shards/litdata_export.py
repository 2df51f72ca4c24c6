"""Shards to a folder that litdata's StreamingDataset reads, written without litdata.

    OUT/SIDE/chunk-0-N.bin    one a shard: uint32 n, n + 1 uint32 offsets, then the samples
    OUT/SIDE/index.json       the chunks and what a sample is; written last

A sample is three uint32 sizes and its leaves: `name` in UTF-8, `photo` and `stylized` as the format
"pil" has them (uint32 width, height, length of the mode; the mode; the pixels). All little-endian.
Source: litdata 0.2.76 (streaming/writer.py, serializers.py), which a test reads them with.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from distill.core.errors import DistillError
from distill.core.files import write_json, write_whole
from distill.core.progress import bar
from distill.data.decode import BadPhoto
from distill.data.lock import check_writable, writing
from distill.data.photo_table import SIDES
from distill.data.photos import Side
from distill.data.shards.address import Address
from distill.data.shards.shard_index import Catalogue
from distill.data.shards.shard_manifest import finished_shards
from distill.data.shards.sharded_pairs import ShardedPair, ShardedPairs

INDEX = "index.json"
MARK = ".litdata"  # in a folder that is exported into: of which shards
LARGEST = 2**32 - 1  # bytes, of a chunk: its offsets are uint32
_LEAVES = {"name": "str", "photo": "pil", "stylized": "pil"}


@dataclass(frozen=True)
class LitdataReport:
    """What exporting did: `counts` are the samples of each side."""

    folder: Path
    counts: dict[Side, int]
    skipped: int

    def __str__(self) -> str:
        sides = ", ".join(f"{count} {side}" for side, count in self.counts.items())
        text = f"{self.folder}: {sum(self.counts.values())} pairs ({sides}) for litdata"
        text += f"; {self.skipped} pairs cannot be read" if self.skipped else ""
        return f"{text}\nread them: litdata.StreamingDataset('{self.folder}/train')"


def export_litdata(root: Address, folder: Path) -> LitdataReport:
    """Write every side of the shards at `root` below `folder`.

    Raises DistillError where there are no shards, or `folder` holds something else.
    """
    manifest = finished_shards(root)
    mark = folder / MARK
    there = folder.is_dir() and any(not each.name.startswith(".") for each in folder.iterdir())
    if there and not (mark.is_file() and mark.read_text() == f"{root}\n"):
        raise DistillError(
            f"{folder}: not empty, and no export of this set; name another output=DIR"
        )
    check_writable(folder)
    catalogue, counts, skipped = Catalogue(root), dict[Side, int](), 0
    sides = {side: ShardedPairs(root, catalogue, side, manifest.codec) for side in SIDES}
    with writing(folder), bar(sum(map(len, sides.values())), "pair", "exporting") as progress:
        write_whole(mark, f"{root}\n")
        for side, pairs in sides.items():
            if not len(pairs):
                continue
            (folder / side / INDEX).unlink(missing_ok=True)  # not whole until it is there again
            chunks, start = list[dict[str, Any]](), 0
            for size in pairs.sizes:
                samples = []
                for pair in pairs[start : start + int(size)]:
                    try:
                        samples.append(_sample(pair))
                    except BadPhoto as reason:
                        progress.write(f"skipped {pair.photo!r}: {reason}")
                        skipped += 1
                    progress.update()
                start += int(size)
                if samples:
                    chunks.append(_write_chunk(folder / side, len(chunks), samples))
            write_json(folder / side / INDEX, {"chunks": chunks, "config": _config()})
            counts[side] = sum(chunk["chunk_size"] for chunk in chunks)
    return LitdataReport(folder, counts, skipped)


def _write_chunk(folder: Path, number: int, samples: Sequence[bytes]) -> dict[str, Any]:
    """Write one chunk; gives its entry of the index."""
    offsets = [4 * (len(samples) + 2)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    if offsets[-1] > LARGEST:
        raise DistillError(f"{folder}: shards of over 4 GB of pixels; pack them with fewer pairs=N")
    head = struct.pack(f"<{len(offsets) + 1}I", len(samples), *offsets)
    name = f"chunk-0-{number}.bin"
    write_whole(folder / name, head + b"".join(samples))
    return {
        "chunk_bytes": offsets[-1],
        "chunk_size": len(samples),
        "dim": None,
        "filename": name,
    }


def _sample(pair: ShardedPair) -> bytes:
    """Raises BadPhoto."""
    leaves = [pair.name.encode(), *map(_pil, pair.stored())]
    return struct.pack("<3I", *map(len, leaves)) + b"".join(leaves)


def _pil(image: Image.Image) -> bytes:
    mode = image.mode.encode()
    return struct.pack("<3I", *image.size, len(mode)) + mode + image.tobytes()


def _config() -> dict[str, Any]:
    """What the reader must know: the leaves of a sample in order, none of them compressed."""
    leaf: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
    spec = {
        "type": "builtins.dict",
        "context": json.dumps(list(_LEAVES)),
        "children_spec": [leaf] * len(_LEAVES),
    }
    return {
        "compression": None,
        "chunk_size": None,
        "chunk_bytes": LARGEST,
        "data_format": list(_LEAVES.values()),
        "data_spec": json.dumps([1, spec]),  # of PyTorch's pytree, as its protocol 1 writes it
        "encryption": None,
        "item_loader": "PyTreeLoader",
    }
