"""Loading: folder sets against shards, codec by codec, and the start with a large index.

decode   CPU time of one picture in each codec, and its bytes, of pictures of `--pairs SET`
sample   CPU time of one training sample (read, checked, decoded, as tensors), pages in memory
loop     `distill.train` on the same pairs as a folder and as shards, each in blocks of steps
         beside blocks of the bare step, freed memory kept: pictures a second, and CPU time
start    the first step and the memory with an index of `--index` pairs: real parts of an index
         and a catalogue, of which every shard is a link to one tar file; beside a small folder

CPU time holds on a machine that does other things too; the loop's pictures a second do not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
from beside import Block, blocks_beside
from common import Table, alternate, apart, kept, machine, parser, spread, wanted, write
from forms import STUDENT, student_step
from PIL import Image
from startup import SIZE, make_pairs, start_table, timed_first_step

from distill.data.address import Address
from distill.data.datasets import PairSet
from distill.data.pairs import find_pairs
from distill.data.photos import Side
from distill_scale.packed.pair_record import CodecName, codec_named
from distill_scale.packed.shard_index import (
    Catalogue,
    IndexRow,
    ShardRow,
    read_rows_of,
    read_shard_row,
    shard_path,
    write_catalogue,
    write_part,
)
from distill_scale.packed.shard_manifest import shard_manifest_at
from distill_scale.packed.shard_order import ShardOrder
from distill_scale.packed.sharded_pairs import ShardedPairs
from distill_scale.shards.packing import pack

CODECS: Sequence[CodecName] = get_args(CodecName)
WANTED_LOOP, WANTED_STEP, WANTED_MEMORY = 0.95, 6.0, 1024  # of the bare step; seconds; MiB
PER_SHARD = 500
FEW = 2_000  # pairs of a folder beside them


def cpu_ms(run: Callable[[], object], count: int) -> float:
    """Milliseconds of this process's CPU time for each of `count` things that `run` does."""
    begun = time.process_time()
    run()
    return 1000 * (time.process_time() - begun) / count


def decode_table(root: Path, count: int, rounds: int) -> tuple[dict[str, Any], Table]:
    """Each codec on the same pictures, in turn."""
    pairs = find_pairs(root, None, 0.1, 0)["train"]
    chosen = np.linspace(0, len(pairs) - 1, min(count, len(pairs))).astype(int)
    pictures = [picture for i in chosen for picture in pairs[int(i)].read()]
    found: dict[str, Any] = {}
    encoded = {}
    for name in CODECS:
        codec = codec_named(name)
        encoded[name] = [codec.encode(picture) for picture in pictures]
        found[name] = {"bytes": statistics.mean(map(len, encoded[name])), "ms": []}
    for _ in range(rounds):
        for name in CODECS:
            codec = codec_named(name)
            run = partial(_each, lambda content, c=codec: np.array(c.decode(content)))
            found[name]["ms"].append(cpu_ms(partial(run, encoded[name]), len(pictures)))
    rows = [
        [name, spread(each["ms"], 2), f"{each['bytes'] / 1000:.1f}", codec_named(name).lossless]
        for name, each in found.items()
    ]
    title = f"Decoding, {len(pictures)} pictures"
    return found, Table(
        title, ["codec", "ms of CPU", "KB", "lossless"], [[*map(str, r)] for r in rows]
    )


def _each(run: Callable[[Any], object], things: Sequence[Any]) -> None:
    for thing in things:
        run(thing)


def sample_table(
    root: Path, shards: dict[str, Path], size: int, count: int, rounds: int
) -> tuple[dict[str, list[float]], Table]:
    """A training sample of the folder and of every set of shards."""
    sets = {"folder": PairSet(find_pairs(root, None, 0.1, 0)["train"], size, train=True)}
    for name, place in shards.items():
        address = Address(place)
        pairs = ShardedPairs(address, Catalogue(address), "train", name)
        sets[name] = PairSet(pairs, size, train=True, order=ShardOrder(pairs.sizes, 0))
    found: dict[str, list[float]] = {name: [] for name in sets}
    for n in range(rounds + 1):
        for name, data in sets.items():
            ms = cpu_ms(partial(_each, data.__getitem__, range(count)), count)
            if n:  # the first round brings the files into memory
                found[name].append(ms)
    rows = [[name, spread(values, 2)] for name, values in found.items()]
    return found, Table("A training sample, ms of CPU", ["", "median (range)"], rows)


def loop(words: Sequence[str], args: argparse.Namespace) -> list[Block]:
    """Blocks of the real command beside the bare step."""
    typed = [*words, f"data.workers={args.workers}", f"data.batch_size={args.batch}"]
    typed += ["data.val_limit=1", f"style.resolution={args.size}", "encoder.weights=none"]
    bare = partial(student_step, args.batch, args.size, last=True, fused=True, student=args.student)
    return blocks_beside([*typed, *args.student], bare, args.blocks, args.warm, args.steps)


