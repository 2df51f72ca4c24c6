"""Which of two pictures belong together: those of one name, whoever wrote the disk.

Names are alike without their suffix, whether an accent is a letter's own or a sign behind it, and
whether letters are large or small.
"""

import math
import os
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from distill.core.errors import DistillError
from distill.core.files import write_whole
from distill.data.decode import BadPhoto

ALONE = "unpaired.txt"  # beside pairs of one's own: the pictures without a partner
SKEWED = 0.02  # one may be this much wider or narrower than the other: sizes are rounded
NAMED = 5  # on the screen


class Partners:
    """Files by their names, with slashes where they lie in folders."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_key: dict[str, list[str]] = {}
        for name in names:
            self._by_key.setdefault(_key(name), []).append(name)

    def all_of(self, name: str) -> list[str]:
        """Those that may be the partner of a file of this name, the likeliest first."""
        names = self._by_key.get(_key(name), [])
        if len(names) < 2:
            return names
        ways = (str, _stem, lambda each: unicodedata.normalize("NFC", _stem(each)))
        return sorted(names, key=lambda other: [way(other) != way(name) for way in ways])


def match(
    photos: Sequence[str], others: Sequence[str], where: str, sought: Sequence[str] | None = None
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Which of the `others` is the partner of each photo, whose partner is called as in `sought`.

    Gives the pairs in the photos' order, the photos without one, and the others without a photo.
    Raises DistillError, with `where` in front, where two may be one photo's, or two photos one's.
    """
    if photos == others:  # a set of ours, which may be large
        return [(name, name) for name in photos], [], []
    partners, owners, lacking = Partners(others), dict[str, str](), list[str]()
    several = dict[str, tuple[str, str]]()
    for photo, name in zip(photos, sought or photos, strict=True):
        candidates = partners.all_of(name)
        if not candidates:
            lacking.append(photo)
            continue
        if (owner := owners.setdefault(candidates[0], photo)) != photo:
            both = f"{candidates[0]!r} may be of the photo {_quoted(owner)} and of {_quoted(photo)}"
            raise DistillError(f"{where}{both}; rename one of them")
        several |= dict.fromkeys(candidates[1:], (candidates[0], photo))
    for other, (first, photo) in several.items():
        if other not in owners:
            both = " and ".join(map(_quoted, sorted((first, other))))
            raise DistillError(f"{where}{both} may both be of the photo {photo!r}; keep one")
    pairs = [(photo, other) for other, photo in owners.items()]
    return pairs, lacking, [other for other in others if other not in owners]


def check_shapes(one: tuple[int, int], other: tuple[int, int], what: str) -> None:
    """Raises BadPhoto where `what`, of that width and height, cannot show all of the first."""
    (width, height), (w, h) = one, other
    if abs(math.log(w * height / (h * width))) > SKEWED:
        shapes = f"{what} is {w}×{h}, which does not fit {width}×{height}"
        raise BadPhoto(f"{shapes}: it must show all of the photo")


def tell_alone(root: Path, alone: Sequence[str], what: str, kept: bool = True) -> None:
    """Say which pictures have no partner: the first few here, all in a file of the folder.

    That may be one which nobody may write into; without `kept` there is no file.
    """
    file, lines = root / ALONE, os.fsencode("".join(f"{name}\n" for name in alone))
    with suppress(OSError):
        if not kept:
            pass
        elif not alone:
            file.unlink(missing_ok=True)
        elif not file.is_file() or file.read_bytes() != lines:
            write_whole(file, lines)
    if alone:
        some = ", ".join(map(repr, alone[:NAMED])) + (", …" if len(alone) > NAMED else "")
        listed = f", all listed in {file}" if kept and file.is_file() else ""
        print(f"{root}: {what}, left out ({len(alone)}): {some}{listed}")


def _quoted(name: str) -> str:
    """In quotes; an accent that is a sign behind its letter is shown as one (\\u0301)."""
    return repr(name) if unicodedata.is_normalized("NFC", name) else ascii(name)


def _stem(name: str) -> str:
    return os.path.splitext(name)[0]


def _key(name: str) -> str:
    # Folding can take accents apart, so they are put together once more.
    folded = unicodedata.normalize("NFC", _stem(name)).casefold()
    return unicodedata.normalize("NFC", folded)
