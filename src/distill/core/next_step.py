"""The last line of a command: what to type next."""

from __future__ import annotations

import re
import sys
from shlex import quote

_KEY = re.compile(r"[^.=]*")
_KEPT = 300  # characters of what was typed that are repeated


def next_step(command: str, *inputs: str, **settings: str) -> str:
    """`next: python -m distill.COMMAND …`, its files and settings quoted for a shell."""
    words = [*map(quote, inputs), *(f"{key}={quote(value)}" for key, value in settings.items())]
    return " ".join([f"next: python -m distill.{command}", *words])


def same_settings(command: str, without: tuple[str, ...] = ()) -> str:
    """The same for another command that takes the settings just typed; with flags among them, as
    for a sweep, or very many of them, in words. `without` are groups that it does not take."""
    typed = [word for word in sys.argv[1:] if _KEY.findall(word)[0] not in without]
    line = " ".join([f"next: python -m distill.{command}", *map(quote, typed)])
    if any(word.startswith("-") for word in typed) or len(line) > _KEPT:
        return f"next: python -m distill.{command} with the same settings"
    return line
