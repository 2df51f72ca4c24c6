"""Settings that distill.export takes besides its own."""

from dataclasses import dataclass
from typing import Literal

from distill.config.extension import Extension
from distill.config.settings.base import PathText, Settings, setting


@dataclass(frozen=True, kw_only=True)
class TfLiteSettings(Settings):
    """The interpreter that has litert-torch; null: this one."""

    python: PathText | None = setting("interpreter that has litert-torch; null: this one")


@dataclass(frozen=True, kw_only=True)
class ExecuTorchSettings(Settings):
    """What runs a .pte file's network on the device."""

    backend: Literal["xnnpack", "coreml", "vulkan"] = setting(
        "of formats=[executorch]: xnnpack is for any CPU, coreml for Apple, vulkan for GPUs"
    )


@dataclass(frozen=True, kw_only=True)
class FormatSettings(Settings):
    """What converters want to know; the choices of `formats` refer to it."""

    executorch: ExecuTorchSettings
    tflite: TfLiteSettings


class Formats(Extension):
    """Its settings alone: formats are written by distill.export itself."""

    settings = FormatSettings
