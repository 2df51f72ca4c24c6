"""Small photos, the set that the inverted teacher makes of them, and what it holds."""

import hashlib

import numpy as np
from PIL import Image, ImageOps

from distill.data.manifest import Manifest
from distill.data.photos import find_photos
from distill.prepare.pair_maker import PairStore
from distill.prepare.set_builder import build_set
from distill.prepare.teacher_pass import TeacherPass
from support.teachers import Inverted

MANIFEST = Manifest(
    photos="here", style="negative", teacher="inverts", size=64, val_fraction=0.4, views=1, seed=0
)


def picture(seed):
    """A soft random picture, 72×64: two seeds never correlate."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8))
    return small.resize((72, 64), Image.Resampling.BICUBIC)


def add(folder, *seeds, name="{}", change=lambda image: image):
    """Photos into a folder, named after their seeds."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        change(picture(seed)).save(folder / f"{name.format(seed)}.png")


def add_copies(folder, *seeds, name="copy of {}"):
    """Mirrored copies of photos."""
    add(folder, *seeds, name=name, change=ImageOps.mirror)


def make(
    folder,
    root,
    manifest=MANIFEST,
    teacher=None,
    workers=0,
    batch_size=1,
    photos=None,
    **options,
):
    """The set of a folder's photos, or of `photos`, at `root`; its report."""
    maker = TeacherPass(teacher or Inverted(), manifest, batch_size, workers)
    store = PairStore(root, maker.folders)
    return build_set(photos or find_photos(folder), maker, manifest, store, **options)


def sides(root):
    """Side of every photo of the set, by stem."""
    return {
        path.stem.rsplit("-", 1)[0]: path.parents[1].name for path in root.glob("*/stylized/*.png")
    }


def hashes(root):
    """SHA-256 of every file of the set but its lock."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != ".lock")
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def stamps(root):
    """Time and inode of every file and folder: what any write would change."""
    return {path: (s := path.stat()).st_mtime_ns + s.st_ino for path in [root, *root.rglob("*")]}
