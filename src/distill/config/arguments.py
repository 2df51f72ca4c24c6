"""The command line: settings, quoted where a text needs it, flags that Hydra takes, and files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from distill.config.settings.base import Given, ListSetting, NameSetting, PathMark
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.next_step import QUOTED, quoted
from distill.core.plugins import name_plugins

OUTPUT = ("-o", "--output")
VALUED = {  # Hydra's flags that take the next word
    *("--cfg", "-c", "--info", "-i", "--package", "-p", "--config-name", "-cn", "--config-path"),
    *("-cp", "--config-dir", "-cd", "--experimental-rerun"),
}

MULTIRUN, HELP, VERSION = {"-m", "--multirun"}, {"-h", "--help"}, {"-V", "--version"}
_FLAGS = re.compile(  # that a command takes, and the words after them
    r"(-m|--multirun|-h|--help|-V|--version|--resolve|(-c|--cfg)[ =](job|hydra|all)|"
    r"(-i|--info)([ =](all|config|defaults|defaults-tree|plugins|searchpath))?|"
    r"(-p|--package)[ =]\S+)( |$)"
)


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


def split_arguments(
    arguments: list[str], keys: TypedKeys, several: bool
) -> tuple[list[str], list[str]]:
    """KEY=VALUE overrides, ready for Hydra, and its flags with their values.

    Raises DistillError for a value without a key.
    """
    as_hydra = _each_quoted if several else _quoted
    typed = [a for a in arguments if "=" in a and not a.startswith("-")]
    for argument in typed:
        if not re.match(r"[+~]*[^+~=@]", argument):
            raise DistillError(f"{argument}: names no setting; write KEY=VALUE")
    overrides = [as_hydra(argument, keys) for argument in typed]
    return overrides, [a for a in arguments if "=" not in a or a.startswith("-")]


def split_folders(words: Sequence[str]) -> tuple[list[str], list[Path]]:
    """The words without those that say where parts of the user's own are, and these folders.

    `--config-dir DIR` becomes Hydra's setting for the same, hydra.searchpath=[DIR], which stays
    among the words; `plugins=[A,B]` is carried out. Raises DistillError.
    """
    kept, folders, left = list[str](), list[str](), iter(words)
    for word in left:
        flag, _, value = word.partition("=")
        items = [part.strip(" '\"") for part in value.strip("[]").split(",")]
        if flag in ("--config-dir", "-cd"):
            folders += [value] if value else _next(left)
        elif flag == "hydra.searchpath":
            folders += items
        elif flag == "plugins":
            name_plugins(items)
        else:
            kept.append(word)
    paths = [Path(os.path.abspath(home_path(each.removeprefix("file://")))) for each in folders]
    if wrong := next((path for path in paths if not path.is_dir()), None):
        raise DistillError(f"--config-dir {wrong}: no such folder of settings")
    if paths:
        kept.append(f"hydra.searchpath=[{','.join(quoted(f'file://{p}') for p in paths)}]")
    return kept, paths


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
        elif word == "--list":
            kept.append("listed=true")
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
    return quoted(value)


def _each_quoted(argument: str, keys: TypedKeys) -> str:
    """With -m a comma parts two texts, unless there is a folder or file of that very name."""
    key, value = _key_and_value(argument, keys)
    if key.lstrip("+") not in keys.texts or value[:1] in ("", "[") or os.path.exists(value):
        return _quoted(argument, keys)
    if re.match(r"(choice|glob)\(", value):
        return argument
    items = _parted(value)
    if len(items) < 2:
        return _quoted(argument, keys)
    return f"{key}={','.join(map(_text, items))}"


def _quoted(argument: str, keys: TypedKeys) -> str:
    """A text may hold what Hydra's grammar would read, or cannot: it goes in quotes.

    [A,B] is a list of texts, unless there is a folder of that very name.
    """
    key, value = _key_and_value(argument, keys)
    bare = key.lstrip("+")
    if key in keys.together and re.fullmatch(r"\w+(,\w+)*", value):
        return f"{key}=[{value}]"
    if bare in keys.lists and re.fullmatch(r"\[.*\]", value, re.S) and not Path(value).is_dir():
        return f"{key}=[{','.join(_text(item) for item in _parted(value[1:-1]))}]"
    if bare in keys.texts:
        # A name that is there is that of a folder or file, whatever it would mean otherwise.
        there = bare in keys.paths and value[:1] in ("'", '"') and os.path.exists(value)
        return f"{key}={quoted(value) if there else _text(value)}"
    # Of other values Hydra takes ASCII alone; what is wrong with them is said where they are read.
    plain = value.isascii() or value[:1] in ("[", "{", "'", '"') or "(" in value
    return f"{key}={value if plain else quoted(value)}"


def _key_and_value(argument: str, keys: TypedKeys) -> tuple[str, str]:
    key, _, value = argument.partition("=")
    return f"{key}.name" if key in keys.names else key, value


def _parted(value: str) -> list[str]:
    """At its commas, save those in quotes."""
    found = re.findall(rf"\s*({QUOTED})\s*(?=,|\Z)|([^,]+)", value, re.DOTALL)
    return [inner or item.strip() for inner, item in found]


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
    said = f"{key}: a {type(value).__name__}"
    raise DistillError(f"{said}; want text, a number, a bool, None or a list")


def check_flags(words: Sequence[str]) -> None:
    """Raises DistillError for what is neither a setting nor a flag that a command takes.

    Hydra has more of them: they change where settings come from, or install completion for
    another kind of program, and their errors are many lines long.
    """
    left = " ".join(words)
    needing = re.search(r"(?:^| )(--resolve|--package|-p)(?=[ =]|$)", left)
    if needing and not re.search(r"(?:^| )(-c|--cfg|-i|--info)(?=[ =]|$)", left):
        raise DistillError(f"{needing[1]}: goes with --cfg job; leave it out, or add that")
    while found := _FLAGS.match(left):
        left = left[found.end() :]
    word = re.split("[ =]", left)[0]
    if word in ("-c", "--cfg"):
        raise DistillError(f"{word}: say what of: {word} job, hydra, all")
    if word.startswith("-"):
        raise DistillError(
            f"{word}: no such flag; there are --help, --cfg job, --info defaults, -m, "
            "--config-dir and --version; settings are typed KEY=VALUE"
        )
    if left:
        raise DistillError(f"{word}: no setting; settings are typed KEY=VALUE, see --help")
