"""The folder of a run: its files, finding one, and resuming.

RUN/config.yaml  checkpoints/{last,previous,best}.ckpt  tensorboard/  metrics.csv  previews/
RUN/loggers.yaml  wandb/  mlflow/   with logger=wandb or mlflow: which of their runs this one is
RUN/measured.yaml  lr_finder.png    with lr=auto or loss.balance=true
RUN/export/  eval/    written by distill.export and distill.eval_fid
"""

import csv
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from inspect import signature
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from distill.config.registry import settings_of
from distill.config.settings.base import Settings
from distill.config.settings.commands import RunChoice
from distill.config.settings.training import Train, Training
from distill.core.errors import DistillError, counted
from distill.core.files import write_whole
from distill.core.nodes import class_of, flat

RUNS = Path("runs")  # the folder of runs that every command looks into


@dataclass(frozen=True)
class Run:
    """One run's folder.

    `callbacks` are Lightning callbacks that its training has besides those of its recipe, as a
    sweep's.

    >>> distill.Run(Path("runs/mine")).checkpoint("last")
    PosixPath('runs/mine/checkpoints/last.ckpt')
    """

    folder: Path
    callbacks: Sequence[Any] = field(default=(), repr=False, compare=False)

    @property
    def words(self) -> dict[str, str]:
        """The settings that name this run to every command."""
        named = {"run": self.folder.name}
        return named if self.folder.parent == RUNS else named | {"runs": str(self.folder.parent)}

    @property
    def is_there(self) -> bool:
        """Whether the folder is a run's, and not only what an export lies beside."""
        return (self.folder / "config.yaml").is_file()

    @property
    def last(self) -> Path:
        return self.folder / "checkpoints" / "last.ckpt"

    @property
    def previous(self) -> Path:
        """The checkpoint before the last one, in case a crash cut that short."""
        return self.folder / "checkpoints" / "previous.ckpt"

    @property
    def best(self) -> Path:
        return self.folder / "checkpoints" / "best.ckpt"

    @property
    def checkpoints(self) -> list[Path]:
        """Those that are there; the first is the one to resume from."""
        return [file for file in (self.last, self.previous, self.best) if file.is_file()]

    @property
    def measured(self) -> Path:
        """What lr=auto and loss.balance found before the first step."""
        return self.folder / "measured.yaml"

    @property
    def logged(self) -> Path:
        """What Weights & Biases and MLflow call this run."""
        return self.folder / "loggers.yaml"

    def settings(self) -> Training:
        """The settings the run was started with."""
        path, why = self.folder / "config.yaml", ""
        if not path.is_file():
            raise DistillError(f"{path}: missing, so this is no run of distill.train")
        try:
            return settings_of(yaml.safe_load(path.read_text()))
        except DistillError as error:
            why = f" ({error})"
        except (yaml.YAMLError, ValueError, RecursionError, AttributeError):
            pass  # bytes, a day that is none, a circle, a list
        raise DistillError(f"{path}: damaged{why}; start over with resume=false")

    def validations(self) -> list[dict[str, float]]:
        """The rows of metrics.csv that hold a validation, in its order; none without that file."""
        rows: list[dict[str, float]] = []
        for row in metrics_rows(self.folder / "metrics.csv"):
            numbers = {}
            for column, text in row.items():
                with suppress(ValueError, TypeError):  # an empty cell, a row cut short
                    if math.isfinite(value := float(text)):
                        numbers[column] = value
            rows.append(numbers)
        scores = {"val/psnr", "val/frechet", "val/photo_style"}
        return [row for row in rows if "step" in row and row.keys() & scores]

    def checkpoint(self, which: str) -> Path:
        """`best`, `last` or a path; best falls back to last. DistillError when there is none."""
        best = self.best if self.best.is_file() else self.last
        path = {"best": best, "last": self.last}.get(which, Path(which))
        if not path.is_file():
            raise DistillError(f"{path}: no such checkpoint; train first: python -m distill.train")
        return path

    def resumable(self, settings: Training) -> Path | None:
        """The checkpoint to resume from, None for a new run; changes nothing.

        It is the last one, or another where a crash damaged the last. Raises DistillError
        when settings that decide the outcome differ from the earlier run's.
        """
        if not settings.resume or not self.checkpoints:
            return None
        if changes := differences(self.settings(), settings):
            raise DistillError(
                f"{self.folder}: this run has other settings ({as_typed(changes, settings)}); use "
                "them again, start over with resume=false, or choose another name with run=NAME"
            )
        checkpoint, *others = self.checkpoints
        try:
            step_of(checkpoint)
        except DistillError as damage:
            if not others:
                raise
            checkpoint = others[0]
            print(f"{damage}; {checkpoint.name}, step {step_of(checkpoint)}, is used instead")
        return checkpoint

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other processes out of the run; the system lets go when this one dies.

        Nothing is left behind where no run begins: settings that are refused leave no lock.
        Raises DistillError when another one is there, or the folder cannot be written into.
        """
        there = next(p for p in (self.folder, *self.folder.parents) if p.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise DistillError(f"{there}: not a folder to write runs into; name one with runs=DIR")
        above = [self.folder.parent, *self.folder.parent.parents]
        new = [folder for folder in above if not folder.exists()]
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        # Beside the folder, which resume=false renames.
        lock = FileLock(self.folder.with_name(f".{self.folder.name}.lock"))
        try:
            held = lock.acquire(blocking=False)
        except Timeout:
            raise DistillError(
                f"{self.folder}: another distill.train is using it; wait for it, or choose "
                "another name with run=NAME"
            ) from None
        with held:
            try:
                yield
            finally:
                if not self.folder.exists():
                    with suppress(OSError):  # Windows does not remove what is open
                        Path(lock.lock_file).unlink()
                        for folder in new:  # empty ones alone, the innermost first
                            folder.rmdir()

    def start(self, settings: Training, checkpoint: Path | None, length: str) -> None:
        """Ready the folder, and print whether training resumes from `checkpoint` or begins.

        `length` is that of a new run in words. With `resume=false` an earlier run is renamed, not
        deleted.
        """
        if self.checkpoints and not settings.resume:
            numbered = (self.folder.with_name(f"{self.folder.name}.old-{n}") for n in count(1))
            kept = next(folder for folder in numbered if not folder.exists())
            self.folder.rename(kept)
            print(f"{self.folder}: starts over; the earlier run is kept as {kept}")
        same = checkpoint is not None
        with suppress(DistillError):  # no settings, or damaged ones
            same = same or (settings.resume and not differences(self.settings(), settings))
        if not same:
            self.measured.unlink(missing_ok=True)  # of a run with other settings
        write_whole(self.folder / "config.yaml", yaml.safe_dump(asdict(settings), sort_keys=False))
        if checkpoint:
            step = step_of(checkpoint)
            print(f"{self.folder}: resumes at step {step} (resume=false starts over)")
        else:
            print(f"{self.folder}: a new run of {length}")


def metrics_rows(table: Path) -> Iterator[dict[str, str]]:
    """The rows of a run's metrics.csv, up to the first damage; none without that file."""
    if table.is_file():
        with table.open(newline="", errors="replace") as stream, suppress(csv.Error):
            yield from csv.DictReader(stream)


