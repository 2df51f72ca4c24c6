"""Hypothesis strategies: valid files damaged, and plain values with something odd in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

KINDS = ("flip", "set", "cut", "splice", "insert", "number", "zeros", "repeat")
NUMBERS = (0, 1, -1, 2**15, 2**16, 2**31 - 1, -(2**31), 2**32 - 1, 10**6)
ODD_TEXT = (
    "",
    " ",
    "\0",
    "../..",
    "/",
    "~",
    "\t",
    "\n",
    "é",
    "😀",
    "a" * 5000,
    "${x}",
    "nan",
    "-1",
)
ODD_VALUES = (
    *(None, True, False, 0, 1, -1, 2**63, 10**30, 0.0, -0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "\0", "../up", [], [None], [[]], {}, {"a": {}}, {"_target_": "os.system"}),
)

Step = tuple[str, int, int, int]  # what is done, where, how much, and with what


def damage() -> SearchStrategy[list[Step]]:
    """One to four changes of a file's bytes; places near the beginning are the likelier ones."""
    where = st.one_of(st.integers(0, 200), st.integers(0, 10**7))
    step = st.tuples(st.sampled_from(KINDS), where, st.integers(0, 4096), st.integers(0, 255))
    return st.lists(step, min_size=1, max_size=4)


def damaged(content: bytes, steps: Sequence[Step]) -> bytes:
    """The bytes after these changes. Places and lengths are taken modulo what is there."""
    data = bytearray(content)
    for kind, where, much, value in steps:
        if not data:
            return b""
        at, length = where % len(data), much % 64 + 1
        if kind == "flip":
            data[at] ^= 1 << value % 8
        elif kind == "set":
            data[at] = value
        elif kind == "cut":
            del data[at if value % 2 else at + much :]
        elif kind == "splice":
            other = (where * 31 + much) % len(data)
            data[at : at + length] = data[other : other + length]
        elif kind == "insert":
            data[at:at] = bytes([value]) * length
        elif kind == "number":  # a length field, perhaps
            size = (1, 2, 4, 8)[value % 4]
            number = NUMBERS[much % len(NUMBERS)] % (1 << 8 * size)
            order = "big" if value & 4 else "little"
            data[at : at + size] = number.to_bytes(size, order)
        elif kind == "zeros":
            data[at : at + much] = bytes(len(data[at : at + much]))
        elif kind == "repeat":
            data[at:at] = data[at : at + length] * (value % 8)
    return bytes(data)


def odd_values() -> SearchStrategy:
    """What no setting and no index file should hold, and some that they do."""
    return st.one_of(
        st.sampled_from(ODD_VALUES),
        st.sampled_from(ODD_TEXT),
        st.text(max_size=12),
        st.integers(),
        st.floats(),
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=4), inner, max_size=3)
            ),
            max_leaves=6,
        ),
    )


Edit = tuple[str, int, Any]  # set, remove or add; which of the places; the value


def edits() -> SearchStrategy[list[Edit]]:
    """One to three changes of nested plain values."""
    kinds = st.sampled_from(("set", "set", "remove", "add"))
    return st.lists(st.tuples(kinds, st.integers(0, 999), odd_values()), min_size=1, max_size=3)


def edited(tree: Any, changes: Sequence[Edit]) -> Any:
    """Nested plain values after these changes; a copy."""
    tree = _copied(tree)
    for kind, which, value in changes:
        value = _copied(value)  # of the case: a later change may fall into it, or into itself
        places = [(tree, key) for key in _keys(tree)]
        for parent, key in places:  # grows while it is walked through
            if isinstance(parent[key], dict | list):
                places += [(parent[key], inner) for inner in _keys(parent[key])]
        if not places:
            return value
        parent, key = places[which % len(places)]
        if kind == "set":
            parent[key] = value
        elif kind == "remove":
            del parent[key]
        elif isinstance(parent, dict):
            parent[str(value)[:20]] = value
        else:
            parent.append(value)
    return tree


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list | tuple) else value


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value]
    return [*range(len(value))] if isinstance(value, list) else []
