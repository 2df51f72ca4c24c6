"""Forms of one network against each other: alternated in one process, seconds a picture."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from common import alternate
from torch import Tensor, nn

from distill.config import compose
from distill.config.settings.training import Train
from distill.core.sessions import open_session, picture_call
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.train import student_training

Run = Callable[[], object]
LAST = torch.channels_last
RATE = 1e-3  # of learning; no matter for speed
STUDENT = ["decoder=nnconv", "loss=l1_sobel"]  # one that stays, whatever the defaults come to be


def teacher_forms(file: Path, rounds: int, more: bool) -> dict[str, list[float]]:
    """AnimeGANv2's forward pass at 256²; `more`: also ONNX Runtime and torch.compile."""
    fast, contiguous = AnimeGANv2(file).fast(), AnimeGANv2(file, norm="group")
    instance = AnimeGANv2(file)
    runs: dict[tuple[str, int], Run] = {
        (f"channels-last, batch {n}", n): partial(fast, photos(n).to(memory_format=LAST))
        for n in (1, 4, 8)
    }
    runs |= {(f"contiguous, batch {n}", n): partial(contiguous, photos(n)) for n in (1, 8)}
    runs["InstanceNorm, contiguous, batch 1", 1] = partial(instance, photos(1))
    if more:
        runs["ONNX Runtime, batch 1", 1] = _onnx(contiguous)
        if compiler():
            runs["compiled, channels-last, batch 1", 1] = partial(torch.compile(fast), photos(1))
    with torch.inference_mode():
        return _race(runs, rounds, pictures=8)


def student_forms(rounds: int, batch: int, size: int, more: bool) -> dict[str, list[float]]:
    """A training step of the paper's student; `more`: also torch.compile."""
    forms = {"plain": (False, False), "channels-last": (True, False), "fused": (False, True)}
    runs: dict[tuple[str, int], Run] = {}
    for name, (last, fused) in (forms | {"channels-last, fused": (True, True)}).items():
        runs[name, batch] = student_step(batch, size, last, fused)
    if more and compiler():
        step = student_step(batch, size, True, True, compiled=True)
        runs["compiled, channels-last, fused", batch] = step
    return _race(runs, rounds, pictures=2 * batch)


def student_step(
    batch: int,
    size: int,
    last: bool,
    fused: bool,
    compiled: bool = False,
    student: Sequence[str] = STUDENT,
) -> Callable[[], None]:
    """Forward, backward and optimiser step of a student, the paper's, on one resident batch."""
    settings = settings_of(size, student)
    module = student_training.student_module(settings, None)
    network: nn.Module = module.student.train()
    layout = LAST if last else torch.contiguous_format
    network.to(memory_format=layout)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE, fused=fused)
    stylise = torch.compile(network) if compiled else network
    photo, target = (photos(batch, size).to(memory_format=layout) for _ in range(2))

    def step() -> None:
        optimiser.zero_grad()
        loss, _ = module.criterion(stylise(photo), target)
        loss.backward()
        optimiser.step()

    return step


def settings_of(size: int, student: Sequence[str] = STUDENT) -> Train:
    """The default training settings but for student and loss, without weights to look for."""
    asked = [*student, f"style.resolution={size}", "encoder.weights=none"]
    return compose.load("train", asked, Train)


def photos(count: int, size: int = 256) -> Tensor:
    return torch.rand(count, 3, size, size)


def compiler() -> str | None:
    """The C++ compiler that torch.compile needs on a CPU, None where there is none."""
    return shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")


def _race(runs: dict[tuple[str, int], Run], rounds: int, pictures: int) -> dict[str, list[float]]:
    """Seconds a picture; every form does `pictures` of them a round, after one that is not counted.

    The first run of a compiled form compiles: it is kept as `NAME, first run`, in seconds.
    """
    first = {}
    for (name, _), run in runs.items():
        begun = time.perf_counter()
        run()
        if name.startswith("compiled"):
            first[f"{name}, first run"] = [time.perf_counter() - begun]
    timed = {
        name: partial(_seconds, run, pictures // batch, batch)
        for (name, batch), run in runs.items()
    }
    return alternate(timed, rounds, "forms") | first


def _seconds(run: Run, times: int, batch: int) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - begun) / (times * batch)


def _onnx(teacher: nn.Module) -> Run:
    """The same network in ONNX Runtime, with as many threads as torch has."""
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        torch.onnx.export(teacher, (photos(1),), file.name, dynamo=False, opset_version=17)
        run = picture_call(open_session(Path(file.name), torch.get_num_threads()))
    return partial(run, photos(1).numpy())
