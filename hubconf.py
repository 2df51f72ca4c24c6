"""torch.hub.load('OWNER/distill', 'student', style='toon'): students and teachers from here.

Also of a checkout: torch.hub.load('DIR', 'student', source='local').
"""

from __future__ import annotations

import sys
from pathlib import Path

from torch import nn

dependencies = [
    *("torch", "torchvision", "fsspec", "hydra", "numpy", "onnx", "onnxruntime", "PIL"),
    *("pydantic", "safetensors", "yaml"),
]

_SOURCE = str(Path(__file__).resolve().parent / "src")
if _SOURCE not in sys.path:
    sys.path.insert(0, _SOURCE)

import distill  # noqa: E402


def student(style: str = "toon", pretrained: bool = True, file: str | None = None) -> nn.Module:
    """A student: (N, 3, H, W) RGB in [0, 1] to the same in [0, 1], any size, in evaluation mode.

    `style` is one of the package, as `distill stylize --list` shows them. Their files are ONNX with
    BatchNorm folded; the network has these weights and gives what the file gives, but nothing is
    normalised any more as training did it. `file` is one of your own instead, as training left
    it: a .safetensors, a checkpoint or the folder of a run. Not `pretrained`: untrained, with the
    settings of distill.train.
    """
    if file is None and not pretrained:
        return distill.student_network(style=style, encoder={"weights": "none"}).eval()
    return distill.student_network(file or style)


def teacher(style: str = "toon", weights: str | None = None) -> nn.Module:
    """A style's teacher, frozen: (N, 3, H, W) RGB in [0, 1] to the same; sides by its `multiple`.

    Its weights are `weights`, else found in the folders of $DISTILL_WEIGHTS or in the cache, else
    fetched where a published file with a known hash exists, and verified.
    """
    from distill.config import compose
    from distill.config.settings.training import Train
    from distill.models.build import load_teacher

    own = {"style.weights": weights}
    settings = compose.from_keywords("train", Train, {}, {"style": style} | own)
    return load_teacher(settings.style, settings.teacher)
