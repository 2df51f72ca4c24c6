"""The files of a set that are no pairs, dataset.json first: what it was made with, so that none is
mixed; one writer at a time.

They lie beside a folder's pairs, and in ROOT/set/ of a set of another form, as they are in the
folder that it was made of or can be made into.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from filelock import FileLock, Timeout

from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, write_json, write_whole
from distill.data import photo_table
from distill.data.address import Address, is_address
from distill.data.photo_table import DROPPED, PHOTOS, SKIPPED
from distill.data.photos import Photo

MANIFEST = "dataset.json"
PREVIEW = "preview.png"
DRAWINGS = "drawings.json"
TEACHER = "teacher.json"  # in a set's folder: the teacher's settings, what `check_teacher` found
TERMS = "terms.json"  # there too: whose terms it is under, see data.licence_terms
SUMS = "sha256sums.txt"  # there too, of a set that was pulled
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
        there = manifest_at(root)
        if there is None:
            return
        # More views or sizes add pictures and change none; the photos' folder may have moved.
        free = {key: there.get(key, getattr(self, key)) for key in ("views", "photos", "sizes")}
        want = self.plain() | free
        different = [
            f"{k} {there.get(k)!r} there, {want[k]!r} now" for k in want if there.get(k) != want[k]
        ]
        if different:
            other = there.get("teacher") != want.get("teacher")
            why = " (another teacher, or another teacher.upsampling)" if other else ""
            raise DistillError(
                f"{root}: made with other settings ({'; '.join(different)}){why}; name another "
                "folder with data.root=DIR or delete this one"
            )


def set_facts(root: Path) -> dict[str, Any]:
    """All of dataset.json, empty where no set of ours lies: `recipe` is the manifest, `kind` the
    `data.kind` of a set that is no folder of pairs, `counts` are the pairs of each side and what
    else was counted, None where it is not whole. Raises DistillError for a damaged file."""
    path = root / MANIFEST
    if not path.is_file():
        return {}
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
    manifest, devices = content.get("recipe"), content.get("devices", [])
    return (
        isinstance(manifest, dict)
        and manifest.get("precision", "float32") in get_args(Precision)
        and all(isinstance(manifest.get(key, ""), str) for key in ("style", "teacher"))
        and isinstance(devices, list)
        and all(isinstance(name, str) for name in devices)
    )


def manifest_at(root: Path) -> dict[str, Any] | None:
    """The manifest of the set at `root`, with defaults for what older sets do not say.

    None where no set of ours lies. Raises DistillError for a damaged file.
    """
    facts = set_facts(root)
    return _OLDER | facts["recipe"] if facts else None


def is_complete(root: Path) -> bool:
    """Whether a set of ours lies there and the last command that wrote into it ran to its end."""
    return set_facts(root).get("counts") is not None


def devices_at(root: Path) -> tuple[str, ...] | None:
    """The names of the processors or GPUs that made the pairs at `root`; None where some that made
    pairs are not known, as in older sets."""
    facts = set_facts(root)
    return tuple(facts["devices"]) if "devices" in facts else None


def stamp(root: Path) -> tuple[int, int] | None:
    """What changes whenever a command writes into the set."""
    path = root / MANIFEST
    if not path.is_file():
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_ino


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


KEPT = "set"
SIDECARS = (MANIFEST, PHOTOS, DROPPED, SKIPPED, TEACHER, DRAWINGS, TERMS)


def metadata_folder(root: Path | str) -> Path:
    """Where the set's own files lie: in ROOT/set where there is one, else in ROOT; those at an
    address in a `SetMetadataStore`."""
    if is_address(str(root)):
        return SetMetadataStore(Address(str(root))).folder
    return kept if (kept := Path(root, KEPT)).is_dir() else Path(root)


def write_sidecars(root: Address, folder: Path) -> None:
    """Have ROOT/set hold the set's own files as they are in `folder`."""
    for name in SIDECARS:
        if (folder / name).is_file():
            root.write(f"{KEPT}/{name}", (folder / name).read_bytes())
        else:
            root.remove(f"{KEPT}/{name}")


class SetMetadataStore:
    """The set's own files in a local folder: ROOT/set, or a copy of it in the cache where ROOT is
    an object store's address."""

    def __init__(self, root: Address) -> None:
        self.root = root
        if root.local is not None:
            self.folder: Path = root.local / KEPT
            return
        digest = hashlib.sha256(root.text.encode()).hexdigest()[:12]
        self.folder = cache_folder() / "labelling" / f"{root.name}-{digest}"
        for name in SIDECARS:
            if root.size(f"{KEPT}/{name}") is not None:
                write_whole(self.folder / name, root.read(f"{KEPT}/{name}"))
            else:
                (self.folder / name).unlink(missing_ok=True)

    def publish(self) -> None:
        """Have the address hold what the folder does."""
        if self.root.local is None:
            write_sidecars(self.root, self.folder)


LOCK = ".lock"


def check_writable(root: Path) -> None:
    """Raises DistillError where `root` is not, or cannot become, a folder to write into."""
    there = next(path for path in (root, *root.absolute().parents) if os.path.exists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise DistillError(
            f"{there}: not a folder to write pairs into; name another one with data.root=DIR"
        )


@contextmanager
def writing(root: Path, folders: bool = True, key: str = "data.root") -> Iterator[None]:
    """The set at `root` is this process's alone meanwhile; the system lets go when it dies.

    With `folders` its pairs lie there as files. `key` is the setting that names it.

    Raises DistillError when another process has it, the disk is full or the folder is closed.
    """
    lock = FileLock(root / LOCK)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with lock.acquire(blocking=False):
            (root / LOCK).write_text(str(os.getpid()))
            names = {name for two in photo_table.PAIR_FOLDERS for name in two}
            ours = [root / side / name for side in photo_table.SIDES for name in names]
            for folder in (root, *ours):
                for path in folder.glob(".*.part"):  # of a killed run
                    path.unlink(missing_ok=True)
            yield
    except Timeout:
        number = (root / LOCK).read_text()
        holder = f" (process {number})" if number else ""  # it may not have said so yet
        raise DistillError(
            f"{root}: another command is writing into this folder{holder}; wait for it, or name "
            f"another folder with {key}=DIR"
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = f"cannot be written to ({reason}); name another one with {key}=DIR"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            done = sum(map(len, photo_table.pairs_on_disk(root).values()))
            kept = f", {counted(done, 'pair')} done" if folders else ""
            problem = f"the disk is full{kept}; free some space and run it again to resume"
        raise DistillError(f"{root}: {problem}") from error
