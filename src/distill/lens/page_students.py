"""Which students distill.lens puts on its page: those of the package, files, and a run's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from distill.config.settings.commands import Lens
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.onnx_files import noted
from distill.core.terms import NOTE, Terms, read_terms
from distill.models import zoo
from distill.runs import run_folder
from distill.stylize.onnx_student import OnnxStudent
from distill.stylize.stylizing import open_student

FIRST = "toon"  # of the package's own the most striking one: what a visitor sees first
SIDE = 256  # of a network that takes any size: what students learn on


@dataclass(frozen=True)
class PageStudent:
    """A student for the page: its network, and what the page must know of it."""

    name: str
    kind: Literal["photo", "sketch"]
    network: OnnxStudent

    @property
    def licence(self) -> str:
        """The terms that the file is under, in a line."""
        said = noted(self.network.model, NOTE)
        return (read_terms(said) if said is not None else Terms(())).line

    @property
    def side(self) -> int:
        """Pixels of the longer side that the file names, though it may take other sizes too."""
        sides = [dim.dim_value for dim in self.network.input.type.tensor_type.shape.dim[2:]]
        return max(sides) or SIDE


def choose(settings: Lens) -> list[PageStudent]:
    """Every student asked for, opened once. Raises DistillError for one that makes no picture."""
    photo = _listed(settings.students)
    if settings.students is None and settings.run is None:
        photo = sorted(zoo.shipped(), key=lambda name: name != FIRST)
    students = [_open(item, "photo", settings) for item in photo]
    students += [_open(item, "sketch", settings) for item in _listed(settings.sketches)]
    if settings.run is not None:
        best = run_folder.run_named(settings.run, settings.runs).checkpoint("best")
        students.insert(0, PageStudent(Path(settings.run).name, "photo", open_student(best)))
    if not students:
        raise DistillError("students=[]: no student for the page; name one, or leave it out")
    names = [each.name for each in students]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DistillError(f"students: two are called {twice!r}; rename one of the files")
    return students


def _listed(given: str | list[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else list(given or [])


def _open(item: str, kind: Literal["photo", "sketch"], settings: Lens) -> PageStudent:
    """A name of the zoo, or a file."""
    path = home_path(item)
    if path.suffix.lower() in (".ckpt", ".onnx", ".safetensors") or "/" in item:
        return PageStudent(path.stem, kind, open_student(path, said=settings))
    shipped = zoo.shipped()
    if item not in shipped:
        raise DistillError(
            f"students={item}: no such student in this package (there are: "
            f"{', '.join(shipped) or 'none'}) and no .onnx, .ckpt or .safetensors file"
        )
    return PageStudent(item, kind, open_student(shipped[item]))
