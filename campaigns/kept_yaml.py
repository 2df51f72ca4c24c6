"""YAML files are parsed once a process, not once a composition: more than half of its time.

For what composes thousands of times in one process: the campaigns, and the tests, which compose the
same words often.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult, ConfigSource

from distill.config import groups


@cache  # once
def keep_read_files() -> None:
    """From now on, in this process. A file that has changed is read again."""
    # Hydra executes the modules of its plug-ins again when it looks for them first: these classes
    # are those that it uses.
    for source in Plugins.instance().discover(ConfigSource):
        if source.scheme() in ("file", "pkg"):  # type: ignore[attr-defined]
            _keep(source)
    read, kept = groups._content, dict[tuple[object, ...], bytes]()
    groups._content = lambda path: _once(kept, path, lambda: read(path))


def _keep(source: Any) -> None:
    kept: dict[tuple[object, ...], bytes] = {}
    read = source.load_config

    def load(self: Any, config_path: str) -> ConfigResult:
        file = Path(self.path, self._normalize_file_name(config_path))
        copy: ConfigResult = _once(kept, file, lambda: read(self, config_path))
        return copy

    source.load_config = load


def _once(kept: dict[tuple[object, ...], bytes], file: Path, read: Callable[[], Any]) -> Any:
    """What a file holds, a copy each time: what is typed is merged into it."""
    # A package's files stay as they are; a missing one is an error, every time.
    state = file.stat() if file.is_file() else None
    key = (str(file), *((state.st_mtime_ns, state.st_size) if state else ()))
    if key not in kept:
        kept[key] = pickle.dumps(read())
    return pickle.loads(kept[key])


@cache
def keep_compositions() -> None:
    """From now on, the same words over the same files are composed once in this process."""
    kept: dict[tuple[object, ...], bytes] = {}
    compose = hydra.compose

    def composed(name: str, words: list[str]) -> Any:
        key = (name, *words, hash((*_files(),)))
        if key not in kept:
            kept[key] = pickle.dumps(compose(name, words))
        return pickle.loads(kept[key])

    hydra.compose = composed  # type: ignore[assignment]


def _files() -> Iterator[tuple[str, int, int]]:
    """All that Hydra would look through, as they are now."""
    for place in GlobalHydra.instance().config_loader().get_search_path().get_path():
        if place.path.startswith("file://") or "://" not in place.path:
            for file in Path(place.path.removeprefix("file://")).rglob("*.yaml"):
                state = file.stat()
                yield str(file), state.st_mtime_ns, state.st_size
