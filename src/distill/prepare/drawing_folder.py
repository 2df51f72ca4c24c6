"""Which drawing in a folder is of which photo: that of the same name.

A photo `sub/anna.jpg` below its folder has the drawing `sub/anna`, of any suffix. Of several
folders of photos each has a folder of its own name among the drawings, or all share one.
"""

from collections.abc import Sequence
from pathlib import Path

from distill.core.errors import DistillError, counted
from distill.core.files import real_path
from distill.data.decode import PICTURES
from distill.data.partners import Partners, match, tell_alone
from distill.data.photos import Photo, walk

KINDS = PICTURES | {".gif"}
MISSING = "no drawing of its name"


class DrawingFolder:
    """The drawings below `folder`. Raises DistillError where there are none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        drawings = sorted(path for path in walk(folder) if path.suffix.lower() in KINDS)
        self._names = [path.relative_to(folder).as_posix() for path in drawings]
        self._partners = Partners(self._names)
        if not self._names:
            kinds = ", ".join(sorted(kind[1:] for kind in KINDS))
            raise DistillError(f"teacher.folder={folder}: no drawings in it ({kinds})")

    def of(self, photo: Photo) -> Path | None:
        """The photo's drawing, None where it has none."""
        names = self._partners.all_of(self._sought(photo))
        return self.folder / names[0] if names else None

    def missing(self, photos: Sequence[Photo]) -> list[Photo]:
        """The photos that have no drawing.

        Raises DistillError where none has any, where two drawings may be one photo's or two photos
        one drawing's, and for photos that are themselves in the place of drawings.
        """
        setting, by_key = f"teacher.folder={self.folder}: ", {photo.key: photo for photo in photos}
        sought = [self._sought(photo) for photo in photos]
        pairs, lacking, unclaimed = match([*by_key], self._names, setting, sought)
        if photos and not pairs:
            raise DistillError(
                f"{setting}none is of a photo: names must be alike without their suffix, as "
                f"{self._names[0]!r} here and {photos[0].key!r} (of "
                f"{counted(len(photos), 'photo')}) are not"
            )
        for key, drawing in pairs:
            path = by_key[key].path
            if isinstance(path, Path) and real_path(path) == real_path(self.folder / drawing):
                it = "holds the photos themselves; name the folder of the drawings"
                raise DistillError(setting + it)
        tell_alone(self.folder, unclaimed, "drawings of no photo", kept=False)
        return [by_key[key] for key in lacking]

    def _sought(self, photo: Photo) -> str:
        """What its drawing is called: as the photo below its folder, which may be named too."""
        inside = photo.key.removeprefix(f"{photo.folder}/") if photo.folder else photo.key
        return photo.key if self._partners.all_of(photo.key) else inside
