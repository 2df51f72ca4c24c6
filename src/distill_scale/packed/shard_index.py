"""The index of a set of shards, in Parquet: which pair lies where, and what is known of it.

    ROOT/shards/SIDE-NNNNNN.tar       some 500 pairs of one side and one folder of photos
    ROOT/index/SIDE-NNNNNN.parquet    a row for each of them, in their order
    ROOT/shards.parquet               the catalogue: a row for each shard

The index is one file a shard, so that a shard and its part of the index are published together, and
training reads the catalogue and no more of the index than it is about to need. All parts together
are one table: `pyarrow.dataset.dataset("ROOT/index")`.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distill.core.errors import DistillError, extra_package, reason_of
from distill.core.files import sha256
from distill.data.address import Address
from distill.data.photos import Side

CATALOGUE = "shards.parquet"
LARGEST = 2**30  # bytes of a pair: what an index may ask to be read
_ROW = b"distill"  # key of what a part of the index says of its shard


@dataclass(frozen=True)
class IndexRow:
    """A pair: `offset` and `size` are the bytes of its shard that hold it, `sha256` is theirs.

    So is `crc32`, which training checks: it takes a quarter of the time. `group` is what must stay
    on one side with it, `folder` that of several folders of photos, `device` what labelled it.
    `pair`, `photo` (`repr` of the key) and `near_duplicate` are what photos.tsv says of it, `width`
    and `height` are the photo's in pixels. None: not known.
    """

    name: str
    side: str
    group: str
    folder: str
    shard: str
    offset: int
    size: int
    sha256: str
    device: str | None = None
    pair: str | None = None
    photo: str | None = None
    near_duplicate: bool | None = None
    crc32: int | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A shard before it is written: its name, its side and the folder its photos come from.

    `device` made its pairs, None where that is not known or was more than one. `plan` changes when
    the files that it was made of do. `whole`: its pictures are whole photos of several sizes, not
    squares.
    """

    shard: str
    side: Side
    folder: str
    plan: str
    device: str | None = None
    whole: bool = False


@dataclass(frozen=True, kw_only=True)
class ShardRow(Shard):
    """The same once it is written: how many pairs, and its content.

    `skipped` are the photos of which a teacher could make no pair (`repr` of the key), with the
    reason.
    """

    pairs: int
    bytes: int
    sha256: str
    skipped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardPart:
    """What reading pairs needs of a shard's part of the index."""

    names: list[str]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    sha256: list[str]
    crc32: list[int | None]
    widths: list[int | None]
    heights: list[int | None]

    def holds(self, row: int, content: bytes) -> bool:
        """Whether the bytes are those of that pair."""
        crc32 = self.crc32[row]
        if crc32 is None:
            return hashlib.sha256(content).hexdigest() == self.sha256[row]
        return zlib.crc32(content) == crc32


def shard_path(shard: str) -> str:
    return f"shards/{shard}.tar"


def part_path(shard: str) -> str:
    return f"index/{shard}.parquet"


def pyarrow_parquet() -> Any:
    """The library that reads and writes Parquet. Raises DistillError where it is missing."""
    return extra_package("pyarrow.parquet", "shards", "pip install 'distill[shards]'")


def broken(where: str, problem: str) -> DistillError:
    """The error of a file of a set that is not as the set says."""
    return DistillError(f"{where}: {problem}; run the command that made the set again to repair it")


def write_part(root: Address, row: ShardRow, pairs: Sequence[IndexRow]) -> None:
    """Publish the index of one shard, which makes the shard a part of the set."""
    about = {_ROW: json.dumps(asdict(row)).encode()}
    root.write(part_path(row.shard), _parquet(_PAIR, pairs, about))


def read_shard_row(root: Address, shard: str) -> ShardRow | None:
    """What a shard's part of the index says of the shard; None where there is none, or damaged."""
    parquet = pyarrow_parquet()
    try:
        content = root.read(part_path(shard))
        kept = parquet.read_schema(io.BytesIO(content)).metadata[_ROW]
        return ShardRow(**json.loads(kept))
    except DistillError:
        raise
    except Exception:  # as pyarrow does for damaged files, or KeyError for another's
        return None


def whole_shard(root: Address, shard: str) -> ShardRow | None:
    """What is said of a shard that is there and whole, else None.

    Local shards are read for that; of an object store's the size is enough, it checks what it gets.
    """
    row, path = read_shard_row(root, shard), shard_path(shard)
    if row is None or row.pairs == 0:
        return row
    if root.size(path) != row.bytes:
        return None
    if root.local is not None and sha256(root.local / path) != row.sha256:
        return None
    return row


