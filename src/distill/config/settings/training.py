"""Settings of distill.prepare and distill.train."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NewType, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    TypeAdapter,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from distill.config.settings.base import (
    Folders,
    Fraction,
    Given,
    LicenceSettings,
    ListSetting,
    NameSetting,
    Node,
    Nodes,
    PathText,
    Positive,
    RunName,
    Seed,
    Settings,
    TakedownSettings,
    TeacherNode,
    one_of,
    setting,
)
from distill.config.settings.networks import NetworkSettings, StudentSettings, StyleSettings
from distill.core.moved import moved_names


def _bytes(value: Any) -> Any:
    # A plain number: a checkpoint holds no other kind.
    return value if value is None else int(TypeAdapter(ByteSize).validate_python(value))


ByteCount = Annotated[int, BeforeValidator(_bytes), Field(ge=0)]  # as people write it, 20GB


DataKind = Annotated[str, one_of("sources", "pairs", "photos", "demo", "loader")]
Pad = Literal["white", "black", "edge"]
PairedKind = Annotated[str, one_of("sources", "pairs")]


@dataclass(frozen=True, kw_only=True)
class DataConfig(Settings):
    """Where pictures are, which of them are held out, and how they are loaded."""

    root: PathText | None = setting(
        "folder of pairs of your own: photo/ + stylized/, A/ + B/, faces/ + STYLE/ or side by"
        " side; null: the set that distill.prepare makes"
    )
    val_fraction: Annotated[float, Field(gt=0, lt=1)] = setting(
        "share held out to choose a checkpoint by, in whole groups (persons)"
    )
    split_seed: int = setting("seed of the split and of the views")
    colour: Annotated[float, Field(ge=0, lt=1)] = setting(
        "how far colours vary, 0: not; of labelled photos ahead of the teacher"
    )
    batch_size: Positive = setting("pictures per step")
    flip: bool | None = setting(
        "mirror at random; null: pairs of your own, but not those of a teacher, whose output "
        "of a mirrored photo differs"
    )
    val_limit: Positive | None = setting("pictures per validation; null: all")
    workers: NonNegativeInt = setting("processes that load pictures", free=True)


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
    """Pairs, of which a share is held out to report on beside that for validation."""

    test_fraction: Annotated[float, Field(ge=0, lt=1), AfterValidator(_leaves_some)] = setting(
        "share held out to report on, in the same way; 0: none, validation serves for both",
        default=0.0,
    )
    align: bool = setting(
        "shift targets that are a few pixels off onto their photos", default=False
    )


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
    """Photos that a teacher labels, or has labelled."""

    kind: DataKind  # loader: Python's, not named here
    views: Positive | Annotated[list[Positive], Field(min_length=1)] = setting(
        "pictures taken of each training photo, the first the plain centre square; [1,8] for "
        "two folders"
    )
    crop_size: Annotated[int, Field(ge=32, multiple_of=32)] | None = setting(
        "train on random crops of this side; null: whole pictures"
    )
    weights: Annotated[list[PositiveFloat], Field(min_length=1)] | None = setting(
        "share of each folder of photos=[A,B] in training; null: by its size", default=None
    )
    cache: ByteCount | None = setting(
        "disk space for copies of a remote set here, the least recently used go; 0: none",
        free=True,
        default=None,
    )
    zoom: Annotated[float, Field(ge=0, le=1)] = setting(
        "0.3: pairs are shown 1/1.3 to 1.3 times as large, both sides alike", default=0.0
    )
    photo_colour: Annotated[float, Field(ge=0, lt=1)] = setting(
        "how far the colours of the photo alone vary, its target's staying as they are", default=0.0
    )
    camera: Annotated[float, Field(ge=0, le=1)] = setting(
        "share of the photos that are shown dim, noisy, blurred by motion or as poor JPEG, their "
        "targets staying as they are",
        default=0.0,
    )
    sizes: Sizes | None = setting(
        "long sides in pixels of whole pictures to label too, such as [256,512,768,1024]; "
        "null: squares alone",
        default=None,
    )
    share_of_sizes: Annotated[float, Field(gt=0, le=1)] = setting(
        "share of the pictures trained on that are crops of those whole pictures; of the batches, "
        "where data.crop_size is above style.resolution",
        default=0.57,
    )


@dataclass(frozen=True, kw_only=True)
class Loss(Settings):
    """Terms by name, the weight of each, and when it starts to count."""

    name: str
    weights: dict[str, NonNegativeFloat] = setting(
        "weight of each loss term; a term of weight 0 is not computed"
    )
    start: dict[str, Annotated[float, Field(ge=0, lt=1)]] = setting(
        "share of the run's steps after which a term counts; validation always counts all",
        default_factory=dict,
    )
    balance: bool | Literal["gradients"] = setting(
        "measure every term before the first step and scale all to one order of magnitude; "
        "gradients: to one length of the gradient at the picture"
    )
    region: dict[
        Literal["eyes", "brows", "nose", "mouth", "face", "outline", "mask"],
        Annotated[float, Field(ge=0, le=15)],
    ] = setting(
        "weights by parts of faces, {eyes: 3, mouth: 2}: l1, sobel, differences and ink count a "
        "pixel's difference so many times; mask: those of loss.masks",
        default_factory=dict,
    )
    masks: PathText | None = setting(
        "a mask for all photos, or a folder of masks named as the pairs of the set; white is meant",
        default=None,
    )
    terms: Nodes

    @property
    def weighed(self) -> dict[str, float]:
        """The parts whose pixels count more or less than once."""
        return {str(part): weight for part, weight in self.region.items() if weight != 1}


@dataclass(frozen=True, kw_only=True)
class Budget(Settings):
    """Limits of an export at 256²: MACs, trained values, bytes of the file."""

    macs: int | None = setting("limit on the MACs of an export at 256 x 256; null: the run's")
    parameters: int | None = setting("limit on its parameters")
    bytes: int | None = setting("limit on the bytes of its file")


@dataclass(frozen=True, kw_only=True)
class Machine(Settings):
    """The machine that trains, how long, and how often it looks at the result."""

    max_steps: Positive | None = setting(
        "length of the run in batches; null: all epochs", free=True
    )
    accelerator: Literal["cpu", "gpu", "mps", "auto"] = setting("what to train on", free=True)
    devices: int | Literal["auto"] = setting("processes on this machine, one a device", free=True)
    num_nodes: Positive = setting(  # runs from before it have none
        "machines; torchrun or srun starts the command on each", free=True, default=1
    )
    strategy: str = setting("Lightning's strategy", free=True)
    precision: Literal["32-true", "16-mixed", "bf16-mixed"] = setting(
        "of the arithmetic; bf16-mixed is slow on CPUs without hardware for it"
    )
    val_every: Positive = setting("steps between validations, previews and health checks")
    log_every: Positive = setting("steps between rows of metrics.csv", free=True)
    clip: PositiveFloat | None = setting("largest norm of the gradient; null: no clipping")
    accumulate: Positive = setting("batches per step")
    patience: Positive | None = setting(
        "validations without progress before the run ends early; null: never", free=True
    )
    compile: bool = setting(
        "torch.compile student and losses: a slow start, measure whether it pays"
    )
    fused: bool = setting("one kernel for the optimiser; not with precision=16-mixed and clipping")
    threads: Positive | None = setting(
        "CPU threads; null: all cores, fewer while other programs use them", free=True
    )


@dataclass(frozen=True, kw_only=True)
class Trainer(Machine):
    """The same where a step may take several batches."""

    max_steps: Positive = setting("length of the run in optimiser steps", free=True)


@dataclass(frozen=True, kw_only=True)
class Labelling(Settings):
    """How the teacher labels; only the precision changes pixels."""

    batch_size: Positive | None = setting(
        "pictures that the teacher labels at once; null: 1 on a CPU, 16 elsewhere"
    )
    workers: NonNegativeInt = setting("processes that read photos")
    device: Literal["auto", "cpu", "cuda", "mps"] = setting("what the teacher runs on")
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "of the teacher; auto: as the set has it, bfloat16 where that is faster", default="auto"
    )
    listing: Literal["auto", "new", "kept"] = setting(
        "list photos at an address new, or take the kept list; auto: kept where listing took "
        "more than a minute",
        default="auto",
    )


@dataclass(frozen=True, kw_only=True)
class PhotoSource(Settings):
    """What prepare and train share: photos, teacher, and the set made of them."""

    photos: Folders = setting(
        "folder of photos, any layout and size, or several: photos=[A,B]; or an address: "
        "s3://BUCKET/DIR"
    )
    val_photos: Folders | None = setting(
        "folder of photos for validation alone; null: a share of `photos`", default=None
    )
    drop: PathText | None = setting(
        "file that lists pictures to leave out, one a line: names of photos or of pairs",
        default=None,
    )
    restore: PathText | None = setting(
        "file that lists pictures to take back what an earlier drop=FILE left out", default=None
    )
    crop: Fraction = setting("share of the photo's short side that the centre square takes")
    style: StyleSettings = setting(brings=("teacher", "gka_layers", "head", "loss.*.decision"))
    data: Data
    label: Labelling = setting(free=True)
    teacher: TeacherNode = setting(brings=("gka_layers",))


def source_of(trained: PhotoSource, photos: str | None = None) -> PhotoSource:
    """The photos, teacher and set of a trained run; or with other photos.

    Those of a run without a teacher are another folder of pairs. The run may be somebody else's, so
    that `build.load_teacher` has to know: nobody typed what it names.
    """
    data, teacher = trained.data, trained.teacher
    if photos and teacher is None:
        data = replace(data, root=photos)
    elif photos:
        data = replace(data, root=None, kind="pairs", weights=None)
    return replace(
        trained,
        photos=photos or trained.photos,
        val_photos=None if photos else trained.val_photos,
        drop=None,  # the set remembers what was dropped
        restore=None,
        data=data,
        teacher=teacher and teacher | {"typed": False},
    )


@dataclass(frozen=True, kw_only=True)
class SetCard(NameSetting):
    """Whether a set gets a card, and what only its owner knows of the photos."""

    name: bool = setting(
        "true: write a card into the set, README.md and a sheet of pairs, to publish it with"
    )
    licence: str | None = setting("of the photos, as in 'CC BY 4.0'")
    source: str | None = setting("where the photos come from, an address or words")


@dataclass(frozen=True, kw_only=True)
class Prepare(PhotoSource):
    """distill.prepare"""

    # Of a teacher, and of data=sizes; typed as for training, they change nothing.
    not_used = frozenset({"gka_layers", "global_statistics"})

    engine: Annotated[Node, Given(texts=("address",))]
    card: SetCard
    takedown: TakedownSettings = field(default_factory=TakedownSettings)


@dataclass(frozen=True, kw_only=True)
class WandbSettings(Settings):
    """A project of Weights & Biases."""

    project: Annotated[str, Field(min_length=1)] = setting("project of Weights & Biases")
    entity: str | None = setting("its user or team; null: your default one")
    mode: Literal["online", "offline"] | None = setting(
        "offline: nothing is sent until `wandb sync`; null: $WANDB_MODE"
    )


@dataclass(frozen=True, kw_only=True)
class MLflowSettings(Settings):
    """An experiment of MLflow and the server or store it is in."""

    experiment: Annotated[str, Field(min_length=1)] = setting("experiment of MLflow")
    uri: str | None = setting(
        "its tracking server or store; null: $MLFLOW_TRACKING_URI, else RUN/mlflow/"
    )


@dataclass(frozen=True, kw_only=True)
class Loggers(ListSetting):
    """Who is told a run's figures; metrics.csv is written whether `csv` is among them or not."""

    tensorboard: bool = False
    csv: bool = False
    wandb: WandbSettings | None = None
    mlflow: MLflowSettings | None = None
    own: dict[str, Annotated[Node, Given(("save_dir",))]] = setting(
        "further loggers of Lightning, by a name", default_factory=dict
    )


