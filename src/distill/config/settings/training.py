"""Settings of distill.prepare and distill.train."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    TypeAdapter,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from distill.config.settings.base import (
    Folders,
    Fraction,
    Given,
    ListSetting,
    Name,
    NameSetting,
    Node,
    PathText,
    Positive,
    RunName,
    Settings,
    TeacherNode,
)
from distill.config.settings.engines import EngineSettings
from distill.config.settings.sketching import PairsRecipe, Sketch


def _bytes(value: Any) -> Any:
    # A plain number: a checkpoint holds no other kind.
    return value if value is None else int(TypeAdapter(ByteSize).validate_python(value))


ByteCount = Annotated[int, BeforeValidator(_bytes), Field(ge=0)]  # as people write it, 20GB


@dataclass(frozen=True, kw_only=True)
class StyleSettings(Settings):
    """What to imitate: the teacher's weights file, where it comes from and under which terms."""

    name: Name
    resolution: Annotated[int, Field(ge=64, multiple_of=32)]
    weights: PathText | None
    file: str | None
    url: str | None
    sha256: str | None
    git_blob: str | None
    licence: str
    source: str


@dataclass(frozen=True, kw_only=True)
class DataConfig(Settings):
    """Where pictures lie, which of them are held out, and how they are fed.

    `flip` mirrors at random; None does so with pairs of one's own and not with those of a teacher.
    """

    root: PathText | None
    val_fraction: Annotated[float, Field(gt=0, lt=1)]
    split_seed: int
    colour: Annotated[float, Field(ge=0, lt=1)]
    batch_size: Positive
    flip: bool | None
    val_limit: Positive | None
    workers: Annotated[int, Field(ge=0)]


def _leaves_some(test: float, info: ValidationInfo) -> float:
    val = info.data.get("val_fraction", 0.0)
    if val + test >= 1:
        raise PydanticCustomError(
            "nothing_left",
            "with data.val_fraction={val} nothing is left to train on; both together must be "
            "below 1",
            {"val": val},
        )
    return test


@dataclass(frozen=True, kw_only=True)
class SplitConfig(DataConfig):
    """Pairs, of which a share is held out to report on beside that for validation; 0: none is.

    `align` lays targets over their photos where they lie a few pixels off.
    """

    test_fraction: Annotated[float, Field(ge=0, lt=1), AfterValidator(_leaves_some)] = 0.0
    align: bool = False  # runs from before them have neither


def _ascending(sizes: list[int]) -> list[int]:
    if sizes != sorted(set(sizes)):
        text = "want each size once, the smallest first: {sizes}"
        raise PydanticCustomError("order", text, {"sizes": str(sorted(set(sizes)))})
    return sizes


Sizes = Annotated[
    list[Annotated[int, Field(ge=64, multiple_of=32)]],
    Field(min_length=1),
    AfterValidator(_ascending),
]


@dataclass(frozen=True, kw_only=True)
class Data(SplitConfig):
    """Photos that a teacher labels, or has labelled; `cache` is in bytes, of remote shards.

    `zoom` and `photo_colour` vary what a student is shown of a pair, see `PairSet`. `sizes` are
    long sides of whole pictures in pixels; of the pictures trained on, the share `share_of_sizes`
    are crops of those.
    """

    kind: Literal["pairs", "photos", "demo", "shards"]
    views: Positive | Annotated[list[Positive], Field(min_length=1)]
    crop_size: Annotated[int, Field(ge=32, multiple_of=32)] | None
    weights: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] | None = None
    cache: ByteCount | None = None
    zoom: Annotated[float, Field(ge=0, le=1)] = 0.0  # runs from before them have neither
    photo_colour: Annotated[float, Field(ge=0, lt=1)] = 0.0
    sizes: Sizes | None = None  # nor these two
    share_of_sizes: Annotated[float, Field(gt=0, le=1)] = 0.57


@dataclass(frozen=True, kw_only=True)
class Loss(Settings):
    """Terms by name and the weight of each; a term of weight 0 is not built.

    `start` is the share of a run's steps after which a term counts, 0 where none is named.
    """

    name: str
    weights: dict[str, Annotated[float, Field(ge=0)]]
    start: dict[str, Annotated[float, Field(ge=0, lt=1)]] = field(default_factory=dict)
    balance: bool
    terms: dict[str, Node]


