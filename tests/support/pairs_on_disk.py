"""Folders of pairs as `distill.prepare` leaves them, small, and what is in them."""

import hashlib
from pathlib import Path

import numpy as np
from PIL import Image

from distill.data.manifest import Manifest, write_manifest
from distill.data.photo_table import PhotoRow, write_rows, write_skipped
from distill.data.photos import Photo

SIDE = 64


def write_set(root: Path, counts: dict[str, dict[str, int]], teacher: bool = True) -> Path:
    """A finished set: counts[side][folder] pairs of noise, each another one."""
    rng, rows = np.random.default_rng(0), []
    for side, folders in counts.items():
        for folder, count in folders.items():
            for number in range(count):
                key = f"{folder}/{side}.{number:03d} ä.jpg"
                photo = Photo(Path(key), key, folder=folder)
                rows.append(PhotoRow.of(photo, side, near_duplicate=number == 0))
                picture = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
                for kind, pixels in (("photo", picture), ("stylized", 255 - picture)):
                    path = root / side / kind / f"{photo.pair_name}.png"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    Image.fromarray(pixels).save(path)
    if teacher:
        write_rows(root, rows)
        write_skipped(root, {"lost.jpg": "cut short"})
        folders = tuple(sorted({folder for each in counts.values() for folder in each}))
        manifest = Manifest("here", "negative", "inverts", SIDE, folders=folders)
        totals = {side: sum(each.values()) for side, each in counts.items()}
        write_manifest(root, manifest, {"train": 0, "val": 0, "test": 0} | totals)
    return root


def contents(root: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder but for hidden ones, by path."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def pixels(root: Path) -> dict[str, bytes]:
    """The decoded pixels of every picture below a folder, by path."""
    return {
        path.relative_to(root).as_posix(): np.asarray(Image.open(path)).tobytes()
        for path in sorted(root.rglob("*.png"))
    }
