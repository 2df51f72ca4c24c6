"""The forms of a set of pairs, as its card sees them: a folder of PNGs, or shards.

Both remember the same of themselves, in the set's own files; they differ in how the pairs lie there
and in what one types to use them, which is the card's section `Files`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import Image

from distill.config import groups
from distill.data.address import Address
from distill.data.datamodule import spread
from distill.data.decode import BadPhoto
from distill.data.manifest import manifest_at
from distill.data.photo_table import (
    SIDES,
    SKETCH_FOLDERS,
    TEACHER_FOLDERS,
    pair_of,
    png_names,
)
from distill.data.photos import Side
from distill.data.shards.pair_record import PHOTO, STYLIZED, codec_named
from distill.data.shards.shard_index import Catalogue
from distill.data.shards.shard_manifest import SetMetadataStore, finished_shards, shard_manifest_at
from distill.data.shards.sharded_pairs import ShardedPairs

SIDE = 256  # pixels, where nothing else is said
Two = tuple[Image.Image, Image.Image]


class SetFormat(ABC):
    """A set where it lies. `said` is the folder of its own files: dataset.json, photos.tsv."""

    def __init__(self, root: Address, said: Path) -> None:
        self.root, self.said = root, said

    def __str__(self) -> str:
        return str(self.root)

    @abstractmethod
    def pattern(self, side: Side) -> str:
        """Which of its files hold the pairs of a side."""

    @abstractmethod
    def files(self) -> str:
        """The text of the section `Files`: how the pairs lie there, and what is typed."""

    @abstractmethod
    def samples(self, count: int) -> Iterator[Two]:
        """Input and target of pairs that lie evenly over the last side that has any: held-out ones
        before others."""

    @property
    def made(self) -> Mapping[str, Any]:
        """Its manifest; empty where no set of distill.prepare lies."""
        return manifest_at(self.said) or {}

    @property
    def of_sketches(self) -> bool:
        return "teacher" not in self.made

    def use(self, extras: str, words: str, *more: str) -> str:
        """The lines that somebody else types, and what the sums are for."""
        if self.of_sketches:
            learnt = "recipe=pix2pix"
        else:  # somebody else has no style of this one's own name
            style, side = str(self.made["style"]), self.made["size"]
            learnt = f"style={style if style in groups.choices('style') else 'own'}"
            learnt += "" if side == SIDE else f" style.resolution={side}"
            if sizes := ",".join(map(str, self.made["sizes"])):
                learnt += f" data.sizes=[{sizes}] data.crop_size={side}"
                learnt += " global_statistics=thumbnail"
        lines = [
            f"pip install 'distill[{extras}]'",
            "distill hub pull repo=USER/NAME data.root=DIR    # or this folder; checks every file",
            f"distill train {learnt} {words}data.root=DIR",
            *more,
        ]
        typed = "\n".join(lines)
        return (
            f"```\n{typed}\n```\n\n"
            "`sha256sums.txt` has the hash of every file (`sha256sum -c sha256sums.txt`)."
        )


class FolderFormat(SetFormat):
    """SIDE/photo/NAME.png and SIDE/stylized/NAME.png, or SIDE/A and SIDE/B of sketches."""

    def __init__(self, root: Address, folder: Path) -> None:
        super().__init__(root, folder)
        # Those of input and target: of sketches A, the outlines, then B.
        self.folders = SKETCH_FOLDERS[::-1] if self.of_sketches else TEACHER_FOLDERS

    def pattern(self, side: Side) -> str:
        return f"{side}/**"

    def files(self) -> str:
        first, second = self.folders
        return (
            f"`SIDE/{first}/NAME.png` is the input, `SIDE/{second}/NAME.png` of the same name the "
            f"target.\n\n{self.use('hub', '')}"
        )

    def samples(self, count: int) -> Iterator[Two]:
        first, second = self.folders
        for side in reversed(SIDES):
            names = sorted(png_names(self.said, side, first) & png_names(self.said, side, second))
            plain = [name for name in names if name == f"{pair_of(name)}.png"] or names
            for at in spread(range(len(plain)), count):
                place = self.said / side
                yield Image.open(place / first / plain[at]), Image.open(place / second / plain[at])
            if plain:
                return


class TarFormat(SetFormat):
    """Tar files below shards/ and an index, in a folder or at an address.

    Raises DistillError where no finished shards are.
    """

    def __init__(self, root: Address) -> None:
        self.manifest = finished_shards(root)
        super().__init__(root, SetMetadataStore(root).folder)
        # Those of input and target; the outlines of sketches may be either.
        self.turned = tuple(self.manifest.layout) == SKETCH_FOLDERS

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

    def samples(self, count: int) -> Iterator[Two]:
        catalogue = Catalogue(self.root)
        for side in reversed(SIDES):
            pairs = ShardedPairs(self.root, catalogue, side, self.manifest.codec, whole=False)
            for at in spread(range(len(pairs)), count):
                with suppress(BadPhoto):  # training names it
                    photo, target = pairs[at].stored()
                    yield (target, photo) if self.turned else (photo, target)
            if len(pairs):
                return


def form_at(root: Path | Address) -> SetFormat:
    """The set at a folder or an address, in whichever form. Raises DistillError."""
    address = root if isinstance(root, Address) else Address(root)
    if shard_manifest_at(address) is not None:
        return TarFormat(address)
    assert address.local is not None
    return FolderFormat(address, address.local)