@dataclass(frozen=True, kw_only=True)
class Budget(Settings):
    """Limits of an export at 256²: MACs, trained values, bytes of the file."""

    macs: int | None
    parameters: int | None
    bytes: int | None


@dataclass(frozen=True, kw_only=True)
class Machine(Settings):
    """The machine that trains, and how often it looks at the result."""

    accelerator: Literal["cpu", "gpu", "mps", "auto"]
    devices: int | Literal["auto"]
    num_nodes: Positive
    strategy: str
    precision: Literal["32-true", "16-mixed", "bf16-mixed"]
    val_every: Positive
    log_every: Positive
    clip: Annotated[float, Field(gt=0)] | None
    accumulate: Positive
    patience: Positive | None
    compile: bool
    fused: bool
    threads: Positive | None


@dataclass(frozen=True, kw_only=True)
class Trainer(Machine):
    """The machine and the length of a run; steps are optimiser steps."""

    max_steps: Positive


@dataclass(frozen=True, kw_only=True)
class Labelling(Settings):
    """How the teacher labels; only the precision changes pixels.

    `listing` says whether photos at an address are listed again: auto where that is quick.
    """

    batch_size: Positive | None
    workers: Annotated[int, Field(ge=0)]
    device: Literal["auto", "cpu", "cuda", "mps"]
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # runs from before it have none
    listing: Literal["auto", "new", "kept"] = "auto"  # nor this


@dataclass(frozen=True, kw_only=True)
class PhotoSource(Settings):
    """What prepare and train share: photos, teacher, and the set made of them."""

    photos: Folders
    val_photos: Folders | None = None
    drop: PathText | None = None
    crop: Fraction
    style: StyleSettings
    data: Data
    label: Labelling
    teacher: TeacherNode


@dataclass(frozen=True, kw_only=True)
class ShardFormat(Settings):
    """How labelled pairs are put into shards: the codec, and how many in each."""

    codec: Literal["raw", "qoi", "webp", "png", "jpeg"]
    pairs: Positive


@dataclass(frozen=True, kw_only=True)
class SetCard(NameSetting):
    """Whether a set gets a card, and what only its owner knows of the photos."""

    name: bool
    licence: str | None
    source: str | None


@dataclass(frozen=True, kw_only=True)
class Prepare(PhotoSource):
    """distill.prepare"""

    # Of a teacher, and of data=sizes; typed as for training, they change nothing.
    not_used = frozenset({"gka_layers", "global_statistics"})

    recipe: PairsRecipe
    sketch: Sketch
    shard: ShardFormat
    engine: EngineSettings
    card: SetCard


@dataclass(frozen=True, kw_only=True)
class Decoder(Settings):
    """A decoder's name, which also names the run, its class, and what it asks of others.

    `profile` says which operators it exports to, `without` which encoder blocks it needs not.
    """

    name: Name
    profile: Literal["strict", "transposed"]
    without: list[int]
    build: Annotated[Node, Given(("channels", "strides", "out_channels"))]


@dataclass(frozen=True, kw_only=True)
class WandbSettings(Settings):
    """A project of Weights & Biases; None leaves it to the library and its environment."""

    project: Annotated[str, Field(min_length=1)]
    entity: str | None
    mode: Literal["online", "offline"] | None


@dataclass(frozen=True, kw_only=True)
class MLflowSettings(Settings):
    """An experiment of MLflow and the server or store it is in."""

    experiment: Annotated[str, Field(min_length=1)]
    uri: str | None


@dataclass(frozen=True, kw_only=True)
class Loggers(ListSetting):
    """Who is told a run's figures; metrics.csv is written whether `csv` is among them or not."""

    tensorboard: bool = False
    csv: bool = False
    wandb: WandbSettings | None = None
    mlflow: MLflowSettings | None = None


