"""From the command line to checked settings; the only module that imports Hydra."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import Any, TypeVar

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString, Transformer
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
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
    split_folders,
    words_of,
)
from distill.config.groups import (
    choices,
    conf_folder,
    conf_folders,
    described,
    dotted,
    every_group,
    groups_of,
    keys_of,
    tell_hidden,
    typed_folders,
)
from distill.config.help import Section, page, rows
from distill.config.multirun import Axis, Space
from distill.config.registry import RECIPES, recipe_named
from distill.config.settings.searching import Searching, SearchingOnCluster
from distill.config.validate import check
from distill.core.deferred_imports import defer_torchmetrics
from distill.core.errors import DistillError, OneLine
from distill.core.files import real_path
from distill.core.next_step import for_shell, unquoted
from distill.core.nodes import class_of, takes, unknown_name
from distill.core.plugins import name_plugins, usage
from distill.core.process import keep_freed_memory

S = TypeVar("S")
Task = Callable[[Any], None]
Schema = type[S] | Callable[[Mapping[str, Any]], type[S]]  # a class, or how to choose one
Keywords = Mapping[str, Any]
Given = Keywords | None
Implied = Callable[[Mapping[str, Any]], list[str]]  # settings typed, by key, to words that follow
Make = Callable[[Mapping[str, str], Sequence[str]], multirun.Job]  # of what is swept and typed
SEARCHING = ("search", "launcher")  # groups of the jobs together


COMMANDS = dict[str, tuple[Schema[Any], bool]]()  # those imported; whether they search


class OwnFolders(SearchPathPlugin):
    """Shows the further ones to Hydra, which takes the first file of a name."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        tell_hidden(tuple(folders := conf_folders()))
        for folder in folders[1:]:
            search_path.append("distill", f"file://{folder}")


def entry(
    name: str,
    schema: Schema,
    sweep: multirun.Sweep = multirun.NO_FOLDERS,
    inputs: bool = False,
    implied: Implied | None = None,
) -> Callable[[Task], Callable[[], None]]:
    """Make a task a command: `conf/NAME.yaml` plus overrides, checked, as a `schema` instance.

    A `schema` that is no class chooses one by the composed values. A DistillError ends the command
    with its one line on standard error and exit status 1. With -m it runs once for every
    combination of the values given; `sweep` says what is around that. With `inputs` files may stand
    beside the settings. `implied` gives words that follow from those typed, where a default would
    be wrong.
    """
    COMMANDS[name] = schema, sweep.searches

    def decorate(task: Task) -> Callable[[], None]:
        @functools.wraps(task)
        def command() -> None:
            keep_freed_memory()
            defer_torchmetrics()
            with OneLine():
                typed, typed_folders[:] = split_folders(sys.argv[1:])
                arguments, given = split_files(typed) if inputs else (typed, None)
                several = bool(MULTIRUN & set(arguments))
                schemas = [*_schemas(schema), *([Searching] if sweep.searches else [])]
                overrides, flags = split_arguments(arguments, TypedKeys(*schemas), several)
                check_flags(flags)
                make = maker(name, schema, given, implied)
                if VERSION & set(flags):
                    print(f"distill {__version__}")
                elif HELP & set(arguments):
                    about = sys.modules[task.__module__].__doc__ or ""
                    asked_for = [word for word in overrides if "," not in word]
                    print(help_page(name, about, sections(name, asked_for)))
                elif several:
                    if other := [flag for flag in flags if flag not in MULTIRUN]:
                        beside = "beside -m only settings can stand (KEY=VALUE,VALUE)"
                        raise DistillError(f"{other[0]}: {beside}")
                    if not sweep.searches:
                        multirun.run(task, jobs(name, overrides, make), sweep)
                        return
                    asked, own = _searching(name, overrides), _of_runs(overrides)
                    only = asked.launcher.only  # who started this one has checked all
                    if asked.search:
                        sweep.search(name, task, space(name, own, make, only is None), asked)
                    else:
                        sweep.grid(name, task, jobs(name, own, make, only), asked)
                else:
                    job = make({}, overrides)  # a typo ends in our one line
                    if flags:  # --cfg and others
                        _hydra_main(name, schema, task, [*job.overrides, *flags], given)
                        return
                    sweep.alone(job.settings)
                    if sweep.searches and (words := set(overrides) - {*_of_runs(overrides)}):
                        raise DistillError(f"{min(words)}: is for several jobs; add -m")
                    task(job.settings)

        return command

    return decorate


def _hydra_main(name: str, schema: Schema, task: Task, arguments: list[str], given: Given) -> None:
    def run(cfg: DictConfig) -> None:
        with OneLine():
            task(_checked(_plain(cfg, given), schema))

    _register_resolvers()
    sys.argv = [f"distill.{name}", *arguments]
    hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=name)(run)()


