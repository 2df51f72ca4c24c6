"""The layout of CONTRIBUTING.md, held by the imports themselves."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "distill"
COMMANDS = (
    *("train", "prepare"),
    *("export", "eval_fid", "stylize", "check"),
)
FLOORS = [  # a package imports those of the floors before its own, and none of its own floor
    {"core"},
    {"config"},
    {"losses", "metrics", "check"},
    {"models"},
    {"data"},
    {"runs"},
    {"prepare", "export"},
    {"eval_fid", "train", "stylize"},
]
FLOOR_OF = {name: number for number, names in enumerate(FLOORS) for name in names}
# What there is. A package or an arrow more is a decision: take another one out, or say why here.
# eval_fid asks losses: a style of one picture has no other measure.
PACKAGES, ARROWS = 13, 46
DOTTED_ALONE = re.compile(r"^distill(?:\.\w+)+\.?$")  # a module or class, as `_target_` has it
FILES = sorted(SOURCE.rglob("*.py"))
# Packages beside the core, which come with it as plug-ins, and what only they speak of.
WORDS = {
    "distill_benchmark": r"distill\.benchmark",
    "distill_curate": r"distill\.curate",
    "distill_diffusion": r"diffus",
    "distill_drawings": r"kuwahara|xdog|watercolour",
    "distill_formats": r"coremltools|executorch|litert|mlpackage|ncnn|pnnx|tflite(?!_gles)",
    "distill_gan": r"cyclegan|pix2pix|discriminator|adversar",
    "distill_hub": r"huggingface_hub|distill\.hub",
    "distill_lens": r"distill\.lens|\bqr\b",
    "distill_picture": r"recipe=picture|style_image",
    "distill_scale": r"\bray\b|faiss|\bshard|sharded|\.tar\b",
    "distill_search": r"optuna|pareto|submitit|slurm",
    "distill_sets": r"quick,? ?draw|sketcher|saliency",
    "distill_video": r"\bvideos?\b|\bav\b|pyav|ffmpeg",
}
BESIDE = sorted(path for name in WORDS for path in (SOURCE.parent / name).rglob("*.py"))


@cache
def imported(path: Path) -> frozenset[str]:
    """Modules that a file imports, and those named in a string, which something builds."""
    return frozenset(_imported(ast.parse(path.read_text())))


def _imported(tree: ast.Module) -> Iterator[str]:
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


def arrows() -> dict[tuple[str, str], set[str]]:
    """From package to package, and the files that draw the arrow."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in FILES:
        own = path.relative_to(SOURCE).parts[0]
        for name in imported(path):
            other = name.removeprefix("distill.").split(".")[0]
            if name.startswith("distill.") and {own, other} <= FLOOR_OF.keys() and own != other:
                found.setdefault((own, other), set()).add(str(path.relative_to(SOURCE)))
    return found


def test_every_package_has_a_floor():
    assert {path.relative_to(SOURCE).parts[0] for path in FILES if path.parent != SOURCE} == {
        *FLOOR_OF
    }
    # Above them all: what Python and the command `distill` begin with.
    top = {"__init__.py", "__main__.py", "api.py"}
    assert {path.name for path in FILES if path.parent == SOURCE} == top


def test_every_command_is_a_package_that_starts_lightly():
    for name in COMMANDS:
        assert (SOURCE / name / "__main__.py").is_file()
        assert not imported(SOURCE / name / "__init__.py")


@pytest.mark.slow
def test_arrows_point_down():
    found = arrows().items()
    assert not {(a, b): files for (a, b), files in found if FLOOR_OF[b] >= FLOOR_OF[a]}


def test_there_are_no_more_packages_and_arrows_than_there_were():
    assert len(FLOOR_OF) <= PACKAGES
    assert len(arrows()) <= ARROWS


def test_no_circle_of_files():
    names = {
        ".".join(("distill", *p.relative_to(SOURCE).with_suffix("").parts)): p
        for p in FILES
        if p.name != "__init__.py"
    }
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


def test_no_two_classes_share_a_name():
    names = Counter(
        node.name
        for path in FILES + BESIDE
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in names.items() if count > 1]


def libraries(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(path)}


def places(paths: list[Path]) -> set[str]:
    return {p.relative_to(SOURCE if p in FILES else SOURCE.parent).as_posix() for p in paths}


def test_hydra_lives_in_one_file():
    found = [p for p in FILES + BESIDE if libraries(p) & {"hydra", "omegaconf"}]
    assert places(found) == {"config/compose.py"}


def test_one_file_each_fetches_listens_and_opens_onnx_runtime():
    def users(*modules: str) -> set[str]:
        both = FILES + BESIDE
        return places([p for p in both if any(n.startswith(modules) for n in imported(p))])

    assert users("urllib.request", "requests", "http.client") == {"core/weights.py"}
    assert users("http.server", "socketserver") == {"distill_lens/server.py"}
    sessions = [p for p in FILES + BESIDE if "InferenceSession(" in p.read_text()]
    assert places(sessions) == {"core/sessions.py"}


def test_one_of_the_two_lightnings():
    assert not [p for p in FILES + BESIDE if "lightning" in libraries(p)]


def test_every_package_beside_the_core_is_a_plug_in_of_the_wheel():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["distill.plugins"] == {name: name for name in WORDS}
    packages = ["distill", *WORDS]
    assert {path.parent.name for path in SOURCE.parent.glob("*/__init__.py")} == {*packages}
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == [f"src/{name}" for name in packages]
    assert project["tool"]["mypy"]["packages"] == packages


@pytest.mark.parametrize("name", WORDS)
def test_the_core_knows_nothing_of_a_package_beside_it(name):
    conf = sorted((SOURCE.parents[1] / "conf").rglob("*.yaml"))
    speaks = re.compile(f"{name}|{WORDS[name]}", re.IGNORECASE)
    assert not [path for path in FILES + conf if speaks.search(path.read_text())]


def test_no_package_beside_the_core_imports_another():
    for path in BESIDE:
        mine = path.relative_to(SOURCE.parent).parts[0]
        assert not libraries(path) & (WORDS.keys() - {mine})


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_read_as_a_list_of_steps(name):
    assert len((SOURCE / name / "__main__.py").read_text().splitlines()) <= 80
