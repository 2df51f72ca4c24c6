"""`--help` of a command, and the rows of the page of settings: both from the fields of settings."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, is_dataclass
from itertools import takewhile
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import yaml
from annotated_types import Ge, Gt, Le, Lt, MultipleOf
from pydantic.fields import FieldInfo

from distill.config.compose import Schema, composed
from distill.config.extension import extended
from distill.config.groups import choices, conf_folders, every_group
from distill.config.registry import recipe_named, recipes
from distill.config.settings.base import Given, NameSetting, PathMark
from distill.core.errors import DistillError, library_errors

WIDTH, INDENT = 100, 28


class Row(NamedTuple):
    """A setting: its dotted key, what may be typed, its default, and what it is for."""

    key: str
    kind: str
    default: str
    about: str


@dataclass(frozen=True)
class Section:
    title: str
    rows: list[Row]


def sections(
    name: str, schema: Schema[Any], words: Sequence[str], comments: Mapping[str, str]
) -> list[Section]:
    """The settings of a command, of train by recipe, with their defaults beside `words`."""
    try:
        values = composed(name, words)
    except DistillError:  # help comes whatever was typed
        words, values = [], composed(name)
    if isinstance(schema, type):
        whole = extended(name, schema)
        return [Section("Settings, KEY=VALUE", [*rows(whole, values, comments)])]
    if any(word.startswith("recipe=") for word in words):
        by_recipe = {recipe_named(values["recipe"]): values}
    else:
        by_recipe = {r: composed(name, [*words, f"recipe={r.name}"]) for r in recipes().values()}
    listed = {
        recipe.name: [*rows(extended(name, recipe.settings), tree, comments)]
        for recipe, tree in by_recipe.items()
    }
    first, *others = listed.values()
    shared = [row for row in first if others and all(row in other for other in others)]
    every = [Section("Settings of every recipe, KEY=VALUE", shared)] if shared else []
    return every + [
        Section(f"recipe={recipe}", [row for row in its if row not in shared])
        for recipe, its in listed.items()
    ]


def choices_of(name: str) -> list[str]:
    """A line for each config group of a command, with its choices."""
    groups = [group for group in sorted(every_group(name)) if choices(group)]
    lines = [f"{group}: {', '.join(choices(group))}" for group in groups]
    further = "plugins=[PACKAGE] adds the parts of an own package, --config-dir DIR choices of DIR"
    return [*lines, further]


def rows(
    schema: type, values: Mapping[str, Any], comments: Mapping[str, str], above: str = ""
) -> Iterator[Row]:
    """A row for each setting of a schema, with its default in `values`, the composed ones.

    An argument of a Node, which no dataclass has, is described by its comment in conf/.
    """
    hints = get_type_hints(schema, include_extras=True)
    for item in fields(schema):
        key, hint = f"{above}{item.name}", hints[item.name]
        value = values.get(item.name)
        classes = (part for part in (hint, *get_args(hint)) if isinstance(part, type))
        inner, about = next(filter(is_dataclass, classes), None), _about(schema, item.name)
        if inner and not (about and value is None):
            within: Any = value if isinstance(value, Mapping) else {}
            for row in rows(inner, within, comments, f"{key}."):
                name = issubclass(inner, NameSetting) and row.key == f"{key}.name"
                yield row._replace(key=key) if name else row
        elif any(isinstance(mark, Given) for mark in getattr(hint, "__metadata__", ())):
            for name, argument in (value or {}).items():
                if comment := comments.get(f"{key}.{name}"):
                    kind = "VALUE" if argument is None else _kind(type(argument))[0]
                    yield Row(f"{key}.{name}", kind, _shown(argument), comment)
        elif about:
            kind, limits = ("NAME", "") if inner else _kind(hint)
            yield Row(key, kind, _shown(value), f"{about}{limits}")


def _about(schema: type, name: str) -> str:
    """The line on a field, perhaps that of the class it is inherited from."""
    same = (getattr(c, "__dataclass_fields__", {}).get(name) for c in schema.__mro__)
    return next(filter(None, (each.metadata.get("about") for each in same if each)), "")


def _kind(hint: Any) -> tuple[str, str]:
    """What may be typed for a type, N|auto say, and its limits in words."""
    if get_origin(hint) in (Union, UnionType):
        parts = [_kind(part) for part in get_args(hint) if part is not type(None)]
        return "|".join(dict.fromkeys(kind for kind, _ in parts)), parts[0][1]
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        limited = [m for mark in marks if isinstance(mark, FieldInfo) for m in mark.metadata]
        limits = ", ".join(filter(None, map(_limit, limited)))
        kind, within = _kind(inner)
        path = any(isinstance(mark, PathMark) for mark in marks)
        return "PATH" if path else kind, f" [{limits}]" if limits else within
    if get_origin(hint) is Literal:
        return "|".join(map(str, get_args(hint))), ""
    if get_origin(hint) in (list, tuple):
        return f"[{_kind(get_args(hint)[0])[0]},...]", ""
    if get_origin(hint) is dict or hint is dict:
        return "{NAME: VALUE}", ""
    return {bool: "true|false", int: "N", float: "X", list: "[...]"}.get(hint, "TEXT"), ""


def _limit(mark: Any) -> str:
    if mark in (Ge(0), Gt(0), Le(1), Lt(1)):
        return ""
    words = {Ge: "at least", Gt: "above", Le: "at most", Lt: "below", MultipleOf: "a multiple of"}
    return " ".join([words[type(mark)], *map(str, astuple(mark))]) if type(mark) in words else ""


def _shown(value: object) -> str:
    """A value as it is typed."""
    if isinstance(value, str):
        return value
    return (
        yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("\n...\n").strip()
    )


def comments_by_key() -> dict[str, str]:
    """The comment on each key in the files of conf/ and of further folders."""
    globs = ("*.yaml", "*/*.yaml")  # commands before groups
    files = (file for glob in globs for place in conf_folders() for file in place.glob(glob))
    return {row.key: row.about for file in files for row in described(file) if row.about}


def described(path: Path) -> list[Row]:
    """Keys, as typed, defaults and comments of a file of settings. Raises DistillError."""
    text = path.read_text(encoding="utf-8")
    whole = path.parent in conf_folders() or text.startswith("# @package _global_")
    prefix = "" if whole else f"{path.parent.name}."
    with library_errors(f"{path}: no YAML", yaml.YAMLError):
        return [row._replace(key=f"{prefix}{row.key}") for row in comments(text)]


def comments(text: str) -> Iterator[Row]:
    """Key, default and comment of each setting in a file of conf/; Hydra's own are left out."""
    yield from _commented(yaml.compose(text), text.splitlines(), "")


