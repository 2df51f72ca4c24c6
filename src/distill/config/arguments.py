"""The command line read: settings, flags and files; texts quoted as Hydra's grammar needs them."""

import json
import os
import re
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from distill.config.settings.base import Given, ListSetting, NameSetting, PathMark
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.next_step import QUOTED, quoted

SHORT = {
    "-h": "--help",
    "-V": "--version",
    "-m": "--multirun",
    "-c": "--cfg",
    "-i": "--info",
    "-cd": "--config-dir",
    "-o": "--output",
}
SHOWS = {"--cfg": "job", "--info": "defaults"}  # Hydra's flags that show settings, and of what


@dataclass
class CommandLine:
    """The words behind a command.

    `settings` are KEY=VALUE as typed, `shown` Hydra's flags that show settings instead of a run,
    `folders` those of --config-dir and `plugins` packages that bring parts.
    """

    settings: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    plugins: list[str] = field(default_factory=list)
    help: bool = False
    version: bool = False
    multirun: bool = False


def read_words(words: Iterable[str], files: bool = False) -> CommandLine:
    """The words by kind; with `files`, pictures may stand beside settings, and -o and --list.

    Files stay outside of Hydra: a picture's name may hold anything. Raises DistillError for a word
    that is nothing of this. Hydra has more flags: they change where settings come from, or install
    completion for another kind of program, and their errors are many lines long.
    """
    line, left = CommandLine(), deque(words)
    while left:
        word = left.popleft()
        if word == "--" and files:
            line.inputs += left
            break
        if word.startswith("-"):
            _read_flag(word, left, line, files)
        else:
            _read_setting(word, line, files)
    if line.folders:
        places = ",".join(quoted(f"file://{folder}") for folder in line.folders)
        line.settings.append(f"hydra.searchpath=[{places}]")
    if line.shown and not SHOWS.keys() & {*line.shown}:
        raise DistillError("--resolve: goes with --cfg job; leave it out, or add that")
    return line


def _read_flag(word: str, left: deque[str], line: CommandLine, files: bool) -> None:
    """Add a flag to the line, with its value: what is behind its =, or the next word `left`."""
    name, equals, value = word.partition("=")
    flag = SHORT.get(name, name)
    if flag in (*SHOWS, "--config-dir", "--output") and not equals and left:
        value = left.popleft()
    match flag:
        case "--cfg" | "--info":
            if value != SHOWS[flag]:
                raise DistillError(f"{name}: say what of: {name} {SHOWS[flag]}")
            line.shown += [flag, value]
        case "--config-dir":
            if not value:
                raise DistillError(f"{name}: say where to: {name} FOLDER")
            line.folders.append(_folder(value))
        case "--output" if files:
            if not value:
                where = "FOLDER, or the name of one picture"
                raise DistillError(f"{name}: say where to: {name} {where}")
            line.settings.append(f"output={quoted(value)}")
        case "--help" | "--version" | "--multirun" if not equals:
            setattr(line, flag[2:], True)
        case "--resolve" if not equals:
            line.shown.append(flag)
        case "--list" if files and not equals:
            line.settings.append("listed=true")
        case _:
            raise DistillError(
                f"{name}: no such flag; there are --help, --cfg job, --info defaults, -m, "
                "--config-dir and --version; settings are typed KEY=VALUE"
            )


def _read_setting(word: str, line: CommandLine, files: bool) -> None:
    """Add KEY=VALUE to the line; with `files` also a picture, whose name may hold a =."""
    key, equals, value = word.partition("=")
    items = [part.strip(" '\"") for part in value.strip("[]").split(",")]
    if key == "hydra.searchpath":
        line.folders += [_folder(item.removeprefix("file://")) for item in items]
    elif key == "plugins":
        line.plugins += items
    # No setting's name holds a slash, but for Hydra's.
    elif files and not word.startswith("hydra/") and (
        not equals or "/" in key or os.path.isfile(word)
    ):  # fmt: skip
        line.inputs.append(word)
    elif not equals:
        raise DistillError(f"{word}: no setting; settings are typed KEY=VALUE, see --help")
    elif not re.match(r"[+~]*[^+~=@]", word):
        raise DistillError(f"{word}: names no setting; write KEY=VALUE")
    else:
        line.settings.append(word)


def _folder(name: str) -> Path:
    path = Path(os.path.abspath(home_path(name)))
    if not path.is_dir():
        raise DistillError(f"--config-dir {path}: no such folder of settings")
    return path


