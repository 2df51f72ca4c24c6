"""Packages of one's own that bring parts: installed with an entry point, or named by the user.

An entry point of the group `distill.plugins` names a package; its folder conf/ adds choices to the
config groups, and conf/plugin.yaml says which version of this contract it was made for and what
else it brings. Packages are found here without importing anything of them. Those of distill's own
distribution are plug-ins too, under the same contract.
"""

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PathDistribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from distill.core.errors import DistillError

GROUP = "distill.plugins"
CONTRACT = 1  # raised when a plug-in has to change to go on working
NAMED = "DISTILL_PLUGINS"  # of the environment: what the user named, for processes started here too


def name_plugins(packages: str | Sequence[str]) -> None:
    """Trust these packages from now on, as `plugins=[A,B]` does, beside those that were named.

    Raises DistillError for one that is not there, or made for another contract.
    """
    packages = [packages] if isinstance(packages, str) else packages
    keys = dict.fromkeys(named_plugins(), NAMED) | dict.fromkeys(packages, "plugins")
    for package, key in keys.items():
        if not _places(package):
            remedy = "install it, or put the folder that it lies in on PYTHONPATH"
            raise DistillError(f"{key}={package}: there is no such package; {remedy}")
        if other := _other_contract(package):
            raise DistillError(other)
    os.environ[NAMED] = ",".join(keys)


def named_plugins() -> list[str]:
    """The packages that the user named, in this command or in $DISTILL_PLUGINS."""
    return [name for name in os.environ.get(NAMED, "").split(",") if name]


def plugins() -> list[str]:
    """All packages that parts may come from: those named, then those installed."""
    return list(dict.fromkeys([*named_plugins(), *_installed(_paths())]))


def shipped() -> list[str]:
    """`distill` and the plug-ins that come with it: what is in them is no part of the user's."""
    return ["distill", *(name for name, ours in _installed(_paths()).items() if ours)]


def why_left_out(group: str, choice: str) -> str:
    """Why a choice is missing that an installed plug-in has; empty where none has it."""
    for package, _ in _registered(_paths()):
        for place in _places(package):
            if (place / "conf" / group / f"{choice}.yaml").is_file():
                return _other_contract(package)
    return ""


def conf_folders(ours: bool = False) -> list[Path]:
    """The folders conf/ of all plug-ins, or of those that come with distill."""
    packages = shipped()[1:] if ours else plugins()
    at = os.getcwd(), tuple(sys.path)  # a command asks some sixty times, and looking takes 1 ms
    folders = (place / "conf" for package in packages for place in _places_at(package, *at))
    return [folder for folder in folders if folder.is_dir()]


def moved() -> dict[str, str]:
    """Where modules lie now that a plug-in took over, by the names of earlier versions; and its
    commands, by those that `python -m` has for distill's."""
    names = {old: str(new) for old, new in entries("moved")}
    return names | {f"distill.{name}": each.package for name, each in commands().items()}


class PluginCommand(NamedTuple):
    """A command: the package whose `__main__` runs it, and the line that `distill` has on it."""

    package: str
    about: str


def commands() -> dict[str, PluginCommand]:
    """The commands that plug-ins bring, by their names."""
    commands = ((name, each) for name, each in entries("commands") if isinstance(each, Mapping))
    both = ((name, str(each.get("package")), str(each.get("about", ""))) for name, each in commands)
    return {name: PluginCommand(package, about) for name, package, about in both}


def usage(command: str) -> str:
    """Lines that plug-ins add to a command's --help."""
    return "\n".join(values("usage", command))


def values(key: str, name: str) -> list[str]:
    """What the plug-ins have below an entry of plugin.yaml under a name: of `extends` the classes
    that extend a command of that name."""
    return [str(value) for each, value in entries(key) if each == name]


def entries(key: str) -> list[tuple[str, Any]]:
    """All names below an entry of the plug-ins' plugin.yaml, and what each stands for."""
    groups = (_manifest(folder / "plugin.yaml").get(key) for folder in conf_folders())
    mappings = (entry for entry in groups if isinstance(entry, Mapping))
    return [(str(name), value) for entry in mappings for name, value in entry.items()]


def _paths() -> tuple[str, ...]:
    here = os.getcwd()  # what lies there is not installed, though `python -m` looks there too
    return tuple(path for path in sys.path if path and os.path.abspath(path) != here)


@cache
def _installed(paths: tuple[str, ...]) -> dict[str, bool]:
    """Packages that distributions in these folders registered, and whether distill's own did; of
    another contract none, with a line."""
    packages = dict[str, bool]()
    for package, ours in _registered(paths):
        packages[package] = ours or packages.get(package, False)
    for package in list(packages):
        if other := _other_contract(package):
            print(f"left out: {other}", file=sys.stderr)
            del packages[package]
    return packages


def _registered(paths: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """The same with repetitions. Distill's distribution is the one with the script `distill`.
    Reading the metadata of every distribution properly takes half a second."""
    checkout = Path(__file__).parents[3] / "pyproject.toml"  # what is installed of it may be older
    with suppress(OSError, ValueError, KeyError):
        project = tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]
        if "distill" in project["scripts"]:
            for package in project["entry-points"][GROUP].values():
                yield package, True
    for file in (file for path in paths for file in Path(path).glob("*-info/entry_points.txt")):
        if GROUP in file.read_text(encoding="utf-8", errors="replace"):
            points = PathDistribution(file.parent).entry_points
            ours = any(each.name == "distill" for each in points.select(group="console_scripts"))
            for point in points.select(group=GROUP):
                yield point.module, ours


def _places(package: str) -> list[Path]:
    """The folders of a package, or none; it is not imported, nor what is above it."""
    top, *inner = package.split(".")
    spec = None
    with suppress(ImportError, ValueError):
        spec = find_spec(top)
    places = (spec and spec.submodule_search_locations) or ()
    if spec is not None and not places and not inner:  # a module of one file
        return [Path(spec.origin or top).with_suffix("")]
    folders = [Path(place, *inner) for place in places]
    return [each for each in folders if each.is_dir() or each.with_suffix(".py").is_file()]


@cache
def _places_at(package: str, _here: str, _paths: tuple[str, ...]) -> list[Path]:
    return _places(package)


def _other_contract(package: str) -> str:
    """One line where a package's conf/ was made for another contract than this one's."""
    for file in (place / "conf/plugin.yaml" for place in _places(package)):
        contract = _manifest(file).get("contract")
        if contract is None and file.parent.is_dir():
            wrong = "has no contract" if file.is_file() else "is missing"
            return f"plug-in {package}: {file} {wrong}; it has one line, contract: {CONTRACT}"
        if contract not in (None, CONTRACT):
            return (
                f"plug-in {package}: made for contract {contract!r} of distill's plug-ins, and "
                f"this distill has contract {CONTRACT}; update the older of the two"
            )
    return ""


@cache
def _manifest(file: Path) -> Mapping[str, Any]:
    """What a plugin.yaml says; nothing where there is none, or no YAML."""
    content = None
    with suppress(OSError, ValueError, yaml.YAMLError):
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content if isinstance(content, Mapping) else {}
