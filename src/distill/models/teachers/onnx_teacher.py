"""Any image-to-image ONNX file as a teacher, through ONNX Runtime."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import torch
from torch import Tensor

from distill.core.arrays import MODES
from distill.core.errors import DistillError, library_errors
from distill.core.files import home_path
from distill.core.onnx_files import content_hash
from distill.core.sessions import open_file, open_session
from distill.models.teachers.teacher import Teacher

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}  # of its input


class OnnxTeacher(Teacher):
    """A network in an ONNX file: (N, 3, H, W) RGB in [0, 1] to the same, RGBA or grey, on the CPU.

    `input_range` and `output_range` are the network's own values for black and white, `channels`
    and `layout` its order; `input` and `output` name its tensors (default: the first of each).
    A network with a fixed size or batch takes only that size, one batch at a time. It gives no
    activations and no gradients: it labels pairs.
    """

    gives_activations = False
    outside = 0.25  # of a network whose last layer is linear some values always are

    def __init__(
        self,
        weights: str | Path,
        input_range: Sequence[float] = (-1.0, 1.0),
        output_range: Sequence[float] = (-1.0, 1.0),
        channels: Literal["rgb", "bgr"] = "rgb",
        layout: Literal["nchw", "nhwc"] = "nchw",
        input: str | None = None,
        output: str | None = None,
    ) -> None:
        super().__init__()
        for name, span in (("input_range", input_range), ("output_range", output_range)):
            if len(span) != 2 or span[0] == span[1]:
                raise DistillError(f"teacher.{name}={list(span)}: want two different values")
        weights = home_path(weights)
        self.path, self.origin = weights, str(weights)
        self.input_range = [float(v) for v in input_range]
        self.output_range = [float(v) for v in output_range]
        self.black_white = (self.output_range[0], self.output_range[1])
        self.channels, self.layout = channels, layout
        self._session = open_file(weights, torch.get_num_threads())
        self.input = _pick(input, self._session.get_inputs(), weights, "input")
        self.output = _pick(output, self._session.get_outputs(), weights, "output")
        photo_input, *others = sorted(
            self._session.get_inputs(), key=lambda i: i.name != self.input
        )
        shape, self._type = photo_input.shape, TYPES.get(photo_input.type)
        if others or len(shape) != 4 or self._type is None:
            has = "; ".join(f"{i.name}: {i.type} {i.shape}" for i in (photo_input, *others))
            raise DistillError(
                f"{weights}: takes {has}; want one picture, float32 or float16 in four dimensions"
            )
        first, last = (shape[i] == 3 for i in (1, 3))
        if first != last and last == (layout == "nchw"):
            remedy = "last: set teacher.layout=nhwc" if last else "first: set teacher.layout=nchw"
            sides_text = ", ".join(str(d) if isinstance(d, int) else "?" for d in shape)
            raise DistillError(f"{weights}: takes ({sides_text}), channels {remedy}")
        self._batch = shape[0] if isinstance(shape[0], int) else None
        sides = shape[1:3] if layout == "nhwc" else shape[2:4]
        self._size = [d if isinstance(d, int) else None for d in sides]
        height, width = self._size
        self.fixed = (height, width) if height and width else None
        self.freeze()

    def __getstate__(self) -> dict[str, Any]:
        """For another process, perhaps on a machine without the file."""
        model = onnx.load(self.path).SerializeToString()
        return {**self.__dict__, "_session": None, "model": model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = onnx.load_model_from_string(state.pop("model"))
        super().__setstate__(state)
        self._session = open_session(model, torch.get_num_threads())

    def settings(self) -> str:
        span = f"{self.input_range} {self.output_range} {self.channels} {self.layout}"
        return f"{content_hash(self.path)} {span} {self.input} {self.output}"

    def forward(self, photo: Tensor) -> Tensor:
        if any(w not in (None, h) for w, h in zip(self._size, photo.shape[-2:], strict=True)):
            raise DistillError(
                f"{self.path}: takes pictures of {self._size[0]}×{self._size[1]} only, got "
                f"{photo.shape[-2]}×{photo.shape[-1]}; set style.resolution to fit"
            )
        low, high = self.input_range
        values = self._order(photo * (high - low) + low)
        if self.layout == "nhwc":
            values = values.permute(0, 2, 3, 1)
        x = values.cpu().numpy().astype(self._type)
        step = self._batch or len(x)
        parts = [self._run(x[i : i + step]) for i in range(0, len(x), step)]
        output = np.concatenate(parts)
        last = 3 if self.layout == "nhwc" else 1
        if output.shape not in [(*x.shape[:last], n, *x.shape[last + 1 :]) for n in MODES]:
            raise DistillError(
                f"{self.path}: output {self.output} is {output.shape} for an input of {x.shape}: "
                "not an image-to-image network of 1, 3 or 4 channels, or another layout"
            )
        y = torch.from_numpy(output).to(photo.device, photo.dtype)
        if self.layout == "nhwc":
            y = y.permute(0, 3, 1, 2)
        low, high = self.output_range
        return self._order((y - low) / (high - low)).contiguous()

    def _run(self, x: np.ndarray) -> np.ndarray:
        short = (self._batch or len(x)) - len(x)  # a fixed batch is filled up, then cut again
        full = np.concatenate([x, np.repeat(x[-1:], short, axis=0)]) if short else x
        with library_errors(f"{self.path}: cannot run on {full.shape} {full.dtype}", most=None):
            output = self._session.run([self.output], {self.input: full})[0]
        return np.atleast_1d(np.asarray(output))[: len(x)]

    def _order(self, x: Tensor) -> Tensor:
        return torch.cat([x[:, :3].flip(1), x[:, 3:]], 1) if self.channels == "bgr" else x


def _pick(name: str | None, tensors: Sequence[Any], path: Path, key: str) -> str:
    if not (names := [t.name for t in tensors]):
        raise DistillError(f"{path}: has no {key}, so no picture goes through it")
    if name is not None and name not in names:
        raise DistillError(f"teacher.{key}={name}: {path} has {', '.join(names)}")
    return name or names[0]
