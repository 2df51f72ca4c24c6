"""From the command line to checked settings; the only module that imports Hydra."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString, Transformer
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from distill import __version__
from distill.config import multirun
from distill.config.arguments import (
    HELP,
    MULTIRUN,
    VERSION,
    TypedKeys,
    check_flags,
    split_arguments,
    split_files,
)
from distill.config.help import Row, Section, comments, page, rows
from distill.config.registry import Recipe, register
from distill.config.search_space import Axis, Space
from distill.config.settings.searching import Searching, SearchingOnCluster
from distill.config.validate import check
from distill.core.deferred_imports import defer_torchmetrics
from distill.core.errors import DistillError, OneLine
from distill.core.files import real_path
from distill.core.nodes import unknown_name
from distill.core.process import keep_freed_memory

S = TypeVar("S")
Task = Callable[[Any], None]
Schema = type[S] | Callable[[Mapping[str, Any]], type[S]]  # a class, or how to choose one
Given = Mapping[str, Any] | None
Implied = Callable[[Mapping[str, Any]], list[str]]  # settings typed, by key, to words that follow
SEARCHING = ("search", "launcher")  # groups of the jobs together


class Command(NamedTuple):
    """What is listed of a command's settings; `schema` is None where the recipe decides it."""

    schema: type | None
    recipes: tuple[Recipe, ...]
    searches: bool


COMMANDS: dict[str, Command] = {}  # those that were imported


