"""What was typed behind a command: settings, quoted where a path needs it, flags, and pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from distill.core.errors import DistillError

PATHS = {
    *("photos", "val_photos", "drop", "data.root", "data.a", "data.b", "a", "b", "output", "runs"),
    *("checkpoint", "model", "style.weights", "teacher.path", "calibration", "tflite.python"),
    *("students", "sketches", "sketch.mask", "sketch.hed.weights"),
}
LISTS = {"photos", "val_photos", "students", "sketches"}
OUTPUT = ("-o", "--output")
VALUED = {  # Hydra's flags that take the next word
    *("--cfg", "-c", "--info", "-i", "--package", "-p", "--config-name", "-cn", "--config-path"),
    *("-cp", "--config-dir", "-cd", "--experimental-rerun"),
}


def split_arguments(arguments: list[str], several: bool) -> tuple[list[str], list[str]]:
    """KEY=VALUE overrides, ready for Hydra, and its flags with their values."""
    quoted = _each_quoted if several else _quoted
    overrides = [quoted(a) for a in arguments if "=" in a and not a.startswith("-")]
    return overrides, [a for a in arguments if "=" not in a or a.startswith("-")]


def split_inputs(arguments: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The same for students: style=NAME becomes style.name=NAME, since `style` alone would choose a
    file of conf/style/, a teacher."""
    kept, given = split_files(arguments)
    return [re.sub(r"^style=", "style.name=", word) for word in kept], given


def split_recipe(arguments: list[str]) -> tuple[list[str], None]:
    """recipe=NAME becomes recipe.name=NAME, since `recipe` alone would choose a file of
    conf/recipe/, a way to train."""
    return [re.sub(r"^recipe=", "recipe.name=", word) for word in arguments], None


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
        elif _is_input(word):
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


def _is_input(word: str) -> bool:
    """A picture's name may hold a =, but no setting's name holds a slash (Hydra's own do)."""
    key, equals, _ = word.partition("=")
    if word.startswith(("-", "hydra/")):
        return False
    return not equals or "/" in key or os.path.isfile(word)


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
