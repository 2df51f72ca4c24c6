"""What a search compares trials by: figures of a run's validations, and costs of its network."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from torch import nn

from distill.core.errors import DistillError
from distill.metrics import complexity
from distill.metrics.timing import onnx_ms
from distill.models import checkpoint
from distill.runs.run_folder import Run
from distill_search.settings import COSTS

RISING = ("psnr", "ssim", "ink_recall", "ink_precision")  # the more the better


class MissingFigure(DistillError):
    """The validations of a recipe lack an objective: no further trial would have it."""


def values(run: Run, names: Sequence[str]) -> list[float]:
    """A finished run's figures in that order; all validated ones are of one step.

    It is the step with the best of the first one. Costs are those of the network at the run's own
    resolution: `ms` is the median of its ONNX file in ONNX Runtime, one thread. Raises DistillError
    for a figure that the run's validations do not have (`MissingFigure`).
    """
    validated = [name for name in names if name not in COSTS]
    table = run.validations()
    for name in validated:
        table = [row for row in table if f"val/{name}" in row]
        if not table:
            raise MissingFigure(
                f"search.objectives: {run.folder / 'metrics.csv'} has no val/{name}; search by a "
                "figure that it has, as another sweep=NAME"
            )
    first = validated[0]
    best = (max if first in RISING else min)(table, key=lambda row: row[f"val/{first}"])
    figures = {name: best[f"val/{name}"] for name in validated}
    if len(validated) < len(names):
        figures |= _costs(run, "ms" in names)
    return [figures[name] for name in names]


def counted_costs(network: nn.Module, side: int) -> dict[str, float]:
    """What can be counted without a clock: MACs of one side×side picture, and parameters."""
    return {
        "macs": complexity.module_macs(network, side) or 0,
        "parameters": complexity.parameters(network),
    }


def _costs(run: Run, timed: bool) -> dict[str, float]:
    import numpy as np

    from distill.export.onnx import OnnxExporter
    from distill.models.batchnorm import fold_batchnorm

    network, trained = checkpoint.load_network(run.checkpoint("best"))
    side = trained.side
    network.eval()
    figures = counted_costs(network, side)
    if timed:
        exporter = OnnxExporter(size=side, profile=trained.profile)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.onnx"
            path.write_bytes(exporter.export(fold_batchnorm(network)).SerializeToString())
            figures["ms"] = onnx_ms(path, np.full((1, 3, side, side), 0.5, np.float32))
    return figures
