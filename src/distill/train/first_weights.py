"""The student as a run begins: new, or by init=… with the weights of one that was trained."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.images import to_tensor
from distill.core.nodes import unknown_name
from distill.core.state_dicts import tensors_in_graph, usable
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.models import zoo
from distill.models.batchnorm import unfold_batchnorm
from distill.models.build import build_student, without_weights
from distill.models.checkpoint import student_to_start_from
from distill.models.network_file import problems_of
from distill.models.students.heads import initial_state
from distill.models.students.student import Student

ZOO = "zoo:"
# Names of the paper's released weights (dhrits/Anime), which are a student with decoder=nnconv.
PAPER = {
    "features": "encoder.blocks", "upscale0": "decoder.deep", "upscale1": "decoder.up16",
    "upscale2": "decoder.up8", "upscale3": "decoder.up4", "upscale4": "decoder.up2",
    "upscale5": "decoder.out",
}  # fmt: skip
SIDE = 256  # of the photographs by which BatchNorm is measured again


def new_student(settings: Train) -> Student:
    """The student as its training begins: with its encoder's weights, or as `init` has it."""
    encoder = settings.encoder
    if settings.init is not None:
        encoder = without_weights(encoder)  # all of them come from `init`
    shape = encoder, settings.decoder.build, settings.channels, settings.global_statistics
    student, plain = build_student(*shape, settings.head), None
    if student.head is not None:
        plain = build_student(without_weights(encoder), shape[1], 4, shape[3])
        if settings.init is None:
            colours = build_student(*shape)
            start = initial_state(student, student.head, colours.state_dict(), plain.state_dict())
            student.load_state_dict(start)
    if settings.init is not None:
        start_from(student, settings.init, plain)
    return student


def start_from(student: Student, init: str, plain: Student | None = None) -> None:
    """Give `student` the weights that `init` names; one with a head needs `plain`, as
    `initial_state` has it.

    FILE.ckpt of distill.train, a .safetensors or .onnx file of distill.export, zoo:NAME, a student
    of the package, or a .pth that the paper released (decoder=nnconv). Where BatchNorm is folded,
    scikit-image's photographs are what it is measured by. Raises DistillError for what is no
    student, or another one.
    """
    state, folded = _weights(init)
    _check_shape(student, state, init)
    now = student.state_dict()
    if not any(name.startswith("statistics.") for name in state):  # new ones change nothing yet
        state |= {n: value for n, value in now.items() if n.startswith("statistics.")}
    # Smoothing of the enlarged features, which a student of the package may have been without.
    state = {n: value for n, value in now.items() if n.startswith("decoder.smooth")} | state
    # Depthwise convolutions of another side keep their middle, or get zeros around it.
    for name, weight in now.items():
        if name in state and weight.ndim == 4 and weight.shape[1] == 1:
            state[name] = F.pad(state[name], 4 * [(weight.shape[-1] - state[name].shape[-1]) // 2])
    if student.head is None and any(name.startswith("head.") for name in state):
        state = _without_head(state, now)
    try:
        if student.head is not None and plain is not None:
            state = initial_state(student, student.head, state, plain.state_dict())
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


def _check_shape(student: Student, state: Mapping[str, Tensor], init: str) -> None:
    """Raises DistillError, which says what to add, for weights of another decoder=detail."""
    there, here = _wide_blocks(state), _wide_blocks(student.state_dict())
    statistics = any(name.startswith("statistics.") for name in state)
    if (there or statistics) and not hasattr(student.decoder, "context"):
        raise DistillError(f"init={init}: a student with decoder=detail, and this run's is another")
    if there != here:
        raise DistillError(
            f"init={init}: has {there} wide blocks and this run's student {here}; add "
            f"decoder.build.context={there}"
        )
    if statistics and student.statistics is None:
        raise DistillError(f"init={init}: uses global statistics; add global_statistics=thumbnail")


def _without_head(state: Mapping[str, Tensor], plain: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a student with a head as those of one without: the first channels of its
    outputs, which are the paint of head=layers."""
    kept = {name: value for name, value in state.items() if not name.startswith("head.")}
    for name in kept.keys() & plain.keys():
        if name.startswith(("decoder.out.", "decoder.smooth_output.", "statistics.")):
            for axis, size in enumerate(plain[name].shape):
                if kept[name].shape[axis] > size:
                    kept[name] = kept[name].narrow(axis, 0, size)
    return kept


def check_name(init: str | None) -> None:
    """Raises DistillError for a student of the package that there is none of."""
    name = (init or "").removeprefix(ZOO)
    if init and init.startswith(ZOO) and name not in zoo.shipped():
        raise DistillError("init=zoo:" + unknown_name(name, [*zoo.shipped()], "student here"))


def _wide_blocks(state: Mapping[str, Tensor]) -> int:
    """How many blocks of decoder=detail see all of the picture: the default has changed."""
    return len({name.split(".")[2] for name in state if name.startswith("decoder.context.")})


def _weights(init: str) -> tuple[dict[str, Tensor], bool]:
    """The weights by name, and whether BatchNorm is folded into them."""
    if init.startswith(ZOO):
        check_name(init)
        return tensors_in_graph(zoo.shipped()[init.removeprefix(ZOO)]), True
    path = home_path(init)
    if path.suffix.lower() == ".onnx":
        return tensors_in_graph(path), True
    if path.suffix.lower() == ".pth":
        with problems_of(path, "file of the paper's weights"):
            saved = usable(torch.load(path, map_location="cpu", weights_only=True), path.name)
            parts = [(name.partition("."), value) for name, value in saved.items()]
            return {f"{PAPER[first]}.{rest}": value for (first, _, rest), value in parts}, False
    student, folded = student_to_start_from(path)
    return dict(student.state_dict()), folded
