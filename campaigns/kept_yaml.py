"""Hydra parses each YAML file once a process, not once a composition: almost half of its time.

For what composes thousands of times in one process: the campaigns, and the tests.
"""

from __future__ import annotations

import pickle
from pathlib import Path

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.plugins.config_source import ConfigResult


def keep_read_files() -> None:
    """From now on, in this process. A file that has changed is read again."""
    kept: dict[tuple[str, int], bytes] = {}
    read = FileConfigSource.load_config

    def load(self: FileConfigSource, config_path: str) -> ConfigResult:
        file = Path(self.path, self._normalize_file_name(config_path))
        if not file.is_file():
            return read(self, config_path)  # its own error
        key = str(file), file.stat().st_mtime_ns
        if key not in kept:
            kept[key] = pickle.dumps(read(self, config_path))
        result: ConfigResult = pickle.loads(kept[key])  # a copy: what is typed is merged into it
        return result

    FileConfigSource.load_config = load
