"""data=shards: pairs that distill.shards packed, here or in an object store."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from distill.data import photo_folders
from distill.data.address import Address
from distill.data.datasets import PairSet
from distill.data.kinds.source import (
    FOLDER_ONLY,
    PairsBySide,
    Source,
    Split,
    TrainingSets,
    check_some,
)
from distill.data.photos import Side
from distill.data.sampler import shares_of
from distill.models.teachers.teacher import Teacher
from distill_scale.packed.node_cache import NodeCache
from distill_scale.packed.shard_index import Catalogue
from distill_scale.packed.shard_manifest import ShardManifest, finished_shards, shard_manifest_at
from distill_scale.packed.shard_order import ShardOrder
from distill_scale.packed.sharded_pairs import ShardedPairs
from distill_scale.packed.unpacking import held_out_folder
from distill_scale.tar_format import TarFormat


class Shards(Source):
    """Pairs in tar files, which are taken as they are."""

    place: ClassVar = Path("data/shards")
    own_pairs: ClassVar = True
    form: ClassVar = TarFormat
    labels_itself: ClassVar = True

    @property
    def root(self) -> Address:
        return Address(self.data.root or self.place / photo_folders.usual_name(self.settings))

    @classmethod
    def folder_at(cls, root: str) -> Path:
        """The held-out pairs alone, which are unpacked once."""
        return held_out_folder(Address(root))

    @classmethod
    def made_of(cls, root: str) -> Mapping[str, Any] | None:
        shards = shard_manifest_at(Address(root))
        return None if shards is None else shards.recipe

    @classmethod
    def out_of_reach(cls, root: str) -> str:
        return f"the training pairs of the shards {root} are not unpacked"

    def label(self, teacher: Teacher | None) -> Address:
        from distill_scale import labelled_shards

        return labelled_shards.label(self, teacher)

    @property
    def needs_labels(self) -> bool:
        return False

    @cached_property
    def manifest(self) -> ShardManifest:
        """Of finished shards. Raises DistillError."""
        return finished_shards(self.root)

    @property
    def varied(self) -> dict[str, Any]:
        return super().varied | {"flip": self.mirrors(self.manifest.recipe)}

    def check(self) -> None:
        finished_shards(self.root)

    def sizes(self) -> list[int] | None:
        return self.manifest.recipe.get("sizes", [])

    def training_sets(self, split: Split | None) -> TrainingSets:
        self.check_no_align(FOLDER_ONLY)
        settings, d = self.settings, self.data
        common, varied, pairs = self.common, self.varied, self._sides()
        if d.sizes:
            whole = self._sides(whole=True)
            squares = varied | ({"order": self._order(pairs["train"])} if pairs["train"] else {})
            large = dict(varied)
            if len(whole["train"]):
                large["order"] = ShardOrder(whole["train"].sizes, f"{settings.seed}:whole")
            return TrainingSets(*self.sets_of_sizes(pairs, whole, squares, large))
        check_some(self.root, pairs["train"])
        order = self._order(pairs["train"])
        train = PairSet(pairs["train"], train=True, order=order, **varied, **common)
        return TrainingSets(train, PairSet(pairs["val"], train=False, **common))

    def pairs_by_side(self) -> PairsBySide:
        self.check_no_align(FOLDER_ONLY)
        sides = self._sides()
        train = sides["train"]
        order = ShardOrder(train.sizes, self.settings.seed) if train else None
        return PairsBySide(
            train, sides["val"], {"flip": self.mirrors(self.manifest.recipe), "order": order}
        )

    def _sides(self, whole: bool = False) -> dict[Side, ShardedPairs]:
        """The squares by their sides, or the whole pictures. Raises DistillError."""
        root, cache = self.root, self.data.cache
        codec, catalogue = self.manifest.codec, Catalogue(root)
        copies = NodeCache(root, cache) if cache and root.local is None else None
        return {
            side: ShardedPairs(root, catalogue, side, codec, copies, whole)
            for side in ("train", "val")
        }

    def _order(self, pairs: ShardedPairs) -> ShardOrder:
        names, folders = self.manifest.recipe.get("folders", []), pairs.catalogue.folders
        shares = shares_of(self.data.weights, names, folders[pairs.shards].tolist())
        return ShardOrder(pairs.sizes, self.settings.seed, shares)
