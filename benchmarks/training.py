"""Training: the product's loop against the bare step and against a plain PyTorch loop.

bare     forward, backward and step of nnconv (channels-last, fused Adam, l1_sobel) on
         one resident batch, as it is and with freed memory kept, as the commands keep it
product  `distill.train` itself on pairs from disk, with 0, 1 and 2 workers, everything on but
         validation: pictures a second between the step after the first ones and one before the end
plain    a loop as the paper's script has it: both files opened with Pillow, Resize, ToTensor, a
         shuffling DataLoader (the script's default is 2 workers; 0 is measured too), contiguous
         memory, SmoothL1 and Sobel in plain torch, Adam, `.item()` and TensorBoard at every step

The same network, the same loss, the same PNG files, which `distill.prepare style=toon` makes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common import (
    Forms,
    Table,
    alternate,
    apart,
    form_table,
    kept,
    machine,
    parser,
    ratios,
    spread,
    take_photos,
    wanted,
    write,
)
from forms import STUDENT, compiler, student_forms, student_step
from plain_loop import loading_costs, loss_difference, plain
from pytorch_lightning.profilers import SimpleProfiler
from watched import TAIL, Stamps, train_for

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.models import build
from distill.prepare import labelling


def pairs(photos: Path, root: Path) -> None:
    """The set to train on, made by the command itself."""
    asked = [f"photos='{photos}'", f"data.root='{root}'", "style=toon"]
    settings = compose.load("prepare", asked, Prepare)
    labelling.prepare(settings, build.load_teacher(settings.style, settings.teacher))


def bare(batch: int, warm: int, steps: int, size: int) -> float:
    """Pictures a second of the step alone."""
    step = student_step(batch, size, last=True, fused=True)
    for _ in range(warm):
        step()
    begun = time.perf_counter()
    for _ in range(steps):
        step()
    return steps * batch / (time.perf_counter() - begun)


def product(
    root: Path, workers: int, batch: int, warm: int, steps: int, size: int, profiled: bool = False
) -> tuple[float, dict[str, list[float]]]:
    """Pictures a second of the real command, and, when profiled, the seconds of its parts."""
    stamps, profiler = Stamps(), SimpleProfiler()
    words = [f"data.root={root}", f"data.workers={workers}", f"data.batch_size={batch}"]
    words += ["data.val_limit=1", f"style.resolution={size}", "encoder.weights=none", *STUDENT]
    train_for(warm + steps + TAIL, words, stamps, profiler if profiled else None)
    return steps * batch / stamps.of(warm, steps), dict(profiler.recorded_durations)


def product_speed(root: Path, workers: int, batch: int, warm: int, steps: int, size: int) -> float:
    return product(root, workers, batch, warm, steps, size)[0]


def measure(args: argparse.Namespace, root: Path) -> dict[str, list[float]]:
    """Pictures a second of every loop, in turn."""
    length = (args.batch, args.warm, args.steps, args.size)
    runs: dict[str, Callable[[], float]] = {
        "bare": partial(_apart, bare, *length),
        "bare, memory kept": partial(_apart, kept, bare, *length),
    }
    for n in (2, 1, 0):
        runs[f"product, {n} workers"] = partial(_apart, product_speed, root, n, *length)
    for n in (2, 0):
        runs[f"plain, {n} workers"] = partial(_apart, plain, root, n, *length)
    return alternate(runs, args.rounds, "training")


def _apart(function: Callable[..., float], *arguments: object) -> float:
    return apart(function, *arguments)[0]


def speed_table(speed: dict[str, list[float]]) -> Table:
    product = speed["product, 2 workers"]
    rows = [[name, spread(values, 2)] for name, values in speed.items()]
    for name in ("bare, memory kept", "bare"):
        rows.append([f"product (2) to {name}", wanted(ratios(product, speed[name]), 0.90)])
    for name in ("plain, 2 workers", "plain, 0 workers"):
        rows.append([f"product (2) to {name}", wanted(ratios(product, speed[name]), 1.5)])
    return Table("Training, pictures a second", ["", "median (range)"], rows)


def compiled_table(forms: Forms, asked: bool) -> Table:
    """What compiling takes before the first step, or why nothing was compiled."""
    rows = [[name, spread(each, 0)] for name, each in forms.items() if name.endswith("first run")]
    if asked and not compiler():
        rows.append(["left out: torch.compile needs a C++ compiler and found none", ""])
    return Table("Compiling, seconds", ["", ""], rows)


def parts_table(parts: dict[str, list[float]], skip: int, most: int = 14) -> Table:
    """Milliseconds a step of the largest parts; parts that ran at every step, the first ones left
    out. Lightning's parts contain each other: a batch contains its forward and backward."""
    often = {name: values[skip:] for name, values in parts.items() if len(values) > 2 * skip}
    mean = {name: 1000 * sum(values) / len(values) for name, values in often.items()}
    rows = [[n, f"{mean[n]:.1f}"] for n in sorted(mean, key=mean.__getitem__, reverse=True)[:most]]
    return Table("Where a step's time goes (2 workers), ms; parts contain parts", ["", "ms"], rows)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, default=160, help="pairs to make (%(default)s)")
    options.add_argument("--steps", type=int, default=20, help="counted steps (%(default)s)")
    options.add_argument("--warm", type=int, default=6, help="steps before them (%(default)s)")
    options.add_argument("--batch", type=int, default=16, help="pictures a step (%(default)s)")
    options.add_argument("--size", type=int, default=256, help="their side (%(default)s)")
    options.add_argument("--compiled", action="store_true", help="also torch.compile (a minute)")
    args = options.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "pairs"
        apart(pairs, take_photos(args.photos, args.pictures, Path(folder) / "photos"), root)
        speed = measure(args, root)
        length = (args.batch, args.warm, args.steps, args.size)
        (_, parts), _ = apart(partial(product, profiled=True), root, 2, *length)
        costs, _ = apart(loading_costs, root, args.batch, args.size)
    asked = (student_forms, args.rounds, args.batch, args.size, args.compiled)
    forms, again = apart(*asked)[0], apart(kept, *asked)[0]
    same, _ = apart(loss_difference, args.size)
    facts["largest difference of the two losses"] = f"{same:.1e}"
    figures = {
        "pictures a second": speed,
        "forms": forms,
        "forms, memory kept": again,
        "loading": costs,
    }
    loading = Table("Loading, ms", ["", ""], [[n, f"{v:.2f}"] for n, v in costs.items()])
    shown = [
        speed_table(speed),
        form_table("The step, seconds per 1,000 pictures", forms, again, 1000),
        compiled_table(again, args.compiled),
        parts_table(parts, args.warm),
        loading,
    ]
    write("training", args.out, facts, figures, *shown)


if __name__ == "__main__":
    main()
