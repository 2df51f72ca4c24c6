"""The one exception a user is meant to see, and how a command ends with it."""

from __future__ import annotations

import difflib
import errno
import io
import os
import re
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

INTERRUPTED = 130  # exit status after Ctrl-C or SIGTERM
SIGPIPE = 141  # what a shell gives for a command whose reader has gone
EVERYTHING = "pip install distill"  # what an installation for inference alone leaves out
_HERE, _PYTHON = str(Path(__file__).parents[1]), str(Path(os.__file__).parent)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DistillError(Exception):
    """Bad input or a limit not met: one clear line (what, where, what to do).

    Entry points print it without a traceback and exit with status 1; anything else that escapes is
    a bug and keeps its traceback. What cannot be printed, as a line break in a file's name, is
    shown as Python writes it (\\n): the message stays one line, and moves no terminal's cursor.

    >>> try:
    ...     distill.load("toon", size=16)
    ... except distill.DistillError as error:
    ...     print(error)
    size=16: input should be greater than or equal to 32
    """

    def __init__(self, message: str) -> None:
        super().__init__("".join(c if c.isprintable() else repr(c)[1:-1] for c in message))


def reason_of(error: BaseException, most: int | None = None) -> str:
    """What a library's error says, without line breaks and at most so many characters.

    For a DistillError's message; the name of the error's class where it says nothing.
    """
    return " ".join(str(error).split())[:most] or type(error).__name__


def counted(count: int, what: str) -> str:
    """1 photo, 2 photos, 2 batches."""
    several = "es" if what.endswith("ch") else "s"
    return f"{count:,} {what}{'' if count == 1 else several}"


def did_you_mean(name: str, there: Iterable[str], shown: str = "{}") -> str:
    """`did you mean NAME?` where one is nearly called so; else empty. Only what parts it from the
    others counts, the ends behind the last dot or equals sign."""
    ends = {re.split("[.=]", each)[-1]: each for each in there}
    near = difflib.get_close_matches(re.split("[.=]", name)[-1], ends, n=1, cutoff=0.66)
    return f"did you mean {shown.format(ends[near[0]])}?" if near else ""


def place_of(error: BaseException) -> str:
    """`, FILE:LINE` of the user's code in which an error was raised; empty where none took part."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        ours = file.startswith((_HERE, _PYTHON)) or "site-packages" in file
        if not ours and os.path.isfile(file):
            place = f", {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


@contextmanager
def of_the_user(what: str, *others: type[Exception]) -> Iterator[None]:
    """Around code of the user's, which raises what it likes; `others` are told elsewhere."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, (DistillError, *others)):
            raise
        why = f"{reason_of(error, 200)}{place_of(error)}"
        raise DistillError(f"{what} raised {type(error).__name__} ({why})") from error


@contextmanager
def library_errors(
    what: str, *kinds: type[Exception], most: int | None = 200, remedy: str = ""
) -> Iterator[None]:
    """Around a library, which raises what it likes, or one of `kinds`: a DistillError instead.

    That is `what`, the library's reason in at most so many characters, and the `remedy`.
    """
    kinds = kinds or (Exception,)
    try:
        yield
    except DistillError:
        raise
    except kinds as error:
        raise DistillError(f"{what} ({reason_of(error, most)}){remedy}") from error


def needed(what: str, remedy: str = EVERYTHING) -> AbstractContextManager[None]:
    """Around imports of what some installations leave out: one that fails ends in one line.

    `what` says what needs which package.
    """
    return library_errors(what, ImportError, most=None, remedy=f"; {remedy}")


def extra_package(module: str, what: str, remedy: str) -> Any:
    """A module of a package that some installations leave out.

    Raises DistillError that says what needs it and how it is installed.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if error.name and error.name.partition(".")[0] != package:
            raise DistillError(f"{what}: {module} cannot be imported ({error})") from error
        raise DistillError(f"{what}: needs {package}; {remedy}") from None


def lacking(error: ImportError) -> str:
    """What is not installed, and what to do; empty where it is our own module that is missing."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package in ("", "distill"):
        return ""
    return f"needs {package}, which is not installed; {EVERYTHING}"


def first_of(error: OSError) -> OSError:
    """The error itself; of a copied folder's errors the first, with its number and its file."""
    if not isinstance(error, shutil.Error) or not isinstance(error.args[0], list):
        return error
    _, place, why = error.args[0][0]
    number = re.match(r"\[Errno (\d+)\]", str(why))
    code = int(number[1]) if number else errno.EIO
    return OSError(code, os.strerror(code), str(place))


def _of_the_system(error: OSError) -> str:
    """Where the system failed, why, and what to do; empty for a library's own error."""
    error = first_of(error)
    if not error.strerror:
        return ""
    reason = error.strerror.lower()
    copied = error.errno in FULL and error.filename2  # where to, not the file that is read
    where = f"{copied or error.filename}: " if error.filename else ""
    if error.errno in FULL:
        return f"{where}{reason}; free some space and run the command again"
    return f"{where}{reason}; choose another place" if where else f"{reason} (by the system)"


class OneLine:
    """Turns what a user can cause into one line on standard error and exit status 1.

    Ctrl-C and SIGTERM end with 130. Warnings are one line too, without the place in the code.
    `reason` is the line of the error that ended the block, empty where none did.
    """

    reason = ""

    def __enter__(self) -> OneLine:
        if isinstance(sys.stdout, io.TextIOWrapper):  # a file's name may be none of its letters
            sys.stdout.reconfigure(errors="backslashreplace")
        main_thread = threading.current_thread() is threading.main_thread()
        self._interruptible = main_thread and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        if self._interruptible:  # a batch system ends a command as Ctrl-C does
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        self._format = warnings.formatwarning
        warnings.formatwarning = lambda message, *_args, **_more: f"warning: {message}\n"
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        warnings.formatwarning = self._format
        if self._interruptible:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if isinstance(error, DistillError):
            self._end(str(error))
        if isinstance(error, BrokenPipeError):  # whoever read our output has enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 # Python writes to it once more
            sys.exit(SIGPIPE)
        if isinstance(error, OSError) and (reason := _of_the_system(error)):
            self._end(reason)
        if isinstance(error, ImportError) and (reason := lacking(error)):
            self._end(f"this command {reason}")
        if isinstance(error, RuntimeError) and str(error).startswith("DataLoader worker"):
            self._end(
                "a process that loads pictures was killed, as systems do that run out of memory; "
                "run it again to resume; with data.workers=0 (label.workers=0) there is none"
            )
        if isinstance(error, KeyboardInterrupt):
            reason = str(error) or "stopped; run it again to resume"
            print(f"\n{reason}", file=sys.stderr)
            sys.exit(INTERRUPTED)

    def _end(self, reason: str) -> None:
        self.reason = reason
        print(f"error: {reason}", file=sys.stderr)
        sys.exit(1)
