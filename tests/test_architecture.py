"""The layout rules of CONTRIBUTING.md, held by the imports themselves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "distill"
ENTRY_POINTS = {"train", "prepare", "export", "eval_fid", "stylize", "check", "benchmark", "lens"}
KNOWS_HYDRA = {"compose", *ENTRY_POINTS}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            joined = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {node.module, *joined} if node.module == "distill" else {node.module}
    return names - {"__future__"}


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_hydra_lives_in_entry_points_and_config_only(path: Path):
    hydra = {n for n in imported(path) if n.split(".")[0] in ("hydra", "omegaconf")}
    assert not hydra or path.stem in KNOWS_HYDRA


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_nothing_below_imports_an_entry_point(path: Path):
    upward = {n for n in imported(path) if n in {f"distill.{e}" for e in ENTRY_POINTS}}
    assert not upward


def test_only_weights_fetches_and_only_serving_listens():
    fetching, listening = {"urllib.request", "requests", "http.client"}, {"socket", "http.server"}
    assert {p.stem for p in modules() if imported(p) & fetching} == {"weights"}
    assert {p.stem for p in modules() if imported(p) & listening} == {"server"}


def test_one_of_the_two_lightnings():
    assert not [p for p in modules() if any(n.split(".")[0] == "lightning" for n in imported(p))]


@pytest.mark.parametrize("name", sorted(ENTRY_POINTS))
def test_entry_points_read_as_a_list_of_steps(name: str):
    assert len((SOURCE / f"{name}.py").read_text().splitlines()) <= 80
