"""What labelling and training so many pictures would cost here, by a minute's measurement."""

import resource
import sys
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.console import Console
from rich.table import Table

from distill.config.settings.training import Train
from distill.core.engine import HERE
from distill.core.errors import DistillError, counted
from distill.core.images import from_pixels, to_pixels
from distill.data import photo_folders
from distill.data.photos import demo_photos
from distill.prepare import labelling
from distill.prepare.pair_maker import PairJob, write_pngs
from distill.train.schedules import DEFAULT_RATE, make_optimizer
from distill.train.student_training import check, needed_teacher, student_module

SECONDS = 30.0  # for each of the two measurements
THUMBNAIL, ROW = 1_296, 1_200  # bytes a photo in the cache, and in the command's memory


def estimate(settings: Train) -> None:
    """Print a table for each number of pictures in `settings.estimate`; nothing is kept.

    Pairs are made of the settings' photos, or of scikit-image's where there are none, one after the
    other by this process; then the student learns from them. Raises DistillError.
    """
    there = photo_folders.has_photos(settings)
    if there:
        check(settings)
    teacher = needed_teacher(settings)
    if teacher is None:
        raise DistillError("estimate: pairs of your own need no labelling; name a style")
    photos = photo_folders.photos(settings) if there else demo_photos()
    manifest = labelling.manifest_of(settings, teacher, photos=photos)
    device = HERE.device(settings.label.device)
    maker = labelling.teacher_pass(settings.label, teacher.fast(), manifest, device)
    pairs: list[list[torch.Tensor]] = []
    with TemporaryDirectory() as folder:
        jobs = cycle([PairJob(photo, "train", 0) for photo in photos])
        for name in maker.folders:
            (Path(folder) / "train" / name).mkdir(parents=True)

        def label() -> None:
            some = [next(jobs) for _ in range(maker.batch_size)]
            labelled = list(maker.pairs([maker.read(job) for job in some]))
            write_pngs(maker.folders, Path(folder), some, labelled)
            pairs.extend([*map(to_pixels, pair)] for pair in labelled)

        print(f"labelling {counted(len(photos), 'photo')} for {SECONDS:g} s", flush=True)
        each = seconds(label) / maker.batch_size
        written = [path.stat().st_size for path in Path(folder).rglob("*.png")]
        png = 2 * sum(written) / len(written)
    size, trainer = settings.data.batch_size, settings.trainer
    module = student_module(settings, teacher).train()
    chosen = [pairs[n % len(pairs)] for n in range(size)]
    sides = list(zip(*chosen, strict=True))[:2]
    photo, target = (from_pixels(torch.stack(side)) for side in sides)
    rate = DEFAULT_RATE if settings.lr == "auto" else settings.lr
    optimizer = make_optimizer(settings.optimizer, module.student.parameters(), rate)

    def step() -> None:
        total, _, _ = module.compare({"photo": photo, "target": target})
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

    print(f"training on batches of {size} for {SECONDS:g} s", flush=True)
    a_step = seconds(step)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if _MAC else 1024)
    pixels = 6 * manifest.size**2  # bytes of a pair
    table = Table("pictures", "labelling", "disk: PNG", "disk: raw", "memory", "one pass")
    table.title = (
        f"{settings.style.name}, {manifest.size}², {device}: {each:.3g} s a label, "
        f"{a_step:.3g} s a step; {counted(trainer.max_steps, 'step')} "
        f"{_time(a_step * trainer.max_steps)}"
    )
    for count in settings.estimate or ():
        disk, raw = (_bytes(count * (one + THUMBNAIL)) for one in (png, pixels))
        memory = _bytes(peak + count * ROW)
        once = _time(a_step * count / size)
        table.add_row(f"{count:,}", _time(each * count), disk, raw, memory, once)
    Console().print(table)
    print(
        "one process, one measurement; photos beside it, validation, workers and clusters not "
        "counted; one pass: every picture learnt from once"
    )


def seconds(call: Callable[[], object]) -> float:
    """Of one call on average, warmed up by a first one."""
    call()
    begun, calls = time.perf_counter(), 0
    while not calls or time.perf_counter() - begun < SECONDS:
        call()
        calls += 1
    return (time.perf_counter() - begun) / calls


_MAC = sys.platform == "darwin"  # where the system counts bytes, not kilobytes


def _unit(value: float, units: Sequence[tuple[float, str]]) -> str:
    size, name = next((u for u in units if value >= u[0]), units[-1])
    shown = value / size
    return f"{shown:,.0f} {name}" if shown >= 10 else f"{shown:.1f} {name}"


def _time(value: float) -> str:
    return _unit(value, [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")])


def _bytes(value: float) -> str:
    return _unit(value, [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")])
