"""Settings of the engines that label: config group `engine`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from distill.config.settings.base import PathText, Positive, Settings, setting


@dataclass(frozen=True, kw_only=True)
class EngineSettings(Settings):
    """What labels: this process, or workers of a Ray cluster."""

    name: Literal["here", "ray"]
    address: PathText | None = setting(
        "the Ray cluster: HOST:PORT, auto or ray://HOST:PORT; null: one that is started here",
        default=None,
    )
    cpus: Positive = setting("cores of a worker", default=1)
    gpus: Annotated[float, Field(ge=0)] | None = setting(
        "GPUs of a worker; null: 1 if the cluster has any", default=None
    )
    wait: Annotated[float, Field(ge=0)] = setting(
        "seconds to wait for nodes where no worker is left", default=600
    )
