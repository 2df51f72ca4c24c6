"""What a plug-in adds to a command: settings beside the command's own, and what they ask for."""

from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, ClassVar

from distill.config.groups import choices
from distill.config.settings.base import Settings
from distill.core import nodes, plugins


class Extension:
    """Of one command, by whose name `extends` in a plug-in's plugin.yaml has this class.

    `settings` is a frozen, keyword-only dataclass of `distill.config.settings.base.Settings`; the
    defaults of its fields are in the plug-in's conf/COMMAND/NAME.yaml, after `# @package _global_`.
    With `sweep` the plug-in runs the command's jobs of -m; its config groups are among the defaults
    of that file. An extension may have either, or both.
    """

    settings: ClassVar[type] = Settings
    sweep: ClassVar[Any] = None  # a Sweep of multirun, which composes, which asks for extensions

    def takes(self, settings: Any) -> bool:
        """Whether the command's settings ask for `carry_out` in place of what the command does."""
        return False

    def carry_out(self, settings: Any) -> None:
        """Do it. Raises DistillError."""


def extensions(command: str) -> list[Extension]:
    """Those that plug-ins have for a command. Raises DistillError for one that cannot be built."""
    names = plugins.values("extends", command)
    return [nodes.part("extends", {"_target_": name}, Extension) for name in names]


def sweeps(command: str) -> list[Any]:
    """Those that plug-ins have for the jobs of a command."""
    return [each.sweep for each in extensions(command) if each.sweep]


def extended(command: str, schema: type) -> type:
    """The settings of a command with those of its extensions."""
    others = [each.settings for each in extensions(command)]
    return _joined(schema, tuple(each for each in others if not issubclass(schema, each)))


def added_settings(command: str) -> list[str]:
    """The keys of the settings that its extensions add to a command."""
    return [field.name for each in extensions(command) for field in fields(each.settings)]


@cache
def _joined(schema: type, others: tuple[type, ...]) -> type:
    if not others:
        return schema
    return make_dataclass(schema.__name__, [], bases=(*others, schema), frozen=True, kw_only=True)


def default_words(command: str) -> list[str]:
    """What is composed besides `conf/COMMAND.yaml`: the plug-ins' files in conf/COMMAND/."""
    names = choices(command)
    return [f"+{command}=[{','.join(names)}]"] if names else []
