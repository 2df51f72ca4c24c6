"""The command line: settings, quoted where a path needs it, flags that Hydra takes, and files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from distill.config.settings.base import ListSetting, NameSetting, PathMark
from distill.core.errors import DistillError

OUTPUT = ("-o", "--output")
VALUED = {  # Hydra's flags that take the next word
    *("--cfg", "-c", "--info", "-i", "--package", "-p", "--config-name", "-cn", "--config-path"),
    *("-cp", "--config-dir", "-cd", "--experimental-rerun"),
}

MULTIRUN, HELP, VERSION = {"-m", "--multirun"}, {"-h", "--help"}, {"-V", "--version"}
_SHOWN: dict[str, tuple[str, ...]] = {  # and what may follow them
    **dict.fromkeys(("-c", "--cfg"), ("job", "hydra", "all")),
    **dict.fromkeys(
        ("-i", "--info"), ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
    ),
}
_SHORTER = {"-p", "--package"}  # of --cfg: one part, by its name
_PLAIN = {*MULTIRUN, *HELP, *VERSION, "--resolve"}


class TypedKeys:
    """The dotted keys of a command's settings that are not typed as Hydra reads them, by type.

    `paths` need quotes, `lists` are those paths that may be several, as [A,B], and for `names`
    KEY=NAME means KEY.name=NAME; for `together` KEY=A,B means KEY=[A,B].
    """

    def __init__(self, *schemas: type) -> None:
        self.paths: set[str] = set()
        self.lists: set[str] = set()
        self.names: set[str] = set()
        self.together: set[str] = set()
        for schema in schemas:
            self._collect(schema, "", several=False)

    def _collect(self, hint: Any, key: str, several: bool) -> None:
        if isinstance(hint, type) and is_dataclass(hint):
            if issubclass(hint, NameSetting):
                self.names.add(key)
            if issubclass(hint, ListSetting):
                self.together.add(key)
            hints = get_type_hints(hint, include_extras=True)
            for item in fields(hint):
                self._collect(hints[item.name], f"{key}.{item.name}".lstrip("."), several)
            return
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(mark, PathMark):
                marked = {f"{key}.{name}" for name in mark.arguments} or {key}
                self.paths |= marked
                self.lists |= marked if several else set()
        for part in get_args(hint):  # of a union, a list, an annotated type
            self._collect(part, key, several or get_origin(hint) is list)


def split_arguments(
    arguments: list[str], keys: TypedKeys, several: bool
) -> tuple[list[str], list[str]]:
    """KEY=VALUE overrides, ready for Hydra, and its flags with their values.

    Raises DistillError for a value without a key.
    """
    quoted = _each_quoted if several else _quoted
    typed = [a for a in arguments if "=" in a and not a.startswith("-")]
    for argument in typed:
        if not re.match(r"[+~]*[^+~=@]", argument):
            raise DistillError(f"{argument}: names no setting; write KEY=VALUE")
    overrides = [quoted(argument, keys) for argument in typed]
    return overrides, [a for a in arguments if "=" not in a or a.startswith("-")]


def split_files(arguments: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """`photo.jpg -o OUT KEY=VALUE` as arguments for Hydra, which knows no bare words, and inputs.

    The inputs stay outside of Hydra: a picture's name may hold anything. Raises DistillError for
    -o without a name.
    """
    kept: list[str] = []
    inputs: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            inputs += words
        elif word in VALUED:
            kept += [word, *_next(words)]
        elif word in OUTPUT:
            kept.append(f"output={_output(word, ''.join(_next(words)))}")
        elif word.startswith("--output="):
            kept.append(f"output={_output('--output', word.partition('=')[2])}")
        elif word.startswith(("-", "hydra/")):
            kept.append(word)
        # A picture's name may hold a =, but no setting's name holds a slash.
        elif "=" not in word or "/" in word.partition("=")[0] or os.path.isfile(word):
            inputs.append(word)
        else:
            kept.append(word)
    return kept, {"inputs": inputs}


def _next(words: Iterator[str]) -> list[str]:
    return [word for word in [next(words, None)] if word is not None]


def _output(flag: str, value: str) -> str:
    if not value:
        raise DistillError(f"{flag}: say where to: {flag} FOLDER, or the name of one picture")
    return _quoted_path(value)


def _each_quoted(argument: str, keys: TypedKeys) -> str:
    """With -m a comma parts two folders or files, unless there is one of that very name."""
    key, _, value = argument.partition("=")
    if key not in keys.paths or value[:1] in ("", "'", '"', "[") or os.path.exists(value):
        return _quoted(argument, keys)
    if re.match(r"(choice|glob)\(", value):
        return argument
    items = (_quoted(f"{key}={item}", keys).partition("=")[2] for item in value.split(","))
    return f"{key}={','.join(items)}"


def _quoted(argument: str, keys: TypedKeys) -> str:
    """A folder or file may hold spaces, commas and brackets, which Hydra's grammar would read.

    [A,B] is a list of folders, unless there is one of that very name.
    """
    key, _, value = argument.partition("=")
    if key in keys.names:
        return f"{key}.name={value}"
    if key in keys.together and re.fullmatch(r"\w+(,\w+)*", value):
        return f"{key}=[{value}]"
    if key not in keys.paths or not value:
        return argument
    if key in keys.lists and value[0] + value[-1] == "[]" and not Path(value).is_dir():
        items = re.findall(r"'[^']*'|\"[^\"]*\"|[^,\s][^,]*", value[1:-1])
        return f"{key}=[{','.join(_quoted_path(item.strip()) for item in items)}]"
    return argument if re.fullmatch(r"[\w./~$-]+", value) else f"{key}={_quoted_path(value)}"


def _quoted_path(value: str) -> str:
    if value[0] in "'\"":
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def check_flags(words: Sequence[str]) -> None:
    """Raises DistillError for what is neither a setting nor a flag that a command takes.

    Hydra has more of them: they change where settings come from, or install completion for
    another kind of program, and their errors are many lines long.
    """
    rest = [part for word in words for part in word.split("=", 1)]
    asked = {word for word in rest if word in _SHOWN}
    while rest:
        word = rest.pop(0)
        if word in _PLAIN:
            continue
        if word in _SHORTER and rest:
            rest.pop(0)
        elif word in _SHOWN:
            if rest and rest[0] in _SHOWN[word]:
                rest.pop(0)
            elif word in ("-c", "--cfg"):
                raise DistillError(f"{word}: say what of: {word} {', '.join(_SHOWN[word])}")
        elif word.startswith("-"):
            raise DistillError(
                f"{word}: no such flag; there are --help, --cfg job, --info defaults, -m and "
                "--version; settings are typed KEY=VALUE"
            )
        else:
            raise DistillError(f"{word}: no setting; settings are typed KEY=VALUE, see --help")
    needing = {*_SHORTER, "--resolve"} & {part for word in words for part in word.split("=", 1)}
    if needing and not asked:
        raise DistillError(f"{min(needing)}: goes with --cfg job; leave it out, or add that")
