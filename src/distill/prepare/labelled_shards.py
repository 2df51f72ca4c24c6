"""Photos to shards by a teacher, without a folder of pairs between: resumable, on any engine.

The driver places the photos, deals them out into shards and keeps the set's own files; each shard
is leased to a worker. What is placed stays, and shards that are there are not made again: photos
that were added go into further shards. It is the set that a folder of pairs would hold:
distill.shards to=pairs makes that folder of it, byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from PIL import Image

from distill.config.settings.training import ShardFormat
from distill.core.arrays import save_png
from distill.core.engine import Engine
from distill.core.errors import DistillError
from distill.core.files import cache_folder
from distill.core.progress import bar
from distill.data import photo_table
from distill.data.lock import writing
from distill.data.manifest import MANIFEST, Manifest, is_complete, manifest_at, write_manifest
from distill.data.photo_table import SIDES, SKIPPED
from distill.data.photos import Photo, Side
from distill.data.shards.address import Address
from distill.data.shards.pair_record import decode_pair
from distill.data.shards.picture_codec import CodecName, codec_named
from distill.data.shards.shard_index import (
    ShardRow,
    part_path,
    pyarrow_parquet,
    read_part,
    shard_path,
    whole_shard,
)
from distill.data.shards.shard_manifest import (
    KEPT,
    SetMetadataStore,
    ShardManifest,
    shard_manifest_at,
    write_shard_manifest,
)
from distill.data.shards.shard_writer import write_set
from distill.prepare.pair_maker import PairJob, plan
from distill.prepare.placement import Placement, place_photos
from distill.prepare.set_builder import SetReport, check_sides, listed_as_bad, report_of
from distill.prepare.shard_labelling import ShardLabeller, ShardLease, deal
from distill.prepare.teacher_pass import TeacherPass
from distill.prepare.whole_photos import whole_pictures


class PairsInShards:
    """The pairs of the whole shards at `root`, and which photos their teacher could not read."""

    def __init__(self, root: Address, codec: CodecName) -> None:
        self.root, self.codec = root, codec_named(codec)
        self.rows: dict[str, ShardRow] = {}
        self._shard: dict[tuple[Side, str], str] = {}
        listed = sorted(PurePath(name).stem for name in root.names("index"))
        with bar(len(listed), "shard", "checking", leave=False) as progress:
            for shard in listed:
                if row := whole_shard(root, shard):
                    self.add(row)
                progress.update()

    def add(self, row: ShardRow) -> None:
        """Take up a shard that is there."""
        self.rows[row.shard] = row
        if row.pairs:
            names = read_part(self.root, row.shard).names
            self._shard |= {(row.side, name): row.shard for name in names}

    def without(self, unwanted: set[str]) -> list[str]:
        """Leave out the shards that hold one of these pairs; gives their names."""
        gone = {
            shard
            for (_, name), shard in self._shard.items()
            if unwanted and photo_table.pair_of(name) in unwanted
        }
        self._shard = {key: shard for key, shard in self._shard.items() if shard not in gone}
        for shard in gone:
            del self.rows[shard]
        return sorted(gone)

    @property
    def disk(self) -> dict[Side, set[str]]:
        found: dict[Side, set[str]] = {side: set() for side in SIDES}
        for side, name in self._shard:
            found[side].add(name)
        return found

    @property
    def skipped(self) -> dict[str, str]:
        """Photos of which no pair could be made (`repr` of the key), with the reason."""
        return {key: why for row in self.rows.values() for key, why in row.skipped.items()}

    @property
    def devices(self) -> list[str] | None:
        """What made the pairs; None where that is not known of some, as in older shards."""
        known = [row.device for row in self.rows.values() if row.pairs]
        return sorted({each for each in known if each}) if all(known) else None

    def photo(self, side: Side, pair: str) -> Path:
        """A copy of a pair's photo, in the cache."""
        path = cache_folder() / "labelling" / "photos" / f"{pair}.png"
        save_png(self.picture(side, f"{pair}.png"), path)
        return path

    def picture(self, side: Side, name: str) -> Image.Image:
        """A pair's photo. Raises BadPhoto."""
        shard = self._shard[side, name]
        part = read_part(self.root, shard)
        row = part.names.index(name)
        where = int(part.offsets[row]), int(part.sizes[row])
        return decode_pair(self.root.read_range(shard_path(shard), *where), self.codec)[0]


