"""Two domains of pictures, A and B, that are no pairs: a folder each.

ROOT/trainA + ROOT/trainB    and, to hold out, testA + testB (or valA + valB)
ROOT/train/A + ROOT/train/B  the same, one level lower
ROOT/A + ROOT/B              split by a hash of the names
any two folders              the same

What dropped.txt in ROOT, or beside two folders, names is left out, by name and by content.
"""

from collections.abc import Iterable
from pathlib import Path

from distill.core.errors import DistillError
from distill.core.files import near_name, real_path
from distill.data.dropped import copies
from distill.data.photo_table import DROPPED, read_dropped
from distill.data.photos import Photo, Side, find_photos, group_of
from distill.data.split import HELD_OUT, split

Domains = tuple[list[Photo], list[Photo]]  # of A and of B
Folder = Path | str | None

_WANTED = (
    "give a folder with trainA/ + trainB/ or with A/ + B/ as data.root=DIR, "
    "or two folders as data.a=DIR data.b=DIR"
)


def find_unpaired(
    root: Folder, a: Folder, b: Folder, val_fraction: float, seed: int
) -> dict[Side, Domains]:
    """Both sides of a folder with two domains, or of two folders `a` and `b` given without `root`.

    What is not held out by its folder is split by a hash of the names, whole groups (persons) at
    a time: one that is in both domains falls on the same side in both. A folder with pictures to
    hold out alone has no training side: it is there to be evaluated on.

    Raises DistillError for a folder that is missing, empty, or given for both domains.
    """
    root, a, b = (Path(each) if each else None for each in (root, a, b))
    if root is None:
        if not a and not b:
            raise DistillError(f"data.root=null: no pictures to learn from; {_WANTED}")
        if not a or not b:
            missing, other = ("a", f"data.b={b}") if not a else ("b", f"data.a={a}")
            raise DistillError(f"data.{missing}=null: {other} is one of two folders; give both")
        return _split(_read(a, b, "data.a=", "data.b="), val_fraction, seed)
    if a or b:
        raise DistillError("data.root and data.a, data.b say where the pictures are: give either")
    if not root.is_dir():
        raise DistillError(f"data.root={root}: no such folder{near_name(root)}; {_WANTED}")
    train, held_out = _two_in(root, ["train", ""]), _two_in(root, HELD_OUT)
    if held_out:
        return {"train": _read(*train) if train else ([], []), "val": _read(*held_out)}
    if not train:
        raise DistillError(f"data.root={root}: no two folders of pictures in it; {_WANTED}")
    return _split(_read(*train), val_fraction, seed)


def _two_in(root: Path, names: Iterable[str]) -> tuple[Path, Path] | None:
    """The first two folders of one name that are there. Raises DistillError for one alone."""
    for name in names:
        for a, b in ((f"{name}A", f"{name}B"), (f"{name}/A", f"{name}/B")):
            two = root / a.strip("/"), root / b.strip("/")
            there = [folder.is_dir() for folder in two]
            if all(there):
                return two
            if any(there):
                raise DistillError(
                    f"data.root={root}: holds {two[there.index(True)].relative_to(root)}/ "
                    f"but no {two[there.index(False)].relative_to(root)}/; {_WANTED}"
                )
    return None


def _read(a: Path, b: Path, key_a: str = "", key_b: str = "") -> Domains:
    """The pictures of both folders; the keys are the settings that named them."""
    photos = find_photos(a, key_a), find_photos(b, key_b)
    one, other = real_path(a), real_path(b)
    if one == other:
        raise DistillError(f"{a}: given for A and for B; there would be nothing to learn")
    if one in other.parents or other in one.parents:
        raise DistillError(f"{a} and {b}: one lies inside the other, so A and B share pictures")
    return _without_dropped(photos[0], one, key_a), _without_dropped(photos[1], other, key_b)


def _without_dropped(photos: list[Photo], folder: Path, key: str) -> list[Photo]:
    """Without what dropped.txt above names. Raises DistillError where none is left."""
    for root in folder.parents[:2]:
        names, alike = {*(lines := read_dropped(root / DROPPED))}, copies(photos, lines)
        below = folder.relative_to(root).as_posix()
        left = (p for p in photos if p not in alike)
        photos = [p for p in left if names.isdisjoint((p.key, f"{below}/{p.key}"))]
        if not photos:
            raise DistillError(f"{key}{folder}: {root / DROPPED} names all; take lines out of it")
    return photos


def _split(domains: Domains, val_fraction: float, seed: int) -> dict[Side, Domains]:
    """Each domain by itself; then what either holds out is held out of both."""
    for photos in domains:
        if len(photos) == 1:
            raise DistillError(
                f"{photos[0].path}: one picture alone cannot be split into training and "
                "validation; add more"
            )
    alone = [split(photos, val_fraction, seed) for photos in domains]
    held_out = {group_of(photo.key) for sides in alone for photo in sides["val"]}
    together: list[dict[Side, list[Photo]]] = [
        {
            "train": [photo for photo in photos if group_of(photo.key) not in held_out],
            "val": [photo for photo in photos if group_of(photo.key) in held_out],
        }
        for photos in domains
    ]
    if not all(sides["train"] for sides in together):
        print("A and B have too few groups of names in common to hold the same ones out of both")
        together = alone
    a, b = together
    return {"train": (a["train"], b["train"]), "val": (a["val"], b["val"])}
