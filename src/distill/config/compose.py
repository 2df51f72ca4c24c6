"""Settings composed of conf/ and overrides, and checked; the only module that imports Hydra."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, product
from pathlib import Path
from typing import Any, TypeVar

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString, Transformer
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException
from yaml import YAMLError

from distill.config.arguments import TypedKeys, words_of
from distill.config.explain import no_setting, wrong_choice
from distill.config.extension import default_words, extended, sweeps
from distill.config.groups import choices, conf_folder, conf_folders, every_group, tell_hidden
from distill.config.registry import recipes
from distill.config.validate import check
from distill.core.errors import DistillError, library_errors, reason_of
from distill.core.files import real_path
from distill.core.next_step import for_shell, unquoted
from distill.core.nodes import class_of, takes
from distill.core.plugins import name_plugins

S = TypeVar("S")
Schema = type[S] | Callable[[Mapping[str, Any]], type[S]]  # a class, or how to choose one
Implied = Callable[[Mapping[str, Any]], list[str]]  # settings by key, to words that follow


def load(
    name: str, overrides: Iterable[str], schema: Schema[S], inputs: Mapping[str, Any] | None = None
) -> S:
    """Compose `conf/NAME.yaml` with overrides and check it as a `schema` instance.

    A `schema` that is no class chooses one by the composed values; `inputs` are values that no
    override holds. Raises DistillError in one line.
    """
    values = composed(name, overrides := list(overrides)) | dict(inputs or {})
    # A `_target_` that is typed leaves its Node no arguments of the class before.
    keys = [word.partition("=")[0].lstrip("+") for word in overrides]
    for key in (key.removesuffix("._target_") for key in keys if key.endswith("._target_")):
        node: Any = values
        for part in key.split("."):
            node = node.get(part, {}) if isinstance(node, dict) else {}
        class_of(key, node)  # raises
        typed = {each.removeprefix(f"{key}.").partition(".")[0] for each in keys}
        for argument in [each for each in node if each not in typed and not takes(node, each)]:
            del node[argument]
    chosen: Any = extended(name, schema if isinstance(schema, type) else schema(values))
    unused = chosen.not_used.union(*(sweep.groups for sweep in sweeps(name)))
    return check({key: v for key, v in values.items() if key not in unused}, chosen)


def from_keywords(
    name: str,
    schema: Schema[S],
    first: Mapping[str, Any],
    settings: Mapping[str, Any],
    implied: Implied | None = None,
) -> S:
    """A command's settings by Python's keywords, see `words_of`; `settings` go before `first`."""
    name_plugins((settings := dict(settings)).pop("plugins", ()))
    kept = {k: v for k, v in first.items() if isinstance(settings.get(k, {}), Mapping)}
    recipe = [f"recipe={each['recipe']}" for each in (kept, settings) if "recipe" in each]
    names = TypedKeys(*schemas_of(name, schema, recipe)).names
    words = words_of(kept, names) + words_of(settings, names)
    return load(name, completed(name, words, implied), schema)


def schemas_of(name: str, schema: Schema, words: Iterable[str] = ()) -> list[type]:
    """The classes that a command's schema may choose, with the settings that plug-ins add; that of
    the recipe in the `words`, or without one the usual, where they name no several."""
    if isinstance(schema, type):
        return [extended(name, schema)]
    typed = dict(word.split("=", 1) for word in words if word.startswith("recipe="))
    with suppress(DistillError):  # of several, as for a sweep, or none that there is
        return [extended(name, schema(typed))]
    return [extended(name, each.settings) for each in recipes().values()]


def completed(name: str, words: Sequence[str], implied: Implied | None) -> list[str]:
    """The words, then those that follow from them, where a default would be wrong."""
    if implied is None:
        return list(words)
    with over_conf(name, words) as parser:
        values = {each.key_or_group: each.value() for each in parser.parse_overrides([*words])}
    plain = {key: unquoted(v) if isinstance(v, str) else v for key, v in values.items()}
    return [*words, *implied(plain)]


def composed(name: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """`conf/NAME.yaml` with overrides as plain values, unchecked."""
    words = [*default_words(name), *overrides]
    with over_conf(name, overrides) as parser:
        values: Any = OmegaConf.to_container(hydra.compose(name, words), resolve=True)
        groups = every_group(name) if overrides else []
        for each in parser.parse_overrides([*overrides]):
            # Of an optional group, as head is, Hydra leaves out a choice that is not there.
            group, choice = each.key_or_group, each.value()
            known = isinstance(choice, str) and group in groups and choices(group)
            if known and (reason := wrong_choice(group, choice)):
                raise DistillError(reason)
    return values


def combinations(
    name: str, overrides: Sequence[str], only: int | None = None
) -> list[tuple[dict[str, str], list[str]]]:
    """Every combination of several values, in the order typed: what it sets by key, its overrides.

    `only` is the number, from 0, of the one that is wanted.
    """
    with over_conf(name, overrides) as parser:
        parsed = parser.parse_overrides(list(overrides))
        values = [alternatives(override) for override in parsed]
    keys = [o.key_or_group if o.is_sweep_override() else None for o in parsed]
    listed = []
    for chosen in islice(product(*values), only or 0, None if only is None else only + 1):
        swept = {key: shown for key, (shown, _) in zip(keys, chosen, strict=True) if key}
        listed.append((swept, [override for _, override in chosen]))
    return listed


def alternatives(override: Override) -> list[tuple[str, str]]:
    """What a setting is to be, one after the other: the value as people read it, the override."""
    if not override.is_sweep_override():
        return [("", str(override.input_line))]
    key = override.key_or_group
    if not override.is_discrete_sweep():
        raise DistillError(f"{key}: an interval holds no list of values; use range(FROM,TO,STEP)")
    pairs = []
    for value in override.sweep_iterator():
        text = typed = Transformer.str(value)
        if isinstance(value, str) and text != value:  # its escapes would not survive our quoting
            value = QuotedString(value, Quote.single)  # type: ignore[assignment]
        if isinstance(value, QuotedString):
            text, typed = unquoted(value.text), value.with_quotes()
        pairs.append((text, f"{override.get_key_element()}={typed}"))
    if not pairs:
        raise DistillError(f"{override.input_line}: no value fits; there is nothing to run")
    return pairs


def show(name: str, overrides: Sequence[str], flags: Sequence[str]) -> None:
    """Hydra's own display of a command's settings, by --cfg or --info."""
    _extend_hydra()
    sys.argv = [f"distill.{name}", *default_words(name), *overrides, *flags]
    main = hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=name)
    main(lambda _: None)()


@contextmanager
def over_conf(name: str, overrides: Sequence[str] = ()) -> Iterator[OverridesParser]:
    """Hydra over conf/, with its parser of overrides; its errors become one line."""
    _extend_hydra()
    outer = GlobalHydra.instance().hydra  # set while a command runs: commands may compose too
    GlobalHydra.instance().clear()
    try:
        with (
            library_errors("a choice's file is no YAML", YAMLError, most=300),
            hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"),
        ):
            try:
                yield OverridesParser.create(GlobalHydra.instance().config_loader())
            # The last two are Hydra's for GROUP=5 and GROUP=[5].
            except (HydraException, OmegaConfBaseException, ValueError, TypeError) as error:
                raise DistillError(_composition_error(name, overrides, error)) from error
            except RecursionError as error:
                circle = "the `defaults` of a choice's file lead back to it; mend that file"
                raise DistillError(f"{' '.join(overrides)}: {circle}") from error
    finally:
        GlobalHydra.instance().hydra = outer


class FurtherFolders(SearchPathPlugin):
    """Shows Hydra the folders of settings beside conf/; it takes the first file of a name."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        tell_hidden(tuple(folders := conf_folders()))
        for folder in folders[1:]:
            search_path.append("distill", f"file://{folder}")


