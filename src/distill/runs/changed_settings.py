"""What a run's settings say now and said when it began: what matters of it, as people type it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from distill.config.settings.training import Train, Training
from distill.core.nodes import defaults, flat

# What may differ when a run resumes: its length, the machine, what it is called and what it says.
_FREE = (
    *("trainer.max_steps", "trainer.accelerator", "trainer.devices", "trainer.strategy"),
    *("trainer.num_nodes", "trainer.threads", "trainer.log_every", "data.workers", "data.cache"),
    *("label", "budget", "run", "resume", "runs", "sweep", "logger", "licence"),
    *("decoder.profile", "generator.profile"),
)
_BROUGHT = {  # by a choice, beside what stands below its name
    "style": ("teacher", "gka_layers"),
    "teacher": ("gka_layers",),
    "decoder": ("encoder.without",),
}
_CALLS = ("name", "_target_", "kind")  # what says which choice a part is

Changes = Mapping[str, tuple[Any, Any]]


def differences(old: Training, new: Training) -> dict[str, tuple[Any, Any]]:
    """Settings that decide the outcome and differ, by dotted name.

    A list that an older run does not know of is one that is empty, a term of the loss one of
    weight 0, which does not matter, and its start 0. An argument that it does not know of is what
    the same class has by default.
    """
    then, now = _in_use(old), _in_use(new)
    both = flat(_completed(then, now)), flat(now)
    a, b = ({key: value for key, value in each.items() if value != []} for each in both)
    keys = [key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]
    return {key: (a.get(key), b.get(key)) for key in keys if not _below(key, _FREE)}


def _in_use(settings: Training) -> dict[str, Any]:
    """Plain values, without loss terms of weight 0, starts of 0, and the share of sizes where there
    are none."""
    plain = asdict(settings)
    if isinstance(settings, Train):
        loss, weights = plain["loss"], settings.loss.weights
        for key in ("weights", "terms", "start"):
            loss[key] = {n: value for n, value in loss[key].items() if weights.get(n) and value}
        if not settings.data.sizes:
            del plain["data"]["share_of_sizes"]
    return plain


def _completed(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The older settings, with the defaults of what the newer ones' classes take besides."""
    known = defaults(new) if "_target_" in new and old.get("_target_") == new["_target_"] else {}
    both = {
        k for k in old.keys() & new.keys() if isinstance(old[k], dict) and isinstance(new[k], dict)
    }
    inner = {key: _completed(old[key], new[key]) for key in both}
    return {k: v for k, v in known.items() if k in new} | old | inner


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
