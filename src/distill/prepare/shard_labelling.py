"""One shard labelled by a teacher: what a worker leases, labels and publishes.

What is in a shard decides its name, so that any worker, here or on any node, writes the same
file; one that is there is left alone. Whole shards come from one device each, which the index says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from distill.core.errors import DistillError
from distill.data.manifest import Manifest
from distill.data.photo_table import PhotoRow
from distill.data.photos import Side
from distill.data.shards.address import Address
from distill.data.shards.picture_codec import CodecName, codec_named
from distill.data.shards.shard_index import ShardRow, whole_shard
from distill.data.shards.shard_writer import ShardWriter
from distill.prepare.pair_maker import PairJob, Pictures, make_pairs
from distill.prepare.teacher_pass import TeacherPass

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
    decided = {k: v for k, v in manifest.plain().items() if k not in _FREE}
    parts: dict[tuple[Side, str, bool], list[PairJob]] = {}
    for job in jobs:
        parts.setdefault((job.side, job.photo.folder, job.size is not None), []).append(job)
    leases = []
    for side, folder, whole in sorted(parts):
        mixed = sorted(parts[side, folder, whole], key=lambda job: _digest(job.name))
        for start in range(0, len(mixed), per_shard):
            taken = tuple(mixed[start : start + per_shard])
            plan = _digest(json.dumps([decided, codec, side, [job.name for job in taken]]))
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
            for job, (photo, target) in zip(jobs, pairs, strict=True):
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
