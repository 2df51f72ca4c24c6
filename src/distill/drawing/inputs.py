"""What an ONNX file takes, held against what a picture is here."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from distill.errors import DistillError

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
