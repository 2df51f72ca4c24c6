"""A trained run as a teacher: a generator of Pix2Pix or CycleGAN, or a student."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from torch import Tensor

from distill.config.registry import Direction
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.models.checkpoint import read_network
from distill.models.teachers.teacher import Teacher, at_any_size


class CheckpointTeacher(Teacher):
    """The network of a run of any recipe.

    `path` is the run's folder, a .ckpt, or what distill.export wrote as safetensors.
    `checkpoint` is best (last where there is none) or last, `direction` which of CycleGAN's two
    generators runs. A U-Net takes one size; other networks' pictures are filled up at the edges
    and cut again. `transparent` says whether its output is RGBA.
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
        self.path = _file(home_path(path), checkpoint)
        self.net, run = read_network(self.path, direction)
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
        return at_any_size(self.net, photo, self.multiple)


def _file(path: Path, which: str) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise DistillError(f"teacher.path={path}: no such run or checkpoint")
    found = [path / "checkpoints" / f"{name}.ckpt" for name in dict.fromkeys((which, "last"))]
    if there := next((file for file in found if file.is_file()), None):
        return there
    raise DistillError(f"teacher.path={path}: no {found[0].name} or last.ckpt in its checkpoints/")
