"""Which photos a set takes and on which side: read from what the set remembers, or worked out."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distill.data import register
from distill.data.dropping import meant, warn
from distill.data.photos import Photo, Side
from distill.data.placing import Placing
from distill.data.recipe import Recipe
from distill.data.register import SIDES, Row
from distill.data.sides import NO_TWINS
from distill.data.twins import find_twins


@dataclass(frozen=True)
class Arrangement:
    """The photos of a set in order, the side of each, and what the set shall remember.

    `bridging` are photos that belong to both sides (key → reason), `dropped` the list of what to
    leave out and `left_out` how many photos that is, `obsolete` the files of their pairs, `disk`
    the pairs that are there, `remembered` whether the set holds all this already.
    """

    sides: list[tuple[Photo, Side]]
    rows: list[Row]
    bridging: dict[str, str]
    dropped: list[str]
    left_out: int
    obsolete: list[Path]
    disk: dict[Side, set[str]]
    remembered: bool

    @property
    def split(self) -> dict[Side, list[Photo]]:
        return {side: [p for p, own in self.sides if own == side] for side in SIDES}

    @property
    def counts(self) -> dict[str, int]:
        twins = sum(row.twin for row in self.rows)
        return {"twins": twins, "bridging": len(self.bridging), "dropped": self.left_out}


def arrange(
    photos: Sequence[Photo], recipe: Recipe, root: Path, drop: Path | None = None
) -> Arrangement:
    """Place every photo; changes nothing on disk but the cache of thumbnails.

    What the set at `root` has placed stays where it is. `drop` replaces its list of dropped ones.
    """
    known, disk = register.read_rows(root), register.pairs_on_disk(root)
    there = {register.pair_of(name): side for side in SIDES for name in disk[side]}
    remembered_lines = register.read_dropped(root / register.DROPPED)
    lines = register.read_dropped(drop) if drop else remembered_lines
    left_out, idle = meant(lines, photos, there.keys())
    if drop:
        warn(idle)
    kept = [photo for photo in photos if photo.pair_name not in left_out]
    rows = {p.pair_name: row for p in kept if (row := _row(p, known, there))}
    gone = known.keys() - {p.pair_name for p in kept} - left_out
    orphans = [known[pair] for pair in sorted(gone & there.keys())]
    settled = len(rows) == len(kept) and not known.keys() & left_out
    if not settled:
        rows = _place(kept, rows, [_orphan(row, there, root) for row in orphans], recipe)
    written = [*(rows[photo.pair_name] for photo in kept), *orphans]
    obsolete = register.leftovers(root, left_out) if left_out else []
    same = not known or list(known.values()) == written
    return Arrangement(
        sides=[(p, side) for p in kept if (side := rows[p.pair_name].side)],
        rows=written,
        bridging={p.key: r.reason for p in kept if (r := rows[p.pair_name]).side is None},
        dropped=lines,
        left_out=len(photos) - len(kept),
        obsolete=obsolete,
        disk=disk,
        remembered=settled and same and lines == remembered_lines and not obsolete,
    )


def _row(photo: Photo, known: dict[str, Row], there: dict[str, Side]) -> Row | None:
    """What the set knows of a photo; a set from before photos.tsv shows it by its pairs."""
    row, side = known.get(photo.pair_name), there.get(photo.pair_name)
    if side and (row is None or row.side != side):
        return Row.of(photo, side)
    return row


def _orphan(row: Row, there: dict[str, Side], root: Path) -> tuple[Photo, Side]:
    """A pair whose photo is gone: its own copy of the photo still keeps its twins beside it."""
    side = there[row.pair]
    return Photo(root / side / "photo" / f"{row.pair}.png", literal_eval(row.key)), side


def _place(
    kept: Sequence[Photo],
    rows: dict[str, Row],
    orphans: Sequence[tuple[Photo, Side]],
    recipe: Recipe,
) -> dict[str, Row]:
    """A row for every photo, newcomers placed; those left out before are tried again."""
    photos = [*kept, *(photo for photo, _ in orphans)]
    placed = [rows[p.pair_name].side if p.pair_name in rows else None for p in kept]
    sides = [*placed, *(side for _, side in orphans)]
    one_side = len({photo.side for photo in photos}) == 1 and photos[0].side is not None
    twins = NO_TWINS if one_side else find_twins(photos, recipe.photos)
    placing = Placing(photos, sides, twins)
    placing.run(recipe.val_fraction, recipe.seed)
    twin = set(twins.ravel().tolist())
    return {
        photo.pair_name: Row.of(photo, placing.sides[i], i in twin, placing.dropped.get(i, ""))
        for i, photo in enumerate(kept)
    }
