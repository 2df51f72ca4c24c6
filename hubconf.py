"""torch.hub.load('OWNER/distill', 'student', style='toon'): students and teachers from here.

Also of a checkout: torch.hub.load('DIR', 'student', source='local').
"""

from __future__ import annotations

import sys
from pathlib import Path

dependencies = [
    *("torch", "torchvision", "fsspec", "hydra", "numpy", "onnx", "onnxruntime", "PIL"),
    *("pydantic", "safetensors", "yaml"),
]

_SOURCE = str(Path(__file__).resolve().parent / "src")
if _SOURCE not in sys.path:
    sys.path.insert(0, _SOURCE)

from distill.hub.torch_hub import student, teacher  # noqa: E402, F401
