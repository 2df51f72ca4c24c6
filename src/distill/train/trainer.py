"""Lightning's trainer with this project's callbacks, writing into a run's folder."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytorch_lightning as pl
import torch
import torch.distributed as dist
from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import nn

from distill.config.registry import recipe_named
from distill.config.settings.training import Training
from distill.core.errors import DistillError, place_of, reason_of
from distill.core.nodes import part
from distill.core.threads import process_tuner
from distill.runs.run_folder import Run, finished_message
from distill.train.callbacks.checkpoints import AtomicCheckpoints, Checkpoints, Interrupted
from distill.train.callbacks.reports import MetricsTable, Previews, Progress
from distill.train.callbacks.steps import AdaptiveThreads, Finite, FixedThreads, LastValidation
from distill.train.ending import outcome
from distill.train.launch import release_other_ranks
from distill.train.loggers import ExternalLoggers, check_installed, close


def make_trainer(
    settings: Training,
    run: Run,
    callbacks: Sequence[pl.Callback],
    monitor: str | None = "val/loss",
    clip: float | None = None,
) -> pl.Trainer:
    """Lightning's trainer, writing into the run's folder.

    `callbacks` are the recipe's; the best checkpoint and an early end go by `monitor`, of which
    less is better. Lightning clips gradients to the norm `clip`; a module that steps its optimisers
    by hand clips them itself.
    """
    t = settings.trainer
    if t.threads:
        torch.set_num_threads(t.threads)
    _mute_known_noise()
    _check(settings)
    assert t.max_steps is not None
    users = [part(f"callbacks.{n}", node, pl.Callback) for n, node in settings.callbacks.items()]
    board = []  # it writes nothing before the first figure; ExternalLoggers opens the others
    if settings.logger.tensorboard:
        board.append(TensorBoardLogger(str(run.folder), name="tensorboard", version=""))
    try:
        trainer = pl.Trainer(
            accelerator=t.accelerator,
            devices=t.devices,
            num_nodes=t.num_nodes,
            strategy=t.strategy,
            precision=t.precision,
            max_steps=t.max_steps,
            max_epochs=-1,
            val_check_interval=t.val_every * t.accumulate,
            check_val_every_n_epoch=None,
            log_every_n_steps=min(t.log_every, t.max_steps),
            gradient_clip_val=clip,
            accumulate_grad_batches=t.accumulate,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            # Else Lightning adds one of its own, which keeps whatever was last.
            enable_checkpointing=monitor is not None,
            enable_model_summary=False,
            enable_progress_bar=False,
            logger=board,
            callbacks=[*callbacks, *users, *_callbacks(settings, run, monitor)],
            plugins=[AtomicCheckpoints()],
        )
    except (ValueError, TypeError, RuntimeError, MisconfigurationException) as error:
        raise DistillError(f"trainer: {' '.join(str(error).split())}") from error
    # Compiled code has the number of threads written into it; processes would wait for each other.
    on_cpu = trainer.strategy.root_device.type == "cpu" and trainer.world_size == 1
    if on_cpu and not t.threads and not t.compile and (tuner := process_tuner()):
        # Last, so that a step is timed without what the others do before it.
        trainer.callbacks.append(AdaptiveThreads(tuner))  # type: ignore[attr-defined]
    if trainer.strategy.root_device.type == "cuda":
        # TF32 for the losses' Gram matrices too; PyTorch gives it to convolutions alone.
        torch.set_float32_matmul_precision("high")
    return trainer


def fit(
    trainer: pl.Trainer,
    module: pl.LightningModule,
    data: pl.LightningDataModule,
    run: Run,
    checkpoint: Path | None,
    network: str = "network",
) -> None:
    """Train to the end, or to a signal (KeyboardInterrupt), and leave last.ckpt there.

    At the end it says what came out of the `network`: student or generator.
    """
    release_other_ranks()
    checkpoints = next(each for each in trainer.callbacks if isinstance(each, Checkpoints))  # type: ignore[attr-defined]
    recipe, patience = checkpoints.settings.recipe, checkpoints.settings.trainer.patience
    for name in recipe_named(recipe).networks.values():
        if not isinstance(getattr(module, name, None), nn.Module):
            raise DistillError(
                f"recipe={recipe}: its networks name {name}, and {type(module).__name__} has no "
                "network of that name"
            )
    try:
        with training_errors(trainer.world_size):
            trainer.fit(module, data, ckpt_path=checkpoint, weights_only=True)
    except Interrupted:
        close(trainer.loggers, "KILLED")
        message = f"{run.folder}: stopped at step {trainer.global_step}; run it again to resume"
        raise KeyboardInterrupt(message) from None
    except BaseException:
        close(trainer.loggers, "FAILED")
        raise
    checkpoints.save(trainer)
    close(trainer.loggers, "FINISHED")
    if trainer.global_step < trainer.max_steps:
        print(f"{run.folder}: {finished_message(run.last, trainer.max_steps, patience)}")
    trained = f"{run.folder}: trained; best checkpoint {run.checkpoint('best')}"
    print("\n".join([trained, *outcome(run, network)]))


@contextmanager
def training_errors(processes: int = 1) -> Iterator[None]:
    """Around the steps of a training, and those by which something is measured before it: errors
    whose meaning is known become DistillErrors, a signal KeyboardInterrupt, as anywhere."""
    try:
        yield
    except SystemExit:  # which Lightning makes of a signal
        raise KeyboardInterrupt from None
    except BaseException as error:
        if message := _in_one_line(error, processes):
            raise DistillError(message) from error
        raise


def _in_one_line(error: BaseException, processes: int) -> str:
    """What an error of PyTorch or Lightning means; empty where that is not known."""
    text = " ".join(str(error).split())
    if isinstance(error, ValueError) and "more than 1 value per channel" in text:
        return (
            "BatchNorm has one value a channel in a batch: take larger crops (data.crop_size=64) "
            "or batches (data.batch_size=2); a loader of one's own leaves a last batch of one "
            "picture out by drop_last=True"
        )
    gone = isinstance(error, dist.DistError) or "gloo" in text or "NCCL" in text
    if isinstance(error, RuntimeError) and processes > 1 and gone:
        return (
            f"another of the {processes} processes has ended (killed, or out of memory?); "
            "run the command again, which resumes"
        )
    if isinstance(error, pl.utilities.exceptions.MisconfigurationException):
        return f"trainer: {text}"
    known = not isinstance(error, Exception) or isinstance(error, (DistillError, OSError))
    if not known and (place := place_of(error)):  # of a callback or module of the user's
        return f"training: {type(error).__name__} ({reason_of(error, 200)}{place})"
    return ""


def _check(settings: Training) -> None:
    """Refuse settings of the trainer that do not go together, or not on this machine."""
    check_installed(settings.logger)
    t = settings.trainer
    if t.clip and t.precision == "16-mixed" and settings.optimizer.get("fused"):
        raise DistillError(
            "trainer.precision=16-mixed: scales the gradients, and a fused optimiser undoes that "
            "too late to clip them; set trainer.fused=false or trainer.clip=null"
        )
    if t.accelerator != "gpu":
        return
    cuda = torch.cuda.is_available()
    if not (cuda or torch.backends.mps.is_available()):
        missing = "finds no NVIDIA driver with a card" if torch.version.cuda else "has no CUDA"
        raise DistillError(
            f"trainer.accelerator=gpu: no GPU here (torch {torch.__version__} {missing}); "
            "train on the CPU with trainer=cpu"
        )
    bfloat16 = not cuda or torch.cuda.is_bf16_supported(including_emulation=False)
    if t.precision == "bf16-mixed" and not bfloat16:
        raise DistillError(
            "trainer.precision=bf16-mixed: this GPU has no bfloat16; set "
            "trainer.precision=16-mixed trainer.fused=false"
        )


def _callbacks(settings: Training, run: Run, monitor: str | None) -> list[pl.Callback]:
    threads = settings.trainer.threads
    callbacks: list[pl.Callback] = [
        *([FixedThreads(threads)] if threads else []),
        Finite(),
        LastValidation(),
        Progress(),
        Previews(run.folder / "previews"),
        MetricsTable(run.folder / "metrics.csv"),
        ExternalLoggers(settings.logger, run, asdict(settings)),
    ]
    logger = settings.logger
    # Without a logger it refuses to start.
    if logger.tensorboard or logger.wandb or logger.mlflow or logger.own:
        callbacks.append(LearningRateMonitor("step"))
    if monitor:
        best = run.best.parent, run.best.stem
        callbacks.append(ModelCheckpoint(*best, monitor=monitor, enable_version_counter=False))
        if settings.trainer.patience:
            callbacks.append(EarlyStopping(monitor, patience=settings.trainer.patience))
    return [*callbacks, Checkpoints(run, settings), *run.callbacks]


def _mute_known_noise() -> None:
    """Silence Lightning's advertisements, and advice that does not apply to this use of it."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    for text in (
        ".*does not have many workers.*",
        ".*worker processes in total.*",  # torch's, in each process of each loader
        ".*exists and is not empty.*",
        ".*treespec, LeafSpec.*",
        ".*module.s. in eval mode at the start.*",  # the frozen ones
        ".*your dataloader is not resumable.*",  # it is: the stream starts at the right picture
        ".*is smaller than the logging interval.*",  # which counts the steps of all passes
        ".*callbacks used to create the checkpoint.*",  # trainer.patience=null, not before
        ".*ReduceLROnPlateau conditioned on metric val/loss.*",  # done before the checkpoint
    ):
        warnings.filterwarnings("ignore", message=text)
