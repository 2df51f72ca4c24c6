"""DistillModule: the student learns to give the teacher's output, under a criterion."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from distill.config.settings.training import Train
from distill.core.arrays import over_white
from distill.core.errors import DistillError, of_the_user
from distill.core.images import form
from distill.data.augment import rng_for
from distill.data.regions import ONE
from distill.losses.criterion import Criterion
from distill.losses.term import LossTerm, Reads
from distill.metrics.line_figures import FIGURES, ink_sums, ratios
from distill.metrics.similarity import psnr, ssim
from distill.models.batchnorm import frozen_statistics, normalise_by_averages
from distill.models.students.heads import Head
from distill.models.teachers.teacher import Teacher
from distill.train.schedules import MakeOptimizer, MakeSchedule, clip_gradients

DECISION, PALETTE = "head.decision", "head.inks"  # layers of a student's head
LARGEST = 4096  # long side in pixels; larger pictures count among those of this size


class DistillModule(pl.LightningModule):
    """Student and criterion; a batch is {photo, name} and, where labelled before, {target}.

    `teacher` is needed for batches without a target and for terms that read its activations; it is
    frozen and in no checkpoint. `seed` is that of the loss terms' random numbers. With
    `keep_averages` BatchNorm normalises by the averages that the student came with, which stay as
    they are. Logs every term raw and weighted, PSNR (dB), SSIM and the figures of ink and sharpness
    against the target.

    >>> module, data = distill.lightning_parts("pairs", encoder={"weights": "none"}, loss="l1")
    >>> pl.Trainer(max_steps=1, logger=False, enable_checkpointing=False).fit(module, data)
    """

    def __init__(
        self,
        student: nn.Module,
        criterion: Criterion,
        make_optimizer: MakeOptimizer,
        make_schedule: MakeSchedule,
        lr: float,
        teacher: Teacher | None = None,
        seed: int = 0,
        keep_averages: bool = False,
    ) -> None:
        super().__init__()
        # Channels-last halves the time of a step on CPU and is what tensor cores want.
        self.student = student.to(memory_format=torch.channels_last)
        self.criterion, self.teacher = criterion, teacher
        self.make_optimizer, self.make_schedule, self.lr = make_optimizer, make_schedule, lr
        self.seed, self.keep_averages = seed, keep_averages
        self.settings: Train | None = None  # of a run, by which its checkpoints load
        self._ink = torch.zeros(len(FIGURES), 2)  # of a validation so far, as `ink_sums` gives it
        self._sizes = torch.zeros(0)  # by long side in 32 pixels: sums of PSNR and SSIM, pictures
        self._compiled: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self.strict_loading = False  # the checkpoint holds the student alone, see state_dict
        decisions = [n for n in (DECISION, PALETTE) if n in dict(student.named_modules())]
        if criterion.reads_classes and not decisions:
            raise DistillError(
                "loss.weights.decision: a student without a head decides nothing; set head=palette "
                "or head=layers, or loss.weights.decision=0"
            )
        read = [*criterion.student_layers, *(decisions if criterion.reads_classes else [])]
        self._student_layers = Recorder(student, read, "gka_layers (student)")
        self._teacher_layers = Recorder(
            teacher or nn.Module(), criterion.teacher_layers, "gka_layers (teacher)"
        )
        if keep_averages:  # Lightning leaves modes as they are
            normalise_by_averages(student)

    def configure(self, settings: Train) -> None:
        """Be the module of a run."""
        self.settings = settings

    def compile_training(self) -> None:
        """Train student and losses through torch.compile, which takes its time at the first step.

        Validation stays as it is: its other batch sizes would be compiled one by one. Training has
        one size, so none is left open, and no weight of a term is a variable.
        """
        self.criterion.to(memory_format=torch.channels_last)  # the style network, as Inductor would
        self._compiled = (
            torch.compile(self.student.forward, dynamic=False),
            # Inductor takes the gradient of Sobel's padding for row-major and stops where that is
            # not so: the pictures are row-major here, and it may not lay them out again.
            torch.compile(
                self.criterion.forward, dynamic=False, options={"layout_optimization": False}
            ),
        )

    def train(self, mode: bool = True) -> DistillModule:
        super().train(mode)
        if mode and self.keep_averages:
            normalise_by_averages(self.student)
        return self

    def forward(self, photo: Tensor, thumbnail: Tensor | None = None) -> Tensor:
        return self.student(photo) if thumbnail is None else self.student(photo, thumbnail)

    def training_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Any]:
        """The loss, and for callbacks every term's raw value, of which few steps are logged."""
        self._seed_step(index)
        total, raw, _ = self.compare(batch)
        raw = {name: value.detach() for name, value in raw.items()}
        every: int = self.trainer.log_every_n_steps  # type: ignore[attr-defined]
        if (self.trainer.global_step + 1) % every == 0:
            weights = self.criterion.weights
            values = {f"train/{name}": value for name, value in raw.items()}
            values |= {f"train/{name}_weighted": weights[name] * x for name, x in raw.items()}
            self._log(values | {"train/loss": total}, len(batch["photo"]))
        return {"loss": total, "terms": raw}

    def on_validation_epoch_start(self) -> None:
        self._ink = torch.zeros(len(FIGURES), 2, device=self.device)
        self._sizes = torch.zeros(LARGEST // 32 + 1, 3, device=self.device)

    def validation_step(self, batch: Mapping[str, Any], index: int) -> None:
        self._seed_step(index)
        total, raw, (output, target) = self.compare(batch)
        output, target = over_white(output), over_white(target)
        values = {f"val/{name}": value for name, value in raw.items()}
        values |= {"val/loss": total}
        for whose, pictures in (("", output), ("photo_", batch["photo"])):
            values[f"val/{whose}ssim"] = ssim(pictures, target).mean()
            values[f"val/{whose}psnr"] = psnr(pictures, target).mean()
        self._log(values, len(target))
        self._ink += ink_sums(output, target).sum(0)
        size = min(max(target.shape[-2:]), LARGEST) // 32
        means = torch.stack([values["val/psnr"], values["val/ssim"], torch.ones_like(total)])
        self._sizes[size] += len(target) * means

    def on_validation_epoch_end(self) -> None:
        """Ink and sharpness over all pictures of all processes; none of what no picture has.

        Of pictures of several sizes also PSNR and SSIM by long side, such as val/psnr_512.
        """
        figures = ratios(self.trainer.strategy.reduce(self._ink, reduce_op="sum"))
        names = (f"val/{name.replace(' ', '_')}" for name in FIGURES)
        values = {n: x for n, x in zip(names, figures, strict=True) if torch.isfinite(x)}
        sums = self.trainer.strategy.reduce(self._sizes, reduce_op="sum")
        there = sums[:, 2].nonzero().flatten().tolist()
        for size in there if len(there) > 1 else ():
            values[f"val/psnr_{32 * size}"], values[f"val/ssim_{32 * size}"] = (
                sums[size, :2] / sums[size, 2]
            )
        self.log_dict(values, sync_dist=True)

    def preview(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """Columns of the sheet of samples by their titles."""
        output, target = self(batch["photo"], batch.get("thumbnail")), self.target_of(batch)
        return {"photo": batch["photo"], "teacher": target, "student": output}

    def configure_optimizers(self) -> Any:
        optimizer = self.make_optimizer(self.student.parameters(), self.lr)
        val_every, steps = int(self.trainer.val_check_interval), self.trainer.max_steps
        if steps < 0:  # of a trainer of one's own, which counts epochs
            steps = self.trainer.estimated_stepping_batches  # type: ignore[assignment]
        if not math.isfinite(steps):
            raise DistillError("the schedule needs the run's length: pl.Trainer(max_steps=N)")
        schedule = self.make_schedule(optimizer, steps, val_every)
        return {"optimizer": optimizer, "lr_scheduler": schedule} if schedule else optimizer

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        # Not Lightning's own. Only float16 scales its gradients, and there trainer.py refuses a
        # fused optimiser, whose gradients are still scaled here.
        if gradient_clip_val:
            clip_gradients(optimizer, gradient_clip_val)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """The student's tensors only: teacher and perceptual networks are not ours to ship."""
        state = super().state_dict(*args, **kwargs)
        return {key: value for key, value in state.items() if key.startswith("student.")}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["loss_factors"] = self.criterion.factors
        if self.settings is not None:
            checkpoint["distill"] = asdict(self.settings)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.criterion.rescale(checkpoint.get("loss_factors", {}))

    def target_of(self, batch: Mapping[str, Any]) -> Tensor:
        """The batch's target, or the teacher's output for its photos."""
        return batch["target"] if "target" in batch else self._teacher_output(batch["photo"])

    def compare(
        self, batch: Mapping[str, Any]
    ) -> tuple[Tensor, dict[str, Tensor], tuple[Tensor, Tensor]]:
        """The loss, every term's raw value, and (student's output, target), all in float32."""
        photo = batch["photo"].contiguous(memory_format=torch.channels_last)
        target = self.target_of({**batch, "photo": photo})
        if self._teacher_layers.wanted and "target" in batch:
            self._teacher_output(photo)  # for its activations: the output itself is on disk
        trains = self._compiled and self.training and torch.is_grad_enabled()
        student, criterion = self._compiled if trains else (self.student, self.criterion)  # type: ignore[misc]
        layout = torch.contiguous_format if trains else torch.preserve_format
        # A student that is not told of the whole picture need not take a thumbnail.
        thumbnail = [batch["thumbnail"]] if batch.get("thumbnail") is not None else []
        both = self.output_of(student, photo, *thumbnail), target
        output, target = (x.to(torch.float32, memory_format=layout) for x in both)
        if output.shape[1] == 3:
            target = over_white(target)  # of a teacher whose output is RGBA
        if output.shape != target.shape:
            raise DistillError(
                f"channels={output.shape[1]}: the batch's targets are {tuple(target.shape)}, the "
                f"student's output is {tuple(output.shape)}; set channels={target.shape[1]}"
            )
        seen = dict(self._student_layers.outputs)  # a further pass would replace them

        def again(other: Tensor) -> Tensor:
            with frozen_statistics(self.student):
                second = student(other.contiguous(memory_format=torch.channels_last), *thumbnail)
            return second.to(torch.float32, memory_format=layout)

        further = self.criterion.of_network(again, photo, output)
        reads_classes = self.criterion.reads_classes
        # Under autocast the losses' own products would be 16-bit ones: Gram matrices sum a whole
        # picture and overflow float16 at 65,504, and Sobel takes differences of like values.
        with torch.autocast(photo.device.type, enabled=False):
            region = batch["region"][:, None] / ONE if "region" in batch else None
            classes = self._classes(seen, target, batch) if reads_classes else None
            total, raw = criterion(
                output, target, seen, self._teacher_layers.outputs, further, region, classes
            )
        return total, raw, (output, target)

    def output_of(self, student: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """The student's output that the losses compare; what `stable` asks for comes apart."""
        return student(*inputs)

    def _classes(
        self, seen: Mapping[str, Tensor], target: Tensor, batch: Mapping[str, Any]
    ) -> tuple[Tensor, Tensor]:
        """Logits of the head's classes and their shares in the target, (N, K, H, W) in float32."""
        head = self.student.head
        assert isinstance(head, Head)
        lines = batch["lines"][:, None] / 255 if "lines" in batch else None
        with torch.no_grad():
            shares = head.target_classes(target, lines, seen.get(PALETTE))
        return seen[DECISION].float(), shares

    def try_term(self, name: str) -> None:
        """Compute a loss term once. Raises DistillError where it gives nothing to learn by.

        Weights, averages and torch's random numbers stay as they are.
        """
        key, training = f"loss.terms.{name}", self.training
        gradients: Iterable[Tensor | None] = ()
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            photo = torch.rand(max(2, self.criterion.min_batch), 3, 64, 64)
            output = self.eval().student(photo)
            if self._teacher_layers.wanted:
                self._teacher_output(photo)
            term = self.criterion.terms[name]
            inputs = {
                Reads.PICTURES: (output, torch.rand_like(output)),
                Reads.ACTIVATIONS: (self._student_layers.outputs, self._teacher_layers.outputs),
                Reads.NETWORK: (self.student, photo, output),
            }
            if self.criterion.reads_classes:
                seen = self._student_layers.outputs
                inputs[Reads.CLASSES] = self._classes(seen, torch.rand_like(output), {})
            with of_the_user(f"{key}: a call with {form(photo)}"):
                value: Any = term(*inputs[getattr(term, "reads", LossTerm.reads)])
                if not isinstance(value, Tensor) or value.shape != () or not value.isfinite():
                    gave = type(value).__name__
                    if isinstance(value, Tensor):
                        gave = str(value.item()) if value.shape == () else form(value)
                    raise DistillError(f"{key}: gave {gave}, want one finite number, of shape ()")
                if value.requires_grad:
                    weights = [each for each in self.student.parameters() if each.requires_grad]
                    gradients = torch.autograd.grad(value, weights, allow_unused=True)
            self.train(training)
        if not any(each is not None and each.isfinite().all() and each.any() for each in gradients):
            raise DistillError(f"{key}: has no gradient; compute with tensors, without .item()")

    def _seed_step(self, index: int) -> None:
        """Begin the random numbers of a batch, so that a resumed run has the same.

        The number of the batch counts those of all processes, as if one accumulated them.
        """
        number = index * self.trainer.world_size + self.trainer.global_rank
        # torch.manual_seed tells every kind of device there is, for a millisecond.
        begin = (
            torch.manual_seed if self.device.type != "cpu" else torch.default_generator.manual_seed
        )
        begin(int(rng_for(self.seed, "loss", number).integers(2**32)))

    def _teacher_output(self, photo: Tensor) -> Tensor:
        """The teacher's output for photos (N, 3, H, W), float32.

        Where the student trains in 16 bits on CUDA, the teacher runs in float16, whatever the
        student's kind: as quick as bfloat16 and eight times as fine. Mean PSNR to its float32
        output for 8 photographs, on a CPU: hayao 75 dB (bfloat16 57), toon 55 (39); writing it
        to 8-bit files costs 59. Hayao's largest value is 197, far from float16's limit.
        """
        if self.teacher is None:
            raise DistillError("a batch: a photo has no target, and there is no teacher to give it")
        kind = photo.device.type
        mixed = kind == "cuda" and torch.is_autocast_enabled(kind)
        # Not inference mode: the losses keep the target for their backward pass.
        with torch.no_grad(), torch.autocast(kind, torch.float16 if mixed else None, mixed):
            return self.teacher(photo).float()

    def _log(self, values: Mapping[str, Tensor], count: int) -> None:
        """Means over all processes, so that each of them decides alike on best and early stop."""
        self.log_dict(values, batch_size=count, sync_dist=True)


class Recorder:
    """`outputs[name]` holds the latest output of every named layer of a network.

    Raises DistillError for a name the network does not have. Hooks are the one way to read a
    layer that keeps the network's own code free of bookkeeping.
    """

    def __init__(self, network: nn.Module, names: Iterable[str], key: str) -> None:
        self.outputs: dict[str, Tensor] = {}
        layers = dict(network.named_modules())
        self.wanted = tuple(names)
        for name in self.wanted:
            if name not in layers:
                known = ", ".join(n for n in layers if n and n.count(".") <= 1)
                raise DistillError(f"{key}: no layer {name!r}; try one of {known}")
            layers[name].register_forward_hook(partial(self._keep, name))

    def _keep(self, name: str, _module: nn.Module, _inputs: object, output: Tensor) -> None:
        self.outputs[name] = output
