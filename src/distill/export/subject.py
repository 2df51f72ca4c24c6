"""What is exported: a run's network, how it is written, and what it may cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import onnx
from torch import nn

from distill.config.registry import Direction, Recipe, recipe_of
from distill.config.settings.commands import Export
from distill.config.settings.training import Budget
from distill.core.errors import DistillError
from distill.core.nodes import build as build_node
from distill.export.onnx import SIDE, OnnxExporter, has_statistics
from distill.models.checkpoint import load_network, read_network
from distill.models.fold import fold_batchnorm
from distill.models.generators.unet import UNet
from distill.models.network_file import colours_at, is_network_file

RGBA_EXTRA = {"macs": 3_300_000, "parameters": 64, "bytes": 1_000}  # a fourth output channel


@dataclass(frozen=True)
class Subject:
    """A trained network and its run's settings; `exporter` knows the profile and the size.

    `direction` is that of a generator of recipe=cyclegan.
    """

    network: nn.Module
    trained: dict[str, Any]
    exporter: OnnxExporter
    direction: Direction = "AtoB"

    @property
    def recipe(self) -> Recipe:
        return recipe_of(self.trained)

    @property
    def stem(self) -> str:
        """What its files are called."""
        return self.recipe.stem

    @property
    def side(self) -> int:
        return self.exporter.side

    @property
    def halved(self) -> bool:
        """Whether its limit of bytes is for the half-precision file: a lens loads that one."""
        return self.recipe.half_precision(self.trained)

    @property
    def parity(self) -> float:
        """How far ONNX Runtime may be from PyTorch where nothing else is asked for.

        Its InstanceNormalization sums whole pictures in float32: on one with a black frame an
        untrained ResNet of 9 blocks is 1.5e-4 off a computation in float64, PyTorch 3.5e-6. So
        the limit is a quarter of an 8-bit step there.
        """
        summed = any(isinstance(m, nn.InstanceNorm2d) for m in self.network.modules())
        return 1e-3 if summed else 1e-4

    @property
    def formats(self) -> list[str]:
        """What it is written as where nothing else is asked for."""
        return ["onnx", "onnx_fp16"] if self.halved else ["onnx"]

    def folder(self, run: Path) -> Path:
        """Where its files go: of two directions the second has a place of its own."""
        return run / "export" if self.direction == "AtoB" else run / "export" / self.direction


def load(checkpoint: Path, settings: Export) -> Subject:
    """The checkpoint's network, ready to be exported. Raises DistillError in one line."""
    network, trained = load_network(checkpoint, settings.direction)
    exporter: OnnxExporter = build_node(settings.exporter)
    own = _own_size(trained)
    if isinstance(network, UNet) and exporter.size not in (None, own):
        raise DistillError(
            f"exporter.size={exporter.size}: a U-Net's depth follows its size, and this one takes "
            f"{own}×{own}; leave it out"
        )
    told = has_statistics(network)
    profile = exporter.profile or ("global" if told else recipe_of(trained).profile(trained))
    at = exporter.colours_at or colours_at(trained)
    size = exporter.size or own
    exporter = replace(exporter, profile=profile, size=size, colours_at=at)
    exporter = replace(exporter, opset=exporter.opset_of(network))
    return Subject(network, trained, exporter, settings.direction)


def limits(subject: Subject, settings: Export) -> Budget:
    """What was asked for where it is set, else the limit of the run.

    That limit is for RGB at 256²: a larger picture gets its share more MACs, a student's fourth
    output channel what it costs. `limit` is another way to write `budget.bytes`.
    """
    own = {key: value for key, value in asdict(settings.budget).items() if value is not None}
    if settings.limit is not None:
        own["bytes"] = int(settings.limit)
    budget = dict(subject.trained["budget"])
    if subject.trained["channels"] == 4 and not subject.halved:
        for key, extra in RGBA_EXTRA.items():
            budget[key] = budget[key] and budget[key] + extra
    budget["macs"] = budget["macs"] and round(budget["macs"] * (subject.side / SIDE) ** 2)
    return Budget(**(budget | own))


def inference_graph(checkpoint: Path, direction: Direction = "AtoB") -> onnx.ModelProto:
    """The network of a run of any recipe as an ONNX graph, unchecked, of the size it takes.

    `checkpoint` may be an exported safetensors file. `direction` chooses one of CycleGAN's two
    generators. Raises DistillError.
    """
    if is_network_file(checkpoint):
        network, said = read_network(checkpoint, direction)
        exporter = OnnxExporter(size=_own_size(said), colours_at=said["colours_at"])
    else:
        network, trained = load_network(checkpoint, direction)
        exporter = OnnxExporter(size=_own_size(trained), colours_at=colours_at(trained))
    return exporter.export(fold_batchnorm(network))


def _own_size(trained: dict[str, Any]) -> int:
    """A student is exported at 256², whatever it learnt on; a generator at the size that it did."""
    recipe = recipe_of(trained)
    return SIDE if recipe.has_teacher else recipe.side(trained)
