import platform
import subprocess
import sys

import pytest

# Pages that the system has to map anew while the same 64 MiB are taken and freed ten times, in the
# main thread or in another one.
SCRIPT = """
import resource, sys, threading
from distill.core.process import keep_freed

def take_and_free():
    for _ in range(10):
        b"x" * (64 << 20)

def rounds():
    take_and_free()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    take_and_free()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if "keep" in sys.argv:
    keep_freed()
if "thread" in sys.argv:
    thread = threading.Thread(target=rounds)
    thread.start()
    thread.join()
else:
    rounds()
"""


def pages(*arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], env=variables, capture_output=True, text=True
    )
    assert not done.stderr
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told anything")
@pytest.mark.parametrize("where", ["main", "thread"])
def test_freed_memory_is_kept(where):
    given_back = pages(where)
    assert given_back > 1000
    assert pages("keep", where) < 100
    assert pages("keep", where, MALLOC_ARENA_MAX="2") > 1000  # somebody else's choice


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_elsewhere_nothing_is_asked(monkeypatch, system):
    from distill.core import process

    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(process.ctypes, "CDLL", lambda *_: pytest.fail("asked"))
    process.keep_freed()