@dataclass(frozen=True, kw_only=True)
class Training(Settings):
    """What every recipe of distill.train takes."""

    not_used = frozenset({"search", "launcher"})  # of the jobs of -m together, not of a run

    run: RunName
    runs: PathText
    sweep: RunName | None
    resume: bool
    seed: int
    budget: Budget
    optimizer: Annotated[Node, Given(("params", "lr"))]
    schedule: Annotated[Node, Given(("optimizer", "total_steps", "val_every"))]
    logger: Loggers = field(default_factory=Loggers)  # runs from before it have none


@dataclass(frozen=True, kw_only=True)
class Train(PhotoSource, Training):
    """distill.train recipe=distill"""

    recipe: Literal["distill"] = "distill"  # runs from before there were others have none
    init: str | None = None  # runs from before it have none
    batchnorm: Literal["learnt", "kept", "measured"] = "learnt"  # nor this
    global_statistics: Literal["none", "thumbnail"] = "none"  # nor this
    lr: Annotated[float, Field(gt=0)] | Literal["auto"]
    ema: Annotated[float, Field(ge=0, lt=1)]
    channels: Literal[3, 4]
    style_backbone: Literal["vgg16", "vgg19_relu3_1"]
    gka_layers: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    decoder: Decoder
    loss: Loss
    trainer: Trainer
    encoder: Annotated[Node, Given()]


Pad = Literal["white", "black", "edge"]
Feature = Literal["auto", "inception", "mobilenet", "none"]


def _no_search(lr: Any) -> Any:
    if lr == "auto":
        raise PydanticCustomError(
            "no_search",
            "adversarial training has no loss to monitor; set a rate (lr=2e-4 is the papers')",
        )
    return lr


@dataclass(frozen=True, kw_only=True)
class AdversarialDataConfig(DataConfig):
    """What both recipes' data share: `size` before, `crop_size` after the random crop."""

    size: Annotated[int, Field(ge=16)]
    crop_size: Annotated[int, Field(ge=32, multiple_of=32)]
    pad: Pad | None


@dataclass(frozen=True, kw_only=True)
class PairedDataConfig(AdversarialDataConfig, SplitConfig):
    """Pairs of pictures; `direction` says which side is the input and which the target.

    `cache` is in bytes, of remote shards.
    """

    kind: Literal["pairs", "shards"]
    direction: Literal["AtoB", "BtoA"]
    cache: ByteCount | None = None


@dataclass(frozen=True, kw_only=True)
class UnpairedDataConfig(AdversarialDataConfig):
    """Two folders of pictures that show the same kind of thing in two domains."""

    kind: Literal["unpaired"]
    flip: bool
    a: PathText | None
    b: PathText | None


@dataclass(frozen=True, kw_only=True)
class AdversarialTrainer(Machine):
    """The machine and the length of a run in batches; null: all of its epochs."""

    max_steps: Positive | None


@dataclass(frozen=True, kw_only=True)
class Generator(Settings):
    """A generator's name, its class, and which operators it exports to."""

    name: Name
    profile: Literal["strict", "transposed", "unet", "cyclegan", "any"]
    build: Annotated[Node, Given(("size", "in_channels", "out_channels"))]


@dataclass(frozen=True, kw_only=True)
class Adversarial(Training):
    """What recipe=pix2pix and recipe=cyclegan share."""

    recipe: str
    data: AdversarialDataConfig
    lr: Annotated[float, BeforeValidator(_no_search), Field(gt=0)]
    epochs: Positive
    decay_epochs: Annotated[int, Field(ge=0)]
    channels: Literal[3, 4]
    distance: Feature
    generator: Generator
    trainer: AdversarialTrainer
    discriminator: Annotated[Node, Given(("channels",))]
    adversarial: Annotated[Node, Given()]


@dataclass(frozen=True, kw_only=True)
class Pix2PixTrain(Adversarial):
    """distill.train recipe=pix2pix"""

    recipe: Literal["pix2pix"]
    data: PairedDataConfig
    l1: Annotated[float, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class CycleGANTrain(Adversarial):
    """distill.train recipe=cyclegan"""

    recipe: Literal["cyclegan"]
    data: UnpairedDataConfig
    channels: Literal[3]  # pictures of both domains are a generator's input, too
    cycle: Annotated[float, Field(ge=0)]
    identity: Annotated[float, Field(ge=0)]
    pool: Annotated[int, Field(ge=0)]
