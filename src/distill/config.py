"""Compose and check: the only module besides the entry points that knows Hydra."""

from __future__ import annotations

import functools
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import TypeAdapter, ValidationError

from distill.errors import DistillError
from distill.nodes import bind, no_such
from distill.settings import Given

INTERRUPTED = 130  # exit status after Ctrl-C or SIGTERM
PATHS = {"photos", "data.root", "a", "b", "output", "runs", "checkpoint", "style.weights"}

S = TypeVar("S")
Task = Callable[[Any], None]


def conf_folder() -> Path:
    """conf/ inside the package (wheel) or two levels up (checkout)."""
    here = Path(__file__).resolve().parent
    return next(p for p in (here / "conf", here.parents[1] / "conf") if p.is_dir())


def entry(name: str, schema: type) -> Callable[[Task], Callable[[], None]]:
    """Make a task a command: `conf/NAME.yaml` plus overrides, checked, as a `schema` instance.

    A DistillError ends the command with its one line on standard error and its exit status.
    """

    def decorate(task: Task) -> Callable[[], None]:
        def run(cfg: DictConfig) -> None:
            with OneLine():
                task(check(OmegaConf.to_container(cfg, resolve=True), schema))

        @functools.wraps(task)
        def command() -> None:
            overrides, flags = _split_arguments(sys.argv[1:])
            with OneLine():
                if not flags:
                    task(load(name, overrides, schema))
                    return
                if not {"-m", "--multirun"} & set(flags):
                    load(name, overrides, schema)  # a typo ends in our one line
            sys.argv = [f"distill.{name}", *overrides, *flags]  # --help, --cfg, -m: Hydra's
            conf = str(conf_folder())
            hydra.main(version_base="1.3", config_path=conf, config_name=name)(run)()

        return command

    return decorate


class OneLine:
    """Turns what a user can cause into one line on standard error and an exit status.

    Warnings are shown as one line too, without the place in the code.
    """

    def __enter__(self) -> None:
        self._format = warnings.formatwarning
        warnings.formatwarning = lambda message, *_args, **_more: f"warning: {message}\n"

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        warnings.formatwarning = self._format
        if isinstance(error, DistillError):
            print(f"error: {error}", file=sys.stderr)
            sys.exit(error.status)
        if isinstance(error, OSError) and error.strerror:
            where = error.filename or "the disk"
            print(
                f"error: {where}: {error.strerror.lower()}; choose another place", file=sys.stderr
            )
            sys.exit(1)
        if isinstance(error, KeyboardInterrupt):
            print("\nstopped; the same command goes on", file=sys.stderr)
            sys.exit(INTERRUPTED)


def _split_arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    """KEY=VALUE overrides, ready for Hydra, and its flags with their values."""
    overrides = [_quoted(a) for a in arguments if "=" in a and not a.startswith("-")]
    return overrides, [a for a in arguments if "=" not in a or a.startswith("-")]


def _quoted(argument: str) -> str:
    """A folder or file may hold spaces, commas and brackets, which Hydra's grammar would read."""
    key, _, value = argument.partition("=")
    if key not in PATHS or not value or value[0] in "'\"" or re.fullmatch(r"[\w./~$-]+", value):
        return argument
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{key}='{escaped}'"


def load(name: str, overrides: Iterable[str], schema: type[S]) -> S:
    """Compose `conf/NAME.yaml` with overrides and check it. Raises DistillError in one line."""
    outer = GlobalHydra.instance().hydra  # set while a command runs: commands may compose too
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            return check(_compose(name, list(overrides)), schema)
    finally:
        GlobalHydra.instance().hydra = outer


def _compose(name: str, overrides: list[str]) -> Any:
    try:
        return OmegaConf.to_container(compose(name, overrides), resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise DistillError(_explain(name, error)) from error


def check(values: Any, schema: type[S]) -> S:
    """Plain values as a `schema` instance, every Node bound to its constructor's signature."""
    try:
        checked = TypeAdapter(schema).validate_python(values)
    except ValidationError as error:
        raise DistillError(_explain_value(error, schema)) from None
    for key, value, given in _nodes(checked):
        bind(key, value, given)
    return checked


def _nodes(
    settings: Any, prefix: str = ""
) -> Iterable[tuple[str, dict[str, Any], tuple[str, ...]]]:
    hints = get_type_hints(type(settings), include_extras=True)
    for item in fields(settings):
        value, key = getattr(settings, item.name), f"{prefix}{item.name}"
        given = [m for m in getattr(hints[item.name], "__metadata__", ()) if isinstance(m, Given)]
        if is_dataclass(value):
            yield from _nodes(value, f"{key}.")
        elif given:
            yield key, value, given[0].names
        elif item.name == "terms":
            yield from ((f"{key}.{name}", term, ()) for name, term in value.items())


def _explain(name: str, error: Exception) -> str:
    text = str(error)
    if found := re.search(r"Could not find '([^']+)/([^'/]+)'", text):
        group, choice = found.groups()
        return no_such(f"{group}={choice}", [f"{group}={c}" for c in choices(group)], "choice")
    if found := re.search(r"Could not override '([^']+)'|Key '([^']+)' is not in struct", text):
        key = next(filter(None, found.groups()))
        full = re.search(r"full_key: (\S+)", text)
        key = full.group(1) if full else key
        return no_such(key, _all_keys(name, key))
    return " ".join(text.split())


def choices(group: str) -> list[str]:
    """The choices of a config group: its YAML files."""
    return sorted(p.stem for p in (conf_folder() / group).glob("*.yaml"))


def _all_keys(name: str, key: str) -> list[str]:
    """The keys that could have been meant: siblings of the wrong one, from the default config."""
    tree: Any = OmegaConf.to_container(compose(name), resolve=False)
    *parents, _ = key.split(".")
    for parent in parents:
        tree = tree.get(parent, {}) if isinstance(tree, dict) else {}
    keys = [str(k) for k in tree] if isinstance(tree, dict) else []
    if parents:
        return [".".join([*parents, k]) for k in keys]
    return list(dict.fromkeys([*_groups(name), *keys]))


def _groups(name: str) -> list[str]:
    """The config groups a command takes, also those that are empty by default."""
    defaults: Any = OmegaConf.load(conf_folder() / f"{name}.yaml").defaults
    named = [str(key) for item in defaults if isinstance(item, Mapping) for key in item]
    return [key for key in named if not key.startswith("override ")]


def _explain_value(error: ValidationError, schema: type) -> str:
    first = error.errors()[0]
    path = [
        str(part) for part in first["loc"] if not str(part).startswith(("function-", "literal"))
    ]
    key = ".".join(path)
    if first["type"] == "unexpected_keyword_argument":
        owner: Any = schema
        for part in path[:-1]:
            owner = get_type_hints(owner)[part]
        prefix = "".join(f"{p}." for p in path[:-1])
        return no_such(key, [f"{prefix}{f.name}" for f in fields(owner)])
    if first["type"] == "missing":
        return f"{key}: missing"
    return f"{key}={first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}"
