"""Photos to a paired set on disk, once: resumable, and never half-written.

    ROOT/dataset.json           the manifest: what made it, split and counts
    ROOT/photos.tsv, dropped.txt, skipped.tsv    what became of each photo, see photo_table

The pairs lie as the set's `PairStore` has it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from distill.core.engine import HERE, Engine
from distill.core.errors import DistillError, counted
from distill.data import photo_table
from distill.data.dropped import DropList
from distill.data.manifest import Manifest, is_complete, manifest_at, stamp, write_manifest
from distill.data.photo_table import SIDES, SKIPPED
from distill.data.photos import Photo, Side
from distill.prepare.pair_maker import PairJob, PairMaker, PairStore, plan
from distill.prepare.placement import Placement, place_photos
from distill.prepare.whole_photos import whole_pictures

# What a set leaves out or lets in again, and lines for the contents of the files that go.
Record = Callable[[PairStore, DropList, Sequence[str]], None]


@dataclass
class SetReport:
    """What building a set found and did.

    `made` is how many pairs are new, `skipped` which photos are not used, with the reason. `counts`
    are those of dataset.json: pairs of each side (train, val, test), photos skipped,
    near_duplicates that were kept on one side, bridging ones (skipped, since two sides hold
    near-duplicates of theirs), and those dropped by a list. `untested`: a test side was asked for,
    and no pair is on it. `damaged` is how many pairs were there and no whole pictures; they are
    among the new ones where their photos can be read. `listed` is where below `root` the skipped
    ones are.
    """

    root: str
    made: int
    skipped: dict[str, str]
    counts: dict[str, int]
    untested: bool = False
    damaged: int = 0
    listed: str = SKIPPED

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
    store: PairStore,
    sides: Sequence[Side] = SIDES,
    drop: Path | None = None,
    restore: Path | None = None,
    engine: Engine = HERE,
    record: Record | None = None,
) -> SetReport:
    """Make every pair of the manifest that the store does not have yet, on the `sides` asked for.

    A complete set is left untouched. `drop` lists pictures to leave out, and the set keeps to it
    until `restore` lists them; `record` gets them first. `engine` makes thumbnails.
    Raises DistillError when another set lies there, another process is at it, nothing can be
    written there, the maker cannot be used, or no photo of a side but the test side can.
    """
    folder = store.folder
    manifest.check(folder)
    before = stamp(folder)
    lacking = maker.lacking(photos)
    usable = [photo for photo in photos if photo.key not in lacking]
    placement = place_photos(usable, manifest, store, drop, restore, engine)
    sizes = whole_pictures(placement.sides, manifest, str(store)) if manifest.sizes else None
    every = plan(placement.sides, manifest.views_of, sizes.of if sizes else None)
    jobs = [job for job in every if job.side in sides]
    damaged = store.forget_damaged(jobs)
    missing = [job for job in jobs if not store.has(job)]
    bad = lacking | placement.bridging | listed_as_bad(store, placement, sides, missing, maker)
    todo = [job for job in missing if job.photo.key not in bad]
    maker.check(store, todo, [job for job in jobs if store.has(job)])
    up_to_date = (
        is_complete(folder)
        and placement.remembered
        and manifest_at(folder) == manifest.plain()
        and photo_table.read_skipped(folder) == {repr(key): reason for key, reason in bad.items()}
        and all((folder / name).is_file() for name in maker.extras)
        and store.is_finished(manifest)
    )
    if todo or not up_to_date:
        with _not_left_empty(store), store.writing():
            more = [maker.device_name] if todo else []
            _remember(store, manifest, placement, before, store.devices(*more), record)
            store.remove(placement.obsolete, manifest)
            maker.begin(folder, jobs)
            bad |= store.make(todo, maker, {row.pair: row for row in placement.rows})
            photo_table.write_skipped(folder, bad)
            maker.finish(folder, [job for job in jobs if store.has(job)])
            counts = _counts(store, placement, bad)
            write_manifest(folder, manifest, counts, store.devices(*more))
            store.publish(manifest, counts)
    report = SetReport(
        str(store), sum(map(store.has, todo)), bad, _counts(store, placement, bad),
        damaged=damaged, listed=store.listed,
    )  # fmt: skip
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
            reason = maker.nothing_usable(Path(f"{report.root}/{report.listed}"), others)
            if report.counts["dropped"] and not report.skipped:
                reason = f"is left: {report.counts['dropped']} dropped; restore=FILE, or add others"
            raise DistillError(f"{report.root}: no {side} photo {reason}")


def split_for(
    photos: Sequence[Photo],
    manifest: Manifest,
    root: Path,
    drop: Path | None = None,
    restore: Path | None = None,
    record: Record | None = None,
) -> dict[Side, list[Photo]]:
    """The split for labelling on the fly: that of the set at `root`, which remembers it.

    So evaluation, which makes the held-out pairs of that set, holds out what training did.
    """
    manifest.check(root)
    before, store = stamp(root), PairStore(root, photo_table.TEACHER_FOLDERS)
    placement = place_photos(photos, manifest, store, drop, restore)
    if before is None or not placement.remembered:
        with store.writing():
            _remember(store, manifest, placement, before, store.devices(), record)
            store.remove(placement.obsolete, manifest)
    for key, reason in sorted(placement.bridging.items()):
        print(f"skipped {key!r}: {reason}")
    return {side: [photo for photo, placed in placement.sides if placed == side] for side in SIDES}


def _remember(
    store: PairStore,
    manifest: Manifest,
    placement: Placement,
    before: object,
    devices: Sequence[str] | None,
    record: Record | None,
) -> None:
    """Write down what the set will be; before its list the record of what that leaves out, which
    is lost otherwise where labelling is killed or fails: the next command finds nothing new."""
    if stamp(store.folder) != before:
        raise DistillError(f"{store}: another command changed this set meanwhile; start again")
    write_manifest(store.folder, manifest, None, devices)
    if record and (placement.drops.new or placement.drops.restored):
        record(store, placement.drops, store.contents(placement.obsolete))
    photo_table.write_dropped(store.folder, placement.drops.lines)
    photo_table.write_rows(store.folder, placement.rows)
    store.publish(manifest, None)


@contextmanager
def _not_left_empty(store: PairStore) -> Iterator[None]:
    """A set whose first labelling fails before any pair is there takes its folder away again."""
    new = not store.root.is_there()
    try:
        yield
    except Exception:
        with suppress(DistillError):  # a store may be what failed
            if new and not store.is_begun():
                store.root.clear()
        raise


def listed_as_bad(
    store: PairStore,
    placement: Placement,
    sides: Sequence[Side],
    missing: Sequence[PairJob],
    maker: PairMaker,
) -> dict[str, str]:
    """Photos that an earlier run could not use, with the reason.

    All of a side that is not made now; of the others those that still cannot be used.
    """
    listed = {**store.skipped, **photo_table.read_skipped(store.folder)}
    if not listed:
        return {}
    kept = store.folder / SKIPPED
    since = kept.stat().st_mtime if kept.is_file() else 0.0
    wanted = {job.photo.key for job in missing}
    bad = {}
    for photo, side in placement.sides:
        reason = listed.get(repr(photo.key))
        if reason is not None and (
            side not in sides or (photo.key in wanted and maker.still_bad(photo, reason, since))
        ):
            bad[photo.key] = reason
    return bad


def _counts(store: PairStore, placement: Placement, bad: Mapping[str, str]) -> dict[str, int]:
    pairs: dict[str, int] = {side: len(store.pairs[side]) for side in SIDES}
    return pairs | {"skipped": len(bad)} | placement.counts
