"""Photos at an address: reading one; listing them, once, kept in the cache as a Parquet file.

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

from distill.core.errors import DistillError, counted, needed, reason_of
from distill.core.files import atomic_write, cache_folder
from distill.data.address import Address
from distill.data.decode import BadPhoto, left_out

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
PAUSES = (1.0, 5.0)  # seconds before a photo is asked for again; stores' own libraries try, too


@dataclass(frozen=True, slots=True)
class StoredPhoto:
    """The file `key` below an address, by its listing: bytes (-1: not known) and a stamp.

    The stamp, an ETag or a time, changes when the file does. universal_pathlib's UPath would do
    the same, but cannot be used in a process that was forked after it was read, asks the store for
    what the listing knows, and takes ten times as long to make.
    """

    folder: Address
    key: str
    size: int
    stamp: str

    def __str__(self) -> str:
        return f"{self.folder}/{self.key}"

    def absolute(self) -> StoredPhoto:
        """Itself: it is the same wherever a process works."""
        return self

    def read(self) -> bytes:
        """The whole file. Raises BadPhoto where it is gone.

        A DistillError where the store does not give it, after some more tries: that is no fault of
        the photo, which must not be listed as one that cannot be used.
        """
        for pause in (*PAUSES, None):
            try:
                content = self.folder.read(self.key)
                size = len(content)
                if size != self.size >= 0 and size != (now := self.folder.size(self.key)):
                    raise DistillError(f"{size} of {now} bytes came")
                return content
            except FileNotFoundError:
                raise BadPhoto("no longer there") from None
            except DistillError as error:
                why = error.__cause__ or error
                if pause is None or isinstance(why, PermissionError):
                    raise DistillError(
                        f"{self}: cannot be read ({reason_of(why, 200)}); run it again to "
                        "resume, drop=FILE leaves a photo out"
                    ) from error
                time.sleep(pause)
        raise AssertionError


def list_photos(folder: Address, suffixes: Set[str], how: Listing = "auto") -> list[StoredPhoto]:
    """The photos at an address, sorted as those of a local folder are.

    `how`: `auto` takes the listing that is kept where that took more than LONG seconds and says
    so, `new` never, `kept` wherever there is one. Left out is what `walk` leaves out of a local
    folder. Raises DistillError where the address cannot be listed.
    """
    digest = hashlib.sha256(folder.text.encode(errors="surrogateescape")).hexdigest()
    file = cache_folder() / "listings" / f"{folder.name}-{digest[:16]}.parquet"
    kept = None if how == "new" else _load(file, folder)
    if kept and (how == "kept" or kept[0]["seconds"] > LONG):
        about, photos = kept
        print(
            f"{folder}: {counted(len(photos), 'photo')} as listed on "
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(about['begun']))}, which took "
            f"{about['seconds']:.0f} s; label.listing=new lists them again"
        )
        return photos
    print(f"{folder}: listing what is there", flush=True)
    begun, clock = time.time(), time.monotonic()
    there = folder.find()
    wanted = [*_wanted(there)]
    keys = [key for key in wanted if Path(key).suffix.lower() in suffixes]
    if others := left_out(wanted):
        print(f"{folder}: {others}")
    keys.sort(key=lambda key: key.split("/"))  # as paths are
    photos = []
    for key in keys:
        entry = there[key]
        size = -1 if entry.get("size") is None else int(entry["size"])
        photos.append(StoredPhoto(folder, key, size, _stamp(entry)))
    if photos:
        # Seconds since 1970, and how many it took.
        took = {"begun": begun, "seconds": time.monotonic() - clock}
        _save(file, photos, {"address": folder.text, **took})
    return photos


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


def _stamp(about: Mapping[str, Any]) -> str:
    """What changes when the file does; empty where the store says nothing of the kind."""
    return next((str(about[name]) for name in _STAMPS if about.get(name) is not None), "")


def _load(file: Path, folder: Address) -> tuple[dict[str, Any], list[StoredPhoto]] | None:
    """The listing that is kept; None where there is none, or a damaged one."""
    pyarrow = _pyarrow()
    try:
        table = pyarrow.parquet.read_table(file, use_threads=False)
        about = json.loads(table.schema.metadata[_ABOUT])
        if not all(isinstance(about[key], float) for key in ("begun", "seconds")):
            return None
        columns = [table[name].cast(getattr(pyarrow, kind)()) for name, kind in _KINDS.items()]
        if about["address"] != folder.text or any(column.null_count for column in columns):
            return None
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        photos = [StoredPhoto(folder, *row) for row in rows]
        return (about, photos) if photos else None
    except Exception:  # as pyarrow does for damaged files, TypeError or KeyError for another's
        return None


def _save(file: Path, photos: Iterable[StoredPhoto], about: dict[str, Any]) -> None:
    """Keep the listing; a cache may fail."""
    pyarrow = _pyarrow()
    schema = pyarrow.schema(
        [(name, getattr(pyarrow, kind)()) for name, kind in _KINDS.items()],
        metadata={_ABOUT: json.dumps(about).encode()},
    )
    columns = ([getattr(photo, name) for photo in photos] for name in _KINDS)
    table = pyarrow.table([*columns], schema=schema)
    with suppress(OSError), atomic_write(file) as temporary:
        pyarrow.parquet.write_table(table, temporary, compression="zstd")


def _pyarrow() -> Any:
    with needed("photos at an address are listed by pyarrow", "pip install pyarrow"):
        import pyarrow.parquet
    return pyarrow