def find_run(choice: RunChoice) -> Run:
    """The run that was named, or the latest one that fits style and decoder.

    A checkpoint that is named by its path says it by where it lies; one that lies in no run needs
    an `output`. Raises DistillError where there is no such run.
    """
    runs = Path(choice.runs)
    if choice.checkpoint not in ("best", "last"):
        path = Path(choice.checkpoint)
        if path.parent.name == "checkpoints":
            return Run(path.parent.parent)
        if choice.output is None:
            Run(path.parent).checkpoint(choice.checkpoint)  # raises where it is not there
            raise DistillError(
                f"checkpoint={path}: is in no run; name an output folder: output=DIR"
            )
        return Run(path.parent)
    if choice.run is not None:
        if not (runs / choice.run).is_dir():
            raise DistillError(f"{runs / choice.run}: no such run; {_known(runs)}")
        return Run(runs / choice.run)
    style, decoder = (part.name if part else "*" for part in (choice.style, choice.decoder))
    wanted = "*" if style == decoder == "*" else f"{style}-{decoder}"
    trained = [Run(p) for p in runs.glob(wanted) if Run(p).last.is_file() and ".old-" not in p.name]
    if not trained:
        raise DistillError(f"{runs / wanted}: no trained run; {_known(runs)}")
    return max(trained, key=lambda r: r.last.stat().st_mtime)


def run_named(run: str | None, runs: str) -> Run:
    """The run of that name under `runs`, or the latest one. Raises DistillError as `find_run`."""
    return find_run(RunChoice(run=run, runs=runs, checkpoint="best", output=None))


def finished_message(checkpoint: Path, steps: int | None, patience: int | None = None) -> str:
    """A sentence on a run that is at its end, and why; empty where it can resume."""
    step = step_of(checkpoint)
    if patience and (why := ended_early(checkpoint, patience)):
        return f"ended early at step {step}: {why}"
    if steps and step >= steps:
        return f"finished at step {step}; for more: trainer.max_steps=N"
    return ""


def ended_early(checkpoint: Path, patience: int | None = None) -> str | None:
    """Why the run had ended before its last step, by this or its own patience; else None."""
    _, callbacks = _saved(checkpoint)
    for key, state in callbacks.items():
        early = key.startswith("EarlyStopping")
        if early and state["wait_count"] >= (patience or state["patience"]):
            watched = re.search(r"'monitor': '([^']+)'", key)
            name = watched.group(1) if watched else "val/loss"
            return f"{name} had not fallen for {counted(state['wait_count'], 'validation')}"
    return None


