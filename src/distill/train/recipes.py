"""The training of each recipe, by the `recipe` in the settings of distill.train."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytorch_lightning as pl
from pytorch_lightning.utilities import rank_zero_only

from distill.config.registry import recipe_named
from distill.config.settings.training import Training
from distill.core.errors import DistillError
from distill.data.datamodule import LoaderData
from distill.data.licence_terms import check_stated, keep_terms_of_run
from distill.runs.run_folder import Run
from distill.train import student_training
from distill.train.launch import rank_zero_first, with_devices


def train(
    settings: Training, data: LoaderData | None = None, callbacks: Sequence[pl.Callback] = ()
) -> Run:
    """distill.train: train into the settings' run, or resume; gives that run.

    `data` are the caller's pictures, in the place of those that the settings of a student name;
    `callbacks` are called besides those of the recipe, and what they raise ends the training.
    """
    check_stated(settings.licence, settings)
    if data is not None and settings.recipe not in TRAIN:
        raise DistillError(
            f"recipe={settings.recipe}: takes no DataLoader; name its pictures in the settings"
        )
    settings = replace(settings, trainer=with_devices(settings.trainer))
    run = Run(Path(settings.runs) / settings.run, callbacks)
    first = rank_zero_only.rank == 0  # type: ignore[attr-defined]
    if not first:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)
    begun = bool(run.checkpoints)
    with run.alone() if first else nullcontext(), rank_zero_first(first, settings.trainer):
        into = TRAIN.get(settings.recipe) or recipe_named(settings.recipe).train
        into(settings, run, first, *([] if data is None else [data]))
        if first and begun:  # what is stated of a run that is finished counts too
            keep_terms_of_run(run.checkpoint("best"), settings)
    return run


# Train into a run's folder, or resume; only the `first` of several processes prints and writes.
TRAIN: Mapping[str, Callable[..., None]] = {"distill": student_training.train}
