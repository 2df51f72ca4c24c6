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
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from PIL import Image

from distill.core.arrays import save_png
from distill.core.engine import HERE, Engine
from distill.core.errors import DistillError
from distill.core.files import cache_folder
from distill.core.nodes import part
from distill.core.progress import bar, track
from distill.data import photo_folders, photo_table
from distill.data.address import Address
from distill.data.licence_terms import kept_terms
from distill.data.manifest import KEPT, Manifest, SetMetadataStore, check_writable, writing
from distill.data.photo_table import SIDES, SKIPPED, PhotoRow
from distill.data.photos import Side
from distill.data.sampler import check_weights
from distill.models import build
from distill.models.teachers.teacher import Teacher
from distill.prepare import labelling
from distill.prepare.pair_maker import (
    Names,
    PairJob,
    PairMaker,
    PairPictures,
    PairStore,
    make_pairs,
)
from distill.prepare.teacher_pass import TeacherPass
from distill_scale.packed.pair_record import CodecName, codec_named, decode_pair
from distill_scale.packed.shard_index import (
    Shard,
    ShardRow,
    part_path,
    read_part,
    read_rows_of,
    shard_path,
    whole_shard,
)
from distill_scale.packed.shard_manifest import (
    ShardManifest,
    manifest_to_continue,
    shard_manifest_at,
)
from distill_scale.packed.shard_writer import ShardWriter, deal_out, write_set
from distill_scale.settings import ShardFormat

if TYPE_CHECKING:
    from distill_scale.source import Shards

# Of a manifest's fields those that change no picture: where photos lie, how many there are.
_FREE = ("photos", "views", "val_fraction", "test_fraction", "folders", "val_folders", "sizes")


def label(source: Shards, teacher: Teacher | None) -> Address:
    """distill.prepare data=shards, see `Source.label`: on this machine, or on the cluster of the
    settings."""
    settings, root = source.settings, source.root
    source.check_sizes()
    photo_folders.check_photos(settings)
    if root.local is not None:
        check_writable(root.local)
    check_weights(settings.data.weights, len(photo_folders.training_folders(settings)))
    if teacher is None:
        teacher = build.load_teacher(settings.style, settings.teacher)
    metadata = SetMetadataStore(root)
    with part("engine", settings.engine, Engine) as engine:
        photos = photo_folders.photos(settings)
        fast = teacher.fast()
        manifest = labelling.manifest_of(settings, teacher, metadata.folder, photos)
        before = kept_terms(metadata.folder)
        how = settings.label
        here, there = (
            labelling.teacher_pass(how, fast, manifest, each.device(how.device))
            for each in (HERE, engine)
        )
        labeller = ShardLabeller(there, settings.shard.codec, root)
        store = ShardStore(metadata, settings.shard, engine, labeller)
        labelling.build(settings, photos, here, manifest, store, engine=engine)
    if kept_terms(metadata.folder) != before:
        metadata.publish()
    return root


@dataclass(frozen=True, kw_only=True)
class ShardLease(Shard):
    """One shard to label: its pairs with their rows of photos.tsv. `plan` is the hash of what
    decides its pictures."""

    jobs: tuple[PairJob, ...]
    rows: tuple[PhotoRow, ...]


