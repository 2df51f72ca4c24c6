"""What glibc is told to keep, and how workers start and end."""

import os
import platform
import signal
import subprocess
import sys
import time

import pytest
from torch.utils.data import DataLoader

from distill.core import process
from distill.core.process import LOWEST, exit_with_parent, worker_init_fn

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

# Pages that the system has to map again while the same 64 MiB are taken and freed ten times, in the
# main thread or in another one.
SCRIPT = """
import resource, sys, threading
from distill.core.process import keep_freed_memory

def take_and_free():
    for _ in range(10):
        b"x" * (64 << 20)

def rounds():
    take_and_free()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    take_and_free()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if "keep" in sys.argv:
    keep_freed_memory()
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
@pytest.mark.campaign
def test_freed_memory_is_kept(where):
    given_back = pages(where)
    assert given_back > 1000
    assert pages("keep", where) < 100
    assert pages("keep", where, MALLOC_ARENA_MAX="2") > 1000  # somebody else's choice


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_elsewhere_nothing_is_asked(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(process.ctypes, "CDLL", lambda *_: pytest.fail("asked"))
    process.keep_freed_memory()


def forked(task):
    """The process that runs `task` and ends; it may not come back into the test."""
    child = os.fork()
    if not child:
        try:
            task()
        finally:
            os._exit(0)
    return child


@needs_fork
def test_a_worker_whose_parent_is_gone_already_ends():
    child = forked(lambda: exit_with_parent(os.getpid()))  # not the parent's number
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    main = os.getpid()
    child = forked(lambda: exit_with_parent(main))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch's own watch has to do")
def test_a_worker_ends_with_a_parent_that_is_killed():
    reading, writing = os.pipe()

    def worker(parent):
        exit_with_parent(parent)
        os.write(writing, b"!")
        time.sleep(60)

    def main():
        me = os.getpid()
        forked(lambda: worker(me))
        time.sleep(60)

    child = forked(main)
    os.close(writing)
    with open(reading, "rb", buffering=0) as said:
        assert said.read(1) == b"!"  # the worker is at its work
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        begun = time.monotonic()
        assert said.read() == b""  # nobody holds the pipe any more
    assert time.monotonic() - begun < 10


class Facts:
    """What a worker is: its priority, and whether Ctrl-C reaches it."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        if index:
            raise IndexError
        return os.nice(0), signal.getsignal(signal.SIGINT) == signal.SIG_IGN


@needs_fork
@pytest.mark.parametrize(("low_priority", "priority"), [(True, LOWEST), (False, os.nice(0))])
def test_workers_of_a_loader_ignore_signals_and_give_way(low_priority, priority):
    loader = DataLoader(
        Facts(), num_workers=1, collate_fn=list, worker_init_fn=worker_init_fn(low_priority)
    )
    assert list(loader) == [[(priority, True)]]


BROKEN = """
import sys
from torch.utils.data import DataLoader, Dataset
from distill.core.process import worker_init_fn

class Broken(Dataset):
    def __len__(self):
        return 9

    def __getitem__(self, index):
        raise RuntimeError("broken")

try:
    for _ in DataLoader(Broken(), num_workers=1, worker_init_fn=worker_init_fn(False)):
        pass
except RuntimeError:
    sys.exit(3)  # the error, and with it the loader, lives as long as the process
"""


@needs_fork
@pytest.mark.campaign
def test_an_error_in_a_worker_does_not_keep_the_command_from_ending():
    ended = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, timeout=60)
    assert ended.returncode == 3


def spins(before="", **variables):
    script = f"{before}\nimport distill, os\nprint(os.environ.get('GOMP_SPINCOUNT'))"
    environment = {k: v for k, v in os.environ.items() if k not in process.WAITING} | variables
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_threads_are_told_how_to_wait_before_torch_is_loaded_and_not_after():
    assert spins() == process.SPINS
    assert spins("import sys, types; sys.modules['torch'] = types.ModuleType('torch')") == "None"


@pytest.mark.parametrize("name", process.WAITING)
def test_how_threads_wait_is_left_to_whoever_sets_it(name):
    assert spins(**{name: "7"}) == ("7" if name == "GOMP_SPINCOUNT" else "None")
