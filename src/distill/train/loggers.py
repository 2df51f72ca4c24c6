"""Loggers of a run's figures, settings and pictures: TensorBoard, Weights & Biases, MLflow.

The external ones are named in RUN/loggers.yaml, so that a resumed run resumes in theirs too.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import yaml
from PIL import Image
from pytorch_lightning.loggers import Logger, MLFlowLogger, TensorBoardLogger, WandbLogger
from torchvision.transforms.functional import pil_to_tensor

from distill.config.settings.training import Loggers, MLflowSettings, WandbSettings
from distill.core.errors import DistillError, reason_of
from distill.core.files import write_whole
from distill.runs.run_folder import Run


def check_installed(loggers: Loggers) -> None:
    """Raises DistillError for a logger whose package is missing."""
    for name in ("wandb", "mlflow"):
        if getattr(loggers, name) and find_spec(name) is None:
            raise DistillError(
                f"logger={name}: {name} is not installed; pip install 'distill[{name}]', or leave "
                "it out"
            )


def of_the_folder(loggers: Loggers, run: Run) -> Sequence[Logger]:
    """Those that write nothing before the first figure: TensorBoard, where it is wanted."""
    wanted = loggers.tensorboard
    return [TensorBoardLogger(str(run.folder), name="tensorboard", version="")] if wanted else []


def open_external(loggers: Loggers, run: Run, settings: Mapping[str, Any]) -> list[Logger]:
    """Weights & Biases and MLflow where they are wanted, with the run's settings told.

    A run that they know is resumed there. Raises DistillError where one cannot be opened.
    """
    known, opened = _known(run), list[Logger]()
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
    return opened


def log_settings(logger: Logger, settings: Mapping[str, Any], step: int) -> None:
    """The run's settings as a text of TensorBoard; the others have them since they were opened."""
    if isinstance(logger, TensorBoardLogger):
        text = yaml.safe_dump(dict(settings), sort_keys=False).replace("\n", "\n    ")
        logger.experiment.add_text("settings", f"    {text}", step)  # indented: kept as it is


def log_picture(logger: Logger, name: str, picture: Image.Image, step: int) -> None:
    """A picture after so many steps, under one name for all of a run."""
    if isinstance(logger, TensorBoardLogger):
        logger.experiment.add_image(name, pil_to_tensor(picture), step)
    elif isinstance(logger, WandbLogger):
        logger.log_image(name, [picture], step)
    elif isinstance(logger, MLFlowLogger):
        logger.experiment.log_image(logger.run_id, picture, key=name, step=step)


def log_final(loggers: Sequence[Logger], figures: Mapping[str, float], step: int) -> None:
    """What a finished run came to, beside its curves."""
    for logger in loggers:
        logger.log_metrics(dict(figures), step)


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
        wanted.experiment,
        run.folder.name,
        uri,
        artifact_location=kept,
        run_id=known,
    )
    opened = logger.experiment
    if known:
        opened.update_run(known, status="RUNNING")
    else:  # MLflow's parameters never change; a longer run's are in config.yaml
        logger.log_hyperparams(dict(settings))
    opened.log_artifact(logger.run_id, str(run.folder / "config.yaml"))
    return logger, str(logger.run_id)


def _known(run: Run) -> dict[str, str]:
    """What the outside loggers call this run; empty for a new one, or where the file is damaged."""
    try:
        names = yaml.safe_load(run.logged.read_text())
    except (OSError, yaml.YAMLError, ValueError):
        return {}
    return {str(k): str(v) for k, v in names.items()} if isinstance(names, dict) else {}
