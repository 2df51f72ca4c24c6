"""Run a command as where nothing is installed but the package and tools/draw-requirements.txt.

    python drawing_install.py small PAGE stylize photo.jpg

PAGE is a folder that stands for the built page. Every other package that is installed here is
refused, as one is that is not; with `full` in the place of `small` none is. At the end the names of
the packages that were loaded are written to loaded.txt.
"""

import re
import runpy
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

REQUIREMENTS = Path(__file__).resolve().parents[2] / "tools" / "draw-requirements.txt"
LOADED = "loaded.txt"


def required() -> list[str]:
    """The lines of the file that ask for a package."""
    lines = REQUIREMENTS.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def refused() -> set[str]:
    """Names to import of what is installed, but would not be."""
    kept = _closure(_name(line) for line in required()) | {"distill"}
    provided = metadata.packages_distributions().items()
    return {module for module, by in provided if not {_name(each) for each in by} & kept}


def _closure(names: Iterable[str]) -> set[str]:
    """These and all that they ask for, without extras."""
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [_name(each) for each in _requires(name) if "extra ==" not in each]
    return found


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # only wanted on another system
        return []


def _name(requirement: str) -> str:
    """Of `Hydra_core>=1.3; …` hydra-core."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


class Refusing(MetaPathFinder):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(installed: str, page: str, command: str, *words: str) -> None:
    if installed == "small":
        sys.meta_path.insert(0, Refusing(refused()))
    from distill_lens import webpage

    webpage.PAGE, webpage.SOURCES = Path(page), Path("none")
    sys.argv = [command, *words]
    try:
        runpy.run_module(f"distill.{command}", run_name="__main__", alter_sys=True)
    finally:
        Path(LOADED).write_text("\n".join(sorted({name.partition(".")[0] for name in sys.modules})))


if __name__ == "__main__":
    main(*sys.argv[1:])
