"""Names of modules that moved: what earlier runs and scripts name is there under its old name."""

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pkgutil import resolve_name
from types import CodeType, ModuleType
from typing import Any, cast

# Where modules of distill lie now, by the name in earlier versions; what a plug-in took over is in
# its plugin.yaml.
MOVED = {
    "core.terms": "core.licence_terms",
    "data.cards.terms": "data.cards.licence_table",
    "data.kinds.chosen": "data.kinds.registry",
    "data.loaders": "data.datamodule",
    "data.set_files": "data.manifest",
    "data.sources": "data.photo_folders",
    "data.terms": "data.licence_terms",
    "export.ends": "export.forms",
    "export.graph.operator_sets": "export.graph.operator_gate",
    "export.graph.thumbnail": "export.whole_picture",
    "exporters": "export",
    "training.schedules": "train.schedules",
}


def current_name(name: str) -> str:
    """A dotted name where it lies now; `name` may be that of an earlier version."""
    from distill.core import plugins  # `import distill` loads this module, and should stay quick

    moved = {f"distill.{old}": f"distill.{new}" for old, new in MOVED.items()} | plugins.moved()
    old = max((each for each in moved if f"{name}.".startswith(f"{each}.")), key=len, default="")
    return moved[old] + name.removeprefix(old) if old else name


def with_current_names(settings: Any) -> Any:
    """Plain values that were saved, every `_target_` in them as `current_name` has it."""
    if isinstance(settings, list):
        return [*map(with_current_names, settings)]
    if not isinstance(settings, dict):
        return settings
    current = {key: with_current_names(value) for key, value in settings.items()}
    name = current.get("_target_")
    return current | {"_target_": current_name(name)} if isinstance(name, str) else current


def moved_names(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of which classes or functions moved: they are imported from
    where they lie now, with a DeprecationWarning."""

    def moved_name(name: str) -> Any:
        old = f"{module}.{name}"
        if name.startswith("__") or (now := current_name(old)) == old:  # imports ask for __path__
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{old} is {now} now", DeprecationWarning, stacklevel=2)
        return resolve_name(now)

    return moved_name


class OldNames(MetaPathFinder):
    """Imports distill's modules by their old names, with a DeprecationWarning.

    It is asked before other finders: a folder that earlier versions left behind, of compiled files
    or a built page, would be a package without a module to them.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("distill."):
            return None
        present = PathFinder.find_spec(name, path)
        if present is not None and present.origin is not None:
            return present
        if (now := current_name(name)) == name:
            return None
        if (there := find_spec(now)) is None:
            return None
        is_package = there.submodule_search_locations is not None
        return ModuleSpec(name, _Loader(there), is_package=is_package)


class _Loader(InspectLoader):
    def __init__(self, there: ModuleSpec) -> None:
        self.there = there

    def exec_module(self, module: ModuleType) -> None:
        from distill.core import plugins

        name, now = module.__name__, self.there.name
        if name.removeprefix("distill.") not in plugins.commands():  # their names stay
            warnings.warn(f"{name} is {now} now", DeprecationWarning, stacklevel=2)
        current = import_module(now)
        if any(old.startswith(f"{name}.") for old in plugins.moved()):  # parts lie elsewhere
            vars(module)["__getattr__"] = moved_names(name)
        elif self.there.submodule_search_locations is None:
            sys.modules[name] = current
        else:  # its __path__ is empty, or what is in the package would be loaded a second time
            vars(module)["__getattr__"] = partial(getattr, current)

    def get_code(self, name: str) -> CodeType | None:
        """For `python -m` with the old name."""
        return cast(InspectLoader, self.there.loader).get_code(self.there.name)

    def get_source(self, name: str) -> str | None:
        return cast(InspectLoader, self.there.loader).get_source(self.there.name)
