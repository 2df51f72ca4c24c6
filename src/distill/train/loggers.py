"""Loggers of a run's figures, settings and pictures: TensorBoard, Weights & Biases, MLflow.

The external ones are named in RUN/loggers.yaml, so that a resumed run resumes in theirs too.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pytorch_lightning as pl
import yaml
from PIL import Image
from pytorch_lightning.loggers import Logger, MLFlowLogger, TensorBoardLogger, WandbLogger
from pytorch_lightning.loggers.logger import DummyLogger
from torchvision.transforms.functional import pil_to_tensor

from distill.config.settings.training import Loggers, MLflowSettings, WandbSettings
from distill.core.errors import DistillError, reason_of
from distill.core.files import write_whole
from distill.core.nodes import check_base, part, takes
from distill.runs.run_folder import Run


def check_installed(loggers: Loggers) -> None:
    """Raises DistillError for a logger whose package is missing, and for what is no logger."""
    for name in ("wandb", "mlflow"):
        if getattr(loggers, name) and find_spec(name) is None:
            raise DistillError(
                f"logger={name}: {name} is not installed; pip install 'distill[{name}]', or leave "
                "it out"
            )
    for name, node in loggers.own.items():
        check_base(f"logger.own.{name}", node, Logger)


def open_external(loggers: Loggers, run: Run, settings: Mapping[str, Any]) -> list[Logger]:
    """Weights & Biases, MLflow and the user's own where they are wanted, with the settings told.

    A run that they know is resumed there. Raises DistillError where one cannot be opened.
    """
    try:  # what they call this run
        names = yaml.safe_load(run.logged.read_text())
    except (OSError, yaml.YAMLError, ValueError):  # a new one, or a damaged file
        names = None
    known = {str(k): str(v) for k, v in names.items()} if isinstance(names, dict) else {}
    opened = list[Logger]()
    for name, wanted in (("wandb", loggers.wandb), ("mlflow", loggers.mlflow)):
        if wanted is None:
            continue
        try:
            if isinstance(wanted, WandbSettings):
                logger, known[name] = _open_wandb(wanted, run, known.get(name), settings)
            else:
                logger, known[name] = _open_mlflow(wanted, run, known.get(name), settings)
        except Exception as error:  # of the network, of an account, of a store
            close(opened, "FAILED")
            raise DistillError(
                f"logger={name}: cannot be opened ({reason_of(error, 300)}); leave it out, or see "
                f"logger.{name} in docs/training.md"
            ) from error
        opened.append(logger)
    if opened:
        write_whole(run.logged, yaml.safe_dump(known))
    for name, node in loggers.own.items():
        place = {"save_dir": str(run.folder)} if takes(node, "save_dir") else {}
        opened.append(part(f"logger.own.{name}", node, Logger, **place))
        opened[-1].log_hyperparams(dict(settings))
    return opened


class ExternalLoggers(pl.Callback):
    """Opens the external loggers, and logs the run's settings and final figures.

    Opened when training starts, not when the trainer is made: resume=false renames the folder
    between the two. Of several processes the first alone has them.
    """

    def __init__(self, loggers: Loggers, run: Run, settings: Mapping[str, Any]) -> None:
        self.loggers, self.run, self.settings = loggers, run, settings

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        wanted = self.loggers
        if not (wanted.wandb or wanted.mlflow or wanted.own):
            return
        if trainer.is_global_zero:
            trainer.loggers += open_external(wanted, self.run, self.settings)
        elif not trainer.loggers:
            trainer.loggers = [DummyLogger()]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        for logger in trainer.loggers if trainer.is_global_zero else ():
            if isinstance(logger, TensorBoardLogger):  # the others have them since they were opened
                text = yaml.safe_dump(dict(self.settings), sort_keys=False).replace("\n", "\n    ")
                # Indented, it is kept as it is.
                logger.experiment.add_text("settings", f"    {text}", trainer.global_step)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # After the last validation, before Lightning closes TensorBoard's file.
        if trainer.is_global_zero and (table := self.run.validations()):
            last = {n: value for n, value in table[-1].items() if n.startswith("val/")}
            figures = {n.replace("val/", "final/", 1): value for n, value in last.items()}
            for logger in trainer.loggers:
                logger.log_metrics(figures, trainer.global_step)


def log_picture(logger: Logger, name: str, picture: Image.Image, step: int) -> None:
    """A picture after so many steps, under one name for all of a run."""
    if isinstance(logger, TensorBoardLogger):
        logger.experiment.add_image(name, pil_to_tensor(picture), step)
    elif isinstance(logger, WandbLogger):
        logger.log_image(name, [picture], step)
    elif isinstance(logger, MLFlowLogger):
        logger.experiment.log_image(logger.run_id, picture, key=name, step=step)


def close(loggers: Sequence[Logger], status: str) -> None:
    """End the outside runs as MLflow's `status` says: FINISHED, FAILED or KILLED.

    The next run of a sweep, in the same process, would be told to this one's otherwise. What goes
    wrong here does not undo a training.
    """
    for logger in loggers:
        with suppress(Exception):
            if isinstance(logger, WandbLogger):
                logger.experiment.finish(exit_code=0 if status == "FINISHED" else 1)
            elif isinstance(logger, MLFlowLogger):
                logger.experiment.set_terminated(logger.run_id, status)


def _open_wandb(
    wanted: WandbSettings, run: Run, known: Any, settings: Mapping[str, Any]
) -> tuple[Logger, str]:
    import wandb

    logger = WandbLogger(
        name=run.folder.name,
        save_dir=str(run.folder),
        id=known,
        project=wanted.project,
        entity=wanted.entity,
        mode=wanted.mode,
        settings=wandb.Settings(console="off"),  # it would hold back the progress bar
    )
    logger.log_hyperparams(dict(settings))
    return logger, logger.experiment.id


def _open_mlflow(
    wanted: MLflowSettings, run: Run, known: Any, settings: Mapping[str, Any]
) -> tuple[Logger, str]:
    for name in ("alembic", "mlflow", "pytorch_lightning.loggers.mlflow"):
        logging.getLogger(name).setLevel(logging.ERROR)  # they say how a new store is made
    uri, kept = wanted.uri or os.environ.get("MLFLOW_TRACKING_URI"), None
    if not uri:
        folder = run.folder.resolve() / "mlflow"
        folder.mkdir(parents=True, exist_ok=True)
        uri, kept = f"sqlite:///{folder / 'mlflow.db'}", (folder / "artifacts").as_uri()
    logger = MLFlowLogger(
        wanted.experiment, run.folder.name, uri, artifact_location=kept, run_id=known
    )
    opened = logger.experiment
    if known:
        opened.update_run(known, status="RUNNING")
    else:  # MLflow's parameters never change; a longer run's are in config.yaml
        logger.log_hyperparams(dict(settings))
    opened.log_artifact(logger.run_id, str(run.folder / "config.yaml"))
    return logger, str(logger.run_id)