# A class of a plug-in, which trains by these settings. No str: it is chosen, as a config group is.
ClassName = NewType("ClassName", str)
OwnRecipe = Annotated[ClassName, Field(pattern=r"\.")]


@dataclass(frozen=True, kw_only=True)
class Training(NetworkSettings):
    """What every recipe of distill.train takes; a run's checkpoint and config.yaml give it back."""

    run: RunName = setting("name of the run", free=True)
    runs: PathText = setting("folder of all runs", free=True)
    sweep: RunName | None = setting(
        "with -m: name of the sweep, whose folder is RUNS/sweep-NAME; null: the swept keys",
        free=True,
    )
    resume: bool = setting(
        "resume an earlier run of this name; false: start over, the old run is kept", free=True
    )
    seed: Seed = setting("of the order, the augmentation and the initial weights")
    trainer: Machine
    budget: Budget = setting(free=True)
    optimizer: Annotated[Node, Given(("params", "lr"))]
    schedule: Annotated[Node, Given(("optimizer", "total_steps", "val_every"))]
    logger: Loggers = setting(free=True, default_factory=Loggers)
    licence: LicenceSettings = setting(free=True, default_factory=LicenceSettings)
    callbacks: Nodes = setting(
        "callbacks of Lightning by a name, from callbacks/NAME.yaml of a plug-in or --config-dir",
        default_factory=dict,
    )

    # Keys of files that only a recipe's own settings name, which a run in another folder has too.
    files: ClassVar[tuple[str, ...]] = ()

    def of_side(self, side: int) -> Self:
        """The same of a network that learnt on pictures of that side, where that can be set."""
        return self