def build_shards(
    photos: Sequence[Photo],
    maker: TeacherPass,
    manifest: Manifest,
    desk: SetMetadataStore,
    form: ShardFormat,
    engine: Engine,
    labeller: ShardLabeller,
    drop: Path | None = None,
) -> SetReport:
    """Label every shard of the set at `store` that is not there yet; dataset.json comes last.

    `maker` is for this process, `labeller` for the engine's workers. `drop` lists pictures to leave
    out, and the set keeps to it: the shards that hold one are made again without it. Raises
    DistillError as `build_set` does.
    """
    pyarrow_parquet()  # what is missing is said before anything is read
    codec_named(form.codec)
    root, before = desk.root, _check_own(desk.root, form)
    manifest.check(desk.folder)
    there = PairsInShards(root, form.codec)
    lacking = maker.lacking(photos)
    placed = [photo for photo in photos if photo.key not in lacking]
    found = place_photos(placed, manifest, desk.folder, drop, there, engine)
    stale = there.without(found.unwanted)
    whole = whole_pictures(found.sides, manifest, str(root))
    jobs, disk = plan(found.sides, manifest.views_of, whole.of), there.disk
    missing = [job for job in jobs if job.name not in disk[job.side]]
    bad = (
        lacking
        | found.bridging
        | listed_as_bad(desk.folder, found, SIDES, missing, maker, more=there.skipped)
    )
    todo = [job for job in missing if job.photo.key not in bad]
    _check_photos(root, desk, maker, there, [job for job in jobs if job.name in disk[job.side]])
    made = ShardManifest(form.codec, form.pairs, maker.folders, manifest.plain())
    if not (todo or stale) and _up_to_date(desk, before, made, found, bad):
        report = report_of(str(root), found, disk, 0, bad)
    else:
        rows = {row.pair: row for row in found.rows}
        leases = deal(todo, rows, manifest, form.codec, form.pairs)
        with writing(root.local or desk.folder, folders=False):
            write_shard_manifest(root, made)  # without counts: training must not begin
            write_manifest(desk.folder, manifest, None)
            photo_table.write_dropped(desk.folder, found.dropped)
            photo_table.write_rows(desk.folder, found.rows)
            desk.publish()
            for shard in stale:  # the index first: what is left of a shard is then no shard
                root.remove(part_path(shard))
                root.remove(shard_path(shard))
            maker.begin(desk.folder, jobs)
            unread = _draw(leases, engine, labeller, there)
            disk = there.disk
            new = sum(job.name in disk[job.side] for job in todo)
            keys = {job.photo.key for job in todo if job.name not in disk[job.side]}
            bad |= {key: unread[repr(key)] for key in keys}
            report = report_of(str(root), found, disk, new, bad)
            photo_table.write_skipped(desk.folder, bad)
            write_set(root, [row for _, row in sorted(there.rows.items())])
            write_manifest(desk.folder, manifest, report.counts, there.devices)
            desk.publish()
            write_shard_manifest(root, made, {side: len(disk[side]) for side in SIDES})
    report.listed = f"{KEPT}/{SKIPPED}"
    check_sides(report, manifest, maker)
    return report


def _check_own(root: Address, form: ShardFormat) -> ShardManifest | None:
    """The manifest there, None where nothing is. Raises DistillError for other shards."""
    there = shard_manifest_at(root)
    if there is None:
        if root.size(MANIFEST) is not None:
            raise DistillError(
                f"{root}: holds a set of another kind; name another place with data.root=ADDRESS"
            )
        return None
    if not there.made_by_teacher:
        raise DistillError(
            f"{root}: holds shards of pairs that no teacher of ours made; name another place with "
            "data.root=ADDRESS"
        )
    if (there.codec, there.pairs_a_shard) != (form.codec, form.pairs):
        raise DistillError(
            f"{root}: made with shard.codec={there.codec} shard.pairs={there.pairs_a_shard}; say "
            "so, or name another place with data.root=ADDRESS"
        )
    return there


def _check_photos(
    root: Address,
    desk: SetMetadataStore,
    maker: TeacherPass,
    there: PairsInShards,
    done: list[PairJob],
) -> None:
    def kept(job: PairJob) -> Image.Image:
        return there.picture(job.side, job.name)

    def stored(photo: Image.Image) -> Image.Image:
        return there.codec.decode(there.codec.encode(photo))

    maker.check_photos(str(root), manifest_at(desk.folder), done, kept, stored, desk.folder)


def _up_to_date(
    desk: SetMetadataStore,
    before: ShardManifest | None,
    made: ShardManifest,
    found: Placement,
    bad: dict[str, str],
) -> bool:
    kept = photo_table.read_skipped(desk.folder)
    return (
        before is not None
        and before.counts is not None
        and before.recipe == made.recipe
        and is_complete(desk.folder)
        and found.remembered
        and kept == {repr(key): reason for key, reason in bad.items()}
    )


def _draw(
    leases: Sequence[ShardLease], engine: Engine, labeller: ShardLabeller, there: PairsInShards
) -> dict[str, str]:
    """Have the shards labelled; gives the photos that could not be, with the reason."""
    total, skipped = sum(len(lease.jobs) for lease in leases), dict[str, str]()
    with bar(total, "pair", "labelling") as progress:
        for lease, row in engine.run(labeller, leases, labeller.maker.device):
            there.add(row)
            skipped |= row.skipped
            progress.update(len(lease.jobs))
    return skipped
