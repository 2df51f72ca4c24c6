"""A trained run as a teacher: a generator of Pix2Pix or CycleGAN, or a student.

`read` is also how every command opens the checkpoint of a run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill import nodes
from distill.errors import DistillError
from distill.teachers.base import Teacher

Direction = Literal["AtoB", "BtoA"]
RECIPES = ("distill", "pix2pix", "cyclegan")
PACKAGES = ("distill.generators", "distill.students")  # whose classes a file may name
UNTRAINED = {"weights": "none"}  # an encoder's own weights: all of them are in the checkpoint


def recipe_of(settings: dict[str, Any]) -> str:
    """The recipe of a run's settings; older runs know one alone and do not name it."""
    return settings.get("recipe", "distill")


def read(checkpoint: Path, direction: Direction = "AtoB") -> tuple[nn.Module, dict[str, Any]]:
    """The network that a checkpoint of distill.train draws with, and its run's settings.

    (N, 3, H, W) in [0, 1] to (N, 3 or 4, H, W) in [0, 1], in evaluation mode; averaged weights
    where the run kept them. `direction` chooses one of CycleGAN's two generators.

    The file is read as tensors and plain values, and may only name classes of distill.generators
    and distill.students. Raises DistillError for any other file.
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
    whole = {"_target_": "distill.students.student.Student"}
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


class CheckpointTeacher(Teacher):
    """The network of a run: `path` is the run's folder, or a .ckpt of any recipe.

    `checkpoint` is best (last where there is none) or last, `direction` which of CycleGAN's two
    generators draws. A U-Net takes one size; other networks' pictures are filled up at the edges
    and cut again. A generator with transparency draws RGBA: `transparent` says so.
    """

    def __init__(
        self,
        path: str | None = None,
        checkpoint: Literal["best", "last"] = "best",
        direction: Direction = "AtoB",
    ) -> None:
        super().__init__()
        if path is None:
            raise DistillError(
                "teacher.path: missing; name the folder of a trained run, or a checkpoint: "
                "teacher.path=runs/NAME"
            )
        self.path = _file(Path(path).expanduser(), checkpoint)
        self.net, run = read(self.path, direction)
        self._node = run.get("generator", {}).get("build") or [run["encoder"], run["decoder"]]
        self.transparent = run["channels"] == 4
        name = type(self.net).__name__
        if name == "UNet":
            self.fixed = (run["data"]["crop_size"],) * 2
        self.multiple = {"UNet": run["data"]["crop_size"], "ResNetGenerator": 4}.get(name, 32)
        self.freeze()

    def settings(self) -> str:
        return json.dumps(self._node, sort_keys=True)

    def forward(self, photo: Tensor) -> Tensor:
        height, width = photo.shape[-2:]
        if self.fixed and (height, width) != self.fixed:
            raise DistillError(
                f"{self.path}: takes pictures of {self.fixed[0]}×{self.fixed[1]} only, got "
                f"{height}×{width}; set style.resolution={self.fixed[0]}"
            )
        edges = (0, -width % self.multiple, 0, -height % self.multiple)
        padded = F.pad(photo, edges, mode="replicate") if any(edges) else photo
        return self.net(padded)[..., :height, :width].clamp(0, 1)


def _file(path: Path, which: str) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise DistillError(f"teacher.path={path}: no such run or checkpoint")
    found = [path / "checkpoints" / f"{name}.ckpt" for name in dict.fromkeys((which, "last"))]
    if there := next((file for file in found if file.is_file()), None):
        return there
    raise DistillError(f"teacher.path={path}: no {found[0].name} or last.ckpt in its checkpoints/")
