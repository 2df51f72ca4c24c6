"""torchmetrics without what Lightning does not use of it: seconds of every command's start.

PyTorch Lightning imports it for two classes. Its `__init__` imports a hundred metrics besides, and
with them whatever of SciPy, torchvision and transformers is installed; the two classes themselves
import Matplotlib, to plot what nobody plots. For the commands only: whoever imports distill has
torchmetrics as ever.
"""

import importlib
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from types import ModuleType
from typing import Any

from distill.core.process import with_attribute

PACKAGE = "torchmetrics"
PLOT = f"{PACKAGE}.utilities.plot"
CLASSES = {"metric": "Metric", "collections": "MetricCollection"}  # by their modules


def defer_torchmetrics() -> None:
    """Have its `__init__` run when something else of it is asked for than what Lightning does.

    Nothing is done where it is there already.
    """
    if PACKAGE not in sys.modules:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader = {PACKAGE: _TwoClasses, PLOT: _WithoutMatplotlib}.get(name)
        spec = PathFinder.find_spec(name, path) if loader else None
        if loader and spec and spec.loader:
            spec.loader = loader(spec.loader)
        return spec


class _WithoutMatplotlib(Loader):
    """Has the module take Matplotlib for not installed."""

    def __init__(self, whole: Loader) -> None:
        self.whole = whole

    def exec_module(self, module: ModuleType) -> None:
        libraries: Any = importlib.import_module(f"{PACKAGE}.utilities.imports")
        with with_attribute([libraries], "_MATPLOTLIB_AVAILABLE", False):
            self.whole.exec_module(module)


class _TwoClasses(Loader):
    """Loads the two classes, and the whole package when another name of it is asked for."""

    def __init__(self, whole: Loader) -> None:
        self.whole = whole

    def exec_module(self, module: ModuleType) -> None:
        def complete(name: str) -> Any:
            if name.startswith("__") and name != "__all__":  # the import system and inspection try
                raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}")
            del vars(module)["__getattr__"]
            if plot := sys.modules.get(PLOT):  # who has its functions has them with Matplotlib then
                importlib.reload(plot)
            self.whole.exec_module(module)
            return getattr(module, name)

        # What its modules read of it while they are imported.
        vars(module).update(_logger=logging.getLogger(PACKAGE), __version__=version(PACKAGE))
        vars(module)["__getattr__"] = complete
        with suppress(ImportError, AttributeError):  # a version that has them elsewhere: all of it
            # They import each other: it comes first.
            importlib.import_module(f"{PACKAGE}.utilities")
            for place, name in CLASSES.items():
                setattr(module, name, getattr(importlib.import_module(f"{PACKAGE}.{place}"), name))
        sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _Finder)]
