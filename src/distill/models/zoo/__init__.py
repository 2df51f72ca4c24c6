"""The students that come with the package: NAME.onnx each, RGB in [0, 1].

One that is told the whole picture takes (1, 3, H, W) of any size that divides by 32, and has a file
of (1, 3, 256, 256) beside it, NAME-256.onnx; the others name that size themselves.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distill.config.registry import recipes
from distill.config.settings.networks import StudentSettings
from distill.core.errors import DistillError, did_you_mean

FOLDER = Path(__file__).resolve().parent
SHAPE = ("student", "encoder", "decoder", "head", "global_statistics")  # of a card's settings
STATIC = "-256"  # what the name of a file of one size ends with


def shipped() -> dict[str, Path]:
    """Every shipped student by its name, in alphabetical order."""
    files = {path.stem: path for path in FOLDER.glob("*.onnx")}
    return {name: files[name] for name in sorted(files) if not name.endswith(STATIC)}


def static(name: str) -> Path:
    """The shipped student's file of 256×256, for budgets, devices and timings at that size."""
    beside = FOLDER / f"{name}{STATIC}.onnx"
    return beside if beside.is_file() else find(name)


def overrides_for_init(typed: Mapping[str, Any]) -> list[str]:
    """The settings of distill.train by which a run's student has the shape of the `init=zoo:NAME`
    that was typed, but for those that were typed too."""
    name = str(typed.get("init")).partition("zoo:")[2]
    card = FOLDER / f"{name}.json"
    recipe = recipes().get(str(typed.get("recipe", "distill"))) if name else None
    if not card.is_file() or (recipe and not issubclass(recipe.settings, StudentSettings)):
        return []
    settings = json.loads(card.read_text(encoding="utf-8"))["settings"]
    free = {*SHAPE} - {key.partition(".")[0] for key in typed}
    return [each for each in settings if each.replace(".", "=").partition("=")[0] in free]


def find(name: str) -> Path:
    """The file of a shipped student. Raises DistillError, which lists what there is."""
    there = shipped()
    if name not in there:
        listed = ", ".join(there) or "none"
        meant = did_you_mean(name, there, "style={}")
        raise DistillError(
            f"style={name}: no such student in this package (there are: {listed}); "
            f"{meant}{' ' * bool(meant)}take one of your own: model=FILE or run=NAME"
        )
    return there[name]
