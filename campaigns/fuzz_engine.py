"""Runs a reader on made-up input, in a child process with limits of time and memory.

A case must end in success, in a DistillError of one line, or as the reader's own `allowed` says.
Anything else is a finding: another exception, a crash, more than 10 seconds, more than 2 GB.
"""

from __future__ import annotations

import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy, integers

from distill.core.errors import DistillError

LONGEST = 10.0  # seconds of one case
MOST = 2 * 2**30  # bytes of one case, above what the reader takes by itself
BEYOND = 2**30  # more bytes until the system refuses them, so that no case can fill the machine
_SHARED = struct.Struct("qqd")  # cases done, those of them that were refused, when the last began


class Reader:
    """One reader of input: how cases are made, and what reads them.

    `cases` gives values; `put` writes one below a folder, where a finding keeps it; `read` is what
    is tried. `begin` is called once in the child, in an empty working folder.
    """

    name: str
    allowed: tuple[type[BaseException], ...] = ()

    def begin(self) -> None:
        """Make what every case needs."""

    def cases(self) -> SearchStrategy:
        raise NotImplementedError

    def put(self, case: Any, folder: Path) -> None:
        """Write the case, so that it can be tried again by hand."""
        raise NotImplementedError

    def read(self, case: Any, folder: Path) -> None:
        raise NotImplementedError


@dataclass
class Finding:
    """What went wrong, and how often; `case` is the folder that keeps the first one."""

    what: str
    text: str
    number: int
    case: Path
    times: int = 1


@dataclass
class Outcome:
    """What came of a reader's cases. `refused` ended in a clear line, the others in success."""

    name: str
    cases: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: dict[str, Finding] = field(default_factory=dict)


def run(reader: Reader, count: int, number: int, keep: Path) -> Outcome:
    """Try `count` cases of the seed `number`; after a crash or a hang go on with the next seed."""
    _prepare()
    outcome, start, part = Outcome(reader.name), time.monotonic(), 0
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    while outcome.cases < count and part < 20:
        _one_child(reader, count - outcome.cases, 1000 * number + part, keep, outcome)
        part += 1
    outcome.seconds = time.monotonic() - start
    return outcome


@cache
def _prepare() -> None:
    """Hypothesis reads the source of every module at its first case: once, not in each child."""
    settings(max_examples=1, database=None)(given(integers())(lambda _: None))()


def _one_child(reader: Reader, count: int, number: int, keep: Path, outcome: Outcome) -> None:
    shared, (receive, send) = mmap.mmap(-1, _SHARED.size), os.pipe()
    child = os.fork()
    if not child:
        os.close(receive)
        _be(reader, count, number, keep, shared, send)
    os.close(send)
    os.set_blocking(receive, False)
    lines, status = b"", None
    while status is None:
        found, code = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if found else None
        with suppress(BlockingIOError):
            while piece := os.read(receive, 1 << 16):
                lines += piece
        done, refused, begun = _SHARED.unpack(shared[:])
        if status is None and begun and time.monotonic() - begun > LONGEST:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            status = "hangs"
        elif status is None:
            time.sleep(0.05)
    os.close(receive)
    for line in lines.decode().splitlines():
        what, at, slow, text = line.split("\t", 3)
        if what == "slowest":
            outcome.slowest = max(outcome.slowest, float(slow))
        else:
            _add(outcome, what, text.replace("\\n", "\n"), outcome.cases + int(at), keep)
    if status:
        what = f"more than {LONGEST:g} s" if status == "hangs" else f"ended by {status}"
        case = keep / f"{reader.name}-{number}-{done}-ended"
        if (keep / "now").is_dir():
            shutil.copytree(keep / "now", case, dirs_exist_ok=True)
        _add(outcome, what, "", outcome.cases + done, case)
        done += 1
    outcome.cases += done
    outcome.refused += refused


def _add(outcome: Outcome, what: str, text: str, number: int, place: Path) -> None:
    if what in outcome.findings:
        outcome.findings[what].times += 1
        return
    outcome.findings[what] = Finding(what, text, number, place)


def _be(reader: Reader, count: int, number: int, keep: Path, shared: mmap.mmap, send: int) -> None:
    """The child: limits, then every case; what was wrong goes to the parent as lines."""
    status = 70
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        errors = os.open(keep / "child.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(quiet, 1)
        os.dup2(errors, 2)
        torch.set_num_threads(1)
        work = keep / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        os.chdir(work)
        reader.begin()
        limit = _data_bytes() + MOST + BEYOND
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for line in _cases(reader, count, number, keep, shared):
            os.write(send, (line.replace("\n", "\\n") + "\n").encode(errors="replace"))
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _cases(reader: Reader, count: int, number: int, keep: Path, shared: mmap.mmap) -> Iterator[str]:
    """Every case in turn; gives a line for each first one of its kind that went wrong."""
    said: list[str] = []
    done = refused = 0
    seen: set[str] = set()
    slowest, now = 0.0, keep / "now"

    # The cases are counted, not shrunk: thousands that differ say more than one made small.
    @seed(number)
    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )  # fmt: skip
    @given(reader.cases())
    def each(case: Any) -> None:
        nonlocal done, refused, slowest
        if done >= count:
            return
        shutil.rmtree(now, ignore_errors=True)
        now.mkdir()
        reader.put(case, now)
        _reset_peak()
        before, begun = _peak_bytes(), time.monotonic()
        shared[:] = _SHARED.pack(done, refused, begun)
        wrong = ""
        try:
            reader.read(case, now)
        except (DistillError, *reader.allowed):
            refused += 1
        except BaseException as error:
            wrong = f"{_where(error)}\t{''.join(traceback.format_exception(error))[-3000:]}"
        took, grown = time.monotonic() - begun, _peak_bytes() - before
        if grown > MOST:
            wrong = f"more than {MOST / 2**30:g} GB\t{grown / 2**30:.1f} GB"
        slowest = max(slowest, took)
        if wrong:
            what, _, text = wrong.partition("\t")
            said.append(f"{what}\t{done}\t{took:.2f}\t{text if what not in seen else ''}")
            if what not in seen:
                seen.add(what)
                shutil.copytree(now, keep / f"{reader.name}-{number}-{done}", dirs_exist_ok=True)
        done += 1
        shared[:] = _SHARED.pack(done, refused, 0.0)

    each()
    shared[:] = _SHARED.pack(done, refused, 0.0)
    yield from said
    yield f"slowest\t0\t{slowest:.3f}\t"


def _where(error: BaseException) -> str:
    """The kind of an exception and the innermost place in the package that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/distill/" in f.filename]
    place = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    name = place.filename.rpartition("/distill/")[2]
    return f"{type(error).__name__} at {name}:{place.lineno}"


def _data_bytes() -> int:
    """Private writable memory of this process, as RLIMIT_DATA counts it."""
    found = Path("/proc/self/status").read_text().partition("VmData:")[2]
    return 1024 * int(found.split()[0])


def _peak_bytes() -> int:
    """The most memory that this process had in use since `_reset_peak`."""
    found = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
    return 1024 * int(found.split()[0])


def _reset_peak() -> None:
    with suppress(OSError):  # where the kernel does not allow it, the peak is the whole run's
        Path("/proc/self/clear_refs").write_text("5")
