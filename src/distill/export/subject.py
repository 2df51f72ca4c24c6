"""What is exported: a run's network, how it is written, and what it may cost."""

import json
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn

from distill import __version__
from distill.config import compose
from distill.config.registry import Recipe, recipe_named, schema_of
from distill.config.settings.base import Direction
from distill.config.settings.commands import Export
from distill.config.settings.networks import Description, NetworkSettings, StudentSettings
from distill.config.settings.training import Budget, PhotoSource, Train, Training, source_of
from distill.core.errors import DistillError, of_the_user
from distill.core.images import channels_in, form, wrong_pictures
from distill.core.licence_terms import Licence, Terms
from distill.core.nodes import build as build_node
from distill.data.kinds import registry
from distill.data.licence_terms import described_terms, state_terms, terms_of
from distill.export.onnx import ANOTHER_SIZE, SIDE, OnnxExporter, has_statistics
from distill.models.batchnorm import fold_batchnorm
from distill.models.checkpoint import load_network, read_network
from distill.models.network_file import colours_at, is_network_file, read_network_file
from distill.models.students.photo_palette import PhotoPalette
from distill.models.students.student import Student

NO_LIMITS = Budget(macs=None, parameters=None, bytes=None)
OF_LOADER = ["style=own", "data.kind=loader"]  # of a student without pictures of its own
EXTRA_CHANNEL = {"macs": 3_300_000, "parameters": 200, "bytes": 1_000}  # behind the third


@dataclass(frozen=True)
class Subject:
    """A trained network and its run's settings; `exporter` knows the profile and the size.

    `direction` is that of one of two networks, `terms` are what the files are under.
    """

    network: nn.Module
    trained: Training
    exporter: OnnxExporter
    direction: Direction = "AtoB"
    terms: Terms = Terms(())
    folded: bool = False  # BatchNorm is, as in a student of the package

    @property
    def recipe(self) -> Recipe:
        return recipe_named(self.trained.recipe)

    @property
    def source(self) -> PhotoSource | None:
        """Photos and teacher of its run; None without a teacher."""
        return source_of(self.trained) if isinstance(self.trained, PhotoSource) else None

    @property
    def stem(self) -> str:
        """What its files are called."""
        return self.recipe.stem

    @property
    def sides(self) -> tuple[int, int]:
        return self.exporter.sides

    @property
    def halved(self) -> bool:
        """Whether its limit of bytes is for the half-precision file: a lens loads that one."""
        return self.recipe.half_precision and not isinstance(self.network, Student)

    @property
    def parity(self) -> float:
        """How far ONNX Runtime may be from PyTorch where nothing else is asked for.

        Its InstanceNormalization sums whole pictures in float32: on one with a black frame an
        untrained ResNet of 9 blocks is 1.5e-4 off a computation in float64, PyTorch 3.5e-6. And
        where two colours of a photo are about as far from a palette's others, rounding decides
        which is the next: `poster` is 3.4e-4 off. So the limit is a quarter of an 8-bit step there.
        """
        unsteady = (nn.InstanceNorm2d, PhotoPalette)
        return 1e-3 if any(isinstance(m, unsteady) for m in self.network.modules()) else 1e-4

    def folder(self, run: Path) -> Path:
        """Where its files go: of two directions the second has a place of its own."""
        return run / "export" if self.direction == "AtoB" else run / "export" / self.direction


def load(checkpoint: Path, settings: Export) -> Subject:
    """The network of a checkpoint or safetensors file, to be exported. Raises DistillError."""
    if is_network_file(checkpoint):
        network, about = read_network_file(checkpoint, settings.direction)
        about = replace(about, terms=state_terms(checkpoint, settings.licence).plain())
        return of_described(network, about, settings)
    network, trained = load_network(checkpoint, settings.direction)
    trained = registry.seen_from_here(trained, checkpoint)
    terms = state_terms(checkpoint, settings.licence)
    return subject_of(network, trained, settings, terms)


def of_module(network: nn.Module, settings: Export) -> Subject:
    """Any network, (1, 3, H, W) to (1, 1, 3 or 4, H, W), both in [0, 1]. Raises DistillError."""
    if "safetensors" in (settings.formats or ()):
        raise DistillError("formats=safetensors: of distill's own networks; use torch.save here")
    name, exporter = type(network).__name__, build_node(settings.exporter)
    for sides in (exporter.inside, *([ANOTHER_SIZE] if exporter.dynamic else ())):
        photo = torch.rand(1, 3, *sides)
        with torch.inference_mode(), of_the_user(f"{name}: a call with {form(photo)}"):
            output = network(photo)
        channels = channels_in(output)
        if problem := wrong_pictures(output, (1, channels, *sides)):
            raise DistillError(f"{name}: {problem}, for {tuple(photo.shape)}")
    defaults = compose.load("train", OF_LOADER, Train)
    any_profile: Any = "any"
    decoder = replace(defaults.decoder, name=name, profile=any_profile)
    network_facts: Any = {"channels": channels, "decoder": decoder, "encoder": {}}
    trained = replace(defaults, budget=NO_LIMITS, **network_facts)
    return subject_of(network, trained, settings, Terms((Licence(name),)))


