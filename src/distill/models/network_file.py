"""A trained network in one safetensors file: its weights, and in the metadata what builds it.

The weights are those that training ended with, BatchNorm not yet folded, so that training can start
from them again. The metadata has one key, `distill`: JSON of plain values, without any path of the
machine that trained. Such a file needs no run's folder, and reading it runs no code of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from distill import __version__
from distill.config.registry import Direction, recipe_of
from distill.config.settings.training import StyleSettings
from distill.config.validate import fit
from distill.core.errors import DistillError
from distill.core.files import atomic_write
from distill.core.nodes import class_of
from distill.core.state_dicts import load_state
from distill.models.fold import fold_batchnorm

SUFFIX = ".safetensors"
KEY = "distill"  # of the metadata
FORM = 1  # of what is under it; a reader refuses a later one
SMALLEST = 32  # pixels


def is_network_file(path: Path) -> bool:
    """Whether a file is one of these by its name; else it is a checkpoint, or an ONNX file."""
    return path.suffix.lower() == SUFFIX


def description(trained: dict[str, Any], direction: Direction = "AtoB") -> dict[str, Any]:
    """What a file says of its network, from the settings of its run.

    `size` is the side of the pictures that it learnt on, `colours_at` that of the ones in which
    its colours are right, or None: in all. `folded`: BatchNorm is, as in what an ONNX file has.
    """
    recipe = recipe_of(trained)
    return recipe.description(trained) | {
        "form": FORM,
        "version": __version__,
        "recipe": recipe.name,
        "direction": direction,
        "size": recipe.side(trained),
        "colours_at": colours_at(trained),
        "folded": False,
    }


def untrained_network(said: dict[str, Any]) -> nn.Module:
    """The network of a description, with weights that are none."""
    network = recipe_of(said).network(said)
    if not said["folded"]:
        return network
    return fold_batchnorm(network).requires_grad_()  # torch gives new biases none


def colours_at(trained: dict[str, Any]) -> int | None:
    """The side that a student learnt at, where its teacher's colours depend on the whole picture.

    Its own depend on what its features see there, which in a larger picture is a part. None for a
    student that is told the whole picture.
    """
    if trained.get("global_statistics", "none") != "none":
        return None
    recipe = recipe_of(trained)
    teacher = trained["teacher"] if recipe.has_teacher else None
    if teacher is None or not class_of("teacher", teacher).normalises:
        return None
    return recipe.side(trained)


def write_network(network: nn.Module, said: dict[str, Any], target: Path) -> None:
    """Replace `target` by the network's weights and its `description`. The same in, the same bytes.

    A second key beside ours would stand before or after it by chance.
    """
    state = {
        name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()
    }
    with atomic_write(target) as temporary:
        save_file(state, temporary, {KEY: json.dumps(said, sort_keys=True, ensure_ascii=False)})


def read_description(path: Path) -> dict[str, Any]:
    """What the file says of its network, the weights unread. Raises DistillError."""
    if not path.is_file():
        raise DistillError(f"{path}: no such file")
    with problems_of(path, "network of distill.export"), safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if KEY not in metadata:
            raise DistillError(
                "weights without what builds their network; a file of distill.export "
                "formats=[safetensors] has both"
            )
        said = json.loads(metadata[KEY])
        if said["form"] > FORM:
            raise DistillError(f"made by distill {said['version']}; update this one")
        # What is read without building: sizes, which only numbers can be, and words of a style.
        recipe, at = recipe_of(said), said["colours_at"]
        if recipe.has_teacher:
            fit(said["style"], StyleSettings)
        side = recipe.side(said)
        if any(type(x) is not int or x < SMALLEST for x in (side, said["size"], at or side)):
            raise ValueError("a size that is none")
        if type(said["folded"]) is not bool:
            raise ValueError("folded or not")
        if recipe.has_teacher and not isinstance((said["teacher"] or {}).get("_target_", ""), str):
            raise ValueError("a teacher that is none")
    return said


def read_network_file(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The network in such a file, in evaluation mode, and what the file says of it.

    (N, 3, H, W) in [0, 1] to (N, 3 or 4, H, W) in [0, 1]. The file may only name classes of
    distill.models.generators and distill.models.students. Raises DistillError for any other file.
    """
    said = read_description(path)
    with problems_of(path, "network of distill.export"):
        network = untrained_network(said)
        load_state(network, load_file(path), Path(path.name))
    return network.eval(), said


@contextmanager
def problems_of(path: Path, expected: str) -> Iterator[None]:
    """Whatever a file from elsewhere may hold ends in one line that names it."""
    try:
        yield
    except DistillError as error:
        raise DistillError(f"{path}: {error}") from error
    except Exception as error:
        reason = f"damaged, or not a {expected} ({type(error).__name__})"
        raise DistillError(f"{path}: {reason}") from error
