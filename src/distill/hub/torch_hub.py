"""Students and teachers for torch.hub: hubconf.py offers them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from distill.hub.published_student import PublishedStudent


def student(style: str = "toon", pretrained: bool = True, file: str | None = None) -> nn.Module:
    """A student: (N, 3, H, W) RGB in [0, 1] to the same in [0, 1], any size, in evaluation mode.

    `style` is one of the package: toon, hayao, hayao-small or whitebox. Their files are ONNX with
    BatchNorm folded; the network has these weights and gives what the file gives, but nothing is
    normalised any more as training did it. `file` is one of your own instead, as training left
    it: a .safetensors, a checkpoint or the folder of a run. Not `pretrained`: untrained, with the
    settings of distill.train.
    """
    from distill.hub.published_student import PublishedStudent

    if file is not None:
        return PublishedStudent.of(file)
    return _shipped(style) if pretrained else PublishedStudent(_described(f"style={style}"))


def teacher(style: str = "toon", weights: str | None = None) -> nn.Module:
    """A style's teacher, frozen: (N, 3, H, W) RGB in [0, 1] to the same; sides by its `multiple`.

    Its weights are `weights`, else found in the folders of $DISTILL_WEIGHTS or in the cache, else
    fetched where a published file with a known hash exists, and verified.
    """
    from distill.config import compose
    from distill.config.settings.training import Train
    from distill.hub import published_student  # noqa: F401  # makes the recipes known
    from distill.models.build import load_teacher

    settings = compose.load("train", [f"style={style}"], Train)
    return load_teacher(replace(settings.style, weights=weights), settings.teacher)


def _shipped(style: str) -> PublishedStudent:
    """The package's student of that style: its ONNX file names every weight as PyTorch does.

    Raises DistillError, which lists what there is.
    """
    from distill.core.errors import DistillError
    from distill.core.state_dicts import load_state, tensors_in_graph
    from distill.hub.published_student import PublishedStudent
    from distill.models import zoo
    from distill.models.network_file import untrained_network

    if style not in zoo.shipped():
        raise DistillError(
            f"style={style}: no student of it in this package (there are: "
            f"{', '.join(zoo.shipped()) or 'none'}); take one of yours: file=FILE or file=runs/NAME"
        )
    path = zoo.find(style)
    state = tensors_in_graph(path)
    card = json.loads(path.with_suffix(".json").read_text())
    said = _described(*card["settings"]) | {"folded": True}
    network = untrained_network(said)
    load_state(network, state, path)
    return PublishedStudent(said, network)


def _described(*settings: str) -> dict[str, Any]:
    """What a file says of a student that was trained with these settings of distill.train."""
    from distill.config import compose
    from distill.config.registry import schema_of
    from distill.models.network_file import description

    words = ["encoder.weights=none", *settings]
    return description(asdict(compose.load("train", words, schema_of)))
