"""What to type next: the last line of a command; and texts as they are typed behind KEY=."""

import os
import re
import sys
from shlex import quote

from distill.core.plugins import named_plugins

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""  # a text in quotes, as Hydra reads one
# Controls, ends of lines, what turns the direction of writing, and bytes that are no text.
_MOVES = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
_KEY = re.compile(r"[^.=]*")
_KEPT = 300  # characters of what was typed that are repeated


def quoted(text: str) -> str:
    """Any text in quotes, as Hydra and OmegaConf read it back."""
    text = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)  # OmegaConf would look that up
    return "'" + re.sub(r"(\\*)('|\Z)", lambda m: m[1] * 2 + ("\\'" if m[2] else ""), text) + "'"


def unquoted(text: str) -> str:
    """A text that Hydra has read, as it is after OmegaConf has taken `\\${` for `${`."""
    return re.sub(r"(\\*)\\\$\{", lambda m: m[1][: len(m[1]) // 2] + "${", text)


def typed(text: str) -> str:
    """A text as a command takes it behind KEY=: as it is, or quoted if that means another one."""
    means_other = re.fullmatch(rf"{QUOTED}|null|\[.*\]|", text, re.DOTALL | re.IGNORECASE)
    return quoted(text) if means_other else text


def for_shell(word: str) -> str:
    """A word quoted for a shell; what moves a line is written as bash and zsh read bytes."""
    if not _MOVES.search(word):
        return quote(word)
    word = re.sub(r"[\\']", r"\\\g<0>", word)
    shown = _MOVES.sub(lambda m: "".join(f"\\x{b:02x}" for b in os.fsencode(m[0])), word)
    return f"$'{shown}'"


def assigned(key: str, text: str) -> str:
    """KEY=TEXT, as it is typed in a shell."""
    return f"{key}={for_shell(typed(text))}"


def next_step(command: str, *inputs: str, **settings: str) -> str:
    """`next: python -m distill.COMMAND …`, its files and settings quoted for a shell."""
    words = [*map(for_shell, inputs), *(assigned(*each) for each in settings.items())]
    if named := named_plugins():
        words.append(f"plugins={quote('[' + ','.join(named) + ']')}")
    return " ".join([f"next: python -m distill.{command}", *words])


def same_settings(command: str, without: tuple[str, ...] = ()) -> str:
    """The same for another command that takes the settings just typed; with flags among them, as
    for a sweep, or very many of them, in words. `without` are groups that it does not take."""
    words = [word for word in sys.argv[1:] if _KEY.findall(word)[0] not in without]
    line = " ".join([f"next: python -m distill.{command}", *map(for_shell, words)])
    if any(word.startswith("-") for word in words) or len(line) > _KEPT:
        return f"next: python -m distill.{command} with the same settings"
    return line
