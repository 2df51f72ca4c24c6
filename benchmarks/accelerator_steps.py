"""Forms of the training step on one device, with and without the teacher."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerator_device import WARM, Traffic, conditions, timed
from common import alternate
from torch import Tensor, nn

from distill.config import compose
from distill.config.settings.training import Train
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.train import student_training
from distill.train.distillation import DistillModule

Run = Callable[[], object]
BF16 = torch.bfloat16


@dataclass(frozen=True)
class Form:
    """How a step runs. `dtype` is autocast's, None for float32; `peak` names what it is held to."""

    dtype: torch.dtype | None = None
    tf32: bool = True
    compiled: bool = False  # student and losses, as trainer.compile=true does
    graphs: bool = False  # the compiled parts replayed as CUDA graphs
    tuned: bool = False  # cuDNN times its algorithms first
    labels: bool = False  # the teacher makes the targets, as data=photos does
    teacher: str = "as shipped"  # or "compiled", "halved" (float16 throughout), "halved, compiled"

    @property
    def peak(self) -> str:
        return "bf16" if self.dtype else "TF32" if self.tf32 else "fp32"

    def seconds(self, run: Run, times: int, device: str) -> float:
        """Of one run, under the form's conditions."""
        with conditions(self.tf32, self.tuned, self.graphs):
            return timed(run, times, device)


STEPS = {
    "fp32": Form(tf32=False),
    "TF32": Form(),
    "bf16": Form(BF16),
    "bf16, cuDNN tuned": Form(BF16, tuned=True),
    "bf16, compiled": Form(BF16, compiled=True),
    "bf16, compiled, CUDA graphs": Form(BF16, compiled=True, graphs=True),
}
LABELLED = {
    "TF32": Form(labels=True),
    "bf16, teacher fp16": Form(BF16, labels=True),
    "bf16, teacher fp16, cuDNN tuned": Form(BF16, labels=True, tuned=True),
    "bf16 compiled, teacher fp16": Form(BF16, compiled=True, labels=True),
    "bf16 and teacher fp16 compiled": Form(BF16, compiled=True, labels=True, teacher="compiled"),
    "bf16 compiled, teacher halved": Form(BF16, compiled=True, labels=True, teacher="halved"),
    "bf16 and halved teacher compiled": Form(
        BF16, compiled=True, labels=True, teacher="halved, compiled"
    ),
}


class Halved(nn.Module):
    """A teacher in float16 throughout, its norms too: what autocast widens stays narrow."""

    def __init__(self, teacher: nn.Module) -> None:
        super().__init__()
        self.teacher = teacher.half()

    def forward(self, photo: Tensor) -> Tensor:
        with torch.autocast(photo.device.type, enabled=False):
            return self.teacher(photo.half())


def settings_for(batch: int, size: int) -> Train:
    """What `trainer=gpu data=photos` trains with, without weights to look for."""
    asked = ["trainer=gpu", "data=photos", "style=hayao", "encoder.weights=none"]
    return compose.load(
        "train", [*asked, f"style.resolution={size}", f"data.batch_size={batch}"], Train
    )


def make(form: Form, batch: int, size: int, device: str, file: Path) -> Run:
    """One training step of the product on a resident batch: loss, gradients, optimiser."""
    settings = settings_for(batch, size)
    module = student_training.student_module(settings, AnimeGANv2(file)).to(device).train()
    module.teacher = _teacher(module, form.teacher)
    if form.compiled:
        module.compile_training()
    optimiser = module.make_optimizer(module.student.parameters(), module.lr)
    given = {name: torch.rand(batch, 3, size, size, device=device) for name in ("photo", "target")}
    if form.labels:
        del given["target"]

    def step() -> None:
        optimiser.zero_grad()
        with _autocast(form, device):
            loss, *_ = module.compare(given)
        loss.backward()
        optimiser.step()

    return step


def _teacher(module: DistillModule, kind: str) -> Any:
    teacher: Any = module.teacher
    if "halved" in kind:
        teacher = Halved(teacher)
    if "compiled" in kind:
        teacher.forward = torch.compile(teacher.forward, dynamic=False)
    return teacher


def _autocast(form: Form, device: str) -> torch.autocast:
    """As Lightning has it for bf16-mixed."""
    return torch.autocast(device, form.dtype, enabled=form.dtype is not None, cache_enabled=False)


def race(
    forms: Mapping[str, Form], batch: int, size: int, device: str, file: Path,
    rounds: int, seconds: float,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Each form's seconds a step, round by round, and its costs, or why it failed."""
    torch._dynamo.config.recompile_limit = 64  # all forms compile the same few functions
    found = {
        name: _prepare(form, batch, size, device, file, seconds) for name, form in forms.items()
    }
    runs = {
        name: partial(forms[name].seconds, each.pop("run"), each["times"], device)
        for name, each in found.items()
        if "run" in each
    }
    rates = alternate(runs, rounds, f"batch {batch}")
    return {name: each | {"seconds": rates.get(name, [])} for name, each in found.items()}


def _prepare(
    form: Form, batch: int, size: int, device: str, file: Path, seconds: float
) -> dict[str, Any]:
    """The form's step after its first runs, and their cost; one that fails stops no other."""
    gpu = device == "cuda"
    try:
        if gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        run = make(form, batch, size, device, file)
        first = form.seconds(run, 1, device)
        one = form.seconds(run, WARM, device)
        with Traffic() as traffic:
            if not form.compiled:
                run()
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        return {"failed": reason}
    return {
        "run": run,
        "times": max(3, math.ceil(seconds / one)),
        "first run": first,
        "bytes": traffic.bytes,
        "memory": torch.cuda.max_memory_allocated() if gpu else 0,
    }