def _extend_hydra() -> None:
    def name_of(folder: Any) -> str:  # as a part of a run's name: ${name_of:${data.root}}
        return real_path(Path(str(folder))).name if folder else "data"

    def stem_of(files: Any) -> str:  # of style pictures, A+B
        several = files if OmegaConf.is_list(files) else [files]
        return "+".join(Path(str(file)).stem for file in several) or "none"

    OmegaConf.register_new_resolver("name_of", name_of, replace=True)
    OmegaConf.register_new_resolver("stem_of", stem_of, replace=True)
    if FurtherFolders not in Plugins.instance().discover(SearchPathPlugin):
        Plugins.instance().register(FurtherFolders)


def _composition_error(name: str, overrides: Sequence[str], error: Exception) -> str:
    """Why overrides do not compose: the first that is wrong, or else what the library says."""
    if isinstance(error, OverrideParseException):
        key, _, value = error.override.partition("=")
        text = for_shell(f"{key}='{value}'")
        return f"{error.override}: is no value that Hydra reads; if it is a text, type {text}"
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    for each in parsed:
        if each.is_sweep_override() and choices(each.key_or_group):
            return f"{each.input_line}: several choices; add -m to try them one by one"
    values = {each.key_or_group: each.value() for each in parsed}
    groups = [group for group in every_group(name) if group in values and choices(group)]
    for group in groups:
        if reason := wrong_choice(group, values[group]):
            return reason
    if str(error).startswith(("Multiple values", "force-add", "Could not append")):
        for word in overrides:
            if word.startswith("+") and (bare := word.lstrip("+")).partition("=")[0] in str(error):
                return f"{word}: is there already; type it without a plus: {bare}"
    tree, key = _tree_of_choices(name, [e for e in parsed if e.key_or_group in groups])
    others = [e for e in parsed if e.key_or_group not in groups]
    if key := key or next(_keys_not_in(tree, others), ""):
        return no_setting(name, key, tree, overrides)
    if isinstance(error, InterpolationKeyError):
        group, missing = str(error.full_key).split(".")[0], str(error).split("'")[1]
        if group in groups:  # whose file reads what is not there, ${epochs}
            return f"{group}={values[group]}: {no_setting(name, missing, tree, overrides)}"
    return reason_of(error)