def conf_folder() -> Path:
    """conf/ inside the package (wheel) or two levels up (checkout)."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "conf", package.parents[1] / "conf")
    return next(folder for folder in places if folder.is_dir())


def entry(
    name: str,
    schema: Schema,
    sweep: multirun.Sweep = multirun.NO_FOLDERS,
    inputs: bool = False,
    recipes: Sequence[Recipe] = (),
    implied: Implied | None = None,
) -> Callable[[Task], Callable[[], None]]:
    """Make a task a command: `conf/NAME.yaml` plus overrides, checked, as a `schema` instance.

    A `schema` that is no class chooses one by the composed values. A DistillError ends the command
    with its one line on standard error and exit status 1. With -m it runs once for every
    combination of the values given; `sweep` says what is around that. With `inputs` files may stand
    beside the settings. `recipes` are those that a run may be of. `implied` gives words that follow
    from those typed, where a default would be wrong.
    """
    register(*recipes)
    own = schema if isinstance(schema, type) else None
    COMMANDS[name] = Command(own, tuple(recipes), sweep.searches)

    def decorate(task: Task) -> Callable[[], None]:
        @functools.wraps(task)
        def command() -> None:
            keep_freed_memory()
            defer_torchmetrics()
            with OneLine():
                typed = sys.argv[1:]
                arguments, given = split_files(typed) if inputs else (typed, None)
                several = bool(MULTIRUN & set(arguments))
                schemas = [schema] if isinstance(schema, type) else [r.settings for r in recipes]
                if sweep.searches:
                    schemas.append(Searching)
                overrides, flags = split_arguments(arguments, TypedKeys(*schemas), several)
                check_flags(flags)
                if VERSION & set(flags):
                    print(f"distill {__version__}")
                elif HELP & set(arguments):
                    about = sys.modules[task.__module__].__doc__ or ""
                    asked_for = [word for word in overrides if "," not in word]
                    print(help_page(name, about, sections(name, asked_for)))
                elif several and sweep.searches:
                    _settings_alone(flags)
                    asked, own = _searching(name, overrides), _of_runs(overrides)
                    if asked.search:
                        checked = asked.launcher.only is None  # else who started it has done that
                        drawn = space(name, own, schema, given, implied, checked)
                        sweep.search(name, task, drawn, asked)
                    else:
                        only = asked.launcher.only
                        each = jobs(name, own, flags, schema, given, implied, only)
                        sweep.grid(name, task, each, asked)
                elif several:
                    each = jobs(name, overrides, flags, schema, given, implied)
                    multirun.run(task, each, sweep)
                else:
                    # A typo ends in our one line.
                    overrides += _following(name, overrides, implied)
                    settings: Any = load(name, overrides, schema, given)
                    if flags:  # --cfg and others
                        _hydra_main(name, schema, task, [*overrides, *flags], given)
                    else:
                        sweep.alone(settings)
                        if sweep.searches and (words := set(overrides) - {*_of_runs(overrides)}):
                            raise DistillError(f"{min(words)}: is for several jobs; add -m")
                        task(settings)

        return command

    return decorate


def _hydra_main(name: str, schema: Schema, task: Task, arguments: list[str], given: Given) -> None:
    def run(cfg: DictConfig) -> None:
        with OneLine():
            task(_checked(_plain(cfg, given), schema))

    _register_resolvers()
    sys.argv = [f"distill.{name}", *arguments]
    hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=name)(run)()


def jobs(
    name: str,
    overrides: list[str],
    flags: list[str],
    schema: Schema,
    given: Given = None,
    implied: Implied | None = None,
    only: int | None = None,
) -> list[multirun.Job]:
    """Every combination of the values given, in the order typed; all are checked here.

    `only` is the number, from 0, of the one that is wanted.
    """
    _settings_alone(flags)
    with _hydra(name) as parser:
        parsed = parser.parse_overrides(overrides)
        values = [_values(override) for override in parsed]
    keys = [o.key_or_group if o.is_sweep_override() else None for o in parsed]
    found = []
    for chosen in islice(product(*values), only or 0, None if only is None else only + 1):
        swept = {key: shown for key, (shown, _) in zip(keys, chosen, strict=True) if key}
        typed = [override for _, override in chosen]
        typed += _following(name, typed, implied)
        found.append(multirun.Job(swept, typed, load(name, typed, schema, given)))
    return found


def _settings_alone(flags: list[str]) -> None:
    if other := [flag for flag in flags if flag not in MULTIRUN]:
        raise DistillError(f"{other[0]}: beside -m only settings can stand (KEY=VALUE,VALUE)")


def space(
    name: str,
    overrides: list[str],
    schema: Schema,
    given: Given = None,
    implied: Implied | None = None,
    checked: bool = True,
) -> Space:
    """The search space; every value of a list and both ends of numbers are checked here."""
    with _hydra(name) as parser:
        parsed = parser.parse_overrides(overrides)
        axes = [_axis(override) for override in parsed if override.is_sweep_override()]
    if not axes:
        raise DistillError("-m: no setting has several values; KEY=VALUE,VALUE, or leave -m out")

    def make(chosen: Mapping[str, str]) -> multirun.Job:
        typed = [
            f"{o.get_key_element()}={chosen[o.key_or_group]}"
            if o.is_sweep_override()
            else str(o.input_line)
            for o in parsed
        ]
        typed += _following(name, typed, implied)
        swept = {axis.key: axis.choices.get(chosen[axis.key], chosen[axis.key]) for axis in axes}
        return multirun.Job(swept, typed, load(name, typed, schema, given))

    fixed = [str(o.input_line) for o in parsed if not o.is_sweep_override()]
    found = Space(axes, fixed, make)
    if checked:
        for chosen in found.probes():
            make(chosen)
    return found


def _axis(override: Override) -> Axis:
    key, text = override.key_or_group, str(override.input_line).partition("=")[2]
    value: Any = override.value()
    tags = set(getattr(value, "tags", ()))
    if other := tags - {"log"}:
        raise DistillError(f"{key}={text}: tag {min(other)} is unsupported; the only tag is log")
    if override.is_interval_sweep():
        if not value.start < value.end or (tags and value.start <= 0):
            raise DistillError(
                f"{key}={text}: an interval must increase; with tag(log,…) it starts above 0"
            )
        step = 1 if isinstance(value.start, int) and isinstance(value.end, int) else None
        return Axis(key, text, {}, value.start, value.end, step, bool(tags))
    values = _values(override)  # raises where there are none
    if not override.is_range_sweep():
        if tags:
            raise DistillError(f"{key}={text}: tag log needs numbers: interval(FROM,TO)")
        return Axis(key, text, {typed.partition("=")[2]: shown for shown, typed in values})
    numbers: Any = sorted(override.sweep_iterator())
    step, low = abs(value.step), numbers[0]
    if tags and (step != 1 or not isinstance(low, int) or low < 1):
        raise DistillError(f"{key}={text}: tag log needs whole numbers from 1, with step 1")
    return Axis(key, text, {}, low, numbers[-1], step, bool(tags))


def _searching(name: str, overrides: list[str]) -> Searching:
    """How jobs are chosen and where they run."""
    words = [word for word in overrides if word not in _of_runs(overrides)]
    with _hydra(name, words) as parser:
        for each in parser.parse_overrides(words):
            if each.is_sweep_override():
                raise DistillError(f"{each.key_or_group}: one for all jobs of a sweep, not several")
        composed = compose(name, words)
        chosen: Any = {
            key: OmegaConf.to_container(composed[key], resolve=True) for key in SEARCHING
        }
    if chosen["search"]["name"] == "grid":  # it has no settings
        chosen["search"] = None
    on_cluster = chosen["launcher"]["name"] == "submitit"
    return check(chosen, SearchingOnCluster if on_cluster else Searching)


def _of_runs(overrides: Iterable[str]) -> list[str]:
    """The words that are no setting of the search, which are of all jobs together."""
    return [word for word in overrides if re.split(r"[.=]", word)[0] not in SEARCHING]


def _following(name: str, overrides: list[str], implied: Implied | None) -> list[str]:
    """The words that follow from what was typed."""
    if implied is None:
        return []
    with _hydra(name, overrides) as parser:
        typed = {each.key_or_group: each.value() for each in parser.parse_overrides(overrides)}
    return implied(typed)


def _values(override: Override) -> list[tuple[str, str]]:
    """What a setting is to be, one after the other: the value as people read it, the override."""
    if not override.is_sweep_override():
        return [("", str(override.input_line))]
    key = override.key_or_group
    if not override.is_discrete_sweep():
        raise DistillError(f"{key}: an interval holds no list of values; use range(FROM,TO,STEP)")
    found = list(override.sweep_iterator())
    if not found:
        raise DistillError(f"{override.input_line}: no value fits; there is nothing to run")
    element = override.get_key_element()
    return [(shown, f"{element}={typed}") for shown, typed in map(_both, found)]


def _both(value: Any) -> tuple[str, str]:
    text = Transformer.str(value)
    if isinstance(value, str) and text != value:  # its escapes would not survive our own quoting
        value = QuotedString(value, Quote.single)
    return (value.text, value.with_quotes()) if isinstance(value, QuotedString) else (text, text)


def load(
    name: str,
    overrides: Iterable[str],
    schema: Schema[S],
    given: Given = None,
) -> S:
    """Compose `conf/NAME.yaml` with overrides and check it. Raises DistillError in one line."""
    with _hydra(name, overrides := list(overrides)):
        try:
            composed = compose(name, overrides)
        except (ValueError, TypeError) as error:  # Hydra's for GROUP=5 and GROUP=[5]
            raise DistillError(_explain(name, error, overrides)) from error
        return _checked(_plain(composed, given), schema)


def _checked(values: dict[str, Any], schema: Schema[S]) -> S:
    chosen: Any = schema if isinstance(schema, type) else schema(values)
    return check({key: v for key, v in values.items() if key not in chosen.not_used}, chosen)


def _plain(cfg: DictConfig, given: Given) -> dict[str, Any]:
    values: Any = OmegaConf.to_container(cfg, resolve=True)
    return values | dict(given or {})


@contextmanager
def _hydra(name: str, overrides: Iterable[str] = ()) -> Iterator[OverridesParser]:
    """Hydra over conf/, its errors in one line; gives its parser of overrides."""
    _register_resolvers()
    outer = GlobalHydra.instance().hydra  # set while a command runs: commands may compose too
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            try:
                yield OverridesParser.create(GlobalHydra.instance().config_loader())
            except (HydraException, OmegaConfBaseException) as error:
                raise DistillError(_explain(name, error, overrides)) from error
    finally:
        GlobalHydra.instance().hydra = outer


def _register_resolvers() -> None:
    OmegaConf.register_new_resolver("name_of", _name_of, replace=True)


def help_page(name: str, about: str, listed: Sequence[Section]) -> str:
    """The text of --help."""
    groups = [g for g in sorted(_every_group(name)) if (conf_folder() / g).is_dir()]
    return page(about, [f"{group}: {', '.join(choices(group))}" for group in groups], listed)


def sections(name: str, overrides: Sequence[str] = ()) -> list[Section]:
    """The settings of a command, of train by recipe, with their defaults beside `overrides`."""
    command = COMMANDS[name]
    said = {row.key: row.about for path in _conf_files() for row in described(path) if row.about}

    def composed(*words: str) -> Mapping[str, Any]:
        with _hydra(name, words):
            found: Any = OmegaConf.to_container(compose(name, [*words]), resolve=True)
        return found

    try:
        values = composed(*overrides)
    except DistillError:  # help comes whatever was typed
        overrides, values = [], composed()
    if command.schema:
        return [Section("Settings, KEY=VALUE", [*rows(command.schema, values, said)])]
    recipe = [word for word in overrides if word.startswith("recipe=")]
    by_recipe = {
        f"recipe={each.name}": [
            *rows(
                each.settings,
                values if recipe else composed(*overrides, f"recipe={each.name}"),
                said,
            )
        ]
        for each in command.recipes
        if not recipe or recipe == [f"recipe={each.name}"]
    }
    first, *others = by_recipe.values()
    shared = [row for row in first if all(row in other for other in others)] if others else []
    found = [Section("Settings of every recipe, KEY=VALUE", shared)] if shared else []
    for title, each_row in by_recipe.items():
        found.append(Section(title, [row for row in each_row if row not in shared]))
    if command.searches:
        jobs_values = composed("search=optuna", "launcher=submitit")
        found.append(
            Section(
                "With -m search=optuna (search), and for all jobs of -m (launcher)",
                [*rows(SearchingOnCluster, jobs_values, said)],
            )
        )
    return found


def _conf_files() -> list[Path]:
    """The files of conf/, commands before groups."""
    folder = conf_folder()
    return sorted(folder.rglob("*.yaml"), key=lambda path: (path.parent != folder, path))


def described(path: Path) -> list[Row]:
    """Keys, as typed, defaults and comments of a file of conf/."""
    text = path.read_text(encoding="utf-8")
    whole = path.parent == conf_folder() or text.startswith("# @package _global_")
    prefix = "" if whole else f"{path.parent.name}."
    return [row._replace(key=f"{prefix}{row.key}") for row in comments(text)]


def _name_of(folder: Any) -> str:
    """A folder's own name, as a part of a run's name: ${name_of:${data.root}}."""
    return real_path(Path(str(folder))).name if folder else "data"


def _explain(name: str, error: Exception, overrides: Iterable[str]) -> str:
    text = str(error)
    # The second is Hydra's of a group that takes several choices at once.
    if found := re.search(r"Could not (?:find|load) '([^']+)/([^'/]+)'", text):
        group, choice = found.groups()
        return unknown_name(f"{group}={choice}", [f"{group}={c}" for c in choices(group)], "choice")
    if found := re.search(r"Could not override '([^']+)'|Key '([^']+)' is not in struct", text):
        key = next(filter(None, found.groups()))
        full = re.search(r"full_key: (\S+)", text)
        key = full.group(1) if full else key
        groups = [g for g in _every_group(name) if (conf_folder() / g).is_dir()]
        bringing = [f"{g}={c}" for g in groups for c in choices(g) if key in _keys_of(g, c)]
        if elsewhere := [each for each in bringing if each not in overrides]:
            return f"{key}: no such setting here; it goes with {' or '.join(elsewhere)}"
        return unknown_name(key, _all_keys(name, key, overrides))
    if "Config group override must be" in text or isinstance(error, TypeError):
        for typed in overrides:  # it does not say of which
            group, _, choice = typed.partition("=")
            allowed = choices(group)
            wrong = [each for each in choice.strip("[]").split(",") if each not in allowed]
            if allowed and wrong:
                known = [f"{group}={each}" for each in allowed]
                return unknown_name(f"{group}={wrong[0]}", known, "choice")
    return " ".join(text.split())


def _keys_of(group: str, choice: str) -> set[str]:
    """The dotted keys that a choice's file sets, and those of the choices it builds on."""
    path = conf_folder() / group / f"{choice}.yaml"
    content: Any = OmegaConf.to_container(OmegaConf.load(path))
    below = content.pop("defaults", [])
    prefix = "" if path.read_text().startswith("# @package _global_") else f"{group}."
    inherited = [_keys_of(group, c) for c in below if isinstance(c, str) and c in choices(group)]
    return {f"{prefix}{key}" for key in _dotted(content)}.union(*inherited)


