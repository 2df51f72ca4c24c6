"""The network of a trained run, read from its checkpoint as tensors and plain values."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from distill.config.registry import recipe_named, settings_of
from distill.config.settings.base import Direction
from distill.config.settings.networks import NetworkSettings, StudentDescription
from distill.config.settings.training import Train, Training
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.state_dicts import COMPILED, usable
from distill.models.build import untrained
from distill.models.network_file import is_network_file, problems_of, read_network_file
from distill.models.students.student import Student

NO_STUDENT = "{}: a run of recipe={}, expected a student, of recipe=distill"


def load_network(checkpoint: Path, direction: Direction = "AtoB") -> tuple[nn.Module, Training]:
    """The network of a run of any recipe and the run's settings.

    As `read_network`, but raises DistillError for an exported network, which has no run behind it.
    """
    if is_network_file(checkpoint):
        raise DistillError(
            f"{checkpoint}: a network alone; this also needs its run's settings, so name a "
            "checkpoint of distill.train"
        )
    return _read_checkpoint(checkpoint, direction)


def load_student(checkpoint: Path) -> tuple[Student, Train]:
    """A student that was distilled, and its run's settings.

    As `load_network`. Raises DistillError for a run of a recipe without a teacher, too.
    """
    network, trained = load_network(checkpoint)
    if not isinstance(trained, Train):
        raise DistillError(NO_STUDENT.format(checkpoint, trained.recipe))
    assert isinstance(network, Student)
    return network, trained


def student_to_start_from(path: Path) -> tuple[Student, bool]:
    """A student that was distilled, out of its checkpoint or an exported safetensors file.

    And whether its BatchNorm is folded, so that nothing can learn on from it as it is. Raises
    DistillError for any other file.
    """
    if not is_network_file(path):
        return load_student(path)[0], False
    network, about = read_network_file(path)
    if not isinstance(about, StudentDescription):
        raise DistillError(NO_STUDENT.format(path, about.recipe))
    assert isinstance(network, Student)
    return network, about.folded


def lineage(trained: Train) -> list[Train]:
    """The settings of a trained run and, after them, of those whose students it started from.

    Raises DistillError where such a student is not there any more, or has no run behind it.
    """
    runs = [trained]
    while before := runs[-1].init:
        if not before.endswith(".ckpt"):
            raise DistillError(f"{before}: a network alone, it does not say what it learnt from")
        runs.append(load_student(home_path(before))[1])
    return runs


def read_network(
    checkpoint: Path, direction: Direction = "AtoB"
) -> tuple[nn.Module, NetworkSettings]:
    """The network in a checkpoint of distill.train, and its run's settings.

    Of an exported safetensors file what the file says stands in their place: what builds the
    network, its sizes and where it comes from, and no more.

    (N, 3, H, W) in [0, 1] to (N, 3 or 4, H, W) in [0, 1], in evaluation mode; averaged weights
    where the run kept them. `direction` chooses one of a run's two networks.

    The file is read as tensors and plain values, and may only name classes of
    distill.models.students and plug-ins. Raises DistillError for any
    other file.
    """
    if is_network_file(checkpoint):
        return read_network_file(checkpoint, direction)
    return _read_checkpoint(checkpoint, direction)


def saved_values(checkpoint: Path) -> tuple[dict[str, Any], Training]:
    """What a checkpoint holds, and its run's settings; those of the last file are remembered.

    Its tensors are read where they are used. Raises whatever a damaged file makes torch raise.
    """
    return _values(checkpoint.absolute(), checkpoint.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _values(checkpoint: Path, changed: int) -> tuple[dict[str, Any], Training]:
    values = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
    return values, settings_of(values["distill"])


def _read_checkpoint(checkpoint: Path, direction: Direction) -> tuple[nn.Module, Training]:
    if not checkpoint.is_file():
        raise DistillError(f"{checkpoint}: no such file")
    with problems_of(checkpoint, "checkpoint of distill.train"):
        checkpoint_values, trained = saved_values(checkpoint)
        recipe = recipe_named(trained.recipe)
        if direction not in recipe.networks:
            raise DistillError(
                f"direction={direction}: recipe={recipe.name} trains one network, which goes one "
                "way; leave direction out"
            )
        network, prefix = untrained(trained), f"{recipe.networks[direction]}."
        averaged = checkpoint_values.get("callbacks", {}).get("StudentEMA", {}).get("average")
        whole = {k.replace(COMPILED, ""): v for k, v in checkpoint_values["state_dict"].items()}
        state = {k.removeprefix(prefix): v for k, v in whole.items() if k.startswith(prefix)}
        network.load_state_dict(usable(averaged or state, checkpoint.name))
    return network.eval(), trained
