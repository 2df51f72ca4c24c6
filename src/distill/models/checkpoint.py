"""The network of a trained run, read from its checkpoint as tensors and plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from distill.config.settings import Budget, Generator, Paired, Unpaired
from distill.config.trained import source_of
from distill.config.validate import fit
from distill.core import nodes
from distill.core.errors import DistillError
from distill.models.students.student import Student
from distill.models.teachers.teacher import Teacher


def lineage(trained: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of a trained run and, after them, of those whose students it started from.

    Raises DistillError where such a student is not there any more.
    """
    runs = [trained]
    while before := runs[-1].get("init"):
        runs.append(load_student(Path(before).expanduser())[1])
    return runs


def load_student(checkpoint: Path) -> tuple[Student, dict[str, Any]]:
    """A trained student (averaged weights where the run kept them) and its run's settings.

    The checkpoint is read as tensors and plain values, and may only name classes of
    distill.models. Raises DistillError for any other file, and for a run of another recipe.
    """
    network, settings = load_network(checkpoint)
    if (recipe := recipe_of(settings)) != "distill":
        raise DistillError(
            f"{checkpoint}: a run of recipe={recipe}, a student is wanted: one of recipe=distill"
        )
    assert isinstance(network, Student)
    return network, settings


def load_network(
    checkpoint: Path, direction: Direction = "AtoB"
) -> tuple[nn.Module, dict[str, Any]]:
    """What a run of any recipe draws with, in evaluation mode, and the run's settings.

    `direction` chooses one of CycleGAN's two generators. Raises DistillError as `read` does.
    """
    network, settings = read(checkpoint, direction)
    try:
        if recipe_of(settings) != "distill":
            _check_generator(settings)
        else:
            # Before anything imports what it names: the teacher is built later, from these.
            nodes.check_part(settings["teacher"], "distill.models.teachers", Teacher)
            source_of(settings)
    except DistillError as error:
        raise DistillError(f"{checkpoint}: {error}") from error
    except Exception as error:  # whatever a file from elsewhere may hold
        reason = f"damaged, or not a checkpoint of distill.train ({type(error).__name__})"
        raise DistillError(f"{checkpoint}: {reason}") from error
    return network, settings


def _check_generator(settings: dict[str, Any]) -> None:
    """What the commands read of a generator's run is there; classes it names are not imported."""
    settings["run"]
    fit(settings["data"], Paired if recipe_of(settings) == "pix2pix" else Unpaired)
    fit(settings["generator"], Generator)
    fit(settings["budget"], Budget)


Direction = Literal["AtoB", "BtoA"]

RECIPES = ("distill", "pix2pix", "cyclegan")

PACKAGES = ("distill.models.generators", "distill.models.students")  # whose classes a file may name

UNTRAINED = {"weights": "none"}  # an encoder's own weights: all of them are in the checkpoint


def recipe_of(settings: dict[str, Any]) -> str:
    """The recipe of a run's settings; older runs know one alone and do not name it."""
    return settings.get("recipe", "distill")


def read(checkpoint: Path, direction: Direction = "AtoB") -> tuple[nn.Module, dict[str, Any]]:
    """The network that a checkpoint of distill.train draws with, and its run's settings.

    (N, 3, H, W) in [0, 1] to (N, 3 or 4, H, W) in [0, 1], in evaluation mode; averaged weights
    where the run kept them. `direction` chooses one of CycleGAN's two generators.

    The file is read as tensors and plain values, and may only name classes of
    distill.models.generators and distill.models.students. Raises DistillError for any other file.
    """
    if not checkpoint.is_file():
        raise DistillError(f"{checkpoint}: no such file")
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        settings = saved["distill"]
        prefix = _prefix(settings, direction)
        network = _student(settings) if recipe_of(settings) == "distill" else _generator(settings)
        averaged = saved.get("callbacks", {}).get("StudentEMA", {}).get("average")
        state = {k: v for k, v in saved["state_dict"].items() if k.startswith(prefix)}
        network.load_state_dict(averaged or {k.removeprefix(prefix): v for k, v in state.items()})
    except DistillError as error:
        raise DistillError(f"{checkpoint}: {error}") from error
    except Exception as error:  # whatever a file from elsewhere may hold
        reason = f"damaged, or not a checkpoint of distill.train ({type(error).__name__})"
        raise DistillError(f"{checkpoint}: {reason}") from error
    return network.eval(), settings


def _prefix(settings: dict[str, Any], direction: Direction) -> str:
    recipe = recipe_of(settings)
    if recipe == "cyclegan":
        return {"AtoB": "a_to_b.", "BtoA": "b_to_a."}[direction]
    if direction != "AtoB":
        raise DistillError(
            f"direction={direction}: recipe={recipe} trains one network, which draws one way; "
            "leave direction out"
        )
    if recipe not in RECIPES:
        raise DistillError(f"recipe={recipe}: unknown; there are {', '.join(RECIPES)}")
    return "student." if recipe == "distill" else "generator."


def _student(settings: dict[str, Any]) -> nn.Module:
    """Like build.student, whose classes this package does not import."""
    encoder = nodes.build(_checked(settings["encoder"]) | UNTRAINED)
    given = {"channels": encoder.channels, "strides": encoder.strides}
    decoder = nodes.build(
        _checked(settings["decoder"]["build"]), **given, out_channels=settings["channels"]
    )
    whole = {"_target_": "distill.models.students.student.Student"}
    return nodes.build(whole, encoder=encoder, decoder=decoder)


def _generator(settings: dict[str, Any]) -> nn.Module:
    side, channels = settings["data"]["crop_size"], settings["channels"]
    node = _checked(settings["generator"]["build"])
    return nodes.build(node, size=side, in_channels=3, out_channels=channels)


def _checked(node: dict[str, Any]) -> dict[str, Any]:
    """The Node, after a look at the class that it and every Node inside name."""
    name = str(node.get("_target_"))
    package = next((p for p in PACKAGES if name.startswith(f"{p}.")), PACKAGES[-1])
    nodes.check_part(node, package, nn.Module)
    inner = {k: _checked(v) for k, v in node.items() if isinstance(v, dict) and "_target_" in v}
    if "encoder" in inner:
        inner["encoder"] |= UNTRAINED
    return node | inner
