"""Packages of one's own that bring parts: installed with an entry point, or named by the user.

An entry point of the group `distill.plugins` names a package; its folder conf/ adds choices to the
config groups, and conf/plugin.yaml says which version of this contract it was made for. Packages
are found here without importing anything of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PathDistribution
from importlib.util import find_spec
from pathlib import Path

import yaml

from distill.core.errors import DistillError

GROUP = "distill.plugins"
CONTRACT = 1  # raised when a plug-in has to change to go on working
NAMED = "DISTILL_PLUGINS"  # of the environment: what the user named, for processes started here too


def name_plugins(packages: str | Sequence[str]) -> None:
    """Trust these packages from now on, as `plugins=[A,B]` does. Raises DistillError."""
    for package in (packages := [packages] if isinstance(packages, str) else packages):
        if not _places(package):
            remedy = "install it, or put the folder that it lies in on PYTHONPATH"
            raise DistillError(f"plugins={package}: there is no such package; {remedy}")
        if other := _other_contract(package):
            raise DistillError(other)
    os.environ[NAMED] = ",".join(dict.fromkeys([*named_plugins(), *packages]))


def named_plugins() -> list[str]:
    """The packages that the user named, in this command or in $DISTILL_PLUGINS."""
    return [name for name in os.environ.get(NAMED, "").split(",") if name]


def plugins() -> list[str]:
    """All packages that parts may come from: those named, then those installed."""
    here = os.getcwd()  # what lies there is not installed, though `python -m` looks there too
    paths = tuple(path for path in sys.path if path and os.path.abspath(path) != here)
    return list(dict.fromkeys([*named_plugins(), *_installed(paths)]))


def conf_folders() -> list[Path]:
    """The folders conf/ of all plug-ins."""
    folders = (place / "conf" for package in plugins() for place in _places(package))
    return [folder for folder in folders if folder.is_dir()]


@cache
def _installed(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Packages that distributions in these folders registered; of another contract none, with a
    line. Reading the metadata of every distribution properly takes half a second."""
    found = dict[str, None]()
    for file in (file for path in paths for file in Path(path).glob("*-info/entry_points.txt")):
        if GROUP in file.read_text(encoding="utf-8", errors="replace"):
            points = PathDistribution(file.parent).entry_points.select(group=GROUP)
            found |= dict.fromkeys(point.module for point in points)
    for package in list(found):
        if other := _other_contract(package):
            print(f"left out: {other}", file=sys.stderr)
            del found[package]
    return tuple(found)


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


def _other_contract(package: str) -> str:
    """One line where a package's conf/ was made for another contract than this one's."""
    for file in (place / "conf/plugin.yaml" for place in _places(package)):
        said = None
        with suppress(OSError, ValueError, yaml.YAMLError, AttributeError):
            said = yaml.safe_load(file.read_text(encoding="utf-8")).get("contract")
        if said is None and file.parent.is_dir():
            return f"plug-in {package}: {file} is missing; it has one line, contract: {CONTRACT}"
        if said not in (None, CONTRACT):
            return (
                f"plug-in {package}: made for contract {said} of distill's plug-ins, and this "
                f"distill has contract {CONTRACT}; update the older of the two"
            )
    return ""