def loop_table(
    root: Path, shards: dict[str, Path], args: argparse.Namespace
) -> tuple[dict[str, Any], Table]:
    sources = {"folder": [f"data.root={root}"]}
    sources |= {name: ["data=shards", f"data.root={at}"] for name, at in shards.items()}
    runs: dict[str, Callable[[], Any]] = {
        name: partial(_first, kept, loop, [*words, "style=toon"], args)
        for name, words in sources.items()
    }
    results = alternate(runs, args.rounds, "loop")
    rows = []
    for name, rounds in results.items():
        blocks = [block for each in rounds for block in each]
        by_clock, by_cpu = (
            [statistics.median(map(ratio, each)) for each in rounds]
            for ratio in (lambda b: b.bare / b.loop, lambda b: b.bare_cpu / b.loop_cpu)
        )
        speed = [[args.batch / s for s in pair] for pair in ((b.loop, b.bare) for b in blocks)]
        loop_speed, bare_speed = (spread(each, 1) for each in zip(*speed, strict=True))
        again = wanted(by_clock, WANTED_LOOP), spread(by_cpu, 2)
        rows.append([name, loop_speed, bare_speed, *again])
    columns = ["", "pictures a second", "the bare step's beside it"]
    columns += ["to the bare step, memory kept", "by CPU time, loading included"]
    title = (
        f"Training, {args.workers} workers, median (range) of {args.blocks} blocks of "
        f"{args.steps} steps a round; ratios: of the rounds' medians"
    )
    found = {name: [[asdict(b) for b in each] for each in r] for name, r in results.items()}
    return found, Table(title, columns, rows)


def _first(function: Callable[..., Any], *arguments: object) -> Any:
    return apart(function, *arguments)[0]


def make_index(root: Path, count: int) -> Path:
    """Shards with so many training pairs, all links to one tar file, each with an index part."""
    rng, folder = np.random.default_rng(0), root.with_name(f"{root.name}-pairs")
    for side, pairs in (("train", PER_SHARD), ("val", 64)):
        for kind in ("photo", "stylized"):
            (folder / side / kind).mkdir(parents=True)
            for number in range(pairs):
                noise = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
                Image.fromarray(noise).save(folder / side / kind / f"face_{number:04d}.png")
    address = Address(root)
    pack(folder, address, "qoi", PER_SHARD, (0.1, 0, 0.1))
    rows = read_rows_of(address, "train-000000")
    first = _row(address, "train-000000")
    shards = [first]
    for number in range(1, -(-count // PER_SHARD)):
        name = f"train-{number:06d}"
        os.link(root / shard_path("train-000000"), root / shard_path(name))
        pairs = [
            IndexRow(
                **asdict(row) | {"name": f"{number:06d}-{row.name}", "shard": shard_path(name)}
            )
            for row in rows
        ]
        shards.append(ShardRow(**asdict(first) | {"shard": name}))
        write_part(address, shards[-1], pairs)
    write_catalogue(address, [*shards, _row(address, "val-000000")])
    manifest = shard_manifest_at(address)
    assert manifest is not None
    counts: dict[Side, int] = {"train": len(shards) * PER_SHARD, "val": 64, "test": 0}
    replace(manifest, counts=counts).write(address)
    return root


def _row(address: Address, shard: str) -> ShardRow:
    row = read_shard_row(address, shard)
    assert row is not None
    return row


def first_steps(args: argparse.Namespace, work: Path) -> tuple[dict[str, Any], Table]:
    steps = (args.start_steps, args.workers)
    sets = {
        f"{args.index:,} in shards": partial(
            timed_first_step, make_index(work / "index", args.index), *steps, "data=shards"
        ),
        f"{FEW:,} in a folder": partial(timed_first_step, make_pairs(work / "few", FEW), *steps),
    }
    runs = {name: partial(run, "style=own") for name, run in sets.items()}
    results = alternate(runs, args.start_rounds, "first step")
    title = f"Start (wanted: ≤ {WANTED_STEP:.0f} s, ≤ {WANTED_MEMORY} MiB together)"
    return results, start_table(title, results)


def main() -> None:
    options = parser(__doc__, photos=False)
    options.add_argument("--pairs", type=Path, required=True, help="a set of pairs")
    options.add_argument("--parts", nargs="+", default=["decode", "sample", "loop", "start"])
    options.add_argument("--codecs", nargs="+", default=[*CODECS], choices=CODECS)
    options.add_argument("--pictures", type=int, default=100, help="pairs to decode (%(default)s)")
    options.add_argument("--steps", type=int, default=10, help="of a block (%(default)s)")
    options.add_argument("--blocks", type=int, default=10, help="of a round (%(default)s)")
    options.add_argument("--warm", type=int, default=6, help="steps before them (%(default)s)")
    options.add_argument("--batch", type=int, default=16, help="pictures a step (%(default)s)")
    options.add_argument("--size", type=int, default=256, help="their side (%(default)s)")
    options.add_argument(
        "--student", nargs="*", default=STUDENT, help="settings; without any: the defaults"
    )
    options.add_argument("--workers", type=int, default=2, help="loading processes (%(default)s)")
    options.add_argument("--index", type=int, default=1_000_000, help="pairs (%(default)s)")
    options.add_argument("--start-steps", type=int, default=20, help="(%(default)s)")
    options.add_argument("--start-rounds", type=int, default=3, help="(%(default)s)")
    args = options.parse_args()
    facts, figures, tables = machine(), {}, []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shards = {name: work / name for name in args.codecs}
        if {"sample", "loop"} & {*args.parts}:
            for name, place in shards.items():
                pack(args.pairs, Address(place), name, PER_SHARD, (0.1, 0, 0.1), args.workers)
        made: dict[str, Callable[[], tuple[Any, Table]]] = {
            "decode": partial(decode_table, args.pairs, args.pictures, 5),
            "sample": partial(sample_table, args.pairs, shards, args.size, args.pictures, 5),
            "loop": partial(loop_table, args.pairs, shards, args),
            "start": partial(first_steps, args, work),
        }
        for part in args.parts:
            figures[part], table = made[part]()
            tables.append(table)
    write("loading", args.out, facts, figures, *tables)


if __name__ == "__main__":
    main()
