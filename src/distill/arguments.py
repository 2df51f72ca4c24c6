"""What was typed behind a command: settings, quoted where a path needs it, and flags."""

from __future__ import annotations

import re
from pathlib import Path

PATHS = {
    *("photos", "val_photos", "drop", "data.root", "a", "b", "output", "runs", "checkpoint"),
    "style.weights",
}
LISTS = {"photos", "val_photos"}


def split_arguments(arguments: list[str], several: bool) -> tuple[list[str], list[str]]:
    """KEY=VALUE overrides, ready for Hydra, and its flags with their values."""
    quoted = _each_quoted if several else _quoted
    overrides = [quoted(a) for a in arguments if "=" in a and not a.startswith("-")]
    return overrides, [a for a in arguments if "=" not in a or a.startswith("-")]


def _each_quoted(argument: str) -> str:
    """With -m a comma parts two folders or files, unless there is one of that very name."""
    key, _, value = argument.partition("=")
    if key not in PATHS or value[:1] in ("", "'", '"', "[") or Path(value).exists():
        return _quoted(argument)
    if re.match(r"(choice|glob)\(", value):
        return argument
    items = (_quoted(f"{key}={item}").partition("=")[2] for item in value.split(","))
    return f"{key}={','.join(items)}"


def _quoted(argument: str) -> str:
    """A folder or file may hold spaces, commas and brackets, which Hydra's grammar would read.

    [A,B] is a list of folders, unless there is one of that very name.
    """
    key, _, value = argument.partition("=")
    if key not in PATHS or not value:
        return argument
    if key in LISTS and value[0] + value[-1] == "[]" and not Path(value).is_dir():
        items = re.findall(r"'[^']*'|\"[^\"]*\"|[^,\s][^,]*", value[1:-1])
        return f"{key}=[{','.join(_quoted_path(item.strip()) for item in items)}]"
    return argument if re.fullmatch(r"[\w./~$-]+", value) else f"{key}={_quoted_path(value)}"


def _quoted_path(value: str) -> str:
    if value[0] in "'\"":
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
