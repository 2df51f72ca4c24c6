"""A trained run as a teacher: a student, or another recipe's generator."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from distill.config.settings.base import Direction
from distill.config.settings.networks import GeneratorSettings, StudentSettings
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.models.checkpoint import read_network
from distill.models.teachers.teacher import Teacher, at_any_size


class CheckpointTeacher(Teacher):
    """The network of a run of any recipe.

    `path` is the run's folder, a .ckpt, or what distill.export wrote as safetensors.
    `checkpoint` is best (last where there is none) or last, `direction` which of two generators
    runs. One with `fixed` takes one size; other networks' pictures are filled up at the edges to
    its `multiple`, or 32, and cut again. `margin` is how many pixels more are filled up on every
    side: where convolutions see zeros a network may draw a frame. `transparent` says whether its
    output is RGBA.
    """

    def __init__(
        self,
        path: str | None = None,
        checkpoint: Literal["best", "last"] = "best",
        direction: Direction = "AtoB",
        margin: int = 0,
    ) -> None:
        super().__init__()
        if path is None:
            raise DistillError(
                "teacher.path: missing; name the folder of a trained run, or a checkpoint: "
                "teacher.path=runs/NAME"
            )
        self.path = checkpoint_at(home_path(path), checkpoint)
        self.origin = str(self.path)
        self.net, run = read_network(self.path, direction)
        if isinstance(run, StudentSettings):
            self._nodes: object = [run.encoder, asdict(run.decoder)]
        elif isinstance(run, GeneratorSettings):
            self._nodes = run.generator.build
        self.transparent = run.channels == 4
        self.fixed = getattr(self.net, "fixed", None)
        self.margin = margin
        self.multiple = getattr(self.net, "multiple", 32)
        self.freeze()

    def settings(self) -> str:
        nodes = json.dumps(self._nodes, sort_keys=True)
        return f"{nodes} margin={self.margin}" if self.margin else nodes

    def forward(self, photo: Tensor) -> Tensor:
        height, width = photo.shape[-2:]
        if self.fixed and (height, width) != self.fixed:
            raise DistillError(
                f"{self.path}: takes pictures of {self.fixed[0]}×{self.fixed[1]} only, got "
                f"{height}×{width}; set style.resolution={self.fixed[0]}"
            )
        if not self.margin:
            return at_any_size(self.net, photo, self.multiple)
        wide = F.pad(photo, (self.margin,) * 4, mode="replicate")
        output = at_any_size(self.net, wide, self.multiple)
        return output[..., self.margin : -self.margin, self.margin : -self.margin]


def checkpoint_at(path: Path, which: str) -> Path:
    """A file, or in a run's folder best.ckpt or last.ckpt. Raises DistillError."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise DistillError(f"teacher.path={path}: no such run or checkpoint")
    candidates = [path / "checkpoints" / f"{name}.ckpt" for name in dict.fromkeys((which, "last"))]
    if checkpoint := next((file for file in candidates if file.is_file()), None):
        return checkpoint
    raise DistillError(
        f"teacher.path={path}: no {candidates[0].name} or last.ckpt in its checkpoints/"
    )
