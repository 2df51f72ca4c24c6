"""The pairs of one side of a set of shards, read one by one: each is one range of one shard."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.data.address import Address
from distill.data.decode import BadPhoto, to_rgb
from distill.data.photos import Side
from distill_scale.packed.node_cache import NodeCache
from distill_scale.packed.pair_record import ArrayCodec, codec_named, decode_pair, decoded
from distill_scale.packed.shard_index import (
    Catalogue,
    ShardPart,
    broken,
    part_path,
    read_part,
    shard_path,
)

_BINARY = getattr(os, "O_BINARY", 0)  # Windows reads text where that is not said
Pixels = NDArray[np.uint8]
OPEN = 256  # shards of which a process keeps the index and, of local ones, the file open


def read_at(file: int, size: int, offset: int) -> bytes:
    """`size` bytes of an open file from `offset` on, fewer at its end."""
    if hasattr(os, "pread"):
        return os.pread(file, size, offset)
    # Windows. A place in the file is shared by forked processes, of which it has none.
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, size)


class ShardedPair:
    """A pair in a shard. `photo` says where, to name it by."""

    def __init__(self, pairs: ShardedPairs, shard: int, row: int) -> None:
        self._pairs, self._shard, self._row = pairs, shard, row

    @property
    def name(self) -> str:
        return self._pairs.part(self._shard).names[self._row]

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the photo in pixels, by the index; 0 where that does not say."""
        part = self._pairs.part(self._shard)
        return part.heights[self._row] or 0, part.widths[self._row] or 0

    @property
    def photo(self) -> str:
        return f"{self._pairs.root}/{shard_path(self._pairs.shard_name(self._shard))}/{self.name}"

    def read(self, alpha: bool = False, swap: bool = False) -> tuple[Image.Image, Image.Image]:
        """Photo and target as RGB, or with `swap` target and photo. Raises BadPhoto.

        The second of them is RGBA with `alpha`.
        """
        photo, target = self.stored()
        first, second = (target, photo) if swap else (photo, target)
        if first.mode != "RGB":
            first = to_rgb(first)
        return first, second if second.mode == "RGB" and not alpha else to_rgb(second, alpha)

    def pixels(self, swap: bool = False) -> tuple[Pixels, Pixels] | None:
        """The same as arrays, (H, W, 3); None where that is no shorter way. Raises BadPhoto."""
        codec = self._pairs.codec
        if not isinstance(codec, ArrayCodec):
            return None
        photo, target = (
            pixels if pixels.shape[2] == 3 else np.array(to_rgb(Image.fromarray(pixels)))
            for pixels in decoded(self._pairs.record(self._shard, self._row), codec.pixels)
        )
        return (target, photo) if swap else (photo, target)

    def stored(self) -> tuple[Image.Image, Image.Image]:
        """Photo and target as they were packed, RGB or RGBA. Raises BadPhoto."""
        return decode_pair(self._pairs.record(self._shard, self._row), self._pairs.codec)


class ShardedPairs(Sequence[ShardedPair]):
    """The pairs of a side in the catalogue's order, made when they are asked for.

    In memory are the catalogue and the index of the OPEN shards used last. `cache` keeps remote
    shards on this machine. With `whole` they are the whole pictures, or with False the squares,
    alone. Workers may be forked or spawned: each opens files for itself.
    """

    def __init__(
        self,
        root: Address,
        catalogue: Catalogue,
        side: Side,
        codec: str,
        cache: NodeCache | None = None,
        whole: bool | None = None,
    ) -> None:
        self.root, self.catalogue, self.cache = root, catalogue, cache
        self.codec = codec_named(codec)
        self.shards = catalogue.of(side, whole)
        self.sizes = catalogue.pairs[self.shards]
        self._ends = np.cumsum(self.sizes)
        self._begin()

    def _begin(self) -> None:
        self._part = lru_cache(OPEN)(partial(read_part, self.root))
        self._files: OrderedDict[int, int] = OrderedDict()
        weakref.finalize(self, _close, self._files)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_part": None, "_files": None}  # of this process

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, index: int) -> ShardedPair: ...

    @overload
    def __getitem__(self, index: slice) -> list[ShardedPair]: ...

    def __getitem__(self, index: int | slice) -> ShardedPair | list[ShardedPair]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        number = range(len(self))[index]
        shard = int(np.searchsorted(self._ends, number, side="right"))
        return ShardedPair(self, shard, number - int(self._ends[shard] - self.sizes[shard]))

    def shard_name(self, shard: int) -> str:
        return self.catalogue.name(int(self.shards[shard]))

    def part(self, shard: int) -> ShardPart:
        """A shard's part of the index."""
        name = self.shard_name(shard)
        part = self._part(name)
        if len(part.names) != self.sizes[shard]:
            where = f"{self.root}/{part_path(name)}"
            raise broken(where, f"pairs: {len(part.names)}, {self.sizes[shard]} in the catalogue")
        return part

    def record(self, shard: int, row: int) -> bytes:
        """The bytes of a pair. Raises BadPhoto where they are not those of the index."""
        part = self.part(shard)
        offset, size = int(part.offsets[row]), int(part.sizes[row])
        file = self._file(shard)
        if file is not None:
            content = read_at(file, size, offset)
        else:
            path = shard_path(self.shard_name(shard))
            try:
                content = self.root.read_range(path, offset, size)
            except FileNotFoundError:
                raise broken(f"{self.root}/{path}", "not there") from None
        if not part.holds(row, content):
            raise BadPhoto("damaged in its shard: not the bytes of the index")
        return content

    def _file(self, shard: int) -> int | None:
        """A handle of the shard's file, or of its copy; None where it has to be read from afar."""
        handle = self._files.get(shard)
        if handle is None:
            name = self.shard_name(shard)
            path = self.root.local / shard_path(name) if self.root.local is not None else None
            if path is None and self.cache is not None:
                content = self.catalogue.sha256(int(self.shards[shard]))
                path = self.cache.copy(content)
                if path is None:
                    self.cache.want(name, content)
            if path is None:
                return None
            try:
                handle = os.open(path, os.O_RDONLY | _BINARY)
            except FileNotFoundError:  # a copy that another process has just removed
                return None
            self._files[shard] = handle
            if len(self._files) > OPEN:
                os.close(self._files.popitem(last=False)[1])
        self._files.move_to_end(shard)
        return handle


def _close(files: Mapping[int, int]) -> None:
    for handle in files.values():
        os.close(handle)