class TypedKeys:
    """The dotted keys of a command's settings that are not typed as Hydra reads them, by type.

    `texts` are taken letter by letter, `paths` among them may be there already, `lists` are those
    that may be several, as [A,B], and for `names` KEY=NAME means KEY.name=NAME; for `together`
    KEY=A,B means KEY=[A,B].
    """

    def __init__(self, *schemas: type) -> None:
        self.texts, self.paths, self.lists = set[str](), set[str](), set[str]()
        self.names, self.together = set[str](), set[str]()
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
                self.paths |= {key}
            if isinstance(mark, Given):
                self.texts |= {f"{key}.{name}" for name in mark.texts}
        if hint is str:
            self.texts |= {key}
            self.lists |= {key} if several else set()
        if get_origin(hint) in (dict, tuple) or (several and get_origin(hint) is list):
            return  # Hydra's own notation is needed for these
        for part in get_args(hint):  # of a union, a list, an annotated type
            self._collect(part, key, several or get_origin(hint) is list)


def overrides_of(settings: Sequence[str], keys: TypedKeys, several: bool = False) -> list[str]:
    """KEY=VALUE as typed, in Hydra's grammar: texts that it would read differently are quoted.

    [A,B] is a list of texts, unless there is a folder of that very name. With `several`, as with
    -m, a comma separates two texts, unless there is a folder or file of that very name.
    """
    return [_override(setting, keys, several) for setting in settings]


def _override(setting: str, keys: TypedKeys, several: bool) -> str:
    key, _, value = setting.partition("=")
    key = f"{key}.name" if key in keys.names else key
    bare = key.lstrip("+")
    if several and bare in keys.texts and value[:1] not in ("", "[") and not os.path.exists(value):
        if re.match(r"(choice|glob)\(", value):
            return setting
        if len(items := _items(value)) > 1:
            return f"{key}={','.join(map(_text, items))}"
    if key in keys.together and re.fullmatch(r"\w+(,\w+)*", value):
        return f"{key}=[{value}]"
    if bare in keys.lists and re.fullmatch(r"\[.*\]", value, re.S) and not Path(value).is_dir():
        return f"{key}=[{','.join(_text(item) for item in _items(value[1:-1]))}]"
    if bare in keys.texts:
        # A name that is there is that of a folder or file, whatever it would mean otherwise.
        there = bare in keys.paths and value[:1] in ("'", '"') and os.path.exists(value)
        return f"{key}={quoted(value) if there else _text(value)}"
    # Of other values Hydra takes ASCII alone; what is wrong with them is said where they are read.
    plain = value.isascii() or value[:1] in ("[", "{", "'", '"') or "(" in value
    return f"{key}={value if plain else quoted(value)}"


def _items(value: str) -> list[str]:
    """The parts between commas, save commas in quotes."""
    parts = re.findall(rf"\s*({QUOTED})\s*(?=,|\Z)|([^,]+)", value, re.DOTALL)
    return [inner or item.strip() for inner, item in parts]


def _text(value: str) -> str:
    """As Hydra reads it: quoted texts, null and plain words stay as they are."""
    plain = re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./-]*", value)
    if not value or value.lower() == "null" or re.fullmatch(QUOTED, value, re.DOTALL):
        return value
    other = value.lower() in ("true", "false", "inf", "nan")
    return value if plain and not other else quoted(value)


def words_of(settings: Mapping[str, Any], names: Container[str] = (), above: str = "") -> list[str]:
    """Settings as Python has them, a mapping for those below a key, as words typed for Hydra.

    For `names` KEY=NAME means KEY.name=NAME. Raises DistillError for a value that no setting has.
    """
    words = []
    for name, value in settings.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping):
            words += words_of(value, names, f"{key}.")
        else:
            words.append(f"{key}{'.name' if key in names else ''}={_literal(key, value)}")
    return words


def _literal(key: str, value: Any) -> str:
    if isinstance(value, str | os.PathLike):
        return quoted(os.fspath(value))
    if isinstance(value, list | tuple):
        return f"[{','.join(_literal(key, each) for each in value)}]"
    if value is None or isinstance(value, int | float):
        return json.dumps(value)
    kind = type(value).__name__
    raise DistillError(f"{key}: a {kind}; want text, a number, a bool, None or a list")
