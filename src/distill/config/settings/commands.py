"""Settings of the commands that take a trained run, a finished file or pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ByteSize, Field

from distill.config.settings.base import (
    Given,
    HostName,
    NameSetting,
    Node,
    Origins,
    Paths,
    PathText,
    Positive,
    RunName,
    Settings,
    TeacherNode,
)
from distill.config.settings.training import Budget, Decoder, StyleSettings


@dataclass(frozen=True, kw_only=True)
class RunChoice(Settings):
    """Which run: by name, by style and decoder, or (all null) the latest."""

    not_used = frozenset({"teacher", "gka_layers"})  # of a style: the run knows its own

    run: PathText | None
    runs: PathText
    checkpoint: PathText
    output: PathText | None
    style: StyleSettings | None = None
    decoder: Decoder | None = None


@dataclass(frozen=True, kw_only=True)
class TfLiteSettings(Settings):
    """The interpreter that has litert-torch; null: this one."""

    python: PathText | None


@dataclass(frozen=True, kw_only=True)
class Export(RunChoice):
    """distill.export"""

    direction: Literal["AtoB", "BtoA"]
    formats: str | Annotated[list[str], Field(min_length=1)] | None
    limit: Annotated[ByteSize, Field(gt=0)] | None
    photos: PathText | None
    calibration: PathText | None
    tflite: TfLiteSettings
    parity: Annotated[float, Field(gt=0)] | None
    budget: Budget
    exporter: Annotated[Node, Given()]


@dataclass(frozen=True, kw_only=True)
class EvalFid(RunChoice):
    """distill.eval_fid"""

    photos: PathText | None
    a: PathText | None
    b: PathText | None
    features: Literal["inception", "mobilenet", "none"]
    ceiling: str
    direction: Literal["AtoB", "BtoA"]
    bootstrap: Annotated[int, Field(ge=0)]
    flicker: Annotated[int, Field(ge=0)]
    batch_size: Positive
    sheet: Positive
    seed: int


@dataclass(frozen=True, kw_only=True)
class ShippedStudent(NameSetting):
    """A shipped student, by name; null: hayao, where no other one is named."""

    name: str | None


StylizeDevice = Literal[
    "auto", "cpu", "cuda", "rocm", "migraphx", "coreml", "directml", "openvino", "tensorrt"
]


@dataclass(frozen=True, kw_only=True)
class Stylize(Settings):
    """distill.stylize; `inputs` are no setting but what stands beside the settings."""

    style: ShippedStudent
    model: PathText | None
    run: PathText | None
    runs: PathText
    direction: Literal["AtoB", "BtoA"]
    output: PathText | None
    size: Annotated[int, Field(ge=32, le=32768)] | None
    upscale: Literal["whole", "tiles", "guided"]
    face: Literal["off", "crop", "paste"]
    faces: Literal["largest", "all"]
    detector: Literal["lbp", "yunet"]
    compare: bool
    crf: Annotated[float, Field(ge=0, le=51)]
    smooth: Annotated[float, Field(ge=0, le=0.95)]
    stability: bool
    threads: Positive | None
    device: StylizeDevice = "cpu"
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lens(Settings):
    """distill.lens; `rate` in pictures a second, `line` in the network's pixels.

    `names` are further hosts that the page may be asked for by: names or addresses, no port.
    `frames` are the sites whose pages may show it in a frame.
    """

    students: Paths | None
    sketches: Paths
    run: RunName | None
    runs: PathText
    output: Annotated[PathText, Field(min_length=1)]
    serve: bool
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=0, le=65535)]
    names: HostName | list[HostName]
    frames: Origins
    embed: bool
    https: bool
    open: bool
    rate: Annotated[float, Field(gt=0, le=60)]
    line: Annotated[float, Field(ge=1, le=8)]


@dataclass(frozen=True, kw_only=True)
class CheckSettings(Settings):
    """distill.check; `inputs` are no setting but what stands beside the settings."""

    profile: Literal["snapml", "coreml", "nnapi", "web"]
    output: PathText | None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PairsFolder(Settings):
    """Where pairs or shards lie, and how pairs are split that no folder of theirs divides.

    `style` is the folder of targets in the layout faces/ + STYLE/.
    """

    root: PathText | None
    val_fraction: Annotated[float, Field(gt=0, lt=1)]
    test_fraction: Annotated[float, Field(ge=0, lt=1)]
    split_seed: int
    style: str | None


@dataclass(frozen=True, kw_only=True)
class ShardSettings(Settings):
    """distill.shards; `pairs` is how many are in a shard."""

    data: PairsFolder
    output: PathText | None
    to: Literal["shards", "pairs", "litdata"]
    codec: Literal["raw", "qoi", "webp", "png", "jpeg"]
    pairs: Positive
    workers: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class CurationLimits(Settings):
    """Beyond which a pair is left out; `shift` in pixels at 256, `style` in usual distances from
    the set's median, `difference` in levels of 255, `landmarks` in widths of the face."""

    agreement: Annotated[float, Field(ge=0, le=1)]
    shift: Annotated[float, Field(gt=0)]
    style: Annotated[float, Field(gt=0)]
    difference: Annotated[float, Field(ge=0, le=255)]
    landmarks: Annotated[float, Field(gt=0)]
    copies: bool


@dataclass(frozen=True, kw_only=True)
class Curate(Settings):
    """distill.curate; `show` is how many pictures of each score stand on the page."""

    data: PairsFolder
    output: PathText | None
    limits: CurationLimits
    align: bool
    apply: bool
    show: Positive


@dataclass(frozen=True, kw_only=True)
class PublishedPairs(Settings):
    """A set of pairs on this machine."""

    root: PathText | None


@dataclass(frozen=True, kw_only=True)
class HubSettings(Settings):
    """distill.hub; `inputs` are no setting but the word beside the settings, push or pull."""

    run: RunName | None
    runs: PathText
    checkpoint: Literal["best", "last"]
    model: PathText | None
    data: PublishedPairs
    repo: PathText | None
    revision: str | None
    private: bool
    replace: bool
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Benchmark(Settings):
    """distill.benchmark; `inputs` are no setting but what stands beside the settings."""

    not_used = frozenset({"gka_layers"})  # of a teacher

    style: StyleSettings
    teacher: TeacherNode
    with_teacher: bool
    model: PathText | None
    run: PathText | None
    runs: PathText
    sizes: Annotated[list[Annotated[int, Field(ge=32, le=4096)]], Field(min_length=1)]
    threads: Annotated[list[Positive | Literal["all"]], Field(min_length=1)]
    providers: Annotated[list[str], Field(min_length=1)]
    rounds: Annotated[int, Field(ge=2)]
    output: PathText
    inputs: tuple[str, ...] = ()
