"""The forms of a set of pairs, as its card and its publication see them: a folder of PNGs, and
those of other sources.

All remember the same of themselves, in the set's own files; they differ in how the pairs lie there
and in what one types to use them, which is the card's section `Files`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

from PIL import Image

from distill.config import groups
from distill.data.address import Address
from distill.data.manifest import PREVIEW, is_complete, manifest_at
from distill.data.photo_table import (
    LAYER_FOLDER,
    PAIR_FOLDERS,
    SIDES,
    SKETCH_FOLDERS,
    TEACHER_FOLDERS,
    pair_of,
    png_names,
)
from distill.data.photos import Side, spread

SIDE = 256  # pixels, where nothing else is said
PicturePair = tuple[Image.Image, Image.Image]


class SetFormat(ABC):
    """A set where it lies. `folder` is that of its own files: dataset.json, photos.tsv."""

    kind: ClassVar[str]  # what data= of distill.train is for it
    kept: ClassVar = ""  # where its own files lie below it, as in `set/`
    beside: ClassVar[tuple[str, ...]] = ()  # further files that are published

    def __init__(self, root: Address, folder: Path) -> None:
        self.root, self.folder = root, folder

    @classmethod
    @abstractmethod
    def at(cls, root: Address) -> Self | None:
        """The set of this form there, None where there is none. Raises DistillError for one that
        is not finished."""

    @classmethod
    @abstractmethod
    def lists(cls, names: Collection[str]) -> bool:
        """Whether files of these names, as they were published, are a set of this form."""

    @classmethod
    def removable(cls, root: Path) -> Iterable[Path]:
        """Files of a local set that labelling would take up, where another replaces the set."""
        return ()

    @property
    def complete(self) -> bool:
        """Whether the command that makes it ran to its end."""
        return True

    @abstractmethod
    def published(self, scratch: Path) -> dict[str, Path]:
        """The files with the pairs of a local set by their paths there; what is changed is below
        `scratch`. Raises DistillError where one is missing."""

    def check(self, digests: Mapping[str, str]) -> None:  # noqa: B027 - PNGs are whole or not there
        """Raises DistillError where one of these files is not what the set says it is."""

    def __str__(self) -> str:
        return str(self.root)

    @abstractmethod
    def pattern(self, side: Side) -> str:
        """Which of its files hold the pairs of a side."""

    @abstractmethod
    def files(self) -> str:
        """The text of the section `Files`: how the pairs lie there, and what is typed."""

    @abstractmethod
    def samples(self, count: int) -> Iterator[PicturePair]:
        """Input and target of pairs that lie evenly over the last side that has any: held-out ones
        before others."""

    @property
    def recipe(self) -> Mapping[str, Any]:
        """Its manifest; empty where no set of distill.prepare lies."""
        return manifest_at(self.folder) or {}

    @property
    def of_sketches(self) -> bool:
        return "teacher" not in self.recipe

    def use(self, extras: str, words: str, *more: str) -> str:
        """The lines that somebody else types, and what the sums are for."""
        if self.of_sketches:
            learnt = f"recipe={self.recipe['recipe']}" if "recipe" in self.recipe else "style=own"
        else:  # somebody else has no style of this one's own name
            style, side = str(self.recipe["style"]), self.recipe["size"]
            learnt = f"style={style if style in groups.choices('style') else 'own'}"
            learnt += "" if side == SIDE else f" style.resolution={side}"
            if sizes := ",".join(map(str, self.recipe["sizes"])):
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

    kind: ClassVar = "pairs"
    beside: ClassVar = (PREVIEW,)

    def __init__(self, root: Address, folder: Path) -> None:
        super().__init__(root, folder)
        # Those of input and target: of sketches A, the outlines, then B.
        self.folders = SKETCH_FOLDERS[::-1] if self.of_sketches else TEACHER_FOLDERS

    @classmethod
    def at(cls, root: Address) -> Self | None:
        return None if root.local is None else cls(root, root.local)

    @classmethod
    def lists(cls, names: Collection[str]) -> bool:
        return True

    @property
    def complete(self) -> bool:
        return self.folder.is_dir() and is_complete(self.folder)

    def published(self, scratch: Path) -> dict[str, Path]:
        """Without pairs that lack a side, and with the layers of lines beside them."""
        files: dict[str, Path] = {}
        for side, folders in product(SIDES, PAIR_FOLDERS):
            names = set.intersection(*(png_names(self.folder, side, folder) for folder in folders))
            names_of = dict.fromkeys(folders, names)
            if folders == TEACHER_FOLDERS:
                names_of[LAYER_FOLDER] = names & png_names(self.folder, side, LAYER_FOLDER)
            for folder, files_of in names_of.items():
                places = (f"{side}/{folder}/{name}" for name in sorted(files_of))
                files |= {place: self.folder / place for place in places}
        return files

    def pattern(self, side: Side) -> str:
        return f"{side}/**"

    def files(self) -> str:
        first, second = self.folders
        return (
            f"`SIDE/{first}/NAME.png` is the input, `SIDE/{second}/NAME.png` of the same name the "
            f"target.\n\n{self.use('hub', '')}"
        )

    def samples(self, count: int) -> Iterator[PicturePair]:
        first, second = self.folders
        for side in reversed(SIDES):
            names = sorted(
                png_names(self.folder, side, first) & png_names(self.folder, side, second)
            )
            plain = [name for name in names if name == f"{pair_of(name)}.png"] or names
            for at in spread(range(len(plain)), count):
                place = self.folder / side
                yield Image.open(place / first / plain[at]), Image.open(place / second / plain[at])
            if plain:
                return
