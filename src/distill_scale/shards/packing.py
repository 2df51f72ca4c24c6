"""A folder of pairs to shards, and back: resumable, and never half-written.

A shard holds pairs of one side and one folder of photos, which are dealt out by a hash of their
names, so that each is a fair sample of its folder. It is published whole, then its part of the
index, which says what it was made of; one that is there and was made of the same is left alone.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from distill.config.groups import choices
from distill.core.errors import DistillError, counted
from distill.core.files import home_path, real_path
from distill.core.next_step import next_step
from distill.core.progress import bar
from distill.data.address import Address
from distill.data.cards.set_card import carry_card
from distill.data.decode import BadPhoto
from distill.data.manifest import devices_at, is_complete, manifest_at, write_sidecars, writing
from distill.data.pairs import Pair, Pairs, find_pairs
from distill.data.photo_table import PAIR_FOLDERS, SIDES, PhotoRow, pair_of, read_rows, size_of
from distill.data.photos import Side
from distill.data.worker_loader import ErrorForwardingLoader, Mapped
from distill_scale.packed.pair_record import CodecName, codec_named
from distill_scale.packed.shard_index import (
    Catalogue,
    Shard,
    ShardRow,
    read_rows_of,
    read_shard_row,
    whole_shard,
)
from distill_scale.packed.shard_manifest import (
    ShardManifest,
    manifest_to_continue,
    shard_manifest_at,
)
from distill_scale.packed.shard_writer import ShardWriter, deal_out, write_set
from distill_scale.packed.unpacking import unpack
from distill_scale.settings import ShardSettings

SHARDS = "data/shards"
OPAQUE = 255
Split = tuple[float, int, float]  # val_fraction, seed, test_fraction


def convert(settings: ShardSettings) -> None:
    """Pack or unpack, as `to` says, the set's card too. Raises DistillError."""
    root = settings.data.root
    if root is None:
        what = "the set of pairs" if settings.to == "shards" else "the shards"
        raise DistillError(f"data.root=null: name {what} with data.root=DIR")
    if settings.to == "shards":
        _to_shards(settings, root)
        return
    address = Address(_typed(root))
    if "://" in str(settings.output):
        raise DistillError(f"output={settings.output}: pairs are unpacked into a local folder")
    beside = f"{address}-pairs" if address.local is not None else f"data/pairs/{address.name}"
    folder = home_path(settings.output or beside)
    print(unpack(address, folder))
    carry_card(address, folder)
    print(next_step("train", **_learnt_from(folder), **{"data.root": str(folder)}))


def _to_shards(settings: ShardSettings, root: str) -> None:
    address = Address(_typed(root))
    if address.local is None or shard_manifest_at(address) is not None:
        raise DistillError(
            f"data.root={root}: only a local folder of pairs is packed; for the way back add "
            "to=pairs"
        )
    folder, d = address.local, settings.data
    target = Address(_typed(settings.output or f"{SHARDS}/{real_path(folder).name}"))
    if target.local is not None and real_path(target.local) == real_path(folder):
        raise DistillError(f"output={settings.output}: that is the set itself; name another place")
    split = (d.val_fraction, d.split_seed, d.test_fraction)
    print(pack(folder, target, settings.codec, settings.pairs, split, settings.workers, d.style))
    carry_card(folder, target)
    known = d.style is not None and d.style in choices("style")
    what = {"style": str(d.style)} if known else _learnt_from(folder)
    print(next_step("train", **what, data="shards", **{"data.root": str(target)}))


def _learnt_from(folder: Path) -> dict[str, str]:
    """The style to train with where a teacher's set says so, the recipe of a set of sketches."""
    recipe = manifest_at(folder)
    if recipe is None:
        return {}
    return {"style": recipe["style"]} if "teacher" in recipe else {"recipe": "pix2pix"}


def _typed(text: str) -> str:
    return text if "://" in text else str(home_path(text))