def _tree_of_choices(name: str, typed: Iterable[Override]) -> tuple[dict[str, Any], str]:
    """What choices of groups compose to, and the first group that fits none before it, or ""."""
    tree, words = _tree(name, []), list[str]()
    for each in sorted(typed, key=lambda each: each.key_or_group != "recipe"):
        words.append(str(each.input_line))
        if not (larger := _tree(name, words)):  # a group that another recipe has
            return tree, each.key_or_group
        tree = larger
    return tree, ""


def _keys_not_in(tree: Mapping[str, Any], typed: Iterable[Override]) -> Iterator[str]:
    """Keys of settings that are not in a composed tree, but for those that are added to it."""
    for each in typed:
        key, inner = each.key_or_group, dict[str, Any](tree)
        if each.is_add() or each.is_force_add() or key.startswith("hydra"):
            continue
        for part in key.split("."):
            if not isinstance(inner, dict) or part not in inner:
                yield key
                break
            inner = inner[part]
        else:
            if isinstance(inner, dict) and isinstance(value := each.value(), dict):
                yield from (f"{key}.{part}" for part in value if part not in inner)


def _tree(name: str, overrides: list[str]) -> dict[str, Any]:
    """What overrides compose to, with its ${...}; empty where they do not."""
    words = [*default_words(name), *overrides]
    try:
        tree: Any = OmegaConf.to_container(hydra.compose(name, words), resolve=False)
    except (HydraException, OmegaConfBaseException, ValueError, TypeError):
        return {}
    return dict(tree)
