"""What the benchmarks share: photographs, processes of their own, alternation, report."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

# Before torch, as in every command: it says how torch's threads wait for each other.
import distill  # isort: skip  # noqa: F401

import numpy as np
import torch
from against_teacher.fidelity_report import Table, machine, write  # noqa: F401
from PIL import Image

from distill.core.process import keep_freed_memory
from distill.core.progress import bar
from distill.core.weights import supplied
from distill.data.photos import BadPhoto, demo_photos, find_photos, read_photo
from distill.models.teachers.animegan2 import AnimeGANv2

TEACHER = "animegan2_hayao.pt"
Forms = Mapping[str, Sequence[float]]  # name → seconds a picture, round by round


def parser(text: str | None, photos: bool = True, rounds: int = 3) -> argparse.ArgumentParser:
    """The options that every benchmark takes, `--photos` where it needs photographs."""
    made = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--rounds", type=int, default=rounds, help="alternations (%(default)s)")
    if photos:
        made.add_argument("--photos", type=Path, help="folder; else crops of scikit-image's")
    made.add_argument(
        "--out", type=Path, default=Path("runs/benchmarks"), help="folder of reports (%(default)s)"
    )
    return made


def take_photos(given: Path | None, count: int, folder: Path) -> Path:
    """A new folder of `count` photos: the first readable ones of `given`, or crops made here."""
    folder.mkdir(parents=True)
    if given is None:
        _make_photos(folder, count)
        return folder
    readable = (photo.path for photo in find_photos(given, "--photos=") if _can_read(photo.path))
    for number, path in enumerate(islice(readable, count)):
        shutil.copy(path, folder / f"{number:05d}_{path.name}")
    return folder


def teacher_file(folder: Path) -> tuple[Path, str]:
    """TEACHER's weights, "real" when at hand, else "random" ones made in `folder`."""
    if file := supplied(TEACHER):
        return file, "real"
    file = folder / "random.pt"
    torch.save(AnimeGANv2().state_dict(), file)
    return file, "random"


def _can_read(path: Path) -> bool:
    try:
        read_photo(path)
    except BadPhoto:
        return False
    return True


def _make_photos(folder: Path, count: int, seed: int = 0) -> None:
    """Random crops of scikit-image's photographs as JPEG, 256 to 500 pixels a side."""
    rng = np.random.default_rng(seed)
    sources = [Image.open(photo.path).convert("RGB") for photo in demo_photos()]
    for number in range(count):
        image = sources[number % len(sources)]
        width, height = (int(rng.integers(256, min(500, side) + 1)) for side in image.size)
        left = int(rng.integers(image.width - width + 1))
        top = int(rng.integers(image.height - height + 1))
        crop = image.crop((left, top, left + width, top + height))
        crop.save(folder / f"photo_{number:04d}.jpg", quality=92)


def apart(function: Callable[..., Any], *arguments: object) -> tuple[Any, float]:
    """A function's result from a fresh process, and the seconds since that process was started.

    What it prints is kept back, and shown when it fails.
    """
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.NamedTemporaryFile() as log,
        ProcessPoolExecutor(1, context, _settle, (log.name,)) as pool,
    ):
        begun = time.perf_counter()
        try:
            result = pool.submit(function, *arguments).result()
        except BaseException:
            sys.stderr.write(Path(log.name).read_text(errors="replace")[-4000:])
            raise
        return result, time.perf_counter() - begun


def kept(function: Callable[..., Any], *arguments: object) -> Any:
    """A function's result with freed memory kept for the next step, as every command has it."""
    keep_freed_memory()
    return function(*arguments)


def _settle(path: str) -> None:
    """In the fresh process: print into a file, and load pictures as a command would."""
    # A spawned process spawns its workers too, each importing torch; a command does not.
    multiprocessing.set_start_method(None, force=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(handle, standard)


def form_table(title: str, forms: Forms, kept_forms: Forms, scale: float) -> Table:
    """Forms of one network as a script has them, and with freed memory kept."""
    rows = [
        [name, *(spread([scale * v for v in each[name]]) for each in (forms, kept_forms))]
        for name in forms
        if not name.endswith("first run")
    ]
    return Table(title, ["form, median (range)", "as it is", "freed memory kept"], rows)


def alternate(
    runs: Mapping[str, Callable[[], Any]], rounds: int, what: str
) -> dict[str, list[Any]]:
    """The results of all runs, in turn A B C A B C …, one list for each."""
    results: dict[str, list[Any]] = {name: [] for name in runs}
    with bar(rounds * len(runs), "run", what) as progress:
        for _ in range(rounds):
            for name, run in runs.items():
                progress.set_postfix_str(name)
                results[name].append(run())
                progress.update()
    return results


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Median and range."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} – {high:.{digits}f})"


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Round by round, so that what slows the machine for a while slows both."""
    return [a / b for a, b in zip(above, below, strict=True)]


def wanted(values: Sequence[float], least: float) -> str:
    """A ratio with its target and whether it is met."""
    met = "met" if statistics.median(values) >= least else "NOT met"
    return f"{spread(values, 2)}, wanted ≥ {least:.2f}: {met}"
