"""A student in ONNX Runtime, for pictures of any size."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.sessions import _names, free_size
from distill.data.photos import BadPhoto

STRIDE = 32  # of the deepest features: what the sides must divide by

PROBE = (64, 96)  # height and width that no one fixes: shows whether another size goes

BEYOND = 0.5  # how far outside of [0, 1] a network without a last sigmoid may draw

PATCH = 384  # pixels: how far `Painter.reach` looks

SEEN = 1e-6  # less is float32's own rounding


class Hand(Protocol):
    """What draws: (1, 3, H, W) RGB in [0, 1] to (1, `channels`, H, W); H and W divide by 32.

    `fixed` is (H, W) where only one size goes, else None.
    """

    fixed: tuple[int, int] | None
    channels: int

    @property
    def reach(self) -> int:
        """Pixels that it looks to each side."""
        ...

    def __call__(self, photo: Tensor) -> Tensor: ...


class Painter:
    """(1, 3, H, W) RGB in [0, 1] to (1, `channels`, H, W); H and W divide by 32.

    An exported file names one size, which its operators do not depend on: the size is struck out.
    `fixed` is (H, W) where that fails, because a size is written into the graph itself, else None.
    `name` stands in messages. Raises DistillError for a network that draws no picture.
    """

    def __init__(self, model: onnx.ModelProto, name: str, threads: int | None = None) -> None:
        self._name, self._threads = name, threads or torch.get_num_threads()
        self._input = _photo(model, name)
        self.fixed: tuple[int, int] | None = None
        check_input(self._input, name)
        channels = self._open(free_size(model), *PROBE)
        if channels is None and (sides := _sides(self._input)):
            self.fixed = sides
            channels = self._open(model, *sides)
        if channels is None:
            raise DistillError(
                f"{name}: no network from one RGB picture (1, 3, height, width) in [0, 1] to one "
                "as large, or one that ONNX Runtime cannot run"
            )
        self.channels = channels

    def __call__(self, photo: Tensor) -> Tensor:
        """Raises BadPhoto where the memory does not suffice."""
        try:
            return torch.from_numpy(self._run(photo.numpy()))
        except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
            size = f"{photo.shape[-1]}×{photo.shape[-2]}"
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise BadPhoto(f"cannot be drawn at {size}; try a smaller size=N ({reason})") from error

    @cached_property
    def reach(self) -> int:
        """Pixels across which a change of the picture is seen to change the drawing at all.

        Measured with patches of random colours, even and dark ones, in the place of others; at most
        384, or half of the one size that the network takes, where it looks as far or further.
        """
        height, width = self.fixed or (STRIDE, 2 * PATCH)
        half, rng = width // 2, np.random.default_rng(0)
        cells = (1, 3, -(-height // 8), -(-width // 8))  # noise of single pixels is mostly ignored
        colours = rng.random((3, *cells), np.float32).repeat(8, -1).repeat(8, -2)
        first, *others = colours[..., :height, :width]
        drawn, furthest = self._run(first), 0
        for other, power in zip(others, (1, 4), strict=True):
            other = np.concatenate([other[..., :half] ** power, first[..., half:]], -1)
            changed = np.abs(self._run(other) - drawn).max((0, 1, 2))[half:] > SEEN
            furthest = max(furthest, int(changed.nonzero()[0].max(initial=-1)) + 1)
        return furthest

    def _run(self, photo: np.ndarray) -> np.ndarray:
        return np.asarray(self._session.run(None, {self._input.name: photo})[0])

    def _open(self, model: onnx.ModelProto, height: int, width: int) -> int | None:
        """Start a session; gives the channels it draws at this size, None if it does not."""
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # a size that does not go is tried on purpose
        options.intra_op_num_threads = self._threads
        try:
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            drawn = self._run(_grey_wedge(height, width))
        except Exception:  # see __call__
            return None
        fits = drawn.shape in ((1, 3, height, width), (1, 4, height, width))
        if not fits or drawn.dtype != np.float32:
            return None
        self._check_range(drawn)
        return drawn.shape[1]

    def _check_range(self, drawn: np.ndarray) -> None:
        low, high = float(drawn.min()), float(drawn.max())
        if not (low >= -BEYOND and high <= 1 + BEYOND):  # true for NaN too
            raise DistillError(
                f"{self._name}: draws values from {low:.3g} to {high:.3g}; its input and output "
                "must be RGB in [0, 1]"
            )


def _grey_wedge(height: int, width: int) -> np.ndarray:
    """Black to white from left to right, (1, 3, height, width)."""
    return np.broadcast_to(np.linspace(0, 1, width, dtype=np.float32), (1, 3, height, width)).copy()


def _photo(model: onnx.ModelProto, name: str) -> onnx.ValueInfoProto:
    names = _names(model)
    if len(names) != 1:
        raise DistillError(f"{name}: has {len(names)} inputs, want one: the picture")
    return next(value for value in model.graph.input if value.name == names[0])


def _sides(value: onnx.ValueInfoProto) -> tuple[int, int] | None:
    """Height and width where both are numbers."""
    sides = [dim.dim_value for dim in value.type.tensor_type.shape.dim[2:4]]
    return (sides[0], sides[1]) if len(sides) == 2 and all(sides) else None


WANTED = "float32 (1, 3, height, width), RGB in [0, 1]"


def check_input(value: onnx.ValueInfoProto, name: str) -> None:
    """Raises DistillError for an input that no picture fits, which says what it is and is to be.

    Sizes that a file leaves open are taken as right.
    """
    tensor = value.type.tensor_type
    dims = [dim.dim_value or dim.dim_param or "?" for dim in tensor.shape.dim]
    kind = _kind(tensor.elem_type)
    if tensor.elem_type == TensorProto.FLOAT and (not dims or _fits(dims)):
        return
    shape = ", ".join(map(str, dims))
    hint = "; channels last: export it with channels first" if _channels_last(dims) else ""
    raise DistillError(f"{name}: its input is {kind} ({shape}), want {WANTED}{hint}")


def _fits(dims: list[int | str]) -> bool:
    """No dimension that is a number contradicts (1, 3, height, width)."""
    if len(dims) != 4:
        return False
    return all(
        have == want for have, want in zip(dims, (1, 3), strict=False) if isinstance(have, int)
    )


def _channels_last(dims: list[int | str]) -> bool:
    return len(dims) == 4 and dims[3] in (1, 3, 4) and dims[1] not in (1, 3, 4)


def _kind(number: int) -> str:
    name = TensorProto.DataType.Name(number).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)
