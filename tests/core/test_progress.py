"""The progress bar, where something may go wrong: forked processes."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest
from tqdm.auto import tqdm

from distill.core.progress import bar


def hold_the_lock_and_die() -> None:
    tqdm.get_lock().acquire()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forked processes here")
@pytest.mark.timeout(30)
def test_a_killed_process_holds_up_no_other() -> None:
    with bar(1, " things", "before", leave=False) as progress:
        progress.update()
    child = multiprocessing.get_context("fork").Process(target=hold_the_lock_and_die)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with bar(1, " things", "after", leave=False) as progress:
        progress.update()
