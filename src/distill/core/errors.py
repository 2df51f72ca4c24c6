"""The one exception a user is meant to see, and how a command ends with it."""

from __future__ import annotations

import sys
import warnings
from typing import Any

INTERRUPTED = 130  # exit status after Ctrl-C or SIGTERM


class DistillError(Exception):
    """Bad input or a limit not met: one clear line (what, where, what to do) and an exit status.

    Entry points print the message without a traceback and exit with `status`; anything else that
    escapes is a bug and keeps its traceback.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class OneLine:
    """Turns what a user can cause into one line on standard error and an exit status.

    Warnings are shown as one line too, without the place in the code. `reason` is the line of the
    error that ended the block, empty where none did.
    """

    reason = ""

    def __enter__(self) -> OneLine:
        self._format = warnings.formatwarning
        warnings.formatwarning = lambda message, *_args, **_more: f"warning: {message}\n"
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        warnings.formatwarning = self._format
        if isinstance(error, DistillError):
            self._end(str(error), error.status)
        if isinstance(error, OSError) and error.strerror:
            where = error.filename or "the disk"
            self._end(f"{where}: {error.strerror.lower()}; choose another place", 1)
        if isinstance(error, KeyboardInterrupt):
            print("\nstopped; the same command goes on", file=sys.stderr)
            sys.exit(INTERRUPTED)

    def _end(self, reason: str, status: int) -> None:
        self.reason = reason
        print(f"error: {reason}", file=sys.stderr)
        sys.exit(status)
