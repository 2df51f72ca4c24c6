"""The layout of CONTRIBUTING.md, held by the imports themselves."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "distill"
COMMANDS = (
    *("train", "prepare", "curate", "shards"),
    *("export", "eval_fid", "stylize", "check", "benchmark", "hub", "lens"),
)
FLOORS = [  # a package imports those of the floors before its own, and none of its own floor
    {"core"},
    {"config"},
    {"models", "losses", "metrics", "devices", "zoo", "engines"},
    {"data"},
    {"runs"},
    {"training", "exporters", "evaluation"},
    {"inference", "speed", "search"},
    {"live"},
    {"recipes"},
    {"sharing"},
    {*COMMANDS},
]
FLOOR_OF = {name: number for number, names in enumerate(FLOORS) for name in names}
DOTTED_ALONE = re.compile(r"^distill(?:\.\w+)+\.?$")  # a module or class, as `_target_` has it
FILES = sorted(p for p in SOURCE.rglob("*.py") if p.name != "__init__.py")
ids = {"ids": lambda path: path.relative_to(SOURCE).as_posix()}


def room(path: Path) -> str:
    """The package or command that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Modules that a file imports, and those named in a string, which something builds."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield from DOTTED_ALONE.findall(str(node.value))


def test_every_package_has_a_floor():
    rooms = {p.name.removesuffix(".py") for p in SOURCE.iterdir() if not p.name.startswith("_")}
    assert rooms - {"py.typed", "conf", "page"} == FLOOR_OF.keys()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), **ids)
@pytest.mark.slow
def test_arrows_point_down(path: Path):
    own = room(path)
    ours = {name.split(".")[1] for name in imported(path) if name.startswith("distill.")}
    others = {name for name in ours if name in FLOOR_OF and name != own}
    upward = {name for name in others if FLOOR_OF[name] >= FLOOR_OF.get(own, len(FLOORS))}
    assert not upward, f"{path.relative_to(SOURCE)} imports {upward}, not below {own}"


def test_no_circle_of_files():
    names = {".".join(("distill", *p.relative_to(SOURCE).with_suffix("").parts)): p for p in FILES}
    uses = {
        name: {
            other
            for found in imported(path)
            for other in (found, found.rpartition(".")[0])
            if other in names and other != name
        }
        for name, path in names.items()
    }
    while free := {name for name, needs in uses.items() if not needs & uses.keys()}:
        uses = {name: needs for name, needs in uses.items() if name not in free}
    assert not uses


def test_no_two_files_share_a_name():
    assert not [name for name, count in Counter(p.name for p in FILES).items() if count > 1]


def test_no_two_classes_share_a_name():
    names = Counter(
        node.name
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in names.items() if count > 1]


def packages(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(path)}


def test_hydra_lives_in_one_file():
    assert [p.stem for p in FILES if packages(p) & {"hydra", "omegaconf"}] == ["compose"]


@pytest.mark.slow
def test_one_file_each_fetches_listens_and_opens_onnx_runtime():
    fetching, listening = ("urllib.request", "requests", "http.client"), ("socket", "http.server")

    def users(modules: tuple[str, ...]) -> set[str]:
        return {p.stem for p in FILES if any(n.startswith(modules) for n in imported(p))}

    assert users(fetching) == {"weights"}
    assert users(listening) == {"server"}
    sessions = {p.stem for p in FILES if "InferenceSession(" in p.read_text()}
    assert sessions == {"sessions"}


def test_one_of_the_two_lightnings():
    assert not [p for p in FILES if "lightning" in packages(p)]


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_read_as_a_list_of_steps(name: str):
    assert len((SOURCE / f"{name}.py").read_text().splitlines()) <= 80
