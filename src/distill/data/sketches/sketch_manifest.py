"""What a sketch → photo set was made with, so that two kinds are never mixed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from distill.config.settings.sketching import Sketch
from distill.core.errors import DistillError
from distill.data.labelled.manifest import Recipe, check_recipe, recipe_at

_OF_TEACHERS = {"style", "teacher", "colour", "sketch"}  # what only those sets have, and our own


@dataclass(frozen=True)
class SketchRecipe(Recipe):
    """What decides every pixel of a sketch → photo set.

    `sketch` are the settings by their names; files among them are told by their content's hash.
    """

    sketch: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As it reads back from dataset.json."""
        kept = {k: v for k, v in super().plain().items() if k not in _OF_TEACHERS}
        return {"recipe": "pix2pix"} | kept | self.sketch


def of_settings(sketch: Sketch, hashes: dict[str, str], **shared: Any) -> SketchRecipe:
    """The recipe of these settings; of what they do not use, it holds nothing.

    `hashes` say what the files are that the settings name, `shared` the rest of a Recipe.
    """
    unused = {"canny", "hed"} - {sketch.outline}
    unused |= set() if sketch.points else {"face", "marks"}
    unused |= set() if sketch.mask else {"mask_least", "rgba"}
    unused |= set() if "mask" in hashes else {"saliency"}
    plain = _by_content(_flat(asdict(sketch), unused), sketch, hashes)
    return SketchRecipe(style="", teacher="", size=sketch.size, sketch=plain, **shared)


def _by_content(plain: dict[str, Any], sketch: Sketch, hashes: dict[str, str]) -> dict[str, Any]:
    """Paths may change, contents not: a mask's network by its hash, a folder by being one."""
    plain.pop("sketch.size")
    plain.pop("sketch.hed.weights", None)
    if sketch.mask not in (None, "alpha"):
        plain["sketch.mask"] = hashes.get("mask", "folder")
    if "hed" in hashes:
        plain["sketch.hed"] = hashes["hed"]
    return plain


def _flat(values: dict[str, Any], unused: set[str], prefix: str = "sketch.") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key in unused:
            continue
        if isinstance(value, dict):
            found |= _flat(value, set(), f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def check_kind(root: Path, recipe: SketchRecipe) -> None:
    """Refuse a folder that holds another set: DistillError that names what differs."""
    made = recipe_at(root)
    if made is not None and made.get("recipe") != "pix2pix":
        raise DistillError(
            f"{root}: holds pairs that a teacher drew; name another folder with data.root=DIR"
        )
    check_recipe(root, recipe)
