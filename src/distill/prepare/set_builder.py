"""Photos to a paired set on disk, once: resumable, and never half-written.

    ROOT/SIDE/FOLDER/NAME.png   train, val or test, and in it the maker's two folders
    ROOT/dataset.json           the manifest: what made it, split and counts
    ROOT/photos.tsv, dropped.txt, skipped.tsv    what became of each photo, see photo_table

A pair is done when both of its files are there. Each is written to a temporary file and renamed,
so whatever kills the process loses no more than the batches in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from distill.core.errors import DistillError, counted
from distill.core.progress import bar
from distill.data import photo_table
from distill.data.address import Address
from distill.data.decode import is_whole
from distill.data.dropped import content_line
from distill.data.manifest import (
    Manifest,
    devices_at,
    is_complete,
    manifest_at,
    stamp,
    write_manifest,
    writing,
)
from distill.data.photo_table import SIDES, SKIPPED
from distill.data.photos import Photo, Side
from distill.prepare.pair_maker import PairJob, PairMaker, make_pairs, plan, write_pngs
from distill.prepare.placement import Placement, place_photos
from distill.prepare.whole_photos import whole_pictures


@dataclass
class SetReport:
    """What building a set found and did.

    `made` is how many pairs are new, `skipped` which photos are not used, with the reason. `counts`
    are those of dataset.json: pairs of each side (train, val, test), photos skipped,
    near_duplicates that were kept on one side, bridging ones (skipped, since two sides hold
    near-duplicates of theirs), and those dropped by a list. `untested`: a test side was asked for,
    and no pair is on it. `damaged` is how many pairs were there and no whole pictures; they are
    among the new ones where their photos can be read. `listed` is where below `root` the skipped
    ones are, `newly` photos that are left out from now on, by the names of their pairs, with their
    files' `contents`, `restored` the pairs of those that are let in again.
    """

    root: Path | str
    made: int
    skipped: dict[str, str]
    counts: dict[str, int]
    untested: bool = False
    damaged: int = 0
    listed: str = SKIPPED
    newly: Mapping[str, str] = field(default_factory=dict)
    contents: Sequence[str] = ()
    restored: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        counts = self.counts
        sides = f"{counts['train']} training and {counted(counts['val'], 'validation pair')}"
        if counts["test"]:
            sides = f"{counts['train']} training, {counts['val']} validation and "
            sides += counted(counts["test"], "test pair")
        text = f"{self.root}: {sides}, {self.made} new"
        if self.damaged:
            text += f"; {self.damaged} that were damaged are gone, and made again from their photos"
        if self.untested:
            text += "; too few photos for a test side, eval_fid scores the validation pairs"
        if counts["near_duplicates"]:
            text += f"; near-duplicates, kept on one side: {counts['near_duplicates']}"
        if counts["dropped"]:
            text += f"; dropped by the list: {counts['dropped']}"
        if self.skipped:
            skipped = counted(len(self.skipped), "photo")
            text += f"; {skipped} skipped, see {self.root}/{self.listed}"
        if counts["bridging"]:
            text += f", {counts['bridging']} of them for near-duplicates on two sides"
        return text


def build_set(
    photos: Sequence[Photo],
    maker: PairMaker,
    manifest: Manifest,
    root: Path,
    sides: Sequence[Side] = SIDES,
    drop: Path | None = None,
    restore: Path | None = None,
) -> SetReport:
    """Make every pair of the manifest that is not there yet, on the `sides` asked for.

    A complete set is left untouched. `drop` lists pictures to leave out, and the set keeps to it
    until `restore` lists them.
    Raises DistillError when `root` holds another set, another process is at it, nothing can be
    written there, the maker cannot be used, or no photo of a side but the test side can.
    """
    manifest.check(root)
    before = stamp(root)
    lacking = maker.lacking(photos)
    placed = [photo for photo in photos if photo.key not in lacking]
    found = place_photos(placed, manifest, root, drop, restore=restore)
    whole = whole_pictures(found.sides, manifest, root)
    jobs = [j for j in plan(found.sides, manifest.views_of, whole.of) if j.side in sides]
    broken = _damaged(root, _there(jobs, found.disk), maker.folders)
    for job in broken:
        found.disk[job.side].discard(job.name)
    missing = [job for job in jobs if job.name not in found.disk[job.side]]
    bad = lacking | found.bridging | listed_as_bad(root, found, sides, missing, maker)
    todo = [job for job in missing if job.photo.key not in bad]
    maker.check(root, todo, _there(jobs, found.disk))
    up_to_date = (
        is_complete(root)
        and found.remembered
        and manifest_at(root) == manifest.plain()
        and photo_table.read_skipped(root) == {repr(key): reason for key, reason in bad.items()}
        and all((root / name).is_file() for name in maker.extras)
    )
    if up_to_date and not todo:
        report = report_of(root, found, found.disk, 0, bad)
    else:
        filled = lambda: any(photo_table.pairs_on_disk(root).values())  # noqa: E731
        with not_left_empty(Address(root), filled), writing(root):
            devices = _devices(root, found, *([maker.device_name] if todo else []))
            contents = _remember(root, manifest, found, before, devices)
            for job in broken:
                # The last written first: what is left of a pair is then no pair.
                for folder in reversed(maker.folders):
                    (root / job.side / folder / job.name).unlink(missing_ok=True)
            maker.begin(root, jobs)
            bad |= make_pairs(todo, maker, partial(write_pngs, maker.folders, root))
            disk = photo_table.pairs_on_disk(root)
            made = sum(job.photo.key not in bad for job in todo)
            report = report_of(root, found, disk, made, bad)
            report.contents = contents
            photo_table.write_skipped(root, bad)
            maker.finish(root, _there(jobs, disk))
            write_manifest(root, manifest, report.counts, devices)
    report.damaged = len(broken)
    check_sides(report, manifest, maker, sides)
    return report


def check_sides(
    report: SetReport, manifest: Manifest, maker: PairMaker, sides: Sequence[Side] = SIDES
) -> None:
    """Say of a report whether a test side is missing. Raises DistillError for another one."""
    report.untested = bool(manifest.test_fraction and "test" in sides and not report.counts["test"])
    for side in sides:
        if side != "test" and not report.counts[side]:
            others = sum(report.counts[each] for each in SIDES)
            said = maker.nothing_usable(Path(f"{report.root}/{report.listed}"), others)
            if report.counts["dropped"] and not report.skipped:
                said = f"is left: {report.counts['dropped']} dropped; restore=FILE, or add others"
            raise DistillError(f"{report.root}: no {side} photo {said}")


def split_for(
    photos: Sequence[Photo],
    manifest: Manifest,
    root: Path,
    drop: Path | None = None,
    restore: Path | None = None,
) -> dict[Side, list[Photo]]:
    """The split for labelling on the fly: that of the set at `root`, which remembers it.

    So evaluation, which makes the held-out pairs of that set, holds out what training did.
    """
    manifest.check(root)
    before = stamp(root)
    found = place_photos(photos, manifest, root, drop, restore=restore)
    if before is None or not found.remembered:
        with writing(root):
            _remember(root, manifest, found, before, _devices(root, found))
    for key, reason in sorted(found.bridging.items()):
        print(f"skipped {key!r}: {reason}")
    return {side: [photo for photo, own in found.sides if own == side] for side in SIDES}


def _devices(root: Path, found: Placement, *more: str) -> tuple[str, ...] | None:
    """What made the pairs that are there, as `devices_at` gives it, and `more`."""
    before = devices_at(root) if any(found.disk.values()) else ()
    return None if before is None else tuple(sorted({*before, *more}))


def _remember(
    root: Path,
    manifest: Manifest,
    found: Placement,
    before: object,
    devices: Sequence[str] | None,
) -> list[str]:
    """Write down what the set will be, and remove the pairs it shall no longer hold; gives lines
    for the contents of their photos."""
    if stamp(root) != before:
        raise DistillError(f"{root}: another command changed this set meanwhile; start again")
    write_manifest(root, manifest, None, devices)
    photo_table.write_dropped(root, found.dropped)
    photo_table.write_rows(root, found.rows)
    photos = {folders[0] for folders in photo_table.PAIR_FOLDERS}
    gone = [path for path in found.obsolete if path.parent.name in photos and path.is_file()]
    contents = [content_line(path) for path in gone]
    for path in found.obsolete:
        path.unlink(missing_ok=True)
        (path.parents[1] / photo_table.LAYER_FOLDER / path.name).unlink(missing_ok=True)
    return contents


def _damaged(root: Path, jobs: Sequence[PairJob], folders: Sequence[str]) -> list[PairJob]:
    """Those of the pairs of which a file is empty, cut short or garbage, by PNG's own checksums.

    0.4 ms a file: pixels are not decoded.
    """
    found = []
    with bar(len(jobs), "pair", "checking", leave=False) as progress:
        for job in jobs:
            if not all(is_whole(root / job.side / folder / job.name) for folder in folders):
                found.append(job)
            progress.update()
    return found


@contextmanager
def not_left_empty(root: Address, filled: Callable[[], object]) -> Iterator[None]:
    """A set whose first labelling fails before any pair is there takes its folder away again."""
    new = not root.is_there()
    try:
        yield
    except Exception:
        with suppress(DistillError):  # a store may be what failed
            if new and not filled():
                root.clear()
        raise


def _there(jobs: Sequence[PairJob], disk: dict[Side, set[str]]) -> list[PairJob]:
    return [job for job in jobs if job.name in disk[job.side]]


def listed_as_bad(
    root: Path,
    found: Placement,
    sides: Sequence[Side],
    missing: Sequence[PairJob],
    maker: PairMaker,
    more: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """What an earlier run listed as bad: of a side left alone now, and what is so still.

    `more` is what one listed that did not run to its end.
    """
    listed = {**more, **photo_table.read_skipped(root)}
    if not listed:
        return {}
    kept = root / SKIPPED
    since = kept.stat().st_mtime if kept.is_file() else 0.0
    wanted = {job.photo.key for job in missing}
    bad = {}
    for photo, side in found.sides:
        reason = listed.get(repr(photo.key))
        if reason is not None and (
            side not in sides or (photo.key in wanted and maker.still_bad(photo, reason, since))
        ):
            bad[photo.key] = reason
    return bad


def report_of(
    root: Path | str, found: Placement, disk: dict[Side, set[str]], made: int, bad: dict[str, str]
) -> SetReport:
    """What there is to say of a set at `root` with these pairs, of which so many are new."""
    counts = {side: len(disk[side]) for side in SIDES} | {"skipped": len(bad)} | found.counts
    return SetReport(root, made, bad, counts, newly=found.newly, restored=found.restored)
