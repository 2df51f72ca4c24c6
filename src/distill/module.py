"""DistillModule: the student learns the teacher's pictures under a criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from distill.activations import Recorder
from distill.data.pictures import over_white
from distill.losses.combined import Criterion
from distill.metrics.similarity import psnr, ssim
from distill.teachers.base import Teacher

MakeOptimizer = Callable[[Iterable[nn.Parameter], float], Optimizer]
MakeSchedule = Callable[[Optimizer, int, int], dict[str, Any] | None]


class DistillModule(pl.LightningModule):
    """Student and criterion; a batch is {photo, name} and, where labelled before, {target}.

    `teacher` is needed for batches without a target and for GKA; it is frozen and in no
    checkpoint. Logs every term raw and weighted, PSNR (dB) and SSIM against the target.
    """

    def __init__(
        self,
        student: nn.Module,
        criterion: Criterion,
        make_optimizer: MakeOptimizer,
        make_schedule: MakeSchedule,
        lr: float,
        teacher: Teacher | None = None,
    ) -> None:
        super().__init__()
        # Channels-last halves the time of a step on CPU and is what tensor cores want.
        self.student = student.to(memory_format=torch.channels_last)
        self.criterion, self.teacher = criterion, teacher
        self.make_optimizer, self.make_schedule, self.lr = make_optimizer, make_schedule, lr
        self._compiled: Callable[[Tensor], Tensor] | None = None
        self.strict_loading = False  # the checkpoint holds the student alone, see state_dict
        self._student_layers = Recorder(student, criterion.student_layers, "gka_layers (student)")
        self._teacher_layers = Recorder(
            teacher or nn.Module(), criterion.teacher_layers, "gka_layers (teacher)"
        )

    def compile_student(self) -> None:
        """Train through torch.compile, which takes its time at the first step.

        Validation stays as it is: its other batch sizes would be compiled one by one.
        """
        self._compiled = torch.compile(self.student.forward)

    def forward(self, photo: Tensor) -> Tensor:
        return self.student(photo)

    def training_step(self, batch: Mapping[str, Any], index: int) -> Tensor:
        total, raw, _ = self.compare(batch)
        weights = self.criterion.weights
        values = {f"train/{name}": value for name, value in raw.items()}
        values |= {f"train/{name}_weighted": weights[name] * value for name, value in raw.items()}
        self._log(values | {"train/loss": total}, len(batch["photo"]))
        return total

    def validation_step(self, batch: Mapping[str, Any], index: int) -> None:
        total, raw, (drawn, target) = self.compare(batch)
        drawn, target = over_white(drawn), over_white(target)
        values = {f"val/{name}": value for name, value in raw.items()}
        values |= {"val/loss": total, "val/ssim": ssim(drawn, target).mean()}
        self._log(values | {"val/psnr": psnr(drawn, target).mean()}, len(target))

    def configure_optimizers(self) -> Any:
        optimizer = self.make_optimizer(self.student.parameters(), self.lr)
        val_every = int(self.trainer.val_check_interval)
        schedule = self.make_schedule(optimizer, self.trainer.max_steps, val_every)
        return {"optimizer": optimizer, "lr_scheduler": schedule} if schedule else optimizer

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """The student's tensors only: teacher and perceptual networks are not ours to ship."""
        state = super().state_dict(*args, **kwargs)
        return {key: value for key, value in state.items() if key.startswith("student.")}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["loss_factors"] = self.criterion.factors

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.criterion.rescale(checkpoint.get("loss_factors", {}))

    def target_of(self, batch: Mapping[str, Any]) -> Tensor:
        """The batch's target, or the teacher's picture of its photos."""
        if "target" in batch:
            return batch["target"]
        assert self.teacher is not None
        with torch.no_grad():
            return self.teacher(batch["photo"])

    def compare(
        self, batch: Mapping[str, Any]
    ) -> tuple[Tensor, dict[str, Tensor], tuple[Tensor, Tensor]]:
        """The loss, every term's raw value, and (student's picture, target)."""
        photo = batch["photo"].contiguous(memory_format=torch.channels_last)
        target = self.target_of(batch)
        if self._teacher_layers.wanted and "target" in batch:
            with torch.no_grad():  # for its activations: the picture itself is on disk
                self.teacher(photo)  # type: ignore[misc]
        drawn = self._compiled(photo) if self._compiled and self.training else self.student(photo)
        total, raw = self.criterion(
            drawn, target, self._student_layers.outputs, self._teacher_layers.outputs
        )
        return total, raw, (drawn, target)

    def _log(self, values: Mapping[str, Tensor], count: int) -> None:
        """Means over all processes, so that each of them decides alike on best and early stop."""
        self.log_dict(values, batch_size=count, sync_dist=True)
