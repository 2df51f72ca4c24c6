"""`distill.train data=photos trainer=gpu` as it is typed, and its loader alone."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import alternate, apart, take_photos
from torch.utils.data import DataLoader
from watched import TAIL, Stamps, train_for

from distill.config import compose
from distill.config.settings.training import Train
from distill.data.sampler import StreamSampler
from distill.prepare import labelling
from distill.train import student_training

COMMANDS = {
    "as shipped": [],
    "trainer.compile=true": ["trainer.compile=true"],
    "trainer.compile=true ema=0": ["trainer.compile=true", "ema=0"],
}


def command(asked: Sequence[str], length: tuple[int, int, int]) -> float:
    """Pictures a second of distill.train at (batch, steps before the count, counted steps)."""
    batch, warm, steps = length
    stamps = Stamps()
    words = [*asked, f"data.batch_size={batch}", "data.val_limit=1"]
    train_for(warm + steps + TAIL, words, stamps)
    return steps * batch / stamps.of(warm, steps)


def loader(asked: Sequence[str], length: tuple[int, int, int]) -> float:
    """Pictures a second that the command's workers read, with nobody who uses them."""
    batch, warm, steps = length
    settings = compose.load("train", asked, Train)
    pictures = labelling.label_and_load(settings, student_training.needed_teacher(settings)).train
    total = (warm + steps) * batch
    sampler, stamps = StreamSampler(total, batch=batch), []
    for _ in DataLoader(pictures, batch, sampler=sampler, num_workers=settings.data.workers):
        stamps.append(time.perf_counter())
    return steps * batch / (stamps[-1] - stamps[warm - 1])


def commands(args: argparse.Namespace, file: Path, work: Path) -> dict[str, list[float]]:
    """Pictures a second of the command's forms and of the loader, in turn."""
    photos = take_photos(args.photos, args.pictures, work / "photos")
    os.environ["DISTILL_CACHE"] = str(work / "cache")
    asked = [f"photos='{photos}'", "data=photos", f"data.root='{work / 'set'}'", "style=hayao"]
    asked += [f"style.weights='{file}'", f"style.resolution={args.size}", "encoder.weights=none"]
    asked += ["trainer=gpu"] + (["trainer.accelerator=cpu"] if args.device == "cpu" else [])
    asked += [f"data.workers={args.workers}"] if args.workers is not None else []
    runs = {}
    for batch in args.command_batches:
        length = (batch, args.warm, args.steps)
        for name, more in COMMANDS.items():
            runs[f"{name}, batch {batch}"] = _apart(command, [*asked, *more], length)
    runs["loader alone"] = _apart(loader, asked, (args.command_batches[-1], args.warm, args.steps))
    return alternate(runs, args.rounds, "commands")


def _apart(function: Any, *arguments: object) -> Any:
    return lambda: apart(function, *arguments)[0]
