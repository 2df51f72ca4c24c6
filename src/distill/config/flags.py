"""Flags that may be given beside settings: those of Hydra's that print what a command would do."""

from __future__ import annotations

from collections.abc import Sequence

from distill.core.errors import DistillError

MULTIRUN, HELP, VERSION = {"-m", "--multirun"}, {"-h", "--help"}, {"-V", "--version"}
_SHOWN: dict[str, tuple[str, ...]] = {  # and what may follow them
    **dict.fromkeys(("-c", "--cfg"), ("job", "hydra", "all")),
    **dict.fromkeys(
        ("-i", "--info"), ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
    ),
}
_SHORTER = {"-p", "--package"}  # of --cfg: one part, by its name
_PLAIN = {*MULTIRUN, *HELP, *VERSION, "--resolve"}


def check(words: Sequence[str]) -> None:
    """Raises DistillError for what is neither a setting nor a flag that a command takes.

    Hydra has more of them: they change where settings come from, or install completion for
    another kind of program, and their errors are many lines long.
    """
    rest = [part for word in words for part in word.split("=", 1)]
    asked = {word for word in rest if word in _SHOWN}
    while rest:
        word = rest.pop(0)
        if word in _PLAIN:
            continue
        if word in _SHORTER and rest:
            rest.pop(0)
        elif word in _SHOWN:
            _value(word, rest)
        elif word.startswith("-"):
            raise DistillError(
                f"{word}: no such flag; there are --help, --cfg job, --info defaults, -m and "
                "--version; settings are typed KEY=VALUE"
            )
        else:
            raise DistillError(f"{word}: no setting; settings are typed KEY=VALUE, see --help")
    needing = {*_SHORTER, "--resolve"} & {part for word in words for part in word.split("=", 1)}
    if needing and not asked:
        raise DistillError(f"{min(needing)}: goes with --cfg job; leave it out, or add that")


def _value(flag: str, rest: list[str]) -> None:
    allowed = _SHOWN[flag]
    if rest and rest[0] in allowed:
        rest.pop(0)
    elif flag in ("-c", "--cfg"):
        raise DistillError(f"{flag}: say what of: {flag} {', '.join(allowed)}")
