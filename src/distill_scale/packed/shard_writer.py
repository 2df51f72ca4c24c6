"""Writing shards: one is published whole, then its part of the index, which makes it one."""

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, TypeVar

from PIL import Image

from distill.data.address import Address
from distill.data.photo_table import PhotoRow
from distill.data.photos import group_of
from distill_scale.packed.pair_record import (
    END,
    Content,
    PictureCodec,
    encode_pair,
    key_of,
    with_key,
)
from distill_scale.packed.shard_index import (
    IndexRow,
    Shard,
    ShardRow,
    part_path,
    shard_path,
    write_catalogue,
    write_part,
)

Place = TypeVar("Place", bound=tuple[object, ...])


def deal_out(
    names: Sequence[str], places: Sequence[Place], per_shard: int
) -> Iterator[tuple[Place, list[int]]]:
    """Which pairs each shard has, by their numbers: of one place, by a hash of their names."""
    digests = [hashlib.sha256(name.encode(errors="surrogateescape")).digest() for name in names]
    parts = defaultdict[Place, list[int]](list)
    for i in sorted(range(len(names)), key=digests.__getitem__):
        parts[places[i]].append(i)
    for place, mixed in sorted(parts.items()):
        for start in range(0, len(mixed), per_shard):
            yield place, mixed[start : start + per_shard]


@dataclass
class ShardWriter:
    """A shard whose pairs are added one by one."""

    about: Shard
    codec: PictureCodec
    _content: bytearray = field(default_factory=bytearray, init=False)
    _rows: list[IndexRow] = field(default_factory=list, init=False)

    def add(
        self, name: str, row: PhotoRow | None, photo: Image.Image, stylized: Image.Image
    ) -> None:
        """Put a pair behind the others; `row` is what photos.tsv says of its photo."""
        record = encode_pair(key_of(len(self._rows), name), photo, stylized, self.codec)
        self._rows.append(
            IndexRow(
                name=name,
                side=self.about.side,
                group=group_of(row.photo if row else name),
                folder=self.about.folder,
                device=self.about.device,
                width=photo.width,
                height=photo.height,
                pair=row.pair if row else None,
                photo=row.key if row else None,
                near_duplicate=row.near_duplicate if row else None,
                **self._put(record),
            )
        )

    def add_copy(self, row: IndexRow, record: Content) -> None:
        """Put a pair of another shard behind the others. Raises BadPhoto for a damaged one."""
        record = with_key(record, key_of(len(self._rows), row.name), self.codec)
        self._rows.append(replace(row, **self._put(record)))

    def _put(self, record: Content) -> dict[str, Any]:
        """Put a record behind the others; gives what the index says of its place."""
        digest, offset = hashlib.sha256(record).hexdigest(), len(self._content)
        self._content += record
        place = {"shard": shard_path(self.about.shard), "offset": offset, "size": len(record)}
        return place | {"sha256": digest, "crc32": zlib.crc32(record)}

    def publish(self, root: Address, skipped: Mapping[str, str] = MappingProxyType({})) -> ShardRow:
        """Write shard and index; `skipped` are the photos of which there is no pair."""
        content = self._content
        content += END
        row = ShardRow(
            **{each.name: getattr(self.about, each.name) for each in fields(Shard)},
            pairs=len(self._rows),
            bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            skipped=dict(skipped),
        )
        if self._rows:
            root.write(shard_path(row.shard), memoryview(content))
        write_part(root, row, self._rows)
        return row


def write_set(root: Address, rows: Sequence[ShardRow]) -> None:
    """The catalogue of these shards; whatever else an earlier plan left is removed."""
    write_catalogue(root, [row for row in rows if row.pairs])
    for place, path in (("shards", shard_path), ("index", part_path)):
        for name in root.names(place) - {PurePath(path(row.shard)).name for row in rows}:
            root.remove(f"{place}/{name}")
