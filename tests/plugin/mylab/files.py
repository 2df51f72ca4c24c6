"""An export format, a device, an engine, a callback and a logger."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
from pytorch_lightning.loggers.logger import Logger

from distill.check.onnx_graph import Graph
from distill.check.shared import Cause, Finding, Profile
from distill.core.engine import Here
from distill.export.format import ConversionSource, ConvertedFormat


class Npz(ConvertedFormat):
    """The weights as NumPy's own file."""

    name = "npz"
    endings = (".npz",)

    def convert(self, source: ConversionSource, folder: Path) -> None:
        np.savez(
            folder / self.files[0], **{k: v.numpy() for k, v in source.folded.state_dict().items()}
        )


def few_nodes(graph: Graph) -> Iterator[Finding]:
    if len(graph.nodes) > 3:
        yield Cause("slow", "a data sheet", "leave some out").at(None, "many nodes", "file")


PHONE = Profile("phone", "A phone of 1999", (few_nodes,))


class Counted(Here):
    """This process, which writes down how many leases it had."""

    def __init__(self, log: str) -> None:
        self.log = Path(log)

    def run(self, worker: Any, leases: Any, device: str) -> Any:
        self.log.write_text(str(len(leases)))
        return super().run(worker, leases, device)


class Marker(pl.Callback):
    """Leaves a file where a training ended."""

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        Path("marker.txt").write_text(str(trainer.global_step))


class Lines(Logger):
    """A line for each call, in FOLDER/lines.txt."""

    def __init__(self, save_dir: str) -> None:
        super().__init__()
        self.path = Path(save_dir) / "lines.txt"

    @property
    def name(self) -> str:
        return "lines"

    @property
    def version(self) -> str:
        return "1"

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        self.log_metrics({"settings": len(params)})

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        with self.path.open("a") as file:
            file.write(f"{step} {sorted(metrics)}\n")
