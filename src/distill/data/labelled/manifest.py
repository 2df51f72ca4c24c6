"""What a paired set was made with: its dataset.json, and the refusal to mix two kinds."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from distill.core.errors import DistillError
from distill.core.files import aside

MANIFEST = "dataset.json"


@dataclass(frozen=True)
class Recipe:
    """What decides every pixel of a paired set.

    `photos` says where they came from, `teacher` is its fingerprint, `crop` the share of the short
    side, `views` how many pictures are taken of a training photo (the first is the plain centre
    square), `colour` how far the others' colours vary. `folders` names several folders of photos,
    `val_folders` those that are for validation alone.
    """

    photos: str
    style: str
    teacher: str
    size: int = 256
    crop: float = 1.0
    views: int = 1
    colour: float = 0.2
    val_fraction: float = 0.1
    seed: int = 0
    folders: tuple[str, ...] = ()
    val_folders: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As it reads back from dataset.json."""
        return json.loads(json.dumps(asdict(self)))


def read_manifest(root: Path) -> dict | None:
    """The set's dataset.json, None where there is none."""
    path = root / MANIFEST
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text())
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("recipe"), dict):
        raise DistillError(f"{path}: damaged; delete it if the pairs beside it are good")
    return manifest


def is_complete(root: Path) -> bool:
    """Whether a set of ours lies there and its last labelling ran to the end."""
    manifest = read_manifest(root)
    return manifest is not None and manifest["counts"] is not None


def recipe_at(root: Path) -> dict[str, Any] | None:
    """The recipe of the set at `root`, with defaults for what older sets do not say."""
    manifest = read_manifest(root)
    if manifest is None:
        return None
    return {"folders": [], "val_folders": []} | manifest["recipe"]


def stamp(root: Path) -> tuple[int, int] | None:
    """What changes whenever a command writes into the set."""
    path = root / MANIFEST
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_mtime_ns, found.st_ino


def check_recipe(root: Path, recipe: Recipe) -> None:
    """Refuse to mix: DistillError that names what differs from the set already there."""
    made = recipe_at(root)
    if made is None:
        return
    # Adding views adds pictures and changes none; the photos' folder may have moved.
    free = {key: made.get(key, getattr(recipe, key)) for key in ("views", "photos")}
    want = recipe.plain() | free
    different = [
        f"{k} {made.get(k)!r} there, {want[k]!r} now" for k in want if made.get(k) != want[k]
    ]
    if different:
        raise DistillError(
            f"{root}: made with other settings ({'; '.join(different)}); name another folder with "
            "data.root=DIR or delete this one"
        )


def write_manifest(root: Path, recipe: Recipe, counts: dict[str, int] | None) -> None:
    """Write dataset.json whole; `counts` is None while the set is being made."""
    content = {"format": 1, "recipe": recipe.plain(), "counts": counts}
    with aside(root / MANIFEST) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")