def step_of(checkpoint: Path) -> int:
    """The number of optimiser steps a checkpoint was saved after."""
    return _saved(checkpoint)[0]


def callback_state(checkpoint: Path, name: str) -> dict[str, Any]:
    """What a callback of that class left in a checkpoint; empty without one."""
    return _saved(checkpoint)[1].get(name, {})


def _saved(checkpoint: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The step of a checkpoint, and what each callback left in it, by its name."""
    import torch  # finding a run, and inference with an exported one, need none

    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        return int(saved["global_step"]), saved.get("callbacks", {})
    except Exception as error:
        raise DistillError(
            f"{checkpoint}: damaged ({type(error).__name__}); start over with resume=false, which "
            "keeps this run under another name"
        ) from error


def _known(runs: Path) -> str:
    names = sorted(p.name for p in runs.glob("*") if Run(p).last.is_file())
    return f"there are: {', '.join(names)}" if names else "train first: python -m distill.train"


_CALLS = ("name", "_target_", "kind")  # what says which choice a part is

Changes = Mapping[str, tuple[Any, Any]]


def differences(old: Training, new: Training) -> dict[str, tuple[Any, Any]]:
    """Settings that decide the outcome and differ, by dotted name.

    Fields that `setting` marks as free do not. A list that an older run does not know of is one
    that is empty, a term of the loss one of weight 0, which does not matter, and its start 0. An
    argument that it does not know of is what the same class has by default. Several
    processes are as many batches that one accumulates.
    """
    free = [key for key, marks in _marks(new) if marks.get("free")]
    then, now = _in_use(old), _in_use(new)
    if all(isinstance(each.trainer.devices, int) for each in (old, new)):  # `auto` is any number
        for each, machine in ((then, old.trainer), (now, new.trainer)):
            batches = each["trainer"].pop("accumulate") * abs(int(machine.devices))
            each["trainer"]["accumulate × devices"] = batches * machine.num_nodes
    both = flat(_completed(then, now)), flat(now)
    a, b = ({key: value for key, value in each.items() if value != []} for each in both)
    keys = [key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]
    return {key: (a.get(key), b.get(key)) for key in keys if not _below(key, free)}


def _marks(settings: Settings, above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What `setting` says of each field, by its dotted key."""
    for item in fields(settings):
        yield f"{above}{item.name}", item.metadata
        if isinstance(value := getattr(settings, item.name), Settings):
            yield from _marks(value, f"{above}{item.name}.")


def _in_use(settings: Training) -> dict[str, Any]:
    """Plain values without what changes nothing: loss terms of weight 0, starts of 0, parts of
    faces of weight 1, the share of sizes where there are none."""
    plain = asdict(settings)
    if isinstance(settings, Train):
        loss, weights = plain["loss"], settings.loss.weights
        for key in ("weights", "terms", "start"):
            loss[key] = {n: value for n, value in loss[key].items() if weights.get(n) and value}
        loss["region"] = settings.loss.weighed
        if not settings.data.sizes:
            del plain["data"]["share_of_sizes"]
    return plain


def _completed(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The older settings, with the defaults of what the newer ones' classes take besides."""
    known = {}
    if "_target_" in new and old.get("_target_") == new["_target_"]:
        parameters = signature(class_of("", new)).parameters.values()
        known = {p.name: p.default for p in parameters if p.default is not p.empty}
    both = {
        k for k in old.keys() & new.keys() if isinstance(old[k], dict) and isinstance(new[k], dict)
    }
    inner = {key: _completed(old[key], new[key]) for key in both}
    return {k: v for k, v in known.items() if k in new} | old | inner


def as_typed(changes: Changes, settings: Training) -> str:
    """`differences` to `settings` as a user would type them: of another choice of a config group
    its name alone, and nothing of what it brought along."""
    choices: dict[str, tuple[Any, Any]] = {}
    for key, both in changes.items():
        part, _, last = key.rpartition(".")
        names = all(isinstance(each, str) for each in both)  # a damaged file may hold anything
        if part and "." not in part and last in _CALLS and names:
            then, now = (_Name(each.rpartition(".")[2]) for each in both)
            choices[part] = then, now
    others = {key: both for key, both in changes.items() if not _below(key, choices)}
    shown = choices | others
    brought = [
        each for key, marks in _marks(settings) if key in shown for each in marks.get("brings", ())
    ]
    lines = (
        f"{key}: {old!r} then, {new!r} now"
        for key, (old, new) in shown.items()
        if not _below(key, brought)
    )
    return "; ".join(lines)


class _Name(str):
    """What a choice is called: typed without quotes."""

    __repr__ = str.__str__


def _below(key: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(f"{key}.", f"{pattern}.*") for pattern in patterns)
