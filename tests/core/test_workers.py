import os
import signal
import subprocess
import sys
import time

import pytest
from torch.utils.data import DataLoader

from distill.core.process import LOWEST, die_with, starter

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def forked(task):
    """The process that runs `task` and ends; it may not come back into the test."""
    child = os.fork()
    if not child:
        try:
            task()
        finally:
            os._exit(0)
    return child


def test_a_worker_whose_parent_is_gone_already_ends():
    child = forked(lambda: die_with(os.getpid()))  # not the parent's number
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    main = os.getpid()
    child = forked(lambda: die_with(main))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch's own watch has to do")
def test_a_worker_ends_with_a_parent_that_is_killed():
    reading, writing = os.pipe()

    def worker(parent):
        die_with(parent)
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


@pytest.mark.parametrize(("give_way", "priority"), [(True, LOWEST), (False, os.nice(0))])
def test_workers_of_a_loader_start_so(give_way, priority):
    loader = DataLoader(Facts(), num_workers=1, collate_fn=list, worker_init_fn=starter(give_way))
    assert list(loader) == [[(priority, True)]]


BROKEN = """
import sys
from torch.utils.data import DataLoader, Dataset
from distill.core.process import starter

class Broken(Dataset):
    def __len__(self):
        return 9

    def __getitem__(self, index):
        raise RuntimeError("broken")

try:
    for _ in DataLoader(Broken(), num_workers=1, worker_init_fn=starter(False)):
        pass
except RuntimeError:
    sys.exit(3)  # the error, and with it the loader, lives as long as the process
"""


def test_an_error_in_a_worker_does_not_keep_the_command_from_ending():
    ended = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, timeout=60)
    assert ended.returncode == 3
