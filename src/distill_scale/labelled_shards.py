"""Photos to shards by a teacher, without a folder of pairs between: resumable, on any engine.

The driver places the photos, deals them out into shards and keeps the set's own files; each shard
is leased to a worker. What is in a shard decides its name, so that any worker, here or on any
node, writes the same file; whole shards come from one device each, which the index says. What is
placed stays, and shards that are there are not made again: photos that were added go into further
shards. It is the set that a folder of pairs would hold: distill.shards to=pairs makes that folder
of it, byte by byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath

from PIL import Image

from distill.core.arrays import save_png
from distill.core.engine import Engine
from distill.core.errors import DistillError
from distill.core.files import cache_folder
from distill.core.progress import bar
from distill.data import photo_table
from distill.data.address import Address
from distill.data.manifest import (
    MANIFEST,
    Manifest,
    is_complete,
    manifest_at,
    write_manifest,
    writing,
)
from distill.data.photo_table import SIDES, SKIPPED, PhotoRow
from distill.data.photos import Photo, Side
from distill.data.set_files import KEPT, SetMetadataStore
from distill.prepare.pair_maker import PairJob, Pictures, make_pairs, plan
from distill.prepare.placement import place_photos
from distill.prepare.set_builder import (
    SetReport,
    check_sides,
    listed_as_bad,
    not_left_empty,
    report_of,
)
from distill.prepare.teacher_pass import TeacherPass
from distill.prepare.whole_photos import whole_pictures
from distill_scale.packed.pair_record import CodecName, codec_named, decode_pair
from distill_scale.packed.shard_index import (
    ShardRow,
    part_path,
    pyarrow_parquet,
    read_part,
    read_rows_of,
    shard_path,
    whole_shard,
)
from distill_scale.packed.shard_manifest import (
    ShardManifest,
    shard_manifest_at,
    write_shard_manifest,
)
from distill_scale.packed.shard_writer import ShardWriter, write_set
from distill_scale.settings import ShardFormat

# Of a manifest's fields those that change no picture: where photos lie, how many there are.
_FREE = ("photos", "views", "val_fraction", "test_fraction", "folders", "val_folders", "sizes")


@dataclass(frozen=True)
class ShardLease:
    """One shard to label: pairs of one side and one folder, with their rows of photos.tsv.

    They are squares, or `whole` pictures. `plan` is the hash of what decides its pictures.
    """

    shard: str
    side: Side
    folder: str
    plan: str
    jobs: tuple[PairJob, ...]
    rows: tuple[PhotoRow, ...]
    whole: bool = False


def deal(
    jobs: Iterable[PairJob],
    rows: Mapping[str, PhotoRow],
    manifest: Manifest,
    codec: CodecName,
    per_shard: int,
) -> list[ShardLease]:
    """The shards of these pairs, dealt out by a hash of their names, as packing does it: squares
    and whole pictures apart.

    Of a plan that was carried out in part, what is left is dealt out as it was.
    """
    parts: dict[tuple[Side, str, bool], list[PairJob]] = {}
    for job in jobs:
        parts.setdefault((job.side, job.photo.folder, job.size is not None), []).append(job)
    leases = []
    for side, folder, whole in sorted(parts):
        mixed = sorted(parts[side, folder, whole], key=lambda job: _digest(job.name))
        for start in range(0, len(mixed), per_shard):
            taken = tuple(mixed[start : start + per_shard])
            plan = _plan(manifest, codec, side, [job.name for job in taken])
            leases.append(
                ShardLease(
                    shard=f"{side}-{plan[:16]}",
                    side=side,
                    folder=folder,
                    plan=plan,
                    jobs=tuple(  # a worker has another current folder
                        replace(job, photo=replace(job.photo, path=job.photo.path.absolute()))
                        for job in taken
                    ),
                    rows=tuple(rows[job.photo.pair_name] for job in taken),
                    whole=whole,
                )
            )
    return leases


class ShardLabeller:
    """Labels the shards at `root` by a teacher; a copy of it is sent to every worker."""

    def __init__(self, maker: TeacherPass, codec: CodecName, root: Address) -> None:
        self.maker, self.codec = maker, codec
        self.root = root if root.local is None else Address(root.local.absolute())

    def __call__(self, lease: ShardLease) -> ShardRow:
        """Label and publish a shard, and its part of the index; gives its report."""
        there = whole_shard(self.root, lease.shard)
        if there is not None:
            return there
        codec = codec_named(self.codec)
        writer = ShardWriter(
            lease.shard, lease.side, lease.folder, codec, lease.plan, self.maker.device_name,
            lease.whole,
        )  # fmt: skip
        rows = dict(zip((job.name for job in lease.jobs), lease.rows, strict=True))

        def keep(jobs: Sequence[PairJob], pairs: Iterable[Pictures]) -> None:
            for job, (photo, target, *_) in zip(jobs, pairs, strict=True):
                if target.mode == "RGBA" and not codec.transparent:
                    raise DistillError(
                        f"shard.codec={self.codec}: does not keep the transparency of this "
                        "teacher's output; choose another codec"
                    )
                writer.add(job.name, rows[job.name], photo, target)

        bad = make_pairs(lease.jobs, self.maker, keep, doing=lease.shard)
        # Another worker may have been given this shard meanwhile, and this one up for lost.
        if there := whole_shard(self.root, lease.shard):
            return there
        skipped = {repr(key): reason for key, reason in sorted(bad.items())}
        return writer.publish(self.root, skipped)


def _plan(manifest: Manifest, codec: CodecName, side: Side, names: Sequence[str]) -> str:
    """The hash of what decides a shard's pictures."""
    decided = {k: v for k, v in manifest.plain().items() if k not in _FREE}
    return _digest(json.dumps([decided, codec, side, [*names]]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


class PairsInShards:
    """The pairs of the whole shards at `root`, and which photos their teacher could not read."""

    def __init__(self, root: Address, codec: CodecName) -> None:
        self.root, self.name, self.codec = root, codec, codec_named(codec)
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

    def without(self, unwanted: set[str]) -> list[ShardRow]:
        """Leave out these pairs; gives the shards that hold one of them, which are then no more
        among the `rows`."""
        gone = {
            key: shard
            for key, shard in self._shard.items()
            if unwanted and photo_table.pair_of(key[1]) in unwanted
        }
        for key in gone:
            del self._shard[key]
        return [self.rows.pop(shard) for shard in sorted({*gone.values()})]

    def replace(self, old: ShardRow, manifest: Manifest, unwanted: set[str]) -> None:
        """Copy a shard's other pairs into one of their own, and remove it."""
        content = self.root.read(shard_path(old.shard))
        kept = [
            row
            for row in read_rows_of(self.root, old.shard)
            if photo_table.pair_of(row.name) not in unwanted
        ]
        plan = _plan(manifest, self.name, old.side, [row.name for row in kept])
        shard = f"{old.side}-{plan[:16]}"
        if kept and not (made := whole_shard(self.root, shard)):
            writer = ShardWriter(
                shard, old.side, old.folder, self.codec, plan, old.device, old.whole
            )
            for row in kept:
                writer.add_copy(row, content[row.offset : row.offset + row.size])
            made = writer.publish(self.root, old.skipped)
        if kept and made:
            self.add(made)
        # The index first: what is left of a shard is then no shard.
        self.root.remove(part_path(old.shard))
        self.root.remove(shard_path(old.shard))

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
    restore: Path | None = None,
) -> SetReport:
    """Label every shard of the set at `store` that is not there yet; dataset.json comes last.

    `maker` is for this process, `labeller` for the engine's workers. `drop` lists pictures to leave
    out, and the set keeps to it: of shards that hold one the others are copied. Raises
    DistillError as `build_set` does.
    """
    pyarrow_parquet()  # what is missing is said before anything is read
    codec_named(form.codec)
    root, before = desk.root, _check_own(desk.root, form)
    manifest.check(desk.folder)
    there = PairsInShards(root, form.codec)
    lacking = maker.lacking(photos)
    placed = [photo for photo in photos if photo.key not in lacking]
    found = place_photos(
        placed, manifest, desk.folder, drop, there.disk, there.photo, engine, restore
    )
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
    maker.check_photos(
        str(root),
        manifest_at(desk.folder),
        [job for job in jobs if job.name in disk[job.side]],
        lambda job: there.picture(job.side, job.name),
        lambda photo: there.codec.decode(there.codec.encode(photo)),
        desk.folder,
    )
    made = ShardManifest(form.codec, form.pairs, maker.folders, manifest.plain())
    up_to_date = (
        before is not None
        and before.counts is not None
        and before.recipe == made.recipe
        and is_complete(desk.folder)
        and found.remembered
        and photo_table.read_skipped(desk.folder) == {repr(key): why for key, why in bad.items()}
    )
    if up_to_date and not (todo or stale):
        report = report_of(str(root), found, disk, 0, bad)
    else:
        rows = {row.pair: row for row in found.rows}
        leases = deal(todo, rows, manifest, form.codec, form.pairs)
        filled = partial(root.names, "index")
        with not_left_empty(root, filled), writing(root.local or desk.folder, folders=False):
            write_shard_manifest(root, made)  # without counts: training must not begin
            write_manifest(desk.folder, manifest, None)
            photo_table.write_dropped(desk.folder, found.dropped)
            photo_table.write_rows(desk.folder, found.rows)
            desk.publish()
            for shard in stale:
                there.replace(shard, manifest, found.unwanted)
            maker.begin(desk.folder, jobs)
            unread = dict[str, str]()  # photos, with the reason
            with bar(sum(len(each.jobs) for each in leases), "pair", "labelling") as progress:
                for lease, row in engine.run(labeller, leases, labeller.maker.device):
                    there.add(row)
                    unread |= row.skipped
                    progress.update(len(lease.jobs))
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
