"""recipe=picture: a student learns the look of one picture, or of a few, by perceptual losses."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from distill.config.settings.training import Train
from distill.core.errors import DistillError, counted
from distill.core.process import with_attribute
from distill.runs.run_folder import Run, callback_state, step_of
from distill.train import student_training
from distill.train.distillation import DistillModule
from distill.train.trainer import training_errors
from distill_picture.pace import NEARLY, Pace
from distill_picture.picture_losses import PictureStyle
from distill_picture.settings import PictureTrain
from distill_picture.style_pictures import OURS, files_of, read_square, style_pictures

TIMED = 6  # steps by which picture.minutes are counted, the first two left out


class PictureModule(DistillModule):
    """Student and perceptual losses; a batch is {photo, name}, its target the photo itself.

    Validation logs each term and the style loss of the photos as they are, val/photo_style.
    """

    def configure(self, settings: Train) -> None:
        assert isinstance(settings, PictureTrain)
        super().configure(settings)
        pictures = style_pictures(settings)
        self.style_term.learn(pictures, settings.picture.weights)
        squares = [read_square(file, settings.style.resolution) for file in files_of(settings)]
        self.shown = torch.cat(squares, 2)  # beside photos and results

    @property
    def style_term(self) -> PictureStyle:
        if "style" not in self.criterion.terms:
            raise DistillError("loss.weights.style=0: recipe=picture learns the style by this term")
        term = self.criterion.terms["style"]
        assert isinstance(term, PictureStyle)
        return term

    def target_of(self, batch: Mapping[str, Any]) -> Tensor:
        """The photo, also where a set has outputs of a teacher, as data=demo."""
        photo: Tensor = batch["photo"]
        return photo

    def output_of(self, student: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """As of other students; in training every layer repeats its border.

        By zeros around it a network tells how far the border is, and puts a rare colour at one
        distance: it then has the style's statistics in a picture of the size that it learnt, and
        in no other. `stable`, which has the zeros, asks for the same output; without it they stay.
        """
        alike = self.training and "stable" in self.criterion.terms
        with repeated_borders(self.student) if alike else nullcontext():
            return super().output_of(student, *inputs)

    def validation_step(self, batch: Mapping[str, Any], index: int) -> None:
        self._seed_step(index)
        total, raw, _ = self.compare(batch)
        photo = batch["photo"]
        values = {f"val/{name}": value for name, value in raw.items()}
        values |= {"val/loss": total, "val/photo_style": self.style_term(photo, photo)}
        self._log(values, len(photo))

    def preview(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        photo = batch["photo"]
        style = self.shown.to(photo)[..., : photo.shape[-1]]
        return {"style": style.expand_as(photo), "photo": photo, "result": self(photo)}


def repeated_borders(network: nn.Module) -> AbstractContextManager[None]:
    """Convolutions that are padded with zeros repeat the border instead."""
    layers = (each for each in network.modules() if isinstance(each, nn.Conv2d))
    padded = (each for each in layers if each.padding_mode == "zeros")
    return with_attribute(padded, "padding_mode", "replicate")


def train(settings: PictureTrain, run: Run, first: bool) -> None:
    """Train a student, or resume; only the `first` of several processes prints and writes."""
    if settings.trainer.compile:  # Inductor gets the layout of repeated borders wrong
        raise DistillError("trainer.compile=true: not with recipe=picture; leave it out")
    style_pictures(settings, verbose=first)  # what is wrong with them, before weights are sought
    settings = with_terms(settings)
    if minutes := settings.picture.minutes:
        train_minutes(settings, run, first, minutes)
    else:
        student_training.train(settings, run, first, kind=PictureModule)


def with_terms(settings: PictureTrain) -> PictureTrain:
    """The settings, with the terms of style pictures that are all this project's own."""
    if not {*files_of(settings)} <= OURS.keys():
        return settings
    style = replace(
        settings.style, licence="MIT, as this project", source="tools/style_pictures.py"
    )
    return replace(settings, style=style)


def train_minutes(settings: PictureTrain, run: Run, first: bool, minutes: float) -> None:
    """Train for about so many minutes, those of earlier commands among them.

    The steps that they are depend on what else the machine does: after a start of which the steps
    were faster or slower than planned the rest is planned again. Raises DistillError for more than
    one device, whose clocks differ.
    """
    t = settings.trainer
    if (t.devices, t.num_nodes) != (1, 1):
        raise DistillError(
            f"picture.minutes={minutes:g}: of one device; set trainer.max_steps instead"
        )
    pace = Pace(60 * minutes)
    run = replace(run, callbacks=(*run.callbacks, pace))
    while not pace.over:
        settings, before = with_length(settings, run, pace.budget), pace.seconds
        student_training.train(settings, run, first, kind=PictureModule)
        if pace.seconds == before:  # it was at its end
            return
        settings = replace(settings, resume=True)


def with_length(settings: PictureTrain, run: Run, budget: float) -> PictureTrain:
    """The settings with the steps that fit into a budget of seconds, those there are among them."""
    checkpoint, t = run.resumable(settings), settings.trainer
    done = step_of(checkpoint) if checkpoint else 0
    spent = callback_state(checkpoint, Pace.__name__).get("seconds", 0.0) if checkpoint else 0.0
    if spent >= NEARLY * budget:
        return replace(settings, trainer=replace(t, max_steps=done))
    step = spent / done if spent else seconds_of_a_step(settings)
    steps = done + max(1, round((budget - spent) / step))
    print(f"picture.minutes={budget / 60:g}: {counted(steps, 'step')} of {step:.2f} s")
    return replace(settings, trainer=replace(t, max_steps=steps))


@training_errors()
def seconds_of_a_step(settings: PictureTrain) -> float:
    """By the first steps of a module that is built for it: they are timed without a trainer."""
    t = settings.trainer
    if t.threads:
        torch.set_num_threads(t.threads)
    module, data = student_training.parts(settings, PictureModule)
    device = torch.device({"gpu": "cuda", "auto": "cpu"}.get(t.accelerator, t.accelerator))
    module.train().to(device)
    times = []
    for batch in data.first_batches(TIMED):
        batch["photo"] = batch["photo"].to(device)
        begun = time.perf_counter()
        module.compare(data.on_after_batch_transfer(batch, 0))[0].backward()
        times.append(time.perf_counter() - begun)
    return t.accumulate * sorted(times)[len(times) // 2]
