"""What is wrong with words that do not compose, in one line: what was meant, or what there is."""

from collections.abc import Mapping, Sequence
from typing import Any

from distill.config.groups import choices, dotted, every_group, groups_of, keys_of
from distill.core.nodes import unknown_name
from distill.core.plugins import why_left_out


def wrong_choice(group: str, value: Any) -> str:
    """A line on the first choice that a config group does not have; empty where it has all."""
    there = choices(group)
    for choice in value if isinstance(value, list) else ["null" if value is None else value]:
        if str(choice) not in there:
            if why := why_left_out(group, str(choice)):
                return f"{group}={choice}: {why}"
            return unknown_name(f"{group}={choice}", [f"{group}={c}" for c in there], "choice")
    return ""


def no_setting(name: str, key: str, tree: Mapping[str, Any], overrides: Sequence[str]) -> str:
    """A line on a key that is not in the composed tree of a command."""
    groups = [group for group in every_group(name) if choices(group)]
    bringing = [f"{g}={c}" for g in groups for c in choices(g) if key in keys_of(g, c)]
    if (group := key.partition(".")[0]) not in tree and choices(group):  # of other recipes
        bringing = [f"recipe={c}" for c in choices("recipe") if group in groups_of(f"recipe/{c}")]
    if elsewhere := [choice for choice in bringing if choice not in overrides]:
        return f"{key}: no such setting here; it goes with {' or '.join(elsewhere)}"
    if key in groups_of(name):
        return f"{key}: no choice here; a plug-in or --config-dir DIR brings {key}/NAME.yaml"
    *parents, _ = key.split(".")
    siblings: Any = tree
    for parent in parents:
        siblings = siblings.get(parent, {}) if isinstance(siblings, Mapping) else {}
    if parents and isinstance(siblings, Mapping) and siblings:
        return unknown_name(key, [".".join([*parents, str(each)]) for each in siblings])
    known = dict.fromkeys([*groups_of(name), *tree, *(() if parents else dotted(tree))])
    if deeper := [each for each in known if each.endswith(f".{key}")]:
        return f"{key}: no such setting; did you mean {' or '.join(deeper[:3])}?"
    return unknown_name(key, [each for each in known if "." in key or "." not in each])
