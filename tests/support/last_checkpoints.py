"""Last checkpoints of runs, and where two of them differ."""

from pathlib import Path
from typing import Any

import torch


def saved(name: str) -> dict[str, Any]:
    """The last checkpoint of runs/NAME."""
    return torch.load(Path("runs") / name / "checkpoints" / "last.ckpt", weights_only=True)


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """Where two nested structures are not the same to the last bit; none where they are."""
    if type(a) is not type(b):
        return [where]
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return [where]
        return [found for key in a for found in differences(a[key], b[key], f"{where}.{key}")]
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return [where]
        pairs = enumerate(zip(a, b, strict=True))
        return [found for i, (x, y) in pairs for found in differences(x, y, f"{where}[{i}]")]
    same = torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
    return [] if same else [where]
