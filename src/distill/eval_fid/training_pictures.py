"""Which pictures a run has seen: what it learnt from, and what its checkpoint was chosen by.

Other pictures are among them as the same file, by the name of their group where they lie in a
folder that the run took its photos from, or as near-duplicates.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distill.config.settings.training import PhotoSource, SplitConfig, Train, source_of
from distill.core.errors import DistillError, counted
from distill.core.files import real_path
from distill.data import photo_folders
from distill.data.duplicates import similar_pairs
from distill.data.kinds import registry
from distill.data.pairs import find_pairs
from distill.data.photo_table import read_rows
from distill.data.photos import Photo, Side, group_of
from distill.data.thumbnails import thumbnails
from distill.models import checkpoint


@dataclass(frozen=True)
class SetPictures:
    """Pictures of the set at `root`, by the file names of their pairs.

    Each is the photo itself where that is still there, or the set's copy of it. `groups` are their
    name groups, each with the folder of the photos.
    """

    root: Path
    pictures: dict[str, Photo]
    groups: frozenset[tuple[Path, str]] = frozenset()


@dataclass(frozen=True)
class SeenPictures:
    """What runs have seen; `unknown` says of which that cannot be told any more, "" if of all."""

    sets: list[SetPictures]
    unknown: str

    def among(self, pictures: Mapping[str, Photo], cache: str) -> set[str]:
        """The names of the pictures that were seen; `cache` names the cache of their thumbnails."""
        files = {real_path(photo.local) for each in self.sets for photo in each.pictures.values()}
        groups = {group for each in self.sets for group in each.groups}
        seen = set()
        for name, photo in pictures.items():
            path, group = real_path(photo.local), group_of(photo.key)
            if path in files or any((folder, group) in groups for folder in path.parents):
                seen.add(name)
        for each in self.sets:
            left = [name for name in pictures if name not in seen]
            if left:
                ours, theirs = [pictures[name] for name in left], [*each.pictures.values()]
                seen |= {
                    left[i] for i in near_duplicates(ours, theirs, (cache, f"{each.root}/seen"))
                }
        return seen


def near_duplicates(
    ours: Sequence[Photo], theirs: Sequence[Photo], caches: tuple[str, str]
) -> list[int]:
    """The indices of `ours` that are near-duplicates of one of `theirs`.

    `caches` name the caches of their thumbnails.
    """
    small = [thumbnails(photos, name) for photos, name in zip((ours, theirs), caches, strict=True)]
    edges = similar_pairs(np.concatenate(small), first=len(ours))
    return np.unique(edges[:, 0]).tolist()


def runs_behind(trained: Train) -> tuple[list[Train], str]:
    """The settings of a run and of those whose students it started from.

    Where one of those is gone, the run's own alone, and the reason.
    """
    try:
        return checkpoint.lineage(trained), ""
    except DistillError as error:
        return [trained], str(error)


def seen_by(runs: Iterable[Train], unknown: str = "") -> SeenPictures:
    """What distilled students have seen, from their settings."""
    sets: dict[Path, SetPictures] = {}
    gone = [unknown] if unknown else []
    for source in map(source_of, runs):
        try:
            pictures, root = pictures_of(source), registry.data_source(source).folder
        except DistillError as error:  # a set whose held-out pairs cannot be had
            gone.append(str(error))
            continue
        if pictures is None:
            gone.append(f"the training set {root} is gone")
            continue
        sets[pictures.root] = pictures
        if lost := sum(not photo.local.is_file() for photo in pictures.pictures.values()):
            gone.append(
                f"gone of {root}: {lost} of {counted(len(pictures.pictures), 'training photo')}"
            )
    return SeenPictures([*sets.values()], "; ".join(dict.fromkeys(gone)))


def pictures_of(source: PhotoSource, sides: Set[Side] | None = None) -> SetPictures | None:
    """The pictures on these sides of a run's set; None where there is no such set any more.

    Without `sides` those that the run has seen: training, and validation where there is a test side
    beside it. Of an older set of two sides validation is what is scored.
    """
    root = registry.data_source(source).folder
    rows = read_rows(root).values()
    if not rows:
        return of_folder(root, source.style.name, source.data, sides)
    sides = sides or seen_sides({row.side for row in rows if row.side})
    folders = {
        name: real_path(folder)
        for name, folder in photo_folders.folders_by_name(source).items()
        if isinstance(folder, Path)  # of photos at an address the set has copies
    }
    pictures, groups = {}, set()
    for row in rows:
        if row.side is None or row.side not in sides:
            continue
        key, name, folder = row.photo, f"{row.pair}.png", folders.get(row.folder)
        path = root / row.side / "photo" / name
        if folder is not None:
            groups.add((folder, group_of(key)))
            photo = folder / (key.removeprefix(f"{row.folder}/") if row.folder else key)
            path = photo if photo.is_file() else path
        pictures[name] = Photo(path, key)
    return SetPictures(real_path(root), pictures, frozenset(groups))


def seen_sides(sides: Set[Side]) -> Set[Side]:
    """Of the sides that a set has those that its runs have seen."""
    return {"train", "val"} if "test" in sides else {"train"}


def of_folder(
    root: Path, style: str | None, how: SplitConfig, sides: Set[Side] | None
) -> SetPictures | None:
    """The inputs of pairs of one's own, or of a set that does not say which photos it is of."""
    split = (how.val_fraction, how.split_seed, how.test_fraction)
    try:  # what was dropped since then was seen all the same
        pairs_of = find_pairs(root, style, *split, with_dropped=True)
    except DistillError:  # no such folder, or nothing left in it
        return None
    sides = sides or seen_sides({side for side in pairs_of if pairs_of[side]})
    pairs = [pair for side in pairs_of if side in sides for pair in pairs_of[side]]
    return SetPictures(real_path(root), {pair.name: Photo(pair.photo, pair.name) for pair in pairs})