@dataclass(frozen=True, kw_only=True)
class Train(PhotoSource, StudentSettings, Training):
    """distill.train recipe=distill"""

    # Runs from before there were others have none.
    recipe: Literal["distill"] | OwnRecipe = "distill"
    init: str | None = setting(
        "student to start from: zoo:NAME of the package, a run's folder or .ckpt, an exported"
        " .safetensors or .onnx, a .pth of the paper's",
        default=None,
    )
    batchnorm: Literal["learnt", "kept", "measured"] = setting(
        "kept: BatchNorm's averages stay those of `init`, for few pictures; measured: measured "
        "again once, then kept",
        default="learnt",
    )
    trainable: Annotated[list[str], Field(min_length=1)] | None = setting(
        "parts of the student that are trained, [decoder.at2,decoder.out]; null: all", default=None
    )
    lr: PositiveFloat | Literal["auto"] = setting(
        "learning rate at its highest; auto: found before the first step, with its curve as a"
        " picture"
    )
    ema: Annotated[float, Field(ge=0, lt=1)] = setting(
        "decay of the student's averaged weights; 0: none"
    )
    style_backbone: Literal["auto", "vgg16", "vgg19_relu3_1"] = setting(
        "network of the losses style and features; auto: the one whose weights are there",
        brings=("*.backbone",),  # every term that uses it repeats it
    )
    gka_layers: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = setting(
        "pairs of student layer and teacher layer for the GKA loss: [[A,B]]"
    )
    loss: Loss
    trainer: Trainer
    estimate: list[Positive] | None = setting(
        "numbers of pictures, [10000,1000000]: what they would cost here, by a minute's "
        "measurement; nothing is trained",
        default=None,
    )

    @property
    def side(self) -> int:
        return self.style.resolution


if not TYPE_CHECKING:  # a checker would take any name
    __getattr__ = moved_names(__name__)
