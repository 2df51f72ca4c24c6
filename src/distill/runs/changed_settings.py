"""What a run's settings say now and said when it began: what matters of it, as people type it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from distill.config.registry import FIRST
from distill.core.nodes import defaults

# What may differ when a run resumes: its length, the machine, what it is called and what it says.
_FREE = (
    *("trainer.max_steps", "trainer.accelerator", "trainer.devices", "trainer.strategy"),
    *("trainer.num_nodes", "trainer.threads", "trainer.log_every", "data.workers", "data.cache"),
    *("label", "budget", "run", "resume", "runs", "sweep", "logger"),
    *("decoder.profile", "generator.profile"),
)
_BROUGHT = {  # by a choice, beside what stands below its name
    "style": ("teacher", "gka_layers"),
    "teacher": ("gka_layers",),
    "decoder": ("encoder.without",),
}
# What an older run, which does not say so, was trained with.
_OLDER = {"recipe": FIRST, "batchnorm": "learnt", "global_statistics": "none"}
_OLDER_DATA = {"test_fraction": 0.0, "align": False, "zoom": 0.0, "photo_colour": 0.0}
_CALLS = ("name", "_target_", "kind")  # what says which choice a part is

Changes = Mapping[str, tuple[Any, Any]]


def differences(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings that decide the outcome and differ, by dotted name.

    A list that an older run does not know of is one that is empty, a term of the loss one of
    weight 0, which does not matter, and its start 0. An argument that it does not know of is what
    the same class has by default.
    """
    a, b = _flat(_in_use(_completed(old, new))), _flat(_in_use(new))
    keys = [key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]
    matter = [key for key in keys if not _below(key, _FREE)]
    return {key: (a.get(key), b.get(key)) for key in matter}


def _in_use(config: dict[str, Any]) -> dict[str, Any]:
    """The settings, older ones with what they do not name, without loss terms of weight 0 and the
    share of sizes where there are none."""
    loss = config.get("loss") or {}
    used = {name for name, weight in loss.get("weights", {}).items() if weight}
    kept = {
        key: {name: value for name, value in part.items() if name in used}
        for key, part in loss.items()
        if key in ("weights", "terms")
    }
    late = loss.get("start", {})
    kept["start"] = {name: share for name, share in late.items() if share and name in used}
    data = _OLDER_DATA | (config.get("data") or {})
    if not data.get("sizes"):
        data.pop("share_of_sizes", None)
    return _OLDER | config | {"loss": loss | kept, "data": data}


def _completed(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The older settings, with the defaults of what the newer ones' classes take besides."""
    known = defaults(new) if "_target_" in new and old.get("_target_") == new["_target_"] else {}
    both = {
        k for k in old.keys() & new.keys() if isinstance(old[k], dict) and isinstance(new[k], dict)
    }
    inner = {key: _completed(old[key], new[key]) for key in both}
    return {k: v for k, v in known.items() if k in new} | old | inner


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value != []:
            flat[prefix + key] = value
    return flat


def as_typed(changed: Changes) -> str:
    """`differences` as a user would type them: of another choice of a config group its name alone,
    and nothing of what it brought along."""
    choices: dict[str, tuple[Any, Any]] = {}
    for key, both in changed.items():
        part, _, last = key.rpartition(".")
        named = all(isinstance(each, str) for each in both)  # a damaged file may hold anything
        if part and "." not in part and last in _CALLS and named:
            then, now = (_Name(each.rpartition(".")[2]) for each in both)
            choices[part] = then, now
    brought = [each for part in choices for each in _BROUGHT.get(part, ())]
    if "style_backbone" in changed:  # which every term that uses it repeats
        brought += [key for key in changed if key.endswith(".backbone")]
    own = {key: both for key, both in changed.items() if not _below(key, choices)}
    shown = {key: both for key, both in (choices | own).items() if not _below(key, brought)}
    return "; ".join(f"{key}: {old!r} then, {new!r} now" for key, (old, new) in shown.items())


class _Name(str):
    """What a choice is called: typed without quotes."""

    __repr__ = str.__str__


def _below(key: str, parts: Iterable[str]) -> bool:
    return any(f"{key}.".startswith(f"{part}.") for part in parts)
