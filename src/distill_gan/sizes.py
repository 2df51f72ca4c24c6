"""What a U-Net takes, step by step, from that of the paper to the files of an export."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Column, Table

from distill.core.files import write_json
from distill.core.nodes import Node, build
from distill.export.format import Float32
from distill.export.fp16 import Float16
from distill.export.int8 import Int8
from distill.export.reports import REPORT
from distill.export.subject import Subject
from distill.metrics import complexity
from distill_gan.generators.unet import UNet
from distill_gan.settings import Adversarial

HEADS = ("", "parameters", "MB", "GMACs", "file, MB")
PAPER = {"upsampling": "transposed"}  # and the rest at its default


def report_sizes(subject: Subject, folder: Path, written: bool = True) -> None:
    """Print the table for a U-Net and add it to the folder's report.json, as `sizes`.

    Not `written`: the export was refused, and files that lie there are of an earlier one.
    """
    if not isinstance(subject.network, UNet):
        return
    rows = list(sizes(subject, folder if written else None))
    table = Table(HEADS[0], *(Column(head, justify="right") for head in HEADS[1:]))
    for row in rows:
        file = "–" if row["file"] is None else f"{row['file'] / 1e6:.2f}"
        numbers = f"{row['parameters']:,}", f"{row['bytes'] / 1e6:.1f}", f"{row['macs'] / 1e9:.3g}"
        table.add_row(row["name"], *numbers, file)
    Console().print(table)
    print("MB: 4, 2 or 1 byte for each trained value, in millions; file: what was written.")
    path = folder / REPORT
    write_json(path, json.loads(path.read_text()) | {"sizes": rows})


def sizes(subject: Subject, folder: Path | None) -> Iterator[dict[str, Any]]:
    """The paper's U-Net of this size, this run's step by step, and its files in `folder`.

    `bytes` are of a network's trained values, `file` those of what was written.
    """
    assert isinstance(subject.trained, Adversarial)
    node, side = subject.trained.generator.build, subject.sides[0]
    settings = node | {"size": side, "out_channels": subject.trained.channels}
    yield _float(f"U-Net-{side} of the paper", {"_target_": node["_target_"], "size": side} | PAPER)
    factors = f"width factors {settings.get('encoder', 1.0):g} and {settings.get('decoder', 1.0):g}"
    separable = settings.get("separable", False)
    plain = _float(factors, settings | {"separable": False})
    if separable:
        yield plain
    last = _float("+ separable convolutions", settings) if separable else plain
    precisions = (("float32", 4, Float32), ("half precision", 2, Float16), ("int8", 1, Int8))
    for precision, width, format_ in precisions:
        name, *_ = format_.files_of(subject.stem)
        path = folder / name if folder else None
        yield last | {
            "name": last["name"] if width == 4 else f"+ {precision}",
            "bytes": width * last["parameters"],
            "file": path.stat().st_size if path and path.is_file() else None,
        }


def _float(name: str, node: Node) -> dict[str, Any]:
    """Built without memory for its weights: only shapes are looked at."""
    with torch.device("meta"):
        network = build(node).eval()
        macs = complexity.module_macs(network, node["size"], node.get("in_channels", 3))
    count = complexity.parameters(network)
    return {"name": name, "parameters": count, "bytes": 4 * count, "macs": macs or 0, "file": None}
