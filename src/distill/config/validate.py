"""Plain values as checked settings; what does not fit ends in one line that names it."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from distill.config.settings.base import Given
from distill.core.errors import DistillError
from distill.core.nodes import Node, bind, unknown_name

S = TypeVar("S")
_adapter = cache(TypeAdapter)  # one takes milliseconds


def check(values: object, schema: type[S]) -> S:
    """Plain values as a `schema` instance, every Node bound to its constructor's signature.

    That imports what the Nodes name: not for values out of a file from elsewhere.
    """
    checked = fit(values, schema)
    for key, value, arguments in _nodes(checked):
        bind(key, value, arguments)
    return checked


def fit(values: object, schema: type[S], extra: Literal["forbid", "ignore"] = "forbid") -> S:
    """Plain values as a `schema` instance; what their Nodes name is neither looked at nor built.

    extra="ignore" leaves out keys that `schema` does not know: another version wrote them.
    """
    try:
        adapter: TypeAdapter[S] = _adapter(schema)  # type: ignore[arg-type]
        return adapter.validate_python(values, extra=extra)
    except ValidationError as error:
        raise DistillError(_explain(error, schema)) from None


def _nodes(settings: Any, prefix: str = "") -> Iterable[tuple[str, Node, tuple[str, ...]]]:
    hints = get_type_hints(type(settings), include_extras=True)
    for item in fields(settings):
        value, key = getattr(settings, item.name), f"{prefix}{item.name}"
        kinds = (hints[item.name], *get_args(hints[item.name]))
        several = [part for part in kinds if get_origin(part) is dict]  # Nodes by names
        if is_dataclass(value):
            yield from _nodes(value, f"{key}.")
        elif value is not None and (mark := _arguments_of(kinds[0])):
            yield key, value, mark.names
        elif value and several and (mark := _arguments_of(get_args(several[0])[1])):
            yield from ((f"{key}.{name}", each, mark.names) for name, each in value.items())


def _arguments_of(hint: Any) -> Given | None:
    return next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Given)), None)


def _explain(error: ValidationError, schema: type) -> str:
    """The first wrong key; where a setting takes several kinds of values, what each would be."""
    # A wrong kind comes first: it decides which other keys there are.
    errors = sorted(error.errors(), key=lambda each: each["loc"][-1:] != ("kind",))
    path, owner = _place(errors[0]["loc"], schema)
    key = ".".join(path)
    if errors[0]["type"] == "unexpected_keyword_argument":
        prefix = "".join(f"{p}." for p in path[:-1])
        return unknown_name(key, [f"{prefix}{f.name}" for f in fields(owner)])
    if errors[0]["type"] == "missing":
        return f"{key}: missing"
    reasons = [e["msg"] for e in errors if _place(e["loc"], schema)[0] == path]
    reason = ", or ".join(dict.fromkeys(f"{msg[0].lower()}{msg[1:]}" for msg in reasons))
    return f"{key}={errors[0]['input']!r}: {reason}"


def _place(loc: tuple[int | str, ...], schema: Any) -> tuple[list[str], Any]:
    """A key as the user types it, and the schema it belongs to.

    pydantic adds which member of a union or which validator failed; those are no part of the key.
    """
    path, owner, inner = [], schema, schema
    for part in loc:
        if is_dataclass(inner):
            owner, hints = inner, get_type_hints(inner)
            path.append(str(part))
            inner = _without_none(hints.get(str(part)))
        elif get_origin(inner) in (dict, list):
            path.append(str(part))
            inner = _without_none(get_args(inner)[-1])
    return path, owner


def _without_none(hint: Any) -> Any:
    members = [m for m in get_args(hint) if m is not type(None)]
    is_union = get_origin(hint) in (Union, UnionType)
    return members[0] if is_union and len(members) == 1 else hint
