"""The paper's Table 2: losses by decoders, equal pictures, tuned once per decoder, several seeds.

    python benchmarks/table2.py data/pairs/SET                      # 3 losses, 2 decoders, 3 seeds
    python benchmarks/table2.py data/pairs/SET --minutes 120        # go on with it, two hours more
    python benchmarks/table2.py data/pairs/SET --losses gka full --seeds 0

SET is of distill.prepare, with a test side. The learning rate of a decoder is that of --rates whose
student of SmoothL1 + Sobel is best on the validation photos (PSNR, after --tuning pictures). Then
each loss learns from --pictures pictures with each seed, all else alike, and is scored on the test
side: PSNR, SSIM, VGG distance (relative difference of relu1_1, 2_1 and 3_1 in the centre's 128²),
ink, Fréchet and kernel distance by --features: MobileNetV2's, or Inception's where its file is.

Everything is kept below --out: the same command goes on where it stopped, in the middle of a
training too. The table is written after every run, of what there is: the mean over seeds and, from
two seeds on, its 95 % interval (Student's t); of one seed the interval over pictures (bootstrap).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any

import torch
from common import Table, machine, write
from scipy.stats import t as student_t
from torch import Tensor

from distill.core.errors import DistillError
from distill.data.manifest import manifest_at
from distill.losses.feature_distance import FeatureDistance
from distill.metrics.features import feature_network
from distill.metrics.metric import Metric

LOSSES: Mapping[str, tuple[str, Sequence[str]]] = {  # title and settings, in the paper's order
    "l1": ("SmoothL1", ["loss=l1"]),
    "sobel": ("+ Sobel", ["loss=l1_sobel"]),
    "style": ("+ style", ["loss=l1_sobel_style"]),
    "gka": ("+ GKA", ["loss=l1_sobel", "loss.weights.gka=0.5"]),
    "full": ("all four", ["loss=full"]),
}
TUNED_ON = "sobel"
BATCH = 8
SAME = [f"data.batch_size={BATCH}", "ema=0.99", "data.flip=false", "trainer.patience=null"]
FIGURES = {  # column: where results.json has it, digits
    "PSNR, dB": ("similarity", "PSNR (dB), student to teacher", 2),
    "SSIM": ("similarity", "SSIM, student to teacher", 4),
    "VGG distance": ("similarity", "vgg, student to teacher", 4),
    "ink recall": ("drawing", "ink recall, student to teacher", 3),
    "ink precision": ("drawing", "ink precision, student to teacher", 3),
    "Fréchet": ("distances", "student: T(A), S(B)", 1),
    "kernel ×1000": ("distances", "student: T(A), S(B)", 1),
}


class Distance(FeatureDistance):
    """Of no loss: what is said of missing weights names the network alone."""

    term = None


class VGGDistance(Metric):
    """Relative difference of VGG19's activations in each picture's centre, which is quicker."""

    def __init__(self, backbone: Any = "vgg19_relu3_1") -> None:
        self.distance = Distance(backbone, side=128).eval()

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        return torch.stack(
            [self.distance(o[None], t[None]) for o, t in zip(output, target, strict=True)]
        )


class Stopped(Exception):
    """The time of this sitting is over."""


class Sitting:
    """Runs commands until its time is over; a training then saves, and goes on the next time."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.runs = given, given.out.absolute()
        self.end = time.monotonic() + 60 * given.minutes if given.minutes else None
        here = str(Path(__file__).resolve().parent)
        paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        self.environment = os.environ | {"PYTHONPATH": paths}
        made = manifest_at(given.pairs)
        if not made or "style" not in made:
            raise DistillError(f"{given.pairs}: not a set of distill.prepare with a teacher")
        self.words = [f"style={made['style']}", f"style.resolution={made['size']}", *SAME]
        self.words += [f"data.root={given.pairs.absolute()}", f"style_backbone={given.backbone}"]
        self.words += given.also
        VGGDistance(given.backbone)  # without the weights that score, hours would be for nothing
        feature_network(given.features)

    def command(self, *words: str) -> None:
        print("$ distill", " ".join(words), flush=True)
        left = None if self.end is None else self.end - time.monotonic()
        if left is not None and left <= 0:
            raise Stopped
        typed = [sys.executable, "-m", f"distill.{words[0]}", *words[1:]]
        with subprocess.Popen(typed, env=self.environment) as process:
            try:
                status = process.wait(left)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)  # it saves
                process.wait()
                raise Stopped from None
            except KeyboardInterrupt:
                process.wait()
                raise
        if status:
            raise subprocess.CalledProcessError(status, typed)

    def train(self, run: str, decoder: str, loss: str, rate: float, seed: int, steps: int) -> Path:
        """The run's folder, trained to its end."""
        done = self.runs / run / "trained"
        if not done.exists():
            words = [f"decoder={decoder}", *LOSSES[loss][1], f"lr={rate:g}", f"seed={seed}"]
            words += [f"trainer.max_steps={steps}", f"trainer.val_every={max(1, steps // 8)}"]
            self.command("train", f"run={run}", f"runs={self.runs}", *self.words, *words)
            done.touch()
        return done.parent

    def rate(self, decoder: str) -> float:
        """The learning rate that is best on the validation photos."""
        if len(self.given.rates) == 1:
            return self.given.rates[0]
        steps = max(8, self.given.tuning // BATCH)

        def tried(rate: float) -> float:
            folder = self.train(f"tuning-{decoder}-{rate:g}", decoder, TUNED_ON, rate, 0, steps)
            with (folder / "metrics.csv").open() as lines:
                values = [row["val/psnr"] for row in csv.DictReader(lines) if row.get("val/psnr")]
            return float(values[-1])

        with ThreadPoolExecutor(self.given.jobs) as pool:
            found = dict(zip(self.given.rates, pool.map(tried, self.given.rates), strict=True))
        best = max(found, key=found.__getitem__)
        said = ", ".join(f"{rate:g}: {value:.2f} dB" for rate, value in found.items())
        print(f"{decoder}: lr={best:g} ({said})", flush=True)
        return best

    def score(self, decoder: str, loss: str, seed: int, rate: float) -> dict[str, Any]:
        """results.json of a student, which is trained first."""
        run, steps = f"{decoder}-{loss}-{seed}", self.given.pictures // BATCH
        results = self.train(run, decoder, loss, rate, seed, steps) / "scores/results.json"
        if not results.exists():
            self.command(
                *("eval_fid", f"run={run}", f"runs={self.runs}", "checkpoint=last", "flicker=0"),
                *(f"features={self.given.features}", f"output={results.parent}"),
                "+metrics.vgg._target_=table2.VGGDistance",
                f"+metrics.vgg.backbone={self.given.backbone}",
            )
        return json.loads(results.read_text())


def figure(results: Mapping[str, Any], column: str) -> tuple[float, Sequence[float] | None]:
    """A figure of results.json and, where there is one, its interval over pictures.

    Not a number where there is none: a student without a line has no precision of lines.
    """
    part, name, _ = FIGURES[column]
    row = results[part].get(name, {"value": math.nan, "interval": None})
    if column.startswith("kernel"):
        return 1000 * row["kid"], None
    return row["value"], row["interval"]


def cell(found: Sequence[Mapping[str, Any]], column: str) -> str:
    """The mean over seeds and its 95 % interval; of one seed that over pictures."""
    digits = FIGURES[column][2]
    values, spans = zip(*(figure(each, column) for each in found), strict=True)
    mean = statistics.mean(values)
    if math.isnan(mean):
        return "–"
    if len(values) > 1:
        half = student_t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
        span: Sequence[float] | None = (mean - half, mean + half)
    else:
        span = spans[0]
    said = f" ({span[0]:.{digits}f} – {span[1]:.{digits}f})" if span else ""
    return f"{mean:.{digits}f}{said}"


def report(given: argparse.Namespace, facts: dict[str, Any], found: Mapping[Any, Any]) -> None:
    rows = []
    for decoder, loss in product(given.decoders, given.losses):
        scored = [found[decoder, loss, s] for s in given.seeds if (decoder, loss, s) in found]
        if scored:
            cells = [cell(scored, column) for column in FIGURES]
            rows.append([decoder, LOSSES[loss][0], str(len(scored)), *cells])
    if rows:
        first = next(iter(found.values()))
        about = f"Table 2, {given.pictures:,} pictures each; {first['fid_name']}"
        table = Table(about, ["decoder", "loss", "seeds", *FIGURES], rows)
        figures = {"-".join(map(str, key)): value for key, value in found.items()}
        write("table2", given.out, facts, figures, table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, metavar="SET")
    parser.add_argument("--decoders", nargs="+", default=["nnconv", "fastdepth"])
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=["l1", "sobel", "style"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--pictures", type=int, default=25600, help="of each run (%(default)s)")
    parser.add_argument("--tuning", type=int, default=6400, help="of each rate (%(default)s)")
    parser.add_argument("--rates", nargs="+", type=float, default=[1e-3, 3e-3, 1e-2])
    parser.add_argument("--features", choices=["mobilenet", "inception"], default="mobilenet")
    parser.add_argument("--backbone", choices=["vgg19_relu3_1", "vgg16"], default="vgg19_relu3_1")
    parser.add_argument("--also", nargs="+", default=[], help="settings of all trainings")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (%(default)s)")
    parser.add_argument("--minutes", type=float, help="of this sitting; else to the end")
    parser.add_argument("--out", type=Path, default=Path("runs/table2"), help="(%(default)s)")
    given = parser.parse_args(arguments)
    facts: dict[str, Any] = machine() | {"pictures": given.pictures}
    found: dict[tuple[str, str, int], Any] = {}
    try:
        sitting = Sitting(given)
        with ThreadPoolExecutor(given.jobs) as pool:
            rates = dict(zip(given.decoders, pool.map(sitting.rate, given.decoders), strict=True))
        facts |= {f"lr of {decoder}": f"{rate:g}" for decoder, rate in rates.items()}
        # Seed by seed: whenever it is stopped, all losses have had as many.
        runs = {}
        with ThreadPoolExecutor(given.jobs) as pool:
            for seed, decoder, loss in product(given.seeds, given.decoders, given.losses):
                job = pool.submit(sitting.score, decoder, loss, seed, rates[decoder])
                runs[job] = decoder, loss, seed
            try:
                for job in as_completed(runs):
                    found[runs[job]] = job.result()
                    report(given, facts, found)
            finally:  # where one fails, or the time is over, no other begins
                pool.shutdown(cancel_futures=True)
    except Stopped:
        print(f"{given.minutes:g} minutes are over: type the same command to go on")
    except DistillError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
