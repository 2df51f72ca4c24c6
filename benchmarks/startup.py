"""Starting up: `--help` of every command, and training's first step with many pairs on disk.

For the first step small pictures are linked into a folder of pairs of one's own (train/photo,
train/stylized, val/…) and `distill.train` is started on them as a process of its own: seconds from
its start to the end of the first step, then, over all its steps, the most memory it takes
(first_step.py says of what).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Table, alternate, machine, parser, spread, write
from PIL import Image

from distill.__main__ import commands

SIZE = 64
DISTINCT = 300  # pictures; the other files are links to them
WANTED_HELP, WANTED_STEP = 2.0, 15.0  # seconds


def make_pairs(root: Path, count: int) -> Path:
    """`count` training pairs and a hundredth for validation, all links to a few pictures."""
    rng = np.random.default_rng(0)
    seeds = root.with_name(f"{root.name}-pictures")
    seeds.mkdir(parents=True)
    for number in range(min(DISTINCT, count)):
        noise = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
        Image.fromarray(noise).save(seeds / f"{number}.png")
    for side, pairs in (("train", count), ("val", max(16, count // 100))):
        for kind in ("photo", "stylized"):
            folder = root / side / kind
            folder.mkdir(parents=True)
            for number in range(pairs):
                os.link(seeds / f"{number % DISTINCT}.png", folder / f"face_{number:07d}.png")
    return root


def timed_first_step(root: Path, steps: int, workers: int, *more: str) -> dict[str, float]:
    """The real command for a few steps: what first_step.py notes, and seconds from its start on."""
    words = [f"data.root={root}", f"data.workers={workers}", f"style.resolution={SIZE}"]
    script = Path(__file__).with_name("first_step.py")
    typed = [sys.executable, str(script), str(steps), *words, "encoder.weights=none", *more]
    begun = time.time()
    done = subprocess.run(typed, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    result = json.loads(done.stdout.splitlines()[-1])
    return result | {"first step": result.pop("ended") - begun, "whole": time.time() - begun}


def start_table(title: str, results: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    """What `timed_first_step` gave for each of several sets."""
    columns = {"first step": "first step, s", "cpu": "CPU of the main process till then, s"}
    columns |= {"whole": "whole command, s"}
    columns |= {name: f"{name}, MiB" for name in ("main", "worker", "together")}
    rows = []
    for name, found in results.items():
        digits = {"first step": 1, "cpu": 1, "whole": 1}
        cells = [spread([one[key] for one in found], digits.get(key, 0)) for key in columns]
        rows.append([name, *cells])
    return Table(title, ["pairs", *columns.values()], rows)


def seconds_of(command: Sequence[str]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def help_table(args: argparse.Namespace) -> tuple[dict[str, list[float]], Table]:
    """Every command's `--help`, beside what Python and `import torch` take alone."""
    runs: dict[str, Callable[[], float]] = {
        f"python -m distill.{name} --help": partial(seconds_of, ["-m", f"distill.{name}", "--help"])
        for name in sorted(commands())
    }
    runs["python -c 'import torch'"] = partial(seconds_of, ["-c", "import torch"])
    seconds = alternate(runs, args.rounds, "--help")
    title = f"--help, seconds (wanted ≤ {WANTED_HELP:.0f})"
    rows = [[f"`{name}`", spread(values, 2)] for name, values in seconds.items()]
    return seconds, Table(title, ["", "median (range)"], rows)


def pairs_table(args: argparse.Namespace, work: Path) -> tuple[dict[str, Any], Table]:
    """The first step and the memory at every number of pairs."""
    runs = {
        f"{count:,}": partial(
            timed_first_step, make_pairs(work / str(count), count), args.steps, args.workers
        )
        for count in args.pairs
    }
    results = alternate(runs, args.step_rounds, "first step")
    title = f"Training's start (wanted: first step ≤ {WANTED_STEP:.0f} s, memory flat)"
    return results, start_table(title, results)


def main() -> None:
    options = parser(__doc__, photos=False, rounds=5)
    options.add_argument(
        "--pairs", type=int, nargs="+", default=[2_000, 20_000, 200_000], help="(%(default)s)"
    )
    options.add_argument("--steps", type=int, default=50, help="steps to train (%(default)s)")
    options.add_argument("--step-rounds", type=int, default=3, help="runs of each (%(default)s)")
    options.add_argument("--workers", type=int, default=2, help="loading processes (%(default)s)")
    args = options.parse_args()
    facts = machine()
    helps, help_rows = help_table(args)
    with tempfile.TemporaryDirectory() as folder:
        starts, start_rows = pairs_table(args, Path(folder))
    write("startup", args.out, facts, {"help": helps, "start": starts}, help_rows, start_rows)


if __name__ == "__main__":
    main()
