"""What the process that plans a set of shards takes, by photo: seconds and memory.

Photos are names alone; their thumbnails and near-duplicates are `near_duplicates.py`'s. Each count
in a process of its own: placing, the file of what was placed, dealing out into shards of 500. With
`--stored` they are objects of a made-up store, which says of each what s3fs does and takes no time
over it: what listing them takes, reading the listing that is kept, and its bytes.
"""

from __future__ import annotations

import hashlib
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
from common import Table, apart, machine, parser, write
from fsspec.spec import AbstractFileSystem

from distill.data import photo_table
from distill.data.address import Address
from distill.data.manifest import Manifest
from distill.data.photos import Photo, find_photos
from distill.data.split import NO_EDGES
from distill.prepare import placement
from distill.prepare.pair_maker import PairStore, plan
from distill_scale.labelled_shards import deal

SHARD = 500
STORE = "madeup"


class MadeUpStore(AbstractFileSystem):
    """A store of `count` objects, each described as s3fs describes one."""

    protocol, count = STORE, 0

    def find(self, path: str, **_: Any) -> dict[str, dict[str, Any]]:  # type: ignore[override]
        changed = datetime(2026, 1, 1, tzinfo=UTC)
        return {f"{path}/{key}": self._about(key, changed) for key in map(_key, range(self.count))}

    @staticmethod
    def _about(key: str, changed: datetime) -> dict[str, Any]:
        name = f"pictures/part/{key}"
        return {
            "Key": name,
            "LastModified": changed,
            "ETag": f'"{hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()}"',
            "Size": 50_000 + len(name),
            "StorageClass": "STANDARD",
            "type": "file",
            "size": 50_000 + len(name),
            "name": name,
        }


def _key(number: int) -> str:
    return f"{number % 1000:03d}/photograph-{number:09d}x.jpg"


def _mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def planned(count: int, stored: bool = False) -> dict[str, Any]:
    """Plan a set of so many photos, in a folder or in a store."""
    placement.find_near_duplicates = lambda *_: NO_EDGES
    figures: dict[str, Any] = {"photos": count}
    before, begun = _mebibytes(), time.process_time()

    def lap(name: str) -> None:
        nonlocal begun
        now = time.process_time()
        figures[name], begun = now - begun, now

    if stored:
        fsspec.register_implementation(STORE, MadeUpStore)
        MadeUpStore.count, address = count, Address(f"{STORE}://pictures/part")
        with tempfile.TemporaryDirectory() as cache:
            os.environ["DISTILL_CACHE"] = cache
            fsspec.filesystem(STORE).find("pictures/part")
            lap("made up")
            find_photos(address)
            lap("listed")  # and made up once more
            figures["listed"] -= figures["made up"]
            figures["MiB to list"] = _mebibytes() - before
            (file,) = Path(cache).glob("listings/*")
            figures["listing, bytes a photo"] = file.stat().st_size / count
            lap("")
            photos = find_photos(address, listing="kept")
            lap("read")
    else:
        folder = Path("/pictures/part")
        photos = [Photo(folder / key, key) for key in map(_key, range(count))]
        lap("listed")
    manifest = Manifest("/pictures", "toon", "fingerprint", val_fraction=0.01, test_fraction=0.01)
    with tempfile.TemporaryDirectory() as root:
        found = placement.place_photos(
            photos, manifest, PairStore(Path(root), photo_table.TEACHER_FOLDERS)
        )
        lap("placed")
        photo_table.write_rows(Path(root), found.rows)
        lap("written")
    rows = {row.pair: row for row in found.rows}
    leases = deal(plan(found.sides, manifest.views_of), rows, manifest, "qoi", SHARD)
    lap("dealt")
    figures["shards"] = len(leases)
    figures["MiB"] = _mebibytes() - before
    figures["bytes a photo"] = figures["MiB"] * 2**20 / count
    return figures


def table(figures: Sequence[dict[str, Any]]) -> Table:
    columns = [name for name in figures[0] if name not in ("", "made up")]
    rows = [
        [f"{v:,}" if isinstance(v, int) else f"{v:,.1f}" for v in map(each.get, columns)]
        for each in figures
    ]
    return Table("Planning a set of shards (CPU seconds)", columns, rows)


def main() -> None:
    options = parser(__doc__, photos=False)
    options.add_argument(
        "--counts", type=int, nargs="+", default=[100_000, 1_000_000], help="(%(default)s)"
    )
    options.add_argument("--stored", action="store_true", help="photos at an address")
    args = options.parse_args()
    facts, figures = machine(), list[dict[str, Any]]()
    for count in args.counts:
        figures.append(apart(planned, count, args.stored)[0])
        write("placing", args.out, facts, figures, table(figures))


if __name__ == "__main__":
    main()