def read_part(root: Address, shard: str) -> ShardPart:
    """Where the pairs of a shard lie. Raises DistillError."""
    columns = ["name", "offset", "size", "sha256", "crc32", "width", "height"]
    table = _table(root, part_path(shard), _PAIR, columns)
    arrays = {"offset", "size"}
    return ShardPart(
        *(table[c].to_numpy() if c in arrays else table[c].to_pylist() for c in columns)
    )


def read_rows_of(root: Address, shard: str) -> list[IndexRow]:
    """All that is known of the pairs of a shard, in their order. Raises DistillError."""
    table = _table(root, part_path(shard), _PAIR, [*_PAIR])
    return [IndexRow(**row) for row in table.to_pylist()]


def write_catalogue(root: Address, rows: Sequence[ShardRow]) -> None:
    root.write(CATALOGUE, _parquet(_SHARD, rows))


class Catalogue:
    """The shards of a set as columns, in their order: 60 bytes a shard, whatever is in them."""

    def __init__(self, root: Address) -> None:
        columns = ["shard", "side", "folder", "pairs", "sha256", "whole"]
        table = _table(root, CATALOGUE, _SHARD, columns)
        self._names, self._sha256 = table["shard"].combine_chunks(), table["sha256"]
        self.sides: NDArray[Any] = np.array(table["side"].to_pylist(), str)
        self.folders: NDArray[Any] = np.array(table["folder"].to_pylist(), str)
        self.pairs: NDArray[np.int64] = table["pairs"].to_numpy().astype(np.int64)
        self.whole = np.array([bool(each) for each in table["whole"].to_pylist()], bool)

    def __len__(self) -> int:
        return len(self.pairs)

    def name(self, number: int) -> str:
        return self._names[number].as_py()

    def sha256(self, number: int) -> str:
        """Of the whole shard."""
        return self._sha256[number].as_py()

    def of(self, side: Side, whole: bool | None = None) -> NDArray[np.int64]:
        """The numbers of the shards of one side; those of whole pictures, or of squares, alone
        where that is asked for."""
        wanted = self.sides == side
        return np.flatnonzero(wanted if whole is None else wanted & (self.whole == whole))


def _columns(row: type[IndexRow | ShardRow]) -> dict[str, str]:
    """Parquet's kind of column for each plain field of a row."""
    kinds = {"str": "string", "Side": "string", "int": "int64", "bool": "bool_"}
    plain = {field.name: str(field.type).removesuffix(" | None") for field in fields(row)}
    return {name: kinds[kind] for name, kind in plain.items() if kind in kinds}


_PAIR, _SHARD = _columns(IndexRow), _columns(ShardRow)
_ALL = _PAIR | _SHARD
# May be, as in files of earlier versions.
_UNKNOWN = {each.name for each in (*fields(IndexRow), *fields(ShardRow)) if each.default != MISSING}


def _parquet(
    columns: dict[str, str], rows: Sequence[Any], about: dict[bytes, bytes] | None = None
) -> bytes:
    parquet = pyarrow_parquet()
    import pyarrow

    schema = _schema(columns).with_metadata(about)
    table = pyarrow.Table.from_pylist([asdict(row) for row in rows], schema)
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def _table(root: Address, path: str, kinds: dict[str, str], columns: list[str]) -> Any:
    """These columns, of the kinds that they have in our files. Raises DistillError."""
    parquet = pyarrow_parquet()
    import pyarrow

    try:
        content = root.read(path)
        # One thread: pyarrow's own do not live on in a forked process that loads pictures.
        # Not `read_table`, which imports pyarrow's datasets.
        with parquet.ParquetFile(io.BytesIO(content)) as file:
            table = file.read(columns, use_threads=False)
        for name in _UNKNOWN & {*columns} - {*table.column_names}:  # of an earlier version
            table = table.append_column(name, pyarrow.nulls(len(table)))
        table = table.select(columns).cast(_schema({name: kinds[name] for name in columns}))
        table.validate(full=True)  # a damaged file's text may be none
        problem = f"damaged ({wrong})" if (wrong := _impossible(table)) else ""
    except FileNotFoundError:
        problem = "not there"
    except DistillError:
        raise
    except Exception as error:  # pyarrow's are of many kinds
        problem = f"damaged ({reason_of(error, 100)})"
    if not problem:
        return table
    raise broken(f"{root}/{path}", problem)


def _schema(kinds: dict[str, str]) -> Any:
    import pyarrow

    return pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in kinds.items()])


def _impossible(table: Any) -> str:
    """Which column holds what cannot be, though it is of the right kind; empty where none does."""
    for name in table.column_names:
        column = table[name]
        if name not in _UNKNOWN and column.null_count:
            return f"{name} is missing in a row"
        if _ALL[name] == "int64" and len(column):
            values = column.to_numpy()
            if values.min() < 0 or (name == "size" and values.max() > LARGEST):
                return f"{name} is {values.min()} to {values.max()}"
    return ""