@dataclass(frozen=True, kw_only=True)
class ShardJob(Shard):
    """One shard to make of these pairs; `rows` are what photos.tsv says of them."""

    pairs: Sequence[Pair]
    rows: Sequence[PhotoRow | None]


@dataclass(frozen=True)
class PackReport:
    """What packing did: `made` of `shards` are new, and of these `skipped` pairs are left out."""

    root: Address
    codec: str
    counts: Mapping[Side, int]
    shards: int
    bytes: int
    made: int
    skipped: int

    def __str__(self) -> str:
        sides = ", ".join(f"{self.counts[side]} {side}" for side in SIDES)
        text = f"{self.root}: {counted(self.shards, 'shard')} of "
        text += f"{counted(sum(self.counts.values()), 'pair')} ({sides}) "
        text += f"as {self.codec}, {self.bytes / 1e6:,.1f} MB; {self.made} new"
        return text + (f"; cannot be read: {counted(self.skipped, 'pair')}" if self.skipped else "")


def pack(
    folder: Path,
    root: Address,
    codec: CodecName,
    per_shard: int,
    split: Split,
    workers: int = 0,
    style: str | None = None,
) -> PackReport:
    """Make every shard of a folder of pairs that is not there yet; dataset.json comes last.

    `split` is for pairs that no folder of theirs puts on a side, `style` for the layout faces/ +
    STYLE/. Raises DistillError for a folder without pairs or not finished, and where nothing can be
    written.
    """
    before = manifest_to_continue(root, "output")  # what is missing is said before any is read
    codec_named(codec)
    if manifest_at(folder) is not None and not is_complete(folder):
        raise DistillError(
            f"{folder}: a set that is not finished; run the same distill.prepare again to resume"
        )
    val_fraction, seed, test_fraction = split
    sides = find_pairs(folder, style, val_fraction, seed, test_fraction, whole=True)
    jobs = plan_shards(folder, sides, codec, per_shard)
    # The folders of photos and targets, where they are called as in a set of ours.
    named = (
        (pairs.photos.name, pairs.targets.name if pairs.targets else "") for pairs in sides.values()
    )
    ours = (two for two in named if two in PAIR_FOLDERS or two[::-1] in PAIR_FOLDERS)
    layout = next(ours, ("photo", "stylized"))
    manifest = ShardManifest(codec, per_shard, layout, manifest_at(folder) or {})
    with writing(root.local, False, "output") if root.local is not None else nullcontext():
        done = dict[str, ShardRow]()
        for job in jobs:  # what is there, whole, and made of the same files
            row = read_shard_row(root, job.shard)
            if row and row.plan == job.plan and (row := whole_shard(root, job.shard)):
                done[job.shard] = row
        todo = [job for job in jobs if job.shard not in done]
        if not done:
            _check_same_set(before, root, folder, manifest, sides)
        if todo or before is None:
            manifest.write(root)  # without counts: training must not begin
        skipped = _make(todo, done, partial(pack_shard, root, codec), workers)
        rows = [done[job.shard] for job in jobs if done[job.shard].pairs]
        counts = {side: sum(r.pairs for r in rows if r.side == side) for side in SIDES}
        if not sum(counts.values()):
            raise DistillError(f"{folder}: none of its pairs can be read")
        write_set(root, [done[job.shard] for job in jobs])
        write_sidecars(root, folder)
        replace(manifest, counts=counts).write(root)
    size = sum(row.bytes for row in rows)
    return PackReport(root, codec, counts, len(rows), size, len(todo), skipped)


def _check_same_set(
    there: ShardManifest | None,
    root: Address,
    folder: Path,
    manifest: ShardManifest,
    sides: Mapping[Side, Pairs],
) -> None:
    """Raises DistillError where the shards at `root` are finished and of another set: of another
    teacher, or without one pair of a name that this one has."""
    if there is None or there.counts is None:
        return
    known = {pair.name for side in SIDES for pair in sides[side]}
    try:
        names = {row.name for row in read_rows_of(root, Catalogue(root).name(0))}
    except (DistillError, IndexError):  # damaged
        names = set()
    other = there.recipe.get("teacher") != manifest.recipe.get("teacher")
    if other or (names and known.isdisjoint(names)):
        raise DistillError(
            f"output={root}: holds shards of another set than {folder}, which would be replaced; "
            "choose another output, or delete it"
        )


