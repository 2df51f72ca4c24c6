"""Photos at an address: listed once, kept in the cache as a Parquet file.

    CACHE/listings/NAME-DIGEST.parquet    key (path below the address), size in bytes, stamp

The stamp is the store's ETag, or the time of the last change. The file's metadata say of which
address it is, when it was listed and how long that took.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from distill.core.errors import DistillError
from distill.core.files import atomic_write, cache_folder
from distill.data.shards.address import Address
from distill.data.stored_photo import StoredPhoto

Listing = Literal["auto", "new", "kept"]

LONG = 60.0  # seconds; what took longer to list is not listed again by itself
OURS = ("dataset.json", "config.yaml")  # in a folder: a set or a run that we wrote there
# What stores call that which changes with a file, the surest first.
_STAMPS = (
    *("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "modified"),
    *("modificationTime", "created"),
)
_KINDS = {"key": "string", "size": "int64", "stamp": "string"}
_ABOUT = b"distill"  # key of what the file says of the listing


@dataclass(frozen=True)
class _About:
    """Which address, when its listing began (seconds since 1970), how many seconds it took."""

    address: str
    begun: float
    seconds: float


def list_photos(folder: Address, suffixes: Set[str], how: Listing = "auto") -> list[StoredPhoto]:
    """The photos at an address, sorted as those of a local folder are.

    `how`: `auto` takes the listing that is kept where that took more than LONG seconds and says
    so, `new` never, `kept` wherever there is one. Left out is what `walk` leaves out of a local
    folder. Raises DistillError where the address cannot be listed.
    """
    file = _file(folder)
    kept = None if how == "new" else _load(file, folder)
    if kept and (how == "kept" or kept[0].seconds > LONG):
        about, found = kept
        print(
            f"{folder}: {len(found):,} photos as listed on "
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(about.begun))}, which took "
            f"{about.seconds:.0f} s; label.listing=new lists them again"
        )
        return found
    print(f"{folder}: listing what is there", flush=True)
    begun, clock = time.time(), time.monotonic()
    found = _listed(folder, suffixes)
    if found:
        _save(file, found, _About(folder.text, begun, time.monotonic() - clock))
    return found


def _listed(folder: Address, suffixes: Set[str]) -> list[StoredPhoto]:
    there = folder.find()
    keys = [key for key in _wanted(there) if _suffix(key) in suffixes]
    keys.sort(key=lambda key: key.split("/"))  # as paths are
    return [StoredPhoto(folder, key, _size(there[key]), _stamp(there[key])) for key in keys]


def _wanted(keys: Iterable[str]) -> Iterator[str]:
    """All but what is hidden and what lies in a folder, below the address itself, of ours."""
    folders = {key.rpartition("/")[0] for key in keys if key.rpartition("/")[2] in OURS} - {""}
    closed: dict[str, bool] = {"": False}  # by folder

    def is_closed(folder: str) -> bool:
        if folder not in closed:
            above, _, name = folder.rpartition("/")
            closed[folder] = name.startswith(".") or folder in folders or is_closed(above)
        return closed[folder]

    for key in keys:
        folder, _, name = key.rpartition("/")
        if not name.startswith(".") and not is_closed(folder):
            try:
                key.encode()
            except UnicodeEncodeError:
                print(f"left out {key!r}: its name is no text")
            else:
                yield key


def _suffix(key: str) -> str:
    """As `Path.suffix` gives it, in small letters."""
    return Path(key.rpartition("/")[2]).suffix.lower()


def _size(about: Mapping[str, Any]) -> int:
    size = about.get("size")
    return -1 if size is None else int(size)


def _stamp(about: Mapping[str, Any]) -> str:
    """What changes when the file does; empty where the store says nothing of the kind."""
    return next((str(about[name]) for name in _STAMPS if about.get(name) is not None), "")


def _file(folder: Address) -> Path:
    digest = hashlib.sha256(folder.text.encode(errors="surrogateescape")).hexdigest()
    return cache_folder() / "listings" / f"{folder.name}-{digest[:16]}.parquet"


def _load(file: Path, folder: Address) -> tuple[_About, list[StoredPhoto]] | None:
    """The listing that is kept; None where there is none, or a damaged one."""
    pyarrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(file, use_threads=False)
        about = _About(**json.loads(table.schema.metadata[_ABOUT]))
        columns = [table[name].cast(getattr(pyarrow, kind)()) for name, kind in _KINDS.items()]
        if about.address != folder.text or any(column.null_count for column in columns):
            return None
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        found = [StoredPhoto(folder, *row) for row in rows]
        return (about, found) if found else None
    except Exception:  # as pyarrow does for damaged files, TypeError or KeyError for another's
        return None


def _save(file: Path, found: Iterable[StoredPhoto], about: _About) -> None:
    """Keep the listing; a cache may fail."""
    pyarrow, parquet = _pyarrow()
    schema = pyarrow.schema(
        [(name, getattr(pyarrow, kind)()) for name, kind in _KINDS.items()],
        metadata={_ABOUT: json.dumps(about.__dict__).encode()},
    )
    columns = ([getattr(photo, name) for photo in found] for name in _KINDS)
    table = pyarrow.table([*columns], schema=schema)
    with suppress(OSError), atomic_write(file) as temporary:
        parquet.write_table(table, temporary, compression="zstd")


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise DistillError(
            "photos at an address are listed by pyarrow; pip install 'distill[shards]'"
        ) from error
    return pyarrow, pyarrow.parquet
