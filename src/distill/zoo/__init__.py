"""The students that come with the package: NAME.onnx each, (1, 3, 256, 256) RGB in [0, 1]."""

from __future__ import annotations

from pathlib import Path

from distill.core.errors import DistillError

FOLDER = Path(__file__).resolve().parent


def shipped() -> dict[str, Path]:
    """Every shipped student by its name, in alphabetical order."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.onnx"))}


def find(name: str) -> Path:
    """The file of a shipped student. Raises DistillError, which lists what there is."""
    there = shipped()
    if name not in there:
        listed = ", ".join(there) or "none"
        raise DistillError(
            f"style={name}: no such student in this package (there are: {listed}); "
            "take one of your own: model=FILE or run=NAME"
        )
    return there[name]
