"""Distil heavy image-to-image networks into students for phones, lenses and the web.

`import distill` loads nothing else: what distill.api has is imported when it is first used.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from distill.core.moved import OldNames
from distill.core.process import limit_spinning

if TYPE_CHECKING:
    from distill.api import *  # noqa: F403

__version__ = "0.1.0"

limit_spinning()  # before anything loads torch
sys.meta_path.insert(0, OldNames())


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__all__":  # the import system and inspection try
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("distill.api"), name)


def __dir__() -> list[str]:
    return [*globals(), *import_module("distill.api").__all__]
