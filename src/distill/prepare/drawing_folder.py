"""Which drawing in a folder is of which photo: that of the same name.

A photo `sub/anna.jpg` below its folder has the drawing `sub/anna`, of any suffix. Of several
folders of photos each has a folder of its own name among the drawings, or all share one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from distill.core.errors import DistillError
from distill.core.files import real_path
from distill.data.photos import SUFFIXES, Photo, walk

KINDS = SUFFIXES | {".avif", ".bmp", ".gif", ".tif", ".tiff"}
MISSING = "no drawing of its name"


class DrawingFolder:
    """The drawings below `folder`. Raises DistillError where there are none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._by_name: dict[str, list[Path]] = {}
        for path in sorted(p for p in walk(folder) if p.suffix.lower() in KINDS):
            name = _name(path.relative_to(folder).as_posix())
            self._by_name.setdefault(name, []).append(path)
        if not self._by_name:
            kinds = ", ".join(sorted(kind[1:] for kind in KINDS))
            raise DistillError(f"teacher.folder={folder}: no drawings in it ({kinds})")

    def of(self, photo: Photo) -> Path | None:
        """The photo's drawing, None where it has none."""
        return next(iter(self._all(photo)), None)

    def missing(self, photos: Sequence[Photo]) -> list[Photo]:
        """The photos that have no drawing.

        Raises DistillError where none has any, where two drawings may be one photo's or two photos
        one drawing's, and for photos that are themselves in the place of drawings.
        """
        owners: dict[Path, Photo] = {}
        lacking = []
        for photo in photos:
            drawings = self._all(photo)
            if len(drawings) > 1:
                both = " and ".join(repr(self._inside(each)) for each in drawings[:2])
                raise self._error(f"{both} may both be of the photo {photo.key!r}; keep one")
            for drawing in drawings:
                if drawing in owners:
                    raise self._error(
                        f"{self._inside(drawing)!r} may be of the photo {owners[drawing].key!r} "
                        f"and of {photo.key!r}; rename one of them"
                    )
                owners[drawing] = photo
            if not drawings:
                lacking.append(photo)
        if photos and not owners:
            first = self._inside(next(iter(self._by_name.values()))[0])
            raise self._error(
                f"none is of a photo: names must be alike without their suffix, as {first!r} here "
                f"and {photos[0].key!r} among the {len(photos)} photos are not"
            )
        for drawing, photo in owners.items():
            if isinstance(photo.path, Path) and real_path(photo.path) == real_path(drawing):
                raise self._error("holds the photos themselves; name the folder of the drawings")
        return lacking

    def _all(self, photo: Photo) -> list[Path]:
        inside = photo.key.removeprefix(f"{photo.folder}/") if photo.folder else photo.key
        return self._by_name.get(_name(photo.key)) or self._by_name.get(_name(inside), [])

    def _inside(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _error(self, said: str) -> DistillError:
        return DistillError(f"teacher.folder={self.folder}: {said}")


def _name(file: str) -> str:
    """Without suffix; an accent may be a letter's or a sign of its own, by who wrote the disk."""
    return unicodedata.normalize("NFC", PurePosixPath(file).with_suffix("").as_posix())
