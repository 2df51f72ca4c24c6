"""A trained network in one safetensors file: its weights, and in the metadata what builds it.

The weights are those that training ended with, BatchNorm not yet folded, so that training can start
from them again. The metadata has one key, `distill`: JSON of plain values, without any path of the
machine that trained. Such a file needs no run's folder, and reading it runs no code of it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from distill import __version__
from distill.config.registry import schema_of
from distill.config.settings.base import Direction
from distill.config.settings.networks import (
    Description,
    GeneratorDescription,
    GeneratorSettings,
    NetworkSettings,
    StudentDescription,
    StudentSettings,
)
from distill.config.settings.training import Train, Training
from distill.config.validate import fit
from distill.core.errors import DistillError
from distill.core.files import atomic_write
from distill.core.nodes import check_part, class_of
from distill.core.state_dicts import load_state
from distill.models.batchnorm import fold_batchnorm
from distill.models.build import TEACHERS, untrained, without_weights
from distill.models.teachers.teacher import Teacher

SUFFIX = ".safetensors"
KEY = "distill"  # of the metadata
FORM = 1  # of what is under it; a reader refuses a later one


def is_network_file(path: Path) -> bool:
    """Whether a file is one of these by its name; else it is a checkpoint, or an ONNX file."""
    return path.suffix.lower() == SUFFIX


def description(trained: Training, direction: Direction = "AtoB") -> Description:
    """What a file says of its network, from the settings of its run: no paths."""
    common: dict[str, Any] = {
        "form": FORM,
        "version": __version__,
        "recipe": trained.recipe,
        "direction": direction,
        "channels": trained.channels,
        "size": trained.side,
        "colours_at": colours_at(trained),
        "folded": False,
    }
    if isinstance(trained, GeneratorSettings):
        return GeneratorDescription(run=trained.run, generator=trained.generator, **common)
    assert isinstance(trained, Train)
    style, teacher = replace(trained.style, weights=None), trained.teacher
    if weights := trained.style.weights:  # not the file that is published under that name
        style = replace(style, file=Path(weights).name, url=None, sha256=None, git_blob=None)
    return StudentDescription(
        encoder=without_weights(trained.encoder),
        decoder=trained.decoder,
        head=trained.head,
        global_statistics=trained.global_statistics,
        style=style,
        teacher=teacher and {key: v for key, v in teacher.items() if key != "path"},
        **common,
    )


def untrained_network(about: Description) -> nn.Module:
    """The network of a description, with weights that are none."""
    network = untrained(about)
    if not about.folded:
        return network
    return fold_batchnorm(network).requires_grad_()  # torch gives new biases none


def colours_at(trained: NetworkSettings) -> int | None:
    """The side that a student learnt at, where its teacher's colours depend on the whole picture.

    Its own depend on what its features see there, which in a larger picture is a part. None for a
    student that is told the whole picture.
    """
    if not isinstance(trained, Train) or trained.global_statistics != "none":
        return None
    teacher = trained.teacher
    with suppress(DistillError):  # one that is not trusted is not needed otherwise
        if teacher is not None:
            check_part(teacher, TEACHERS, Teacher)
            return trained.side if class_of("teacher", teacher).normalises else None
    return None


def write_network(network: nn.Module, about: Description, target: Path) -> None:
    """Replace `target` by the network's weights and its `description`. The same in, the same bytes.

    A second key beside ours would stand before or after it by chance.
    """
    state = {
        name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()
    }
    with atomic_write(target) as temporary:
        save_file(
            state, temporary, {KEY: json.dumps(asdict(about), sort_keys=True, ensure_ascii=False)}
        )


def read_description(path: Path) -> Description:
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
        about = json.loads(metadata[KEY])
        if about["form"] > FORM:
            raise DistillError(f"made by distill {about['version']}; update this one")
        of_student = issubclass(schema_of(about), StudentSettings)
        schema = StudentDescription if of_student else GeneratorDescription
        return fit(about, schema, extra="ignore")


def read_network_file(path: Path, direction: Direction = "AtoB") -> tuple[nn.Module, Description]:
    """The network in such a file, in evaluation mode, and what the file says of it.

    (N, 3, H, W) in [0, 1] to (N, 3 or 4, H, W) in [0, 1]. The file may only name classes of
    distill.models.students and of plug-ins. Raises DistillError for any other file,
    and for another `direction` than the one that each has.
    """
    if direction != "AtoB":
        raise DistillError(f"direction={direction}: {path} has one direction; leave it out")
    about = read_description(path)
    with problems_of(path, "network of distill.export"):
        network = untrained_network(about)
        load_state(network, load_file(path), Path(path.name))
    return network.eval(), about


@contextmanager
def problems_of(path: Path, expected: str) -> Iterator[None]:
    """Whatever a file from elsewhere may hold ends in one line that names it."""
    try:
        yield
    except DistillError as error:
        raise DistillError(f"{path}: {str(error).removeprefix(f'{path.name}: ')}") from error
    except Exception as error:
        reason = f"damaged, or not a {expected} ({type(error).__name__})"
        raise DistillError(f"{path}: {reason}") from error
