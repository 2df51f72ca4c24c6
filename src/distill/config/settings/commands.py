"""Settings of the commands that take a trained run, a finished file or pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ByteSize, Field, NonNegativeInt, PositiveFloat

from distill.config.settings.base import (
    Direction,
    Given,
    LicenceSettings,
    NameSetting,
    Node,
    Nodes,
    Paths,
    PathText,
    Positive,
    Seed,
    Settings,
    TakedownSettings,
    setting,
)
from distill.config.settings.networks import Decoder, StyleSettings
from distill.config.settings.training import Budget
from distill.core.moved import moved_names


@dataclass(frozen=True, kw_only=True)
class RunChoice(Settings):
    """Which run: by name, by style and decoder, or (all null) the latest."""

    not_used = frozenset({"teacher", "gka_layers"})  # of a style: the run knows its own

    run: PathText | None = setting(
        "name of a trained run; null: the latest that fits style and decoder"
    )
    runs: PathText = setting("folder of all runs")
    checkpoint: PathText = setting("best, last or a path")
    output: PathText | None = setting("folder to write into; null: inside the run's")
    style: StyleSettings | None = setting("choose the latest run of this style", default=None)
    decoder: Decoder | None = setting("and of this decoder", default=None)


@dataclass(frozen=True, kw_only=True)
class Export(RunChoice):
    """distill.export"""

    direction: Direction = setting("BtoA: the other network of a run that has two")
    formats: Nodes | None = setting(
        "formats to write, one or several; left out: onnx, of a generator onnx_fp16 too",
        default=None,
    )
    limit: Annotated[ByteSize, Field(gt=0)] | None = setting(
        "budget.bytes as people write them, 10MB or 10MiB; of a generator for its "
        "half-precision file"
    )
    photos: PathText | None = setting(
        "folder of photos to compare PyTorch and ONNX Runtime on; null: the run's held-out ones"
    )
    calibration: PathText | None = setting(
        "folder of 40 photos or more to calibrate int8 on; null: the run's training photos"
    )
    parity: PositiveFloat | None = setting(
        "largest difference between PyTorch and ONNX Runtime; null: 1e-4, 1e-3 with InstanceNorm "
        "or a predicted palette"
    )
    budget: Budget
    licence: LicenceSettings
    takedown: TakedownSettings = field(default_factory=TakedownSettings)
    exporter: Annotated[Node, Given(("terms",))]


@dataclass(frozen=True, kw_only=True)
class EvalFid(RunChoice):
    """distill.eval_fid"""

    photos: PathText | None = setting(
        "other photos (pairs, two domains), without those the run was trained on; null: its "
        "own held-out ones"
    )
    a: PathText | None = setting(
        "two folders of pictures to compare instead of a run; or statistics, an .npz of "
        "pytorch-fid or clean-fid"
    )
    b: PathText | None = setting("the other one")
    features: Literal["inception", "mobilenet", "dinov2", "clip", "none"] = setting(
        "network of the distances: inception is pytorch-fid's, as papers use it; dinov2 and clip "
        "(CMMD) for few pictures; none: only PSNR and SSIM"
    )
    ceiling: str = setting(
        "what a student that learnt nothing would score: photos, or another style's name"
    )
    direction: Direction = setting("BtoA: the other network of a run that has two")
    bootstrap: NonNegativeInt = setting("resamples of the 95 % intervals; 0: none")
    flicker: NonNegativeInt = setting("photos that flicker is measured on; 0: none")
    metrics: Nodes = setting("metrics of the user's own, by a name", default_factory=dict)
    batch_size: Positive = setting("pictures at once")
    sheet: Positive = setting("rows of the contact sheet")
    seed: Seed = setting("of the intervals")


@dataclass(frozen=True, kw_only=True)
class ShippedStudent(NameSetting):
    """A shipped student, by name; null: hayao, where no other one is named."""

    name: str | None = setting("a student of the package; null: hayao")


Part = Literal["faces", "people", "background"]
StylizeDevice = Literal[
    "auto", "cpu", "cuda", "rocm", "migraphx", "coreml", "directml", "openvino", "tensorrt"
]


@dataclass(frozen=True, kw_only=True)
class TakesOnnxFiles(Settings):
    """Of commands that open ONNX files of anybody's."""

    input_range: tuple[float, float] | None = setting(
        "an ONNX file's values for black and white, [-1,1]; null: found by photographs, else [0,1]",
        default=None,
    )
    output_range: tuple[float, float] | None = setting("those of its output", default=None)
    channels: Literal["rgb", "bgr"] = setting("order of an ONNX file's channels", default="rgb")
    layout: Literal["nchw", "nhwc"] | None = setting(
        "order of its dimensions; null: seen in its shape", default=None
    )


