"""Settings of distill.benchmark."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from distill.config.settings.base import PathText, Positive, Settings, TeacherNode, setting
from distill.config.settings.networks import StyleSettings


@dataclass(frozen=True, kw_only=True)
class Benchmark(Settings):
    """distill.benchmark; `inputs` are the words without a `=`, no setting."""

    not_used = frozenset({"gka_layers"})  # of a teacher

    style: StyleSettings = setting("whose teacher and shipped student")
    teacher: TeacherNode
    with_teacher: bool = setting("false: leave the style's teacher out")
    model: PathText | None = setting(
        "the student: .onnx, .ckpt, .safetensors; null: the shipped one of the style"
    )
    run: PathText | None = setting("or a trained run's best checkpoint, beside its own teacher")
    runs: PathText = setting("folder of all runs")
    sizes: Annotated[list[Annotated[int, Field(ge=32, le=4096)]], Field(min_length=1)] = setting(
        "sides of the pictures in pixels"
    )
    threads: Annotated[list[Positive | Literal["all"]], Field(min_length=1)] = setting(
        "CPU threads, all: every core"
    )
    providers: Annotated[list[str], Field(min_length=1)] = setting(
        "ONNX Runtime's; missing ones are reported and left out"
    )
    rounds: Annotated[int, Field(ge=2)] = setting("turns of each model")
    output: PathText = setting("folder of the figures; also -o DIR")
    inputs: tuple[str, ...] = ()