def plan_shards(
    folder: Path, sides: Mapping[Side, Pairs], codec: CodecName, per_shard: int
) -> list[ShardJob]:
    """The shards of a folder of pairs, each of one side and one folder of photos, and of squares
    or whole pictures alone."""
    known, devices, jobs = read_rows(folder), devices_at(folder) or (), []
    several = bool((manifest_at(folder) or {}).get("sizes"))
    device = devices[0] if len(devices) == 1 else None
    for side in SIDES:
        names = [pair.name for pair in sides[side]]
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:
                raise DistillError(
                    f"{folder}: the name {name!r} is no valid text, which an index needs; rename "
                    "the file"
                ) from None
        rows = [known.get(pair_of(name)) for name in names]
        places = [
            (row.folder if row else "", several and size_of(name) is not None)
            for row, name in zip(rows, names, strict=True)
        ]
        for number, ((of, whole), indices) in enumerate(deal_out(names, places, per_shard)):
            pairs, dealt = sides[side].take(indices), [rows[i] for i in indices]
            jobs.append(
                ShardJob(
                    shard=f"{side}-{number:06d}",
                    side=side,
                    folder=of,
                    plan=_plan(codec, pairs, dealt),
                    device=device,
                    whole=whole,
                    pairs=pairs,
                    rows=dealt,
                )
            )
    return jobs


def _plan(codec: CodecName, pairs: Sequence[Pair], rows: Sequence[PhotoRow | None]) -> str:
    """What changes when a shard would hold anything else: names, sizes and times of files."""
    words: list[str] = [codec]
    for pair, row in zip(pairs, rows, strict=True):
        stats = [path.stat() for path in (pair.photo, pair.target) if path]
        words += [pair.name, str(row), *(f"{s.st_size} {s.st_mtime_ns}" for s in stats)]
    return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()


def pack_shard(root: Address, name: CodecName, job: ShardJob) -> tuple[ShardRow, dict[str, str]]:
    """Make and publish one shard, and its part of the index; gives the pairs that are left out."""
    codec, bad = codec_named(name), dict[str, str]()
    writer = ShardWriter(job, codec)
    for pair, row in zip(job.pairs, job.rows, strict=True):
        try:
            photo, target = (  # RGB where nothing is see-through
                each.convert("RGB") if np.asarray(each)[..., 3].min() == OPAQUE else each
                for each in pair.read_transparent()
            )
        except BadPhoto as reason:
            bad[str(pair.photo)] = str(reason)
            continue
        if target.mode == "RGBA" and not codec.lossless:
            raise DistillError(
                f"{pair.target or pair.photo}: has transparency, which codec={name} does not "
                "keep; choose another codec"
            )
        writer.add(pair.name, row, photo, target)
    return writer.publish(root), bad


def _make(
    jobs: Sequence[ShardJob],
    done: dict[str, ShardRow],
    make: Callable[[ShardJob], tuple[ShardRow, dict[str, str]]],
    workers: int,
) -> int:
    """Make the shards, adding their rows to `done`; gives how many pairs are left out."""
    skipped = 0
    if not jobs:
        return skipped
    loader = ErrorForwardingLoader(
        Mapped(make, jobs),
        batch_size=None,
        num_workers=min(workers, len(jobs)),
    )
    with bar(sum(len(job.pairs) for job in jobs), "pair", "packing") as progress:
        for job, (row, bad) in zip(jobs, loader, strict=True):
            done[job.shard] = row
            for path, reason in bad.items():
                progress.write(f"skipped {path!r}: {reason}")
            skipped += len(bad)
            progress.update(len(job.pairs))
    return skipped
