"""torchmetrics without what Lightning does not use of it: two seconds of every command's start.

PyTorch Lightning imports it for two classes. Its `__init__` imports a hundred metrics besides, and
with them whatever of SciPy, torchvision and transformers is installed; the two classes themselves
import Matplotlib, to plot what nobody plots. For the commands only: whoever imports distill has
torchmetrics as ever.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from types import ModuleType
from typing import Any

PACKAGE = "torchmetrics"
PLOT = f"{PACKAGE}.utilities.plot"
# In the order of import: these import each other.
CLASSES: dict[str, tuple[str, ...]] = {
    "utilities": (),
    "metric": ("Metric",),
    "collections": ("MetricCollection",),
}


def defer_torchmetrics() -> None:
    """Have its `__init__` run when something else of it is asked for than what Lightning does.

    Nothing is done where it is there already.
    """
    if PACKAGE not in sys.modules and not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the package and its plots where they are, and has them loaded by the classes below."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        later = {PACKAGE: _Later, PLOT: _WithoutMatplotlib}.get(name)
        if name == PLOT and not isinstance(sys.modules.get(PACKAGE), _Deferred):
            return None
        spec = PathFinder.find_spec(name, path) if later else None
        if later and spec and spec.loader:
            spec.loader = later(spec.loader)
        return spec


class _Later(Loader):
    def __init__(self, whole: Loader) -> None:
        self._whole = whole

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """The classes alone; all of it where a version has them elsewhere."""
        # What its modules read of it while they are imported.
        vars(module).update(
            _whole=self._whole, _logger=logging.getLogger(PACKAGE), __version__=version(PACKAGE)
        )
        try:
            for name, classes in CLASSES.items():
                found = import_module(f"{PACKAGE}.{name}")
                vars(module).update({each: getattr(found, each) for each in classes})
        except (ImportError, AttributeError):
            for name in [each for each in sys.modules if each.startswith(f"{PACKAGE}.")]:
                del sys.modules[name]
            _complete(module)


class _WithoutMatplotlib(Loader):
    """Has the module take Matplotlib for not installed, until the package is loaded as a whole."""

    def __init__(self, whole: Loader) -> None:
        self._whole = whole

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._whole.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        said = vars(import_module(f"{PACKAGE}.utilities.imports"))
        there = said.get("_MATPLOTLIB_AVAILABLE")
        said["_MATPLOTLIB_AVAILABLE"] = False
        try:
            self._whole.exec_module(module)
        finally:
            said["_MATPLOTLIB_AVAILABLE"] = there

    def complete(self, module: ModuleType) -> None:
        """Load it once more: who has its functions has them with Matplotlib from here on."""
        self._whole.exec_module(module)


class _Deferred(ModuleType):
    """The package while its `__init__` has not run."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":  # the import system and inspection try
            raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}")
        _complete(self)
        return getattr(self, name)


def _complete(module: ModuleType) -> None:
    module.__class__ = ModuleType
    plot = sys.modules.get(PLOT)
    loader = plot.__spec__.loader if plot and plot.__spec__ else None
    if plot and isinstance(loader, _WithoutMatplotlib):
        loader.complete(plot)
    vars(module)["_whole"].exec_module(module)
