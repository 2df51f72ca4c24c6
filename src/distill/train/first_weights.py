"""init=…: which trained student a run starts from, and its weights in the run's own network."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.images import to_tensor
from distill.core.state_dicts import tensors_in_graph
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.models import zoo
from distill.models.checkpoint import student_to_start_from
from distill.models.fold import unfold_batchnorm
from distill.models.students.student import Student

ZOO = "zoo:"
SIDE = 256  # of the photographs by which BatchNorm is measured again


def start_from(student: Student, init: str) -> None:
    """Give `student` the weights that `init` names.

    FILE.ckpt of distill.train, a .safetensors or .onnx file of distill.export, or zoo:NAME, a
    student of the package. Where BatchNorm is folded, scikit-image's photographs are what it is
    measured by. Raises DistillError for what is no student, or another one.
    """
    state, folded = _weights(init)
    there, here = _wide_blocks(state), _wide_blocks(student.state_dict())
    if there != here:
        raise DistillError(
            f"init={init}: has {there} wide blocks and this run's student {here}; add "
            f"decoder.build.context={there}"
        )
    told = any(name.startswith("statistics.") for name in state)
    if told and student.statistics is None:
        raise DistillError(f"init={init}: uses global statistics; add global_statistics=thumbnail")
    if student.statistics is not None and not told:
        # One that was told nothing of the whole picture: what tells it changes nothing at first.
        state |= {f"statistics.{n}": v for n, v in student.statistics.state_dict().items()}
    try:
        if folded:
            squares = [centre_square(read_photo(photo.path), SIDE) for photo in demo_photos()]
            unfold_batchnorm(student, state, torch.stack([*map(to_tensor, squares)]))
        else:
            student.load_state_dict(state)
    except RuntimeError as error:
        raise DistillError(
            f"init={init}: another network than this run's; set encoder=, decoder= and "
            "channels= as they were, or leave init out"
        ) from error


def _wide_blocks(state: Mapping[str, Tensor]) -> int:
    """How many blocks of decoder=detail see all of the picture: the default has changed."""
    return len({name.split(".")[2] for name in state if name.startswith("decoder.context.")})


def _weights(init: str) -> tuple[dict[str, Tensor], bool]:
    """The weights by name, and whether BatchNorm is folded into them."""
    if init.startswith(ZOO):
        there = zoo.shipped()
        name = init.removeprefix(ZOO)
        if name not in there:
            raise DistillError(
                f"init={init}: no such student in this package; there are "
                f"{', '.join(ZOO + each for each in there)}"
            )
        return tensors_in_graph(there[name]), True
    path = home_path(init)
    if path.suffix.lower() == ".onnx":
        return tensors_in_graph(path), True
    student, folded = student_to_start_from(path)
    return dict(student.state_dict()), folded
