"""This process and its workers: their cores, what they keep, how they wait, and how they end."""

import atexit
import ctypes
import multiprocessing
import os
import platform
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8  # from glibc's malloc.h
KEPT = 2**31 - 1  # bytes of free memory to hold on to, the most that can be named
PR_SET_PDEATHSIG = 1  # from Linux's prctl.h
WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")  # how OpenMP's threads wait
SPINS = "10000"  # looks: some tenths of a millisecond, longer than Python takes between two layers
LOWEST = 19  # priority of a process, as `nice` counts it
# Variables by which a user fixes the number of threads; the first counts, as it does for PyTorch.
CHOSEN = ("MKL_NUM_THREADS", "OMP_NUM_THREADS")
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"  # Linux


def keep_freed_memory() -> None:
    """Have glibc keep large blocks when they are freed; elsewhere nothing changes.

    Left alone it gives them back to the system, which maps and clears every page of them again at
    the next step, one at a time: a third of a training step on a CPU (benchmarks/training.py). No
    value changes. Whoever sets MALLOC_… variables is left to it.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_ARENA_MAX, 1)  # other threads' own arenas would go on as before


def limit_spinning() -> None:
    """Have PyTorch's threads sleep while they wait for each other, after a short look.

    GNU OpenMP, which torch brings along on Linux, looks 300,000 times first, for milliseconds. On
    idle cores the wait is over long before; where another program holds the core of the thread that
    is waited for, looking only keeps it from running. Read once, when torch is loaded: nothing is
    done after that, nor where the user has set how threads wait.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in WAITING):
        os.environ["GOMP_SPINCOUNT"] = SPINS


def worker_init_fn(low_priority: bool) -> Callable[[int], None]:
    """What a DataLoader's workers do first: ignore the signals of the main process, end with it.

    `low_priority`, for a network on the CPU: they load where that leaves a core idle. Its threads
    wait for each other, so one that loses its core for a while holds up all.
    """
    atexit.unregister(_kill_workers)
    atexit.register(_kill_workers)
    return partial(_init_worker, os.getpid(), low_priority)


def _kill_workers() -> None:
    """End the workers that an error left behind.

    multiprocessing sends them SIGTERM, which they ignore, and would wait for ever.
    """
    for child in multiprocessing.active_children():
        if child.daemon:
            child.kill()


def _init_worker(parent: int, low_priority: bool, _worker: int) -> None:
    # Ctrl-C reaches every process of a terminal, and a batch system's SIGTERM every one of a job;
    # only the main one shall decide what they mean.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    exit_with_parent(parent)
    if low_priority and hasattr(os, "nice"):
        os.nice(LOWEST)


def exit_with_parent(parent: int) -> None:
    """End with the parent process, however that ends.

    torch's workers look for it from time to time, but one whose parent was killed before its first
    look waits for ever and keeps the terminal's pipes open.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def processor() -> str:
    """The processor's own name where the system tells it, else its kind."""
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        name = re.search(r"^model name\s*:\s*(.+)$", listed.read_text(errors="replace"), re.M)
        if name:
            return name.group(1).strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """Processor cores that this process may use, as the system counts them."""
    return len(_usable())


def compute_threads() -> int:
    """The number of threads to compute with where nobody says: PyTorch's in a process that uses it.

    Elsewhere what it would be: one for each core, of two that are one core's halves one, or fewer
    where the user told PyTorch so by a variable. Both halves share one core's units for
    arithmetic: a second thread of it gains nothing.
    """
    if "torch" in sys.modules:  # its number may have been set, as in processes that load pictures
        return sys.modules["torch"].get_num_threads()
    halves = set()  # what is the same for both of one core, where the system tells it
    for number in _usable():
        try:
            halves.add(Path(_SIBLINGS.format(number)).read_text())
        except OSError:
            halves.add(str(number))
    most = len(halves)
    for name in CHOSEN:
        if (threads := os.environ.get(name, "")).isdecimal() and int(threads):
            return min(int(threads), most)
    return most


def _usable() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def silent() -> Iterator[None]:
    """Nothing on the terminal, of what libraries write from C++ too."""
    sys.stdout.flush()
    copies = [os.dup(standard) for standard in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for standard in (1, 2):
            os.dup2(nowhere, standard)
        yield
    finally:
        for standard, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, standard)
        for each in (nowhere, *copies):
            os.close(each)


@contextmanager
def with_attribute(objects: Iterable[object], name: str, value: object) -> Iterator[None]:
    """The attribute of these modules, layers or others is another one in this block."""
    before = [(each, getattr(each, name)) for each in objects]
    for each, _ in before:
        setattr(each, name, value)
    try:
        yield
    finally:
        for each, old in before:
            setattr(each, name, old)