def _commented(node: yaml.Node | None, lines: list[str], above: str) -> Iterator[Row]:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
        if not above and key.value in ("defaults", "hydra"):
            continue
        name, start, end = above + key.value, value.start_mark, value.end_mark
        if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
            yield from _commented(value, lines, f"{name}.")
            continue
        default = " ".join("\n".join(lines)[start.index : end.index].split())
        _, _, comment = lines[key.start_mark.line].partition(" #")
        below = takewhile(lambda x: x.lstrip()[:1] == "#", lines[key.start_mark.line + 1 :])
        if comment:  # a comment continues in lines of its own, as far in
            comment += " " + " ".join(
                line.lstrip("# ")
                for line in below
                if line.index("#") >= lines[key.start_mark.line].index(" #")
            )
        yield Row(name, "", default, comment.strip())


def page(about: str, groups: Iterable[str], sections: Iterable[Section]) -> str:
    """The text of --help: what a command does, its choices, and its settings by section."""
    lines = [about.strip(), ""]
    if choices := [*groups]:
        lines += ["Choices, GROUP=CHOICE (--help beside one shows its settings):"]
        lines += [
            textwrap.fill(each, WIDTH, initial_indent="  ", subsequent_indent="      ")
            for each in choices
        ] + [""]
    for section in sections:
        lines += [f"{section.title}:"]
        for row in section.rows:
            head = f"  {row.key}={row.kind}"
            if len(head) > INDENT - 2:
                head += "\n" + " " * INDENT
            about = row.about if row.default in ("null", "") else f"{row.about}  ({row.default})"
            rest = textwrap.fill(
                about, WIDTH, initial_indent=" " * INDENT, subsequent_indent=" " * INDENT,
                break_on_hyphens=False,
            ).lstrip()  # fmt: skip
            lines += [f"{head if head[-1] == ' ' else head.ljust(INDENT)}{rest}"]
        lines += [""]
    return "\n".join(lines).rstrip()
