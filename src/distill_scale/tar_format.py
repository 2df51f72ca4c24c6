"""A set of shards, as its card and its publication see it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

from distill.data.address import Address
from distill.data.cards.set_formats import PicturePair, SetFormat
from distill.data.decode import BadPhoto
from distill.data.manifest import KEPT, SetMetadataStore
from distill.data.photo_table import SIDES, SKETCH_FOLDERS
from distill.data.photos import Side, spread
from distill_scale.packed.pair_record import PHOTO, STYLIZED, codec_named
from distill_scale.packed.shard_index import (
    CATALOGUE,
    Catalogue,
    broken,
    part_path,
    read_rows_of,
    read_shard_row,
    shard_path,
    write_part,
)
from distill_scale.packed.shard_manifest import finished_shards, shard_manifest_at
from distill_scale.packed.sharded_pairs import ShardedPairs


class TarFormat(SetFormat):
    """Tar files below shards/ and an index, in a folder or at an address.

    Raises DistillError where no finished shards are.
    """

    kind: ClassVar = "shards"
    kept: ClassVar = f"{KEPT}/"
    beside: ClassVar = (CATALOGUE,)

    def __init__(self, root: Address) -> None:
        self.manifest = finished_shards(root)
        super().__init__(root, SetMetadataStore(root).folder)
        # Those of input and target; the outlines of sketches may be either.
        self.turned = tuple(self.manifest.layout) == SKETCH_FOLDERS

    @classmethod
    def at(cls, root: Address) -> Self | None:
        return None if shard_manifest_at(root) is None else cls(root)

    @classmethod
    def lists(cls, names: Collection[str]) -> bool:
        return CATALOGUE in names

    @classmethod
    def removable(cls, root: Path) -> Iterable[Path]:
        return (*root.glob("shards/[!.]*"), *root.glob("index/[!.]*"))

    def published(self, scratch: Path) -> dict[str, Path]:
        """The tar files and their parts of the index.

        A part that names photos of which no pair could be made is written without them below
        `scratch`: lists of what was left out stay at home.
        """
        files, root = dict[str, Path](), self.root
        catalogue = Catalogue(root)
        assert root.local is not None
        for shard in map(catalogue.name, range(len(catalogue))):
            row = read_shard_row(root, shard)
            tar, part = root.local / shard_path(shard), root.local / part_path(shard)
            if row is None or not tar.is_file():
                raise broken(str(part if row is None else tar), "not there, or damaged")
            if row.skipped:
                write_part(Address(scratch), replace(row, skipped={}), read_rows_of(root, shard))
                part = scratch / part_path(shard)
            files |= {shard_path(shard): tar, part_path(shard): part}
        return files

    def check(self, digests: Mapping[str, str]) -> None:
        """Raises DistillError for a shard that is not what the catalogue says."""
        catalogue = Catalogue(self.root)
        for number in range(len(catalogue)):
            tar = shard_path(catalogue.name(number))
            if digests[tar] != catalogue.sha256(number):
                raise broken(f"{self.root}/{tar}", "damaged")

    def pattern(self, side: Side) -> str:
        return f"shards/{side}-*.tar"

    def files(self) -> str:
        suffix = codec_named(self.manifest.codec).suffix
        members = (STYLIZED, PHOTO) if self.turned else (PHOTO, STYLIZED)
        first, second = (f"`KEY.{member}.{suffix}`" for member in members)
        return (
            f"Pairs lie side by side in `shards/SIDE-….tar`: {first} is the input, {second} of the "
            "same key the target. `index/` says of each pair in which bytes it lies (Parquet), "
            "`shards.parquet` lists the shards, `set/` has what is known of the photos.\n\n"
            + self.use(
                "hub,shards",
                "data=shards ",
                "distill shards data.root=DIR to=pairs output=PAIRS    # as a folder of PNGs",
            )
        )

    def samples(self, count: int) -> Iterator[PicturePair]:
        catalogue = Catalogue(self.root)
        for side in reversed(SIDES):
            pairs = ShardedPairs(self.root, catalogue, side, self.manifest.codec, whole=False)
            for at in spread(range(len(pairs)), count):
                with suppress(BadPhoto):  # training names it
                    photo, target = pairs[at].stored()
                    yield (target, photo) if self.turned else (photo, target)
            if len(pairs):
                return
