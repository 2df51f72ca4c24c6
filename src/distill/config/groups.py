"""Where the files of settings lie, and which choices the config groups have."""

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from distill.core import plugins
from distill.core.errors import library_errors

typed_folders: list[Path] = []  # of --config-dir


def conf_folder() -> Path:
    """conf/ inside the package (wheel) or two levels up (checkout)."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "conf", package.parents[1] / "conf")
    return next(folder for folder in places if folder.is_dir())


def conf_folders() -> list[Path]:
    """Where choices are looked for: in conf/, in folders that were typed, and in plug-ins'."""
    return [conf_folder(), *typed_folders, *plugins.conf_folders()]


@cache  # said once
def tell_hidden(folders: tuple[Path, ...]) -> None:
    """A line for each choice whose name a folder before its own has too: that one is taken."""
    files: dict[str, Path] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*/*.yaml"))):
        choice = f"{path.parent.name}={path.stem}"
        if (first := files.setdefault(choice, path)) != path:
            print(f"{choice}: {first} is taken, {path} has the same name", file=sys.stderr)


def keys_of(group: str, choice: str, above: tuple[str, ...] = ()) -> set[str]:
    """The dotted keys that a choice's file sets, and those of the choices it builds on.

    `above` are those that build on it: a circle of them ends there.
    """
    path = file_at(f"{group}/{choice}.yaml")
    content = _content(path)
    below = content.pop("defaults", [])
    prefix = "" if path.read_text().startswith("# @package _global_") else f"{group}."
    above = (*above, choice)
    others = [c for c in below if isinstance(c, str) and c not in above and c in choices(group)]
    inherited = [keys_of(group, each, above) for each in others]
    return {f"{prefix}{key}" for key in dotted(content)}.union(*inherited)


def dotted(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The keys of a tree of settings, at any depth."""
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from dotted(value, f"{prefix}{key}.")


def choices(group: str) -> list[str]:
    """The choices of a config group: its YAML files."""
    if "\0" in group:
        return []
    return sorted({p.stem for folder in conf_folders() for p in (folder / group).glob("*.yaml")})


def nodes_of(group: str) -> dict[str, Any]:
    """The Nodes of all choices of a group that takes several."""
    files = [node_of(group, choice) for choice in choices(group)]
    return {name: node for content in files for name, node in content.items()}


def node_of(group: str, choice: str) -> dict[str, Any]:
    """What the file of a choice has."""
    return _content(file_at(f"{group}/{choice}.yaml"))


def file_at(place: str) -> Path:
    """The first file of that place below a folder of settings."""
    return next(file for folder in conf_folders() if (file := folder / place).is_file())


def _content(path: Path) -> dict[str, Any]:
    with library_errors(f"{path}: no YAML", yaml.YAMLError, UnicodeDecodeError):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    content = content if isinstance(content, dict) else {}
    if not isinstance(content.get("defaults", []), list):
        del content["defaults"]  # Hydra says what is wrong with it
    return content


def every_group(name: str) -> list[str]:
    """The config groups a command takes, whatever its recipe."""
    groups = dict.fromkeys(groups_of(name))
    if "recipe" in groups:
        groups |= dict.fromkeys(g for r in choices("recipe") for g in groups_of(f"recipe/{r}"))
    return list(groups)


def groups_of(name: str) -> list[str]:
    """The config groups a command takes, also those that are empty by default."""
    defaults = _content(file_at(f"{name}.yaml")).get("defaults", [])
    named = [str(key) for item in defaults if isinstance(item, Mapping) for key in item]
    more = [group for choice in choices(name) for group in groups_of(f"{name}/{choice}")]
    groups = [key.removeprefix("optional ") for key in named if not key.startswith("override ")]
    return [*(group.lstrip("/") for group in groups), *more]
