"""The paper's Table 2: losses by decoders, equal pictures, tuned once per decoder, several seeds.

    python benchmarks/table2.py data/pairs/SET                      # 3 losses, 2 decoders, 3 seeds
    python benchmarks/table2.py data/pairs/SET --minutes 120        # go on with it, two hours more
    python benchmarks/table2.py data/pairs/SET --losses sobel gka --gka 0.05 0.5 5 --batch 16
    python benchmarks/table2.py --photos DIR --styles paprika webtoon face_v2 --features inception \
        --backbone vgg16 --decoders nnconv     # his FID table; with --estimate: what it would take

SET is of distill.prepare, with a test side. The learning rate of a decoder is that of --rates whose
student of SmoothL1 + Sobel is best on the validation photos (PSNR, after --tuning pictures); GKA's
weight is that of --gka, likewise, of SmoothL1 + Sobel + GKA. Then each loss learns from --pictures
pictures with each seed, all else alike, and is scored on the test side: PSNR, SSIM, VGG distance
(relative difference of relu1_1, 2_1 and 3_1 in the centre's 128²), ink, Fréchet and kernel distance
by --features: MobileNetV2's, or another's where its file is (inception: FID), with the floor, the
distance of two halves of the teacher's pictures, and the ceiling, that of the photos. With --photos
a set of each of the --styles is labelled first, and rows begin with the style.

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
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

import torch
from common import Table, machine, write
from scipy.stats import t as student_t
from torch import Tensor

from distill.core.errors import DistillError
from distill.data.manifest import manifest_at
from distill.data.photos import find_photos
from distill.losses.feature_distance import FeatureDistance
from distill.metrics.features import FeatureName, feature_network
from distill.metrics.metric import Metric

LOSSES: Mapping[str, tuple[str, Sequence[str]]] = {  # title and settings, in the paper's order
    "l1": ("SmoothL1", ["loss=l1"]),
    "sobel": ("+ Sobel", ["loss=l1_sobel"]),
    "style": ("+ style", ["loss=l1_sobel_style"]),
    "gka": ("+ GKA", ["loss=l1_sobel"]),
    "full": ("all four", ["loss=full"]),
}
WITH_GKA = ("gka", "full")
SAME = ["ema=0.99", "data.flip=false", "trainer.patience=null"]
FIGURES = {  # column: where results.json has it, digits
    "PSNR, dB": ("similarity", "PSNR (dB), student to teacher", 2),
    "SSIM": ("similarity", "SSIM, student to teacher", 4),
    "VGG distance": ("similarity", "vgg, student to teacher", 4),
    "ink recall": ("drawing", "ink recall, student to teacher", 3),
    "ink precision": ("drawing", "ink precision, student to teacher", 3),
    "Fréchet": ("distances", "student:", 1),
    "floor": ("distances", "floor:", 1),
    "ceiling": ("distances", "ceiling:", 1),
    "kernel ×1000": ("distances", "student:", 1),
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


@dataclass(frozen=True)
class Tuned:
    """A learning rate and a weight of GKA."""

    rate: float
    gka: float

    def say(self, loss: str) -> str:
        return f"gka={self.gka:g}" if loss in WITH_GKA else f"lr={self.rate:g}"


class Sitting:
    """Runs commands until its time is over; a training then saves, and goes on the next time."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.end = time.monotonic() + 60 * given.minutes if given.minutes else None
        here = str(Path(__file__).resolve().parent)
        paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        self.environment = os.environ | {"PYTHONPATH": paths}
        VGGDistance(given.backbone)  # without the weights that score, hours would be for nothing
        feature_network(given.features)

    def begin(self, style: str, pairs: Path) -> None:
        """Train on this set from now on; that of a style is labelled before."""
        given, self.runs = self.given, (self.given.out / style).absolute()
        words, root = [*SAME, *given.also], f"data.root={pairs.absolute()}"
        words += [f"data.batch_size={given.batch}", f"style_backbone={given.backbone}"]
        if style and given.estimate:
            self.words = [f"style={style}", f"photos={given.photos}", *words]
            return
        if style:
            self.command("prepare", f"style={style}", f"photos={given.photos}", root)
        made = manifest_at(pairs)
        if not made or "style" not in made:
            raise DistillError(f"{pairs}: not a set of distill.prepare with a teacher")
        self.words = [f"style={made['style']}", f"style.resolution={made['size']}", root, *words]

    def estimate(self, photos: int) -> None:
        """What labelling and each training would take, by distill.train."""
        given = self.given
        steps, runs = given.pictures // given.batch, len(given.seeds)
        for decoder, loss in product(given.decoders, given.losses):
            words = [f"decoder={decoder}", *LOSSES[loss][1], f"trainer.max_steps={steps}"]
            self.command("train", f"estimate=[{photos}]", *self.words, *words)
            print(f"{runs} such trainings: {decoder}, {LOSSES[loss][0]}", flush=True)

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

    def train(self, run: str, decoder: str, loss: str, tuned: Tuned, seed: int, count: int) -> Path:
        """The run's folder, trained on `count` pictures."""
        done, steps = self.runs / run / "trained", max(8, count // self.given.batch)
        if not done.exists():
            words = [f"decoder={decoder}", *LOSSES[loss][1], f"lr={tuned.rate:g}", f"seed={seed}"]
            words += [f"loss.weights.gka={tuned.gka:g}"] if loss in WITH_GKA else []
            words += [f"trainer.max_steps={steps}", f"trainer.val_every={max(1, steps // 8)}"]
            self.command("train", f"run={run}", f"runs={self.runs}", *self.words, *words)
            done.touch()
        return done.parent

    def tuned(self, decoder: str) -> Tuned:
        """Learning rate and, where a loss has GKA, its weight that are best on validation."""
        gka = self.given.gka
        best = Tuned(
            self._best(decoder, "sobel", [Tuned(r, gka[0]) for r in self.given.rates]).rate, gka[0]
        )
        if not {*WITH_GKA} & {*self.given.losses}:
            return best
        return self._best(decoder, "gka", [Tuned(best.rate, weight) for weight in gka])

    def _best(self, decoder: str, loss: str, choices: Sequence[Tuned]) -> Tuned:
        if len(choices) == 1:
            return choices[0]

        def tried(each: Tuned) -> float:
            run = f"tuning-{decoder}-{each.gka if loss in WITH_GKA else each.rate:g}"
            run += "-gka" * (loss in WITH_GKA)
            folder = self.train(run, decoder, loss, each, 0, self.given.tuning)
            with (folder / "metrics.csv").open() as lines:
                values = [row["val/psnr"] for row in csv.DictReader(lines) if row.get("val/psnr")]
            return float(values[-1])

        with ThreadPoolExecutor(self.given.jobs) as pool:
            found = dict(zip(choices, pool.map(tried, choices), strict=True))
        best = max(found, key=found.__getitem__)
        said = ", ".join(f"{each.say(loss)}: {value:.2f} dB" for each, value in found.items())
        print(f"{decoder}: {best.say(loss)} ({said})", flush=True)
        return best

    def score(self, decoder: str, loss: str, seed: int, tuned: Tuned) -> dict[str, Any]:
        """results.json of a student, which is trained first."""
        run = f"{decoder}-{loss}-{seed}"
        folder = self.train(run, decoder, loss, tuned, seed, self.given.pictures)
        results = folder / "scores/results.json"
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
    rows = (row for key, row in results[part].items() if key.startswith(name))
    row = next(rows, {"value": math.nan, "interval": None})
    if column.startswith("kernel"):
        span = row.get("kid_interval")
        return 1000 * row["kid"], span and [1000 * end for end in span]
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
    rows, styles = [], list(dict.fromkeys(style for style, *_ in found))
    for style, decoder, loss in product(styles, given.decoders, given.losses):
        keys = [(style, decoder, loss, seed) for seed in given.seeds]
        if scored := [found[key] for key in keys if key in found]:
            cells = [cell(scored, column) for column in FIGURES]
            rows.append(
                [*filter(None, [style]), decoder, LOSSES[loss][0], str(len(scored)), *cells]
            )
    if rows:
        first = next(iter(found.values()))
        about = f"Table 2, {given.pictures:,} pictures each; {first['fid_name']}"
        columns = [*["style"] * bool(styles[0]), "decoder", "loss", "seeds", *FIGURES]
        figures = {"-".join(filter(None, map(str, key))): row for key, row in found.items()}
        write("table2", given.out, facts, figures, Table(about, columns, rows))


def fill(sitting: Sitting, style: str, facts: dict[str, Any], found: dict[Any, Any]) -> None:
    """The rows of one set: rates, then all trainings and their scores."""
    given = sitting.given
    with ThreadPoolExecutor(given.jobs) as pool:
        tuned = dict(zip(given.decoders, pool.map(sitting.tuned, given.decoders), strict=True))
    for decoder, each in tuned.items():
        of = f"{style} {decoder}".strip()
        facts[f"lr of {of}"] = f"{each.rate:g}"
        if {*WITH_GKA} & {*given.losses}:
            facts[f"weight of GKA, {of}"] = f"{each.gka:g}"
    # Seed by seed: whenever it is stopped, all losses have had as many.
    runs = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        for seed, decoder, loss in product(given.seeds, given.decoders, given.losses):
            job = pool.submit(sitting.score, decoder, loss, seed, tuned[decoder])
            runs[job] = style, decoder, loss, seed
        try:
            for job in as_completed(runs):
                found[runs[job]] = job.result()
                report(given, facts, found)
        finally:  # where one fails, or the time is over, no other begins
            pool.shutdown(cancel_futures=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, metavar="SET", nargs="?")
    parser.add_argument("--photos", type=Path, metavar="DIR", help="to label in each of the styles")
    parser.add_argument("--styles", nargs="+", default=["paprika", "webtoon", "face_v2"])
    parser.add_argument("--estimate", action="store_true", help="say what it would take, and end")
    parser.add_argument("--decoders", nargs="+", default=["nnconv", "fastdepth"])
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=["l1", "sobel", "style"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--pictures", type=int, default=25600, help="of each run (%(default)s)")
    parser.add_argument("--tuning", type=int, default=6400, help="of each rate (%(default)s)")
    parser.add_argument("--rates", nargs="+", type=float, default=[1e-3, 3e-3, 1e-2])
    parser.add_argument("--gka", nargs="+", type=float, default=[0.5], help="its weights")
    parser.add_argument("--batch", type=int, default=8, help="pictures a step (%(default)s)")
    parser.add_argument("--features", choices=get_args(FeatureName)[:-1], default="mobilenet")
    parser.add_argument("--backbone", choices=["vgg19_relu3_1", "vgg16"], default="vgg19_relu3_1")
    parser.add_argument("--also", nargs="+", default=[], help="settings of all trainings")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (%(default)s)")
    parser.add_argument("--minutes", type=float, help="of this sitting; else to the end")
    parser.add_argument("--out", type=Path, default=Path("runs/table2"), help="(%(default)s)")
    given = parser.parse_args(arguments)
    if bool(given.pairs) == bool(given.photos):
        parser.error("name a SET, or photos to label: --photos DIR")
    styles = given.styles if given.photos else [""]
    facts: dict[str, Any] = machine() | {"pictures": given.pictures}
    found: dict[Any, Any] = {}
    try:
        sitting = Sitting(given)
        for style in styles:
            sitting.begin(style, given.out / "sets" / style if style else given.pairs)
            if given.estimate:
                photos = given.photos or given.pairs / "train/photo"
                sitting.estimate(len(find_photos(photos)))
            else:
                fill(sitting, style, facts, found)
    except Stopped:
        print(f"{given.minutes:g} minutes are over: type the same command to go on")
    except DistillError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
