"""The processor, how many cores of it this process may use, and how many threads compute."""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

# Variables by which a user fixes the number of threads; the first counts, as it does for PyTorch.
CHOSEN = ("MKL_NUM_THREADS", "OMP_NUM_THREADS")
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"  # Linux


def processor() -> str:
    """The processor's own name where the system tells it, else its kind."""
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", listed.read_text(errors="replace"), re.M)
        if found:
            return found.group(1).strip()
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
    most = len({_core_of(number) for number in _usable()})
    for name in CHOSEN:
        if (told := os.environ.get(name, "")).isdecimal() and int(told):
            return min(int(told), most)
    return most


def _usable() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _core_of(number: int) -> str:
    """What is the same for the halves of one core; of each its own where the system tells not."""
    try:
        return Path(_SIBLINGS.format(number)).read_text()
    except OSError:
        return str(number)
