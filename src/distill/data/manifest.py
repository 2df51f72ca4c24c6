"""The dataset manifest, dataset.json: what a paired set was made with, so that none is mixed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from distill.core.errors import DistillError
from distill.core.files import write_json
from distill.data.photos import Photo

MANIFEST = "dataset.json"
PREVIEW = "preview.png"
DRAWINGS = "drawings.json"
TEACHER = "teacher.json"  # in a set's folder: the teacher's settings, what `check_teacher` found
TERMS = "terms.json"  # there too: whose terms it is under, see data.terms
Precision = Literal["float32", "bfloat16"]
# What older sets do not say.
_OLDER = {
    "folders": [],
    "val_folders": [],
    "precision": "float32",
    "test_fraction": 0.0,
    "sizes": [],
}


@dataclass(frozen=True)
class Manifest:
    """What decides every pixel of a paired set.

    `photos` says where they came from, `teacher` is its fingerprint, `crop` the share of the short
    side, `views` how many pictures are taken of a training photo (the first is the plain centre
    square), one number or one for each of `folders`; `colour` how far the others' colours vary.
    `folders` names several folders of photos, `val_folders` those that are for validation alone.
    With a `test_fraction` of 0 the set has two sides, training and validation.
    `precision` is that of the teacher's arithmetic, float32 or bfloat16. `sizes` are long sides of
    whole pictures, ascending, see `WholePictures`; without any there are squares alone.
    """

    photos: str
    style: str
    teacher: str
    size: int = 256
    crop: float = 1.0
    views: int | tuple[int, ...] = 1
    colour: float = 0.2
    val_fraction: float = 0.1
    test_fraction: float = 0.0
    seed: int = 0
    folders: tuple[str, ...] = ()
    val_folders: tuple[str, ...] = ()
    precision: Precision = "float32"
    sizes: tuple[int, ...] = ()

    def views_of(self, photo: Photo) -> int:
        """How many pictures are taken of a photo that is trained on."""
        if isinstance(self.views, int):
            return self.views
        return self.views[self.folders.index(photo.folder)]

    def plain(self) -> dict[str, Any]:
        """As it reads back from dataset.json."""
        return json.loads(json.dumps(asdict(self)))

    def check(self, root: Path) -> None:
        """Raises DistillError, which names what differs, where `root` holds another set."""
        made = manifest_at(root)
        if made is None:
            return
        # More views or sizes add pictures and change none; the photos' folder may have moved.
        free = {key: made.get(key, getattr(self, key)) for key in ("views", "photos", "sizes")}
        want = self.plain() | free
        different = [
            f"{k} {made.get(k)!r} there, {want[k]!r} now" for k in want if made.get(k) != want[k]
        ]
        if different:
            other = made.get("teacher") != want.get("teacher")
            why = " (another teacher, or another teacher.upsampling)" if other else ""
            raise DistillError(
                f"{root}: made with other settings ({'; '.join(different)}){why}; name another "
                "folder with data.root=DIR or delete this one"
            )


def _read(root: Path) -> dict[str, Any] | None:
    """All of dataset.json: format, manifest (as `recipe`) and counts; None where there is none."""
    path = root / MANIFEST
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text())
    except (ValueError, RecursionError):
        content = None
    if not _is_ours(content):
        raise DistillError(f"{path}: damaged; delete it if the pairs beside it are good")
    return content


def _is_ours(content: object) -> bool:
    """Whether everything is there, and of its kind, that others take from it unasked."""
    if not isinstance(content, dict) or "counts" not in content:
        return False
    made = content.get("recipe")
    if not isinstance(made, dict) or made.get("precision", "float32") not in get_args(Precision):
        return False
    devices = content.get("devices", [])
    if not isinstance(devices, list) or not all(isinstance(name, str) for name in devices):
        return False
    return all(isinstance(made.get(key, ""), str) for key in ("style", "teacher"))


def manifest_at(root: Path) -> dict[str, Any] | None:
    """The manifest of the set at `root`, with defaults for what older sets do not say.

    None where no set of ours lies. Raises DistillError for a damaged file.
    """
    content = _read(root)
    return None if content is None else _OLDER | content["recipe"]


def is_complete(root: Path) -> bool:
    """Whether a set of ours lies there and the last command that wrote into it ran to its end."""
    content = _read(root)
    return content is not None and content["counts"] is not None


def counts_at(root: Path) -> dict[str, int] | None:
    """Pairs of each side and what else was counted; None where no whole set of ours lies."""
    return (_read(root) or {}).get("counts")


def devices_at(root: Path) -> tuple[str, ...] | None:
    """The names of the processors or GPUs that made the pairs at `root`; None where some that made
    pairs are not known, as in older sets."""
    content = _read(root) or {}
    return tuple(content["devices"]) if "devices" in content else None


def stamp(root: Path) -> tuple[int, int] | None:
    """What changes whenever a command writes into the set."""
    path = root / MANIFEST
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_mtime_ns, found.st_ino


def write_manifest(
    root: Path,
    manifest: Manifest,
    counts: dict[str, int] | None,
    devices: Sequence[str] | None = None,
) -> None:
    """Write dataset.json whole; `counts` is None while the set is being made, `devices` as
    `devices_at` gives them."""
    content = {"format": 1, "recipe": manifest.plain(), "counts": counts}
    if devices is not None:
        content["devices"] = [*devices]
    write_json(root / MANIFEST, content)