def _dotted(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{key}.")


def choices(group: str) -> list[str]:
    """The choices of a config group: its YAML files."""
    return sorted(p.stem for p in (conf_folder() / group).glob("*.yaml"))


def _all_keys(name: str, key: str, overrides: Iterable[str]) -> list[str]:
    """The keys that could have been meant: siblings of the wrong one, in what was chosen."""
    groups = [each for each in overrides if (conf_folder() / each.partition("=")[0]).is_dir()]
    try:
        chosen = compose(name, groups)
    except HydraException:  # the wrong one is among them, or is a group of another command
        recipe = [each for each in groups if each.startswith("recipe=")]
        chosen = compose(name, recipe if "recipe" in _groups(name) else [])
    tree: Any = OmegaConf.to_container(chosen, resolve=False)
    *parents, _ = key.split(".")
    for parent in parents:
        tree = tree.get(parent, {}) if isinstance(tree, dict) else {}
    keys = [str(k) for k in tree] if isinstance(tree, dict) else []
    if parents:
        return [".".join([*parents, k]) for k in keys]
    return list(dict.fromkeys([*_groups(name), *keys]))


def _every_group(name: str) -> list[str]:
    """The config groups a command takes, whatever its recipe."""
    groups = dict.fromkeys(_groups(name))
    if "recipe" in groups:
        groups |= dict.fromkeys(g for r in choices("recipe") for g in _groups(f"recipe/{r}"))
    return list(groups)


def _groups(name: str) -> list[str]:
    """The config groups a command takes, also those that are empty by default."""
    defaults: Any = OmegaConf.load(conf_folder() / f"{name}.yaml").defaults
    named = [str(key) for item in defaults if isinstance(item, Mapping) for key in item]
    return [key.lstrip("/") for key in named if not key.startswith("override ")]
