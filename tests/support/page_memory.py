"""What the page of distill.lens takes while it is watched: memory, and time of its threads."""

import os
from pathlib import Path
from typing import Any

# Milliseconds of each task that kept the main thread for more than 50.
MEASURES = """
window.longTasks = [];
new PerformanceObserver((list) => {
  longTasks.push(...list.getEntries().map(({ duration }) => duration));
}).observe({ type: "longtask" });
"""


def megabytes(page: Any) -> dict[str, float]:
    """Once garbage is collected: the page's own heap, and all that its process holds."""
    session = page.context.new_cdp_session(page)
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return {"heap of the page": used / 1e6, "memory of its process": _resident() / 1e6}


def worker_seconds() -> dict[int, float]:
    """CPU time of every worker's thread in this process's browsers, by the thread's number."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for task in (each for pid in _renderers() for each in Path(f"/proc/{pid}/task").iterdir()):
        name, _, fields = (task / "stat").read_text().rpartition(")")
        if "DedicatedWorker" in name:
            user, system = fields.split()[11:13]
            found[int(task.name)] = (int(user) + int(system)) / tick
    return found


def _resident() -> float:
    """Bytes of the largest renderer: the page's; another one may wait for the next page."""
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in _renderers())
    return max(pages) * os.sysconf("SC_PAGE_SIZE")


def _renderers() -> list[int]:
    """Processes of pages that descend from this one."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                command = (path / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended
            parents[int(path.name)] = (int(fields[1]), b"--type=renderer" in command)

    def ours(pid: int) -> bool:
        while pid in parents:
            if pid == os.getpid():
                return True
            pid = parents[pid][0]
        return False

    return [pid for pid, (_, page) in parents.items() if page and ours(pid)]
