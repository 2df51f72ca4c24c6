"""ONNX that lens tools and phones read: one file, static, folded, flushed, no foreign operators.

Which operators are foreign is a matter of the profile (graph/operator_sets.py).
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.core.onnx_files import COLOURS_AT, note
from distill.core.sessions import open_session, picture_call
from distill.core.subnormals import flush_subnormals
from distill.exporters.graph.operator_sets import STATIC, Profile
from distill.exporters.graph.strict import doubles, in_strict_operators
from distill.exporters.graph.tidy import tidy

OPSETS = range(9, 21)
SIDE = 256  # that students are trained at, and budgets speak of


@dataclass(frozen=True)
class OnnxExporter:
    """How to write a network: `opset` 9 to 20, `size` of the side (divides by 32), fixed or not.

    `size` None: 256, or what the network was trained for. `profile` names the operators that may be
    in the file; None: what the network's own settings say. `colours_at`: distill.stylize takes the
    colours of larger outputs from one of that side; None: where the teacher normalises, the side
    that the student learnt at.
    """

    opset: int = 11
    size: int | None = None
    dynamic: bool = False
    profile: Profile | None = None
    colours_at: int | None = None

    def __post_init__(self) -> None:
        if self.opset not in OPSETS:
            raise DistillError(f"exporter.opset={self.opset}: from {OPSETS[0]} to {OPSETS[-1]}")
        if self.side < 32 or self.side % 32:
            raise DistillError(f"exporter.size={self.size}: must divide by 32")
        if self.colours_at is not None and self.colours_at < 32:
            raise DistillError(f"exporter.colours_at={self.colours_at}: at least 32 pixels")
        if self.profile not in (None, *get_args(Profile)):
            known = ", ".join(get_args(Profile))
            raise DistillError(f"exporter.profile={self.profile}: choose from {known}")
        if self.dynamic and self.profile in STATIC:
            raise DistillError(
                f"exporter.dynamic=true: the profile {self.profile} holds one size; leave it out"
            )

    @property
    def side(self) -> int:
        """Of the input, in pixels."""
        return SIDE if self.size is None else self.size

    def export(self, folded: nn.Module) -> onnx.ModelProto:
        """The graph of a network whose BatchNorm is folded; input `photo`, output `stylized`.

        (1, 3, side, side) in [0, 1] to (1, 3 or 4, side, side) in [0, 1]. Passes onnx.checker.
        """
        model = onnx.load_from_string(self._trace(self._in_profile(folded)))
        flush_subnormals(model)
        tidy(model)
        if self.colours_at:
            note(model, COLOURS_AT, self.colours_at)
        onnx.checker.check_model(model, full_check=True)
        return model

    def _in_profile(self, network: nn.Module) -> nn.Module:
        if self.profile != "strict" or not any(map(doubles, network.modules())):
            return network
        if self.dynamic:
            raise DistillError(
                "exporter.dynamic=true: this decoder has transposed convolutions, and in the "
                "profile strict they hold one size; take exporter.profile=transposed"
            )
        return in_strict_operators(network)

    def _trace(self, network: nn.Module) -> bytes:
        axes = {0: "batch", 2: "height", 3: "width"}
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # The tracing exporter is deprecated, and the one that reaches opset 9 to 17 directly;
            # and what it says of sizes that become constants is meant to be so.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network.cpu().eval().to(memory_format=torch.contiguous_format),
                (torch.zeros(1, 3, self.side, self.side),),
                buffer,  # type: ignore[arg-type]  # the tracing exporter takes any file
                input_names=["photo"],
                output_names=["stylized"],
                dynamic_axes={"photo": axes, "stylized": axes} if self.dynamic else None,
                opset_version=self.opset,
                dynamo=False,
            )
        return buffer.getvalue()


def parity(path: Path, network: nn.Module, photos: Tensor) -> float:
    """Largest absolute difference between the file in ONNX Runtime and the network, on photos."""
    run = picture_call(open_session(path, threads=0))
    with torch.inference_mode():
        expected = network.eval()(photos).numpy()
    got = [run(photo[None].numpy()) for photo in photos]
    return float(np.abs(np.concatenate(got) - expected).max())
