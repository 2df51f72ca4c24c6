"""What is measured before the first step of a run: loss terms' scales and the learning rate."""

import tempfile
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
import yaml
from lightning_fabric.utilities.apply_func import move_data_to_device
from pytorch_lightning.plugins.environments import LightningEnvironment
from pytorch_lightning.tuner.tuning import Tuner

from distill.config.settings.training import Machine, Train
from distill.core.errors import counted
from distill.core.files import atomic_write, write_whole
from distill.data.datamodule import TrainingData
from distill.models.batchnorm import batchnorms, trimmed_statistics
from distill.runs.run_folder import Run
from distill.train.distillation import DistillModule
from distill.train.schedules import DEFAULT_RATE
from distill.train.trainer import training_errors

BATCHES = 8  # that the terms are measured on
STATISTICS = 30  # batches that BatchNorm's statistics are measured on
RATES = 100  # learning rates tried, one step each
LOWEST, HIGHEST = 1e-6, 1.0
LEAST_FALL = 0.02  # of the loss at the start; a curve that falls by less suggests nothing
SMOOTH = 3.0  # steps, the width of the symmetric smoothing


@training_errors()
def measure(
    module: DistillModule, data: TrainingData, settings: Train, run: Run, device: torch.device
) -> None:
    """Balance the loss and find the rate, as the settings ask, and keep both in the run.

    For a new run only: a checkpoint brings both along. What RUN/measured.yaml has holds: a run with
    these settings ended before its first checkpoint. Writes that file and lr_finder.png.
    """
    measured: dict[str, Any] = (
        yaml.safe_load(run.measured.read_text()) if run.measured.is_file() else {}
    )
    if measured:
        print(f"{run.measured}: measured before, {', '.join(measured)}")
    if settings.batchnorm == "measured":
        measure_statistics(module, data, device)
    if settings.loss.balance:
        factors = measured.get("loss_factors") or balance(
            module, data, device, settings.loss.balance == "gradients"
        )
        module.criterion.rescale(factors)
        if "loss_factors" not in measured:
            measured["loss_factors"] = module.criterion.factors
            write_whole(run.measured, yaml.safe_dump(measured, sort_keys=False))
            listed = ", ".join(f"{name} ×{v:g}" for name, v in module.criterion.factors.items())
            print(f"loss.balance: factors {listed}")
    if settings.lr == "auto":
        if "lr" not in measured:
            curve = find_rate(module, data, settings.trainer)
            measured |= {"lr": curve.rate or DEFAULT_RATE, "lr_suggested": curve.rate is not None}
            curve.save(run.folder / "lr_finder.png")
            write_whole(run.measured, yaml.safe_dump(measured, sort_keys=False))
            print(f"lr=auto: {curve}; the curve: {run.folder / 'lr_finder.png'}")
        module.lr = measured["lr"]


def measure_statistics(module: DistillModule, data: TrainingData, device: torch.device) -> None:
    """Give the student's BatchNorm the statistics of the first batches of the training."""
    module.to(device).train()
    for norm in (norms := [*batchnorms(module.student)]):
        norm.train()  # the module keeps their averages, which are measured here
    with trimmed_statistics(module.student):
        for batch in data.first_batches(STATISTICS):
            module.compare(data.on_after_batch_transfer(move_data_to_device(batch, device), 0))
    module.train()
    print(f"batchnorm=measured: {counted(len(norms), 'layer')}, {STATISTICS} batches")


def load_measured(module: DistillModule, run: Run) -> None:
    """Give a further process what the first one measured and kept in the run."""
    if run.measured.is_file():
        measured = yaml.safe_load(run.measured.read_text())
        module.criterion.rescale(measured.get("loss_factors", {}))
        module.lr = measured.get("lr", module.lr)


def balance(
    module: DistillModule, data: TrainingData, device: torch.device, gradients: bool = False
) -> dict[str, float]:
    """Powers of ten that bring every weighted term to the order of magnitude of the first.

    The paper's rule, measured on the first batches of the untrained student, terms that start late
    included. Powers of ten, so that finer ratios between weights stay what they are. With
    `gradients` what brings each to the first's length of gradient, see `gradient_lengths`: weights
    then are the shares of the pull at a picture.
    """
    before = deepcopy(module.student.state_dict())  # BatchNorm keeps statistics of what it sees
    sums: dict[str, float] = {}
    module.to(device).train()
    with torch.no_grad():
        for batch in data.first_batches(BATCHES):
            batch = data.on_after_batch_transfer(move_data_to_device(batch, device), 0)
            raw = gradient_lengths(module, batch) if gradients else module.compare(batch)[1]
            sums = {name: sums.get(name, 0) + float(value) for name, value in raw.items()}
    module.student.load_state_dict(before)
    if gradients:
        first = next(iter(sums.values()))
        return {name: first / value if value else 1.0 for name, value in sums.items()}
    sizes = {name: value * module.criterion.weights[name] for name, value in sums.items()}
    first = next(iter(sizes.values()))
    return {n: 10.0 ** round(np.log10(first / s)) if first and s else 1.0 for n, s in sizes.items()}


