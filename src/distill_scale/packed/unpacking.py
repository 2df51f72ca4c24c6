"""Shards back to a folder of pairs: the pictures as PNG, and all files of the set beside them.

Of lossless shards the pixels are those of the set they were made of. Resumable: what is there and
whole is left alone, and dataset.json comes last.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from distill.core.arrays import save_png
from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, write_whole
from distill.core.progress import bar
from distill.data.address import Address
from distill.data.decode import BadPhoto, is_whole
from distill.data.manifest import KEPT, LOCK, MANIFEST, SIDECARS, check_writable, writing
from distill.data.photo_table import SIDES
from distill.data.photos import Side
from distill_scale.packed.shard_index import Catalogue
from distill_scale.packed.shard_manifest import finished_shards
from distill_scale.packed.sharded_pairs import ShardedPairs

MARK = ".shards"  # in a folder that was unpacked into: of which shards
DONE = ".unpacked"


@dataclass(frozen=True)
class UnpackReport:
    """What unpacking did: of so many `pairs` some are `new`, others `skipped`."""

    folder: Path
    pairs: int
    new: int
    skipped: int

    def __str__(self) -> str:
        text = f"{self.folder}: {counted(self.pairs, 'pair')} as PNG, {self.new} new"
        return text + (f"; cannot be read: {counted(self.skipped, 'pair')}" if self.skipped else "")


def unpack(root: Address, folder: Path, sides: Sequence[Side] = SIDES) -> UnpackReport:
    """Write the pairs on these sides below `folder`, as SIDE/photo and SIDE/stylized.

    Raises DistillError where there are no shards, or `folder` holds something else.
    """
    manifest = finished_shards(root)
    _check_folder(root, folder)
    check_writable(folder)
    catalogue, new, skipped = Catalogue(root), 0, 0
    pairs = {side: ShardedPairs(root, catalogue, side, manifest.codec) for side in sides}
    total = sum(map(len, pairs.values()))
    with writing(folder), bar(total, "pair", "unpacking") as progress:
        write_whole(folder / MARK, f"{root}\n")
        for side in sides:
            stems = Counter(PurePath(pair.name).stem for pair in pairs[side])
            for pair in pairs[side]:
                path = PurePath(pair.name)  # two that differ in their suffix alone keep it
                name = f"{path.stem if stems[path.stem] == 1 else path.name}.png"
                places = [folder / side / each / name for each in manifest.layout]
                if not all(map(is_whole, places)):
                    try:
                        for picture, place in zip(pair.stored(), places, strict=True):
                            save_png(picture, place)
                        new += 1
                    except BadPhoto as reason:
                        progress.write(f"skipped {pair.photo!r}: {reason}")
                        skipped += 1
                progress.update()
        for name in (*(each for each in SIDECARS if each != MANIFEST), MANIFEST):
            if root.size(f"{KEPT}/{name}") is not None:
                write_whole(folder / name, root.read(f"{KEPT}/{name}"))
    return UnpackReport(folder, total - skipped, new, skipped)


def held_out_folder(root: Address) -> Path:
    """The held-out pairs of shards as a folder set in the cache, which is made where it is missing.

    Everything that looks at a run's own pictures reads folders: evaluation, exports. Its photos.tsv
    names the training photos too, of which it has no pair.
    """
    manifest = finished_shards(root)
    source = f"{root}\0{root.read(MANIFEST)!r}"
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    folder = cache_folder() / "held-out" / f"{root.name}-{digest}"
    if not (folder / DONE).is_file():
        print(f"{root}: unpacks its held-out pairs into {folder}, once")
        counts = manifest.counts or {}
        unpack(root, folder, [side for side in ("val", "test") if counts.get(side)])
        write_whole(folder / DONE, "")
    return folder


def _check_folder(root: Address, folder: Path) -> None:
    """An empty folder, one that these shards are unpacked into, or the set they were made of."""
    if not folder.is_dir() or {each.name for each in folder.iterdir()} <= {LOCK}:
        return
    begun, manifest = folder / MARK, folder / MANIFEST
    if begun.is_file() and begun.read_text() == f"{root}\n":
        return
    kept = f"{KEPT}/{MANIFEST}"
    both = manifest.is_file() and root.size(kept) is not None
    if not both or manifest.read_bytes() != root.read(kept):
        raise DistillError(f"{folder}: not empty, and no copy of this set; name another output=DIR")
