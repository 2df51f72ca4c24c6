"""The network of a trained run, read from its checkpoint as tensors and plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from distill.config.registry import Direction, Recipe, recipe_of
from distill.core import nodes
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.models.build import build_student
from distill.models.network_file import is_network_file, problems_of, read_network_file
from distill.models.students.student import Student

PACKAGES = ("distill.models.generators", "distill.models.students")  # whose classes a file may name
UNTRAINED = {"weights": "none"}  # an encoder's own weights: all of them are in the checkpoint


def load_network(
    checkpoint: Path, direction: Direction = "AtoB"
) -> tuple[nn.Module, dict[str, Any]]:
    """The network of a run of any recipe and the run's settings, which commands may rely on.

    As `read_network`, and everything else that the settings name is checked too. Raises
    DistillError for an exported network, which has no run behind it.
    """
    _want_run(checkpoint)
    network, trained = read_network(checkpoint, direction)
    with problems_of(checkpoint, "checkpoint of distill.train"):
        recipe_of(trained).check(trained)
    return network, trained


def load_student(checkpoint: Path) -> tuple[Student, dict[str, Any]]:
    """A student that was distilled, and its run's settings.

    As `load_network`. Raises DistillError for a run of a recipe without a teacher, too.
    """
    network, trained = load_network(checkpoint)
    return _distilled(network, trained, checkpoint), trained


def student_to_start_from(path: Path) -> tuple[Student, bool]:
    """A student that was distilled, out of its checkpoint or an exported safetensors file.

    And whether its BatchNorm is folded, so that nothing can learn on from it as it is. Raises
    DistillError for any other file.
    """
    network, said = read_network(path) if is_network_file(path) else load_network(path)
    return _distilled(network, said, path), bool(said.get("folded"))


def _distilled(network: nn.Module, trained: dict[str, Any], path: Path) -> Student:
    if not recipe_of(trained).has_teacher:
        raise DistillError(
            f"{path}: a run of recipe={trained['recipe']}, expected a student, of recipe=distill"
        )
    assert isinstance(network, Student)
    return network


def lineage(trained: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of a trained run and, after them, of those whose students it started from.

    Raises DistillError where such a student is not there any more, or has no run behind it.
    """
    runs = [trained]
    while before := runs[-1].get("init"):
        if not before.endswith(".ckpt"):
            raise DistillError(f"{before}: a network alone, it does not say what it learnt from")
        runs.append(load_student(home_path(before))[1])
    return runs


def recipe_in(checkpoint: Path) -> Recipe:
    """The recipe of a checkpoint's run, its tensors unread. Raises DistillError for other files."""
    _want_run(checkpoint)
    with problems_of(checkpoint, "checkpoint of distill.train"):
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
        return recipe_of(saved["distill"])


def read_network(
    checkpoint: Path, direction: Direction = "AtoB"
) -> tuple[nn.Module, dict[str, Any]]:
    """The network in a checkpoint of distill.train, and its run's settings.

    Of an exported safetensors file what the file says stands in their place: what builds the
    network, its sizes and where it comes from, and no more.

    (N, 3, H, W) in [0, 1] to (N, 3 or 4, H, W) in [0, 1], in evaluation mode; averaged weights
    where the run kept them. `direction` chooses one of CycleGAN's two generators.

    The file is read as tensors and plain values, and may only name classes of
    distill.models.generators and distill.models.students. Raises DistillError for any other file.
    """
    if not checkpoint.is_file():
        raise DistillError(f"{checkpoint}: no such file")
    if is_network_file(checkpoint):
        if direction != "AtoB":
            raise DistillError(
                f"direction={direction}: {checkpoint} has one direction; leave it out"
            )
        return read_network_file(checkpoint)
    with problems_of(checkpoint, "checkpoint of distill.train"):
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        trained = nodes.with_current_names(saved["distill"])
        recipe = recipe_of(trained)
        if direction not in recipe.networks:
            raise DistillError(
                f"direction={direction}: recipe={recipe.name} trains one network, which goes one "
                "way; leave direction out"
            )
        network, prefix = recipe.network(trained), f"{recipe.networks[direction]}."
        averaged = saved.get("callbacks", {}).get("StudentEMA", {}).get("average")
        state = {k: v for k, v in saved["state_dict"].items() if k.startswith(prefix)}
        network.load_state_dict(averaged or {k.removeprefix(prefix): v for k, v in state.items()})
    return network.eval(), trained


def untrained_student(trained: dict[str, Any]) -> Student:
    """The student of a run's settings, which may come from elsewhere."""
    encoder = checked_node(trained["encoder"]) | UNTRAINED
    decoder = checked_node(trained["decoder"]["build"])
    statistics = trained.get("global_statistics", "none")  # older runs know of none
    return build_student(encoder, decoder, trained["channels"], statistics)


def untrained_generator(trained: dict[str, Any]) -> nn.Module:
    """The generator of a run's settings, which may come from elsewhere."""
    side, channels = trained["data"]["crop_size"], trained["channels"]
    node = checked_node(trained["generator"]["build"])
    return nodes.build(node, size=side, in_channels=3, out_channels=channels)


def checked_node(node: dict[str, Any]) -> dict[str, Any]:
    """The Node, once the class that it and every Node inside names is checked.

    Raises DistillError for a class outside of `PACKAGES`.
    """
    name = str(node.get("_target_"))
    package = next((p for p in PACKAGES if name.startswith(f"{p}.")), PACKAGES[-1])
    nodes.check_part(node, package, nn.Module)
    inner = {k: checked_node(v) for k, v in node.items() if isinstance(v, dict) and "_target_" in v}
    if "encoder" in inner:
        inner["encoder"] |= UNTRAINED
    return node | inner


def _want_run(checkpoint: Path) -> None:
    if is_network_file(checkpoint):
        raise DistillError(
            f"{checkpoint}: a network alone; this also needs its run's settings, so name a "
            "checkpoint of distill.train"
        )
