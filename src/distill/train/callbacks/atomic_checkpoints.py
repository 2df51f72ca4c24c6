"""Checkpoints written whole or not at all, beside their place."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO

from distill.core.files import write_whole


class AtomicCheckpoints(TorchCheckpointIO):
    """Lightning's own way is by the system's folder for temporary files.

    That is often another disk, from which a move is a copy that can be cut short, and where a
    killed process leaves a file for ever.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        write_whole(Path(path), content.getbuffer())