def of_described(network: nn.Module, about: Description, settings: Export) -> Subject:
    """A network without a run: no limits, no pictures of its own. Raises DistillError."""
    student = isinstance(about, StudentSettings)
    words = OF_LOADER if student else [f"recipe={about.recipe}"]
    defaults = compose.load("train", words, schema_of)
    shared = {name: value for name, value in vars(about).items() if hasattr(defaults, name)}
    trained = replace(
        defaults, budget=NO_LIMITS, **{n: v for n, v in shared.items() if n != "side"}
    ).of_side(about.size)
    return replace(
        subject_of(network, trained, settings, described_terms(about)), folded=about.folded
    )


def subject_of(network: nn.Module, trained: Training, settings: Export, terms: Terms) -> Subject:
    """A network and its run's settings, ready to be exported. Raises DistillError."""
    exporter: OnnxExporter = build_node(settings.exporter)
    side = _side(trained)
    other = exporter.size and exporter.sides != (side, side)
    if getattr(network, "fixed", None) and (exporter.dynamic or other):
        setting = "dynamic=true" if exporter.dynamic else f"size={exporter.size}"
        raise DistillError(
            f"exporter.{setting}: {type(network).__name__} takes one size, here {side}×{side}; "
            "leave it out"
        )
    statistics = has_statistics(network)
    profile = exporter.profile or ("global" if statistics else trained.profile)
    at = exporter.colours_at or colours_at(trained)
    size = exporter.size or side
    terms = terms.published(f"run={trained.run}", settings.takedown.accept)
    terms = terms.permitted("export", settings.licence.i_have_permission)
    weights = sha256()  # of all values, unfolded
    for name, value in network.state_dict().items():
        weights.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    style = trained.style.name if isinstance(trained, Train) else trained.run
    about = {"style": style, "version": __version__, "weights": weights.hexdigest()}
    exporter = replace(exporter, profile=profile, size=size, colours_at=at)
    exporter = replace(exporter, terms=terms.json(), about=json.dumps(about))
    exporter = replace(exporter, opset=exporter.opset_of(network))
    return Subject(network, trained, exporter, settings.direction, terms)


def limits(subject: Subject, settings: Export) -> Budget:
    """What was asked for where it is set, else the limit of the run.

    That limit is for RGB at 256²: a larger picture gets its share more MACs, a student's fourth
    output channel and a head what they cost. `limit` is another way to write `budget.bytes`.
    """
    limits_set = {key: value for key, value in asdict(settings.budget).items() if value is not None}
    if settings.limit is not None:
        limits_set["bytes"] = int(settings.limit)
    budget = asdict(subject.trained.budget)
    head = getattr(subject.network, "head", None)
    more = 0 if subject.halved else max(subject.trained.channels - 3, 0)
    if head is not None:  # its channels beyond three, and the layers that make a picture of them
        more = max(head.channels - 3, 0) + 1
    for key, extra in EXTRA_CHANNEL.items():
        budget[key] = budget[key] and budget[key] + more * extra
    budget["macs"] = budget["macs"] and round(
        budget["macs"] * prod(subject.exporter.inside) / SIDE**2
    )
    return Budget(**(budget | limits_set))


def inference_graph(checkpoint: Path, direction: Direction = "AtoB") -> onnx.ModelProto:
    """The network of a run of any recipe as an ONNX graph, unchecked, of the size it takes.

    `checkpoint` may be an exported safetensors file. `direction` chooses one of a run's two
    networks. Of what a run's settings name, only the network is built. Raises DistillError.
    """
    network, about = read_network(checkpoint, direction)
    at = about.colours_at if isinstance(about, Description) else colours_at(about)
    exporter = OnnxExporter(size=_side(about), colours_at=at, terms=terms_of(checkpoint).json())
    return exporter.export(fold_batchnorm(network))


def _side(network: NetworkSettings) -> int:
    """A student is exported at 256², whatever it learnt on; a generator at the size that it did."""
    return SIDE if isinstance(network, StudentSettings) else network.side
