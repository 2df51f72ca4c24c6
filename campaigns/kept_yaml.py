"""Hydra parses each YAML file once a process, not once a composition: almost half of its time.

For what composes thousands of times in one process: the campaigns, and the tests.
"""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult, ConfigSource


@cache  # once
def keep_read_files() -> None:
    """From now on, in this process. A file that has changed is read again."""
    # Hydra executes the modules of its plug-ins again when it looks for them first: these classes
    # are those that it uses.
    for source in Plugins.instance().discover(ConfigSource):
        if source.scheme() in ("file", "pkg"):  # type: ignore[attr-defined]
            _keep(source)


def _keep(source: Any) -> None:
    kept: dict[tuple[object, ...], bytes] = {}
    read = source.load_config

    def load(self: Any, config_path: str) -> ConfigResult:
        file = Path(self.path, self._normalize_file_name(config_path))
        # A package's files stay as they are; a missing one is an error, every time.
        state = file.stat() if file.is_file() else None
        key = (str(file), *((state.st_mtime_ns, state.st_size) if state else ()))
        if key not in kept:
            kept[key] = pickle.dumps(read(self, config_path))
        copy: ConfigResult = pickle.loads(kept[key])  # what is typed is merged into it
        return copy

    source.load_config = load
