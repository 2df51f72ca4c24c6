"""What builds a network of distill: of a run's settings, and in the file of an exported network."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from distill.config.settings.base import (
    Direction,
    Given,
    Name,
    Node,
    PathText,
    RunName,
    Settings,
    TeacherNode,
    one_of,
    setting,
)

Profile = Annotated[str, one_of("operators", "strict", "transposed", "any")]
Pixels = Annotated[int, Field(strict=True, ge=32)]  # the side of a picture


@dataclass(frozen=True, kw_only=True)
class StyleSettings(Settings):
    """What to imitate: the teacher's weights file, where it comes from and under which terms."""

    name: Name = setting("the style's name, which also names sets and runs")
    resolution: Annotated[int, Field(ge=64, multiple_of=32)] = setting(
        "side in pixels of the square pictures that the teacher labels"
    )
    weights: PathText | None = setting(
        "the teacher's weights file, if you have it yourself; null: `file` is looked for"
    )
    file: str | None = setting(
        "name of the weights file, looked for in DISTILL_WEIGHTS, the cache and at `url`"
    )
    url: str | None = setting("address to download it from")
    sha256: str | None = setting("its hash")
    git_blob: str | None = setting("or its hash as git's blob")
    licence: str = setting("terms of the weights", free=True)
    source: str = setting("where the weights come from", free=True)


@dataclass(frozen=True, kw_only=True)
class Decoder(Settings):
    """A decoder's name, which also names the run, its class, and what it asks of others.

    `profile` says which operators it exports to, `without` which encoder blocks it needs not.
    """

    name: Name
    profile: Literal["strict", "transposed", "any"] = setting("operators of its export")
    without: list[int] = setting("blocks of the encoder that it does without", default_factory=list)
    build: Annotated[Node, Given(("channels", "strides", "out_channels"))]


@dataclass(frozen=True, kw_only=True)
class Generator(Settings):
    """A generator's name, its class, and which operators it exports to."""

    name: Name
    profile: Profile = setting("operators of its export", free=True)
    build: Annotated[Node, Given(("size", "in_channels", "out_channels"))]


@dataclass(frozen=True, kw_only=True)
class NetworkSettings(Settings, ABC):
    """What every trained network has, whatever its recipe."""

    recipe: str
    channels: Literal[1, 3, 4] = setting(
        "of the output; 1: grey, as a matte or depth; 4 adds transparency and needs RGBA targets"
    )

    @property
    @abstractmethod
    def side(self) -> int:
        """Pixels of the square pictures that the network learnt on."""

    @property
    @abstractmethod
    def profile(self) -> Profile:
        """The set of operators that it exports to."""


@dataclass(frozen=True, kw_only=True)
class StudentSettings(NetworkSettings):
    """A student: an encoder's features through a decoder."""

    global_statistics: Literal["none", "thumbnail"] = setting(
        "thumbnail: statistics of the whole picture scale and shift features, so that larger "
        "pictures come out right",
        default="none",
    )
    decoder: Decoder = setting(brings=("encoder.without",))
    encoder: Annotated[Node, Given()]
    head: Annotated[Node, Given()] | None = setting(
        "how the last channels become a picture; head=picture: as colours", default=None
    )

    @property
    def profile(self) -> Profile:
        return self.decoder.profile


@dataclass(frozen=True, kw_only=True)
class GeneratorSettings(NetworkSettings):
    """A generator: a network of pictures to pictures that is no student."""

    run: RunName = setting("name of the run", free=True)
    generator: Generator

    @property
    def profile(self) -> Profile:
        return self.generator.profile


@dataclass(frozen=True, kw_only=True)
class Description(NetworkSettings):
    """What the file of an exported network says of it, by the `version` that wrote it.

    `size` is the side of the pictures that it learnt on, `colours_at` that of the ones in which
    its colours are right, or None: in all. `folded`: BatchNorm is, as in what an ONNX file has.
    """

    form: int
    version: str
    direction: Direction
    size: Pixels
    colours_at: Pixels | None
    folded: Annotated[bool, Field(strict=True)]
    terms: Any = None  # what core.licence_terms reads; files from before it have none

    @property
    def side(self) -> int:
        return self.size


@dataclass(frozen=True, kw_only=True)
class StudentDescription(StudentSettings, Description):
    """The same of a student, with its style and its teacher."""

    style: StyleSettings
    teacher: TeacherNode


@dataclass(frozen=True, kw_only=True)
class GeneratorDescription(GeneratorSettings, Description):
    """The same of a generator."""