@torch.enable_grad()
def gradient_lengths(module: DistillModule, batch: dict[str, Any]) -> dict[str, float]:
    """Norm of each term's gradient at a picture, of the terms that compare two.

    Half of the student's picture and half of the next one's: what a new student draws is the photo,
    where content has no slope yet.
    """
    target = module.target_of(batch)
    output = module(batch["photo"]).detach()
    mixed = ((output + output.roll(1, 0)) / 2).requires_grad_()
    pictures = module.criterion.of_pictures(mixed, target)
    return {n: float(torch.autograd.grad(v, mixed)[0].norm()) for n, v in pictures.items()}


@dataclass(frozen=True)
class Curve:
    """Losses (one per step, as they came) over learning rates that rise by a constant factor."""

    rates: Sequence[float]
    losses: Sequence[float]

    @property
    def smooth(self) -> np.ndarray:
        """The losses without the noise from batch to batch, not shifted along the rates."""
        losses = np.asarray(self.losses, float)
        known = np.isfinite(losses)
        steps = np.arange(len(losses))
        weights = np.exp(-0.5 * ((steps[:, None] - steps) / SMOOTH) ** 2) * known
        smooth = weights @ np.where(known, losses, 0.0) / np.maximum(weights.sum(1), 1e-12)
        return np.where(known, smooth, np.nan)

    @property
    def rate(self) -> float | None:
        """Where the loss falls most steeply over the logarithm of the rate; None if it does not.

        Over the rate itself, as Lightning suggests it, the lowest rates would win by their noise.
        """
        losses = self.smooth[np.isfinite(self.smooth)]
        rates = np.asarray(self.rates)[np.isfinite(self.smooth)]
        if len(losses) < 10:
            return None
        lowest = int(losses.argmin())
        if lowest < 2 or losses[lowest] > (1 - LEAST_FALL) * losses[0]:
            return None
        slope = np.gradient(losses[: lowest + 1], np.log10(rates[: lowest + 1]))
        return float(f"{rates[int(slope.argmin())]:.2g}")

    def __str__(self) -> str:
        if self.rate is None:
            return f"the loss never fell clearly, so no suggestion; the default, {DEFAULT_RATE:g}"
        return f"{self.rate:g}, where the loss falls most steeply"

    def save(self, path: Path) -> None:
        """The curve as a picture, with the rate that was taken."""
        from matplotlib.figure import Figure  # heavy, and only needed here

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        axes.plot(self.rates, self.losses, color="0.75", label="loss of the step")
        axes.plot(self.rates, self.smooth, label="smoothed")
        rate = self.rate or DEFAULT_RATE
        how = "steepest descent" if self.rate else "default: no suggestion"
        axes.axvline(rate, color="tab:red", label=f"lr {rate:g} ({how})")
        axes.set(xscale="log", xlabel="learning rate", ylabel="loss", title="learning-rate finder")
        axes.legend()
        with atomic_write(path) as temporary:
            figure.savefig(temporary, format="png", dpi=120)


def find_rate(module: DistillModule, data: TrainingData, t: Machine) -> Curve:
    """Lightning's learning-rate finder on one device; student and data are as before afterwards.

    It watches the loss that the run begins with: a term that came in would pass for a rise.
    """
    module.criterion.advance(0.0)
    with tempfile.TemporaryDirectory() as folder:
        trainer = pl.Trainer(
            accelerator=t.accelerator,
            devices=1,
            plugins=[LightningEnvironment()],  # alone, whatever started this process beside others
            precision=t.precision,
            # As many batches as rates: Lightning stops early, and says nothing, where data end.
            max_steps=RATES,
            gradient_clip_val=t.clip,
            accumulate_grad_batches=t.accumulate,
            check_val_every_n_epoch=None,
            val_check_interval=RATES * t.accumulate + 1,  # never
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=False,  # the finder has its own
            use_distributed_sampler=False,
        )
        finder = Tuner(trainer).lr_find(
            module, datamodule=data, min_lr=LOWEST, max_lr=HIGHEST, num_training=RATES
        )
    assert finder is not None
    return Curve(finder.results["lr"], _undo_average(finder.results["loss"]))


def _undo_average(averaged: Sequence[float], beta: float = 0.98) -> list[float]:
    """The losses behind Lightning's trailing average, which lags by decades of the rate.

    Its correction for the start counts one step too many, which halves the first value.
    """
    sums = [value * (1 - beta ** (i + 2)) for i, value in enumerate(averaged)]
    steps = zip([0.0, *sums[:-1]], sums, strict=True)
    return [(now - beta * then) / (1 - beta) for then, now in steps]
