"""Settings of the engines that label: config group `engine`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from distill.config.settings.base import PathText, Positive, Settings


@dataclass(frozen=True, kw_only=True)
class EngineSettings(Settings):
    """What labels: this process, or workers of a Ray cluster.

    `address` is the cluster's, None: one that is started on this machine. A worker has `cpus`
    cores and `gpus` GPUs, None: one where the cluster has any. `wait` is how many seconds to wait
    for a worker where there is none.
    """

    name: Literal["here", "ray"]
    address: PathText | None = None
    cpus: Positive = 1
    gpus: Annotated[float, Field(ge=0)] | None = None
    wait: Annotated[float, Field(ge=0)] = 600