def maker(name: str, schema: Schema, given: Given = None, implied: Implied | None = None) -> Make:
    """How words that are typed become a job; its settings are composed and checked."""

    def make(swept: Mapping[str, str], typed: Sequence[str]) -> multirun.Job:
        words = list(typed)
        if implied:
            with _hydra(name, words) as parser:
                read = {each.key_or_group: each.value() for each in parser.parse_overrides(words)}
            words += implied({k: unquoted(v) if isinstance(v, str) else v for k, v in read.items()})
        return multirun.Job(swept, words, load(name, words, schema, given))

    return make


def jobs(
    name: str, overrides: list[str], make: Make, only: int | None = None
) -> list[multirun.Job]:
    """Every combination of the values given, in the order typed; all are checked here.

    `only` is the number, from 0, of the one that is wanted.
    """
    with _hydra(name) as parser:
        parsed = parser.parse_overrides(overrides)
        values = [_values(override) for override in parsed]
    keys = [o.key_or_group if o.is_sweep_override() else None for o in parsed]
    found = []
    for chosen in islice(product(*values), only or 0, None if only is None else only + 1):
        swept = {key: shown for key, (shown, _) in zip(keys, chosen, strict=True) if key}
        found.append(make(swept, [override for _, override in chosen]))
    return found


def space(name: str, overrides: list[str], make: Make, checked: bool = True) -> Space:
    """The search space; every value of a list and both ends of numbers are checked here."""
    with _hydra(name) as parser:
        parsed = parser.parse_overrides(overrides)
        axes = [_axis(override) for override in parsed if override.is_sweep_override()]
    if not axes:
        raise DistillError("-m: no setting has several values; KEY=VALUE,VALUE, or leave -m out")

    def drawn(chosen: Mapping[str, str]) -> multirun.Job:
        typed = [
            f"{o.get_key_element()}={chosen[o.key_or_group]}"
            if o.is_sweep_override()
            else str(o.input_line)
            for o in parsed
        ]
        swept = {axis.key: axis.choices.get(chosen[axis.key], chosen[axis.key]) for axis in axes}
        return make(swept, typed)

    fixed = [str(o.input_line) for o in parsed if not o.is_sweep_override()]
    found = Space(axes, fixed, drawn)
    for chosen in found.probes() if checked else ():
        drawn(chosen)
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
    both = []
    for value in found:
        text = typed = Transformer.str(value)
        if isinstance(value, str) and text != value:  # its escapes would not survive our quoting
            value = QuotedString(value, Quote.single)  # type: ignore[assignment]
        if isinstance(value, QuotedString):
            text, typed = unquoted(value.text), value.with_quotes()
        both.append((text, f"{override.get_key_element()}={typed}"))
    return both


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
        values = _plain(composed, given)
    return _checked(_without_leftovers(values, overrides), schema)


