"""Which students distill.lens shows: those of the package, files, and a run's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import onnx

from distill import zoo
from distill.config.settings import Lens
from distill.core import sessions
from distill.core.errors import DistillError
from distill.inference.onnx_student import Painter

SIDE = 256  # of a network that takes any size: what students learn on


@dataclass(frozen=True)
class Shown:
    """A student that is to be on the page: its network, and what the page must know of it."""

    name: str
    kind: str
    model: onnx.ModelProto
    painter: Painter
    licence: str

    @property
    def input(self) -> onnx.ValueInfoProto:
        """The network's only input proper: old files list their weights as inputs too."""
        weights = {tensor.name for tensor in self.model.graph.initializer}
        return next(value for value in self.model.graph.input if value.name not in weights)

    @property
    def side(self) -> int:
        """Pixels of the longer side that the file names, though it may take other sizes too."""
        sides = [dim.dim_value for dim in self.input.type.tensor_type.shape.dim[2:]]
        return max(sides) or SIDE


def choose(settings: Lens) -> list[Shown]:
    """Every student asked for, opened once. Raises DistillError for one that draws no picture."""
    wanted = _listed(settings.students)
    if settings.students is None and settings.run is None:
        wanted = list(zoo.shipped())
    shown = [_open(item, "photo") for item in wanted]
    shown += [_open(item, "sketch") for item in _listed(settings.sketches)]
    if settings.run is not None:
        shown.insert(0, _of_run(settings))
    if not shown:
        raise DistillError("students=[]: nothing to show; name one, or leave it out")
    names = [each.name for each in shown]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DistillError(f"students: two are called {twice!r}; rename one of the files")
    return shown


def stems(names: Iterable[str]) -> list[str]:
    """Each name as part of an address: plain letters, no two alike even where case is ignored."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "student"
        numbered = (plain if n == 1 else f"{plain}-{n}" for n in count(1))
        found.append(next(each for each in numbered if each.lower() not in taken))
        taken.add(found[-1].lower())
    return found


def _listed(given: str | list[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else list(given or [])


def _open(item: str, kind: str) -> Shown:
    """A name of the zoo, or a file."""
    path = Path(item).expanduser()
    if path.suffix.lower() == ".ckpt":
        return _of_checkpoint(path, path.stem, kind)
    if path.suffix.lower() == ".onnx" or "/" in item:
        return _shown(sessions.load(path), path.stem, str(path), kind)
    there = zoo.shipped()
    if item not in there:
        raise DistillError(
            f"students={item}: no such student in this package (there are: "
            f"{', '.join(there) or 'none'}) and no .onnx or .ckpt file"
        )
    return _shown(sessions.load(there[item]), item, item, kind, _licence(item))


def _shown(model: onnx.ModelProto, name: str, source: str, kind: str, licence: str = "") -> Shown:
    return Shown(name, kind, model, Painter(model, source), licence)


def _of_run(settings: Lens) -> Shown:
    from distill.runs import run_folder

    best = run_folder.named(settings.run, settings.runs).checkpoint("best")
    return _of_checkpoint(best, str(settings.run), "photo")


def _of_checkpoint(path: Path, name: str, kind: str) -> Shown:
    from distill.exporters.subject import student_graph

    return _shown(student_graph(path), name, str(path), kind)


def _licence(name: str) -> str:
    card = zoo.FOLDER / f"{name}.json"
    if not card.is_file():
        return ""
    return str(json.loads(card.read_text())["teacher"].get("licence") or "")