def deal(
    jobs: Sequence[PairJob],
    rows: Mapping[str, PhotoRow],
    manifest: Manifest,
    codec: CodecName,
    per_shard: int,
) -> list[ShardLease]:
    """The shards of these pairs, dealt out by a hash of their names, as packing does it: squares
    and whole pictures apart.

    Of a plan that was carried out in part, what is left is dealt out as it was.
    """
    leases = []
    places = [(job.side, job.photo.folder, job.size is not None) for job in jobs]
    for (side, folder, whole), indices in deal_out([j.name for j in jobs], places, per_shard):
        dealt = [jobs[i] for i in indices]
        plan = _plan(manifest, codec, side, [job.name for job in dealt])
        leases.append(
            ShardLease(
                shard=f"{side}-{plan[:16]}",
                side=side,
                folder=folder,
                plan=plan,
                jobs=tuple(  # a worker has another current folder
                    replace(job, photo=replace(job.photo, path=job.photo.path.absolute()))
                    for job in dealt
                ),
                rows=tuple(rows[job.photo.pair_name] for job in dealt),
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
        if there := whole_shard(self.root, lease.shard):
            return there
        codec = codec_named(self.codec)
        writer = ShardWriter(replace(lease, device=self.maker.device_name), codec)
        rows = dict(zip((job.name for job in lease.jobs), lease.rows, strict=True))

        def keep(jobs: Sequence[PairJob], pairs: Iterable[PairPictures]) -> None:
            for job, (photo, target, *_) in zip(jobs, pairs, strict=True):
                if target.mode == "RGBA" and not codec.lossless:
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
    text = json.dumps([decided, codec, side, [*names]])
    return hashlib.sha256(text.encode()).hexdigest()


class ShardStore(PairStore):
    """The pairs of the whole shards of a set, labelled by an engine's workers.

    Raises DistillError where another set lies there, or shards of another format.
    """

    listed = f"{KEPT}/{SKIPPED}"

    def __init__(
        self, metadata: SetMetadataStore, form: ShardFormat, engine: Engine, labeller: ShardLabeller
    ) -> None:
        super().__init__(metadata.folder, labeller.maker.folders, metadata.root)
        self.metadata, self.form, self.engine, self.labeller = metadata, form, engine, labeller
        check_place(self.root, form)
        self.codec = codec_named(form.codec)
        self.rows: dict[str, ShardRow] = {}
        self._shard: dict[tuple[Side, str], str] = {}
        listed = sorted(PurePath(name).stem for name in self.root.names("index"))
        for shard in track(listed, len(listed), "shard", "checking"):
            if row := whole_shard(self.root, shard):
                self.add(row)

    def add(self, row: ShardRow) -> None:
        """Take up a shard that is there."""
        self.rows[row.shard] = row
        if row.pairs:
            names = read_part(self.root, row.shard).names
            self._shard |= {(row.side, name): row.shard for name in names}

    @property
    def pairs(self) -> Names:
        pairs: Names = {side: set() for side in SIDES}
        for side, name in self._shard:
            pairs[side].add(name)
        return pairs

    def is_begun(self) -> bool:
        return bool(self.root.names("index"))

    def has(self, job: PairJob) -> bool:
        return (job.side, job.name) in self._shard

    def forget_damaged(self, jobs: Sequence[PairJob]) -> int:
        return 0  # shards that are not whole are none

    @property
    def skipped(self) -> dict[str, str]:  # type: ignore[override]
        return {key: why for row in self.rows.values() for key, why in row.skipped.items()}

    def photo(self, side: Side, pair: str) -> Path:
        """A copy in the cache."""
        path = cache_folder() / "labelling" / "photos" / f"{pair}.png"
        save_png(self._picture(side, f"{pair}.png"), path)
        return path

    def picture(self, job: PairJob) -> Image.Image:
        return self._picture(job.side, job.name)

    def _picture(self, side: Side, name: str) -> Image.Image:
        shard = self._shard[side, name]
        part = read_part(self.root, shard)
        row = part.names.index(name)
        where = int(part.offsets[row]), int(part.sizes[row])
        return decode_pair(self.root.read_range(shard_path(shard), *where), self.codec)[0]

    def as_stored(self, photo: Image.Image) -> Image.Image:
        return self.codec.decode(self.codec.encode(photo))

    def obsolete(self, unwanted: set[str]) -> list[tuple[ShardRow, set[str]]]:
        """The shards that hold one of these pairs, with the names of those that stay: from now on
        they are no more among the `rows`, nor the unwanted pairs among the `pairs`."""
        if not unwanted:
            return []
        before, pair_of = self._shard, photo_table.pair_of
        self._shard = {key: of for key, of in before.items() if pair_of(key[1]) not in unwanted}
        touched = {before[key] for key in before.keys() - self._shard.keys()}
        kept = {shard: set[str]() for shard in sorted(touched)}
        for (_, name), shard in self._shard.items():
            if shard in kept:
                kept[shard].add(name)
        return [(self.rows.pop(shard), names) for shard, names in kept.items()]

    def is_finished(self, manifest: Manifest) -> bool:
        there = shard_manifest_at(self.root)
        return bool(there and there.counts is not None and there.recipe == manifest.plain())

    def writing(self) -> AbstractContextManager[None]:
        return writing(self.root.local or self.folder, folders=False)

    def publish(self, manifest: Manifest, counts: Mapping[str, int] | None) -> None:
        """Without counts training does not begin."""
        self.metadata.publish()
        codec, per_shard = self.form.codec, self.form.pairs
        sides = None if counts is None else {side: counts[side] for side in SIDES}
        ShardManifest(codec, per_shard, self.folders, manifest.plain(), sides).write(self.root)

    def contents(self, obsolete: Sequence[tuple[ShardRow, set[str]]]) -> list[str]:
        return []

    def remove(self, obsolete: Sequence[tuple[ShardRow, set[str]]], manifest: Manifest) -> None:
        """Copy the other pairs of each shard into one of their own, and remove it."""
        for old, names in obsolete:
            content = self.root.read(shard_path(old.shard))
            kept = [row for row in read_rows_of(self.root, old.shard) if row.name in names]
            plan = _plan(manifest, self.form.codec, old.side, [row.name for row in kept])
            shard = f"{old.side}-{plan[:16]}"
            if kept and not (whole := whole_shard(self.root, shard)):
                writer = ShardWriter(replace(old, shard=shard, plan=plan), self.codec)
                for row in kept:
                    writer.add_copy(row, content[row.offset : row.offset + row.size])
                whole = writer.publish(self.root, old.skipped)
            if kept and whole:
                self.add(whole)
            # The index first: what is left of a shard is then no shard.
            self.root.remove(part_path(old.shard))
            self.root.remove(shard_path(old.shard))

    def make(
        self, jobs: Sequence[PairJob], maker: PairMaker, rows: Mapping[str, PhotoRow]
    ) -> dict[str, str]:
        leases = deal(jobs, rows, self.labeller.maker.manifest, self.form.codec, self.form.pairs)
        with bar(len(jobs), "pair", "labelling") as progress:
            for lease, row in self.engine.run(self.labeller, leases, self.labeller.maker.device):
                self.add(row)
                progress.update(len(lease.jobs))
        write_set(self.root, [row for _, row in sorted(self.rows.items())])
        unread = self.skipped  # by `repr` of the key
        return {key: unread[repr(key)] for key in {j.photo.key for j in jobs if not self.has(j)}}

    def devices(self, *more: str) -> list[str] | None:
        known = [row.device for row in self.rows.values() if row.pairs]
        return sorted({each for each in known if each}) if all(known) else None


def check_place(root: Address, form: ShardFormat) -> None:
    """Raises DistillError for another set there, or other shards, and for a missing library."""
    there = manifest_to_continue(root, "data.root")
    if there is None:
        return
    if "teacher" not in there.recipe:
        raise DistillError(
            f"{root}: holds shards of pairs that no teacher of ours made; name another place with "
            "data.root=ADDRESS"
        )
    if (there.codec, there.pairs_a_shard) != (form.codec, form.pairs):
        raise DistillError(
            f"{root}: made with shard.codec={there.codec} shard.pairs={there.pairs_a_shard}; say "
            "so, or name another place with data.root=ADDRESS"
        )