@dataclass(frozen=True, kw_only=True)
class Stylize(TakesOnnxFiles):
    """distill.stylize; `inputs` are the words without a `=`, no setting, `swept` those of -m."""

    style: ShippedStudent
    model: PathText | None = setting("a student of your own: .onnx, .ckpt or .safetensors")
    run: PathText | None = setting("or a trained run's best checkpoint")
    runs: PathText = setting("folder of all runs")
    direction: Direction = setting("BtoA: the other network of a run that has two")
    output: PathText | None = setting(
        "folder, or a file for one picture; null: stylized; also -o OUT"
    )
    size: Annotated[int, Field(ge=32, le=32768)] | None = setting(
        "long side in pixels that the student sees; null: the picture's own, at most 1024, "
        "1536 for one with global statistics"
    )
    upscale: Literal["whole", "tiles", "guided"] = setting(
        "larger outputs: whole enlarges the output, tiles stylises piece by piece, guided "
        "carries a small output to the edges of the photo"
    )
    face: Literal["off", "crop", "paste", "wear"] = setting(
        "crop: stylise only the face; paste: and put it back into the photo; wear: the photo "
        "stays, its face wears what wear= and overlay= name"
    )
    no_face: Literal["whole", "photo"] = setting(
        "of a picture without a face, with face=crop and paste: whole stylises all of it, photo "
        "leaves it as it is",
        default="whole",
    )
    blend: Literal["feathered", "poisson"] = setting(
        "of face=paste: feathered fades into the photo, poisson also takes over its colours",
        default="feathered",
    )
    strength: Annotated[float, Field(ge=0, le=1)] = setting(
        "how much of the stylised picture is seen over the photo", default=1.0
    )
    parts: Part | list[Part] | None = setting(
        "what is stylised: faces, people, background, or several; null: everything", default=None
    )
    wear: PathText | None = setting(
        "face=wear: a sketch; what the network makes of it is worn as a mask", default=None
    )
    overlay: Paths | None = setting(
        "stickers for faces, one or several: glasses, beard, moustache, hair, eyeliner, or PNGs "
        "of your own, each with its anchors in a JSON beside it",
        default=None,
    )
    faces: Literal["largest", "all"] = setting("the largest face or all")
    detector: Literal["lbp", "yunet", "blazeface"] = setting(
        "of faces: lbp comes with scikit-image, yunet finds more and is downloaded (230 KB), "
        "blazeface is the page's; wear= and overlay= take it for lbp, which has no points"
    )
    compare: bool = setting("photo, output and the teacher's, if available, side by side")
    listed: bool = setting("--list: the students of the package with their terms", default=False)
    threads: Positive | None = setting("CPU threads of the student; null: all cores")
    device: StylizeDevice = setting(
        "what the student runs on; auto: the best provider of ONNX Runtime that agrees with "
        "the CPU within 2 levels of 255, else cpu",
        default="cpu",
    )
    inputs: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckSettings(Settings):
    """distill.check; `inputs` are the words without a `=`, no setting."""

    profile: Annotated[Node, Given()] = setting("the device")
    report: Annotated[Node, Given()] | None = setting(
        "terms: a page on a run's terms instead, its photos, photographers and licences",
        default=None,
    )
    run: PathText | None = setting(
        "of report=: name of a trained run; null: the latest", default=None
    )
    runs: PathText = setting("folder of all runs", default="runs")
    output: PathText | None = setting("a .json file for the report; also -o FILE")
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PairsFolder(Settings):
    """Where pairs are, and how pairs are split that no folder of theirs divides."""

    root: PathText | None = setting(
        "the set: any folder of pairs that distill.train data.root= takes"
    )
    val_fraction: Annotated[float, Field(gt=0, lt=1)] = setting(
        "of pairs that no folder splits: share for validation"
    )
    test_fraction: Annotated[float, Field(ge=0, lt=1)] = setting("and for the test")
    split_seed: int = setting("seed of that split")
    style: str | None = setting("the targets' folder in the layout faces/ + STYLE/")


if not TYPE_CHECKING:  # a checker would take any name
    __getattr__ = moved_names(__name__)