def _without_leftovers(values: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The values; a `_target_` that is typed leaves its Node no arguments of the class before."""
    keys = [word.partition("=")[0].lstrip("+") for word in overrides]
    for key in (key.removesuffix("._target_") for key in keys if key.endswith("._target_")):
        node: Any = values
        for name in key.split("."):
            node = node.get(name, {}) if isinstance(node, dict) else {}
        class_of(key, node)  # raises
        typed = {each.removeprefix(f"{key}.").partition(".")[0] for each in keys}
        for name in [name for name in node if name not in typed and not takes(node, name)]:
            del node[name]
    return values


def from_keywords(
    name: str,
    schema: Schema[S],
    first: Keywords,
    settings: Keywords,
    implied: Implied | None = None,
) -> S:
    """A command's settings by Python's keywords, see `words_of`; `settings` go before `first`."""
    name_plugins((settings := dict(settings)).pop("plugins", ()))
    kept = {k: v for k, v in first.items() if isinstance(settings.get(k, {}), Mapping)}
    names = TypedKeys(*_schemas(schema)).names
    words = words_of(kept, names) + words_of(settings, names)
    return maker(name, schema, None, implied)({}, words).settings


def _schemas(schema: Schema) -> list[type]:
    return [schema] if isinstance(schema, type) else [each.settings for each in RECIPES.values()]


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
    def name_of(folder: Any) -> str:  # as a part of a run's name: ${name_of:${data.root}}
        return real_path(Path(str(folder))).name if folder else "data"

    def stem_of(files: Any) -> str:  # of style pictures, A+B
        return (
            "+".join(Path(str(f)).stem for f in (files if OmegaConf.is_list(files) else [files]))
            or "none"
        )

    OmegaConf.register_new_resolver("name_of", name_of, replace=True)
    OmegaConf.register_new_resolver("stem_of", stem_of, replace=True)
    if OwnFolders not in Plugins.instance().discover(SearchPathPlugin):
        Plugins.instance().register(OwnFolders)


def help_page(name: str, about: str, listed: Sequence[Section]) -> str:
    """The text of --help."""
    groups = [g for g in sorted(every_group(name)) if choices(g)]
    said = [f"{group}: {', '.join(choices(group))}" for group in groups]
    said += ["plugins=[PACKAGE] adds the parts of an own package, --config-dir DIR choices of DIR"]
    return page(f"{about.rstrip()}\n\n{usage(name)}", said, listed)


def sections(name: str, overrides: Sequence[str] = ()) -> list[Section]:
    """The settings of a command, of train by recipe, with their defaults beside `overrides`."""
    schema, searches = COMMANDS[name]
    # Commands before groups.
    files = [
        file
        for glob in ("*", "*/*")
        for each in conf_folders()
        for file in each.glob(f"{glob}.yaml")
    ]
    said = {row.key: row.about for file in files for row in described(file) if row.about}

    def composed(*words: str) -> Mapping[str, Any]:
        with _hydra(name, words):
            found: Any = OmegaConf.to_container(compose(name, [*words]), resolve=True)
        return found

    try:
        values = composed(*overrides)
    except DistillError:  # help comes whatever was typed
        overrides, values = [], composed()
    if isinstance(schema, type):
        return [Section("Settings, KEY=VALUE", [*rows(schema, values, said)])]
    if any(word.startswith("recipe=") for word in overrides):
        by_recipe = {recipe_named(values["recipe"]): values}
    else:
        by_recipe = {r: composed(*overrides, f"recipe={name}") for name, r in RECIPES.items()}
    listed = {r.name: [*rows(r.settings, found, said)] for r, found in by_recipe.items()}
    first, *others = listed.values()
    shared = [row for row in first if others and all(row in other for other in others)]
    found = [Section("Settings of every recipe, KEY=VALUE", shared)] if shared else []
    for title, own in listed.items():
        found.append(Section(f"recipe={title}", [row for row in own if row not in shared]))
    if searches:
        together = rows(SearchingOnCluster, composed("search=optuna", "launcher=submitit"), said)
        title = "With -m search=optuna (search), and for all jobs of -m (launcher)"
        found.append(Section(title, [*together]))
    return found


def _explain(name: str, error: Exception, overrides: Iterable[str]) -> str:
    text = str(error)
    if isinstance(error, OverrideParseException):
        key, _, value = error.override.partition("=")
        inside = for_shell(f"{key}='{value}'")
        return f"{error.override}: is no value that Hydra reads; if it is a text, type {inside}"
    # The second is Hydra's of a group that takes several choices at once.
    if found := re.search(r"Could not (?:find|load) '([^']+)/([^'/]+)'", text):
        return _no_choice(*found.groups())
    if found := re.search(r"Could not override '([^']+)'|Key '([^']+)' is not in struct", text):
        found = re.search(r"full_key: (\S+)", text) or found
        key = next(filter(None, found.groups()))
        groups = [g for g in every_group(name) if choices(g)]
        bringing = [f"{g}={c}" for g in groups for c in choices(g) if key in keys_of(g, c)]
        if elsewhere := [each for each in bringing if each not in overrides]:
            return f"{key}: no such setting here; it goes with {' or '.join(elsewhere)}"
        known = _all_keys(name, key, overrides)
        if deeper := [each for each in known if each.endswith(f".{key}")]:
            return f"{key}: no such setting; did you mean {' or '.join(deeper[:3])}?"
        return unknown_name(key, [each for each in known if "." in key or "." not in each])
    if "Config group override must be" in text or isinstance(error, TypeError):
        for typed in overrides:  # it does not say of which
            group, _, choice = typed.partition("=")
            wrong = {*choice.strip("[]").split(",")} - {*choices(group)}
            if choices(group) and wrong:
                return _no_choice(group, min(wrong))
    return " ".join(text.split())


def _no_choice(group: str, choice: str) -> str:
    return unknown_name(f"{group}={choice}", [f"{group}={c}" for c in choices(group)], "choice")


def _all_keys(name: str, key: str, overrides: Iterable[str]) -> list[str]:
    """The keys that could have been meant: siblings of the wrong one, in what was chosen."""
    groups = [each for each in overrides if choices(each.partition("=")[0])]
    try:
        chosen = compose(name, groups)
    except HydraException:  # the wrong one is among them, or is a group of another command
        recipe = [each for each in groups if each.startswith("recipe=")]
        chosen = compose(name, recipe if "recipe" in groups_of(name) else [])
    whole: Any = OmegaConf.to_container(chosen, resolve=False)
    *parents, _ = key.split(".")
    tree = whole
    for parent in parents:
        tree = tree.get(parent, {}) if isinstance(tree, dict) else {}
    if parents and isinstance(tree, dict) and tree:
        return [".".join([*parents, str(k)]) for k in tree]
    deeper = () if parents else map(str, dotted(whole))
    return list(dict.fromkeys([*groups_of(name), *map(str, whole), *deeper]))
