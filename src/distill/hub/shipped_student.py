"""A student of the package as a PyTorch network: its ONNX file names every weight as PyTorch does.

BatchNorm is folded into the convolutions there, and stays so: what it had measured is gone.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from distill.config import compose
from distill.config.registry import schema_of
from distill.core.errors import DistillError
from distill.core.state_dicts import load_state, tensors_in_graph
from distill.hub.published_student import PublishedStudent
from distill.models import zoo
from distill.models.network_file import description, untrained_network


def shipped_student(style: str) -> PublishedStudent:
    """The package's student of that style. Raises DistillError, which lists what there is."""
    if style not in zoo.shipped():
        raise DistillError(
            f"style={style}: no student of it in this package (there are: "
            f"{', '.join(zoo.shipped()) or 'none'}); take one of yours: file=FILE or file=runs/NAME"
        )
    path = zoo.find(style)
    state = tensors_in_graph(path)
    card = json.loads(path.with_suffix(".json").read_text())
    wide = {name.split(".")[2] for name in state if name.startswith("decoder.context.")}
    told = any(name.startswith("statistics.") for name in state)
    said = described(
        style,
        f"encoder.width={card['width']}",
        f"decoder={card['decoder']}",
        f"decoder.build.context={len(wide)}",
        f"global_statistics={'thumbnail' if told else 'none'}",
    ) | {"folded": True}
    network = untrained_network(said)
    load_state(network, state, path)
    return PublishedStudent(said, network)


def described(style: str, *settings: str) -> dict[str, Any]:
    """What a file says of a student that was trained with these settings of distill.train."""
    words = [f"style={style}", "encoder.weights=none", *settings]
    return description(asdict(compose.load("train", words, schema_of)))
