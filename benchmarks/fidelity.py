"""How close students come to their teacher on held-out photos (--help says how)."""

from __future__ import annotations

import onnx
from against_teacher.fidelity import main
from torch import nn

from distill.export.onnx import OnnxExporter


def to_graph(network: nn.Module, size: int) -> onnx.ModelProto:
    """As a phone runs it: static, for pictures of that side."""
    return OnnxExporter(size=size).export(network)


if __name__ == "__main__":
    main(to_graph)
