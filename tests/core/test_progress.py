"""The progress bar, where something may go wrong: forked processes."""

import multiprocessing
import os
import signal
import sys

import pytest
from tqdm.auto import tqdm

from distill.core.progress import bar


def hold_the_lock_and_die() -> None:
    tqdm.get_lock().acquire()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forked processes here")
@pytest.mark.timeout(30)
def test_a_killed_process_holds_up_no_other():
    with bar(1, " things", "before", leave=False) as progress:
        progress.update()
    child = multiprocessing.get_context("fork").Process(target=hold_the_lock_and_die)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with bar(1, " things", "after", leave=False) as progress:
        progress.update()


def lines_of(monkeypatch, capsys, seconds, leave=True, total=4, steps=4):
    """What a bar writes into a log in which a step takes `seconds`."""
    now = [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    with bar(total, "step", "training", leave=leave) as progress:
        progress._time = lambda: now[0]
        progress.start_t = progress.last_print_t = now[0]
        for step in range(steps):
            now[0] += seconds
            progress.set_postfix(loss=step, refresh=False)
            progress.update()
    return capsys.readouterr().err


def test_a_log_has_whole_lines_and_rates_a_step(monkeypatch, capsys):
    said = lines_of(monkeypatch, capsys, seconds=25.0)
    assert "\r" not in said
    assert "\n\n" not in said
    lines = said.splitlines()
    assert lines[0] == "training: 25% 1/4 [00:25<01:15, 25.00s/step, loss=0]"
    assert lines[-1].startswith("training: 100% 4/4 [01:40<00:00, 25.00s/step")


def test_a_log_has_a_line_in_twenty_seconds_at_most(monkeypatch, capsys):
    said = lines_of(monkeypatch, capsys, seconds=1.0, total=100, steps=100)
    assert 3 <= len(said.splitlines()) <= 6


def test_a_short_job_says_nothing_in_a_log(monkeypatch, capsys):
    assert lines_of(monkeypatch, capsys, seconds=0.1) == ""


def test_a_bar_that_does_not_stay_has_no_last_line(monkeypatch, capsys):
    said = lines_of(monkeypatch, capsys, seconds=25.0, leave=False, steps=3)
    assert len(said.splitlines()) == 3
    assert "100%" not in said


def test_a_bar_without_an_end_counts(monkeypatch, capsys):
    said = lines_of(monkeypatch, capsys, seconds=25.0, total=None)
    assert said.splitlines()[0].startswith("training: 1step [00:25, 25.00s/step")


def test_what_others_write_brings_no_line_of_the_bar(capsys):
    with bar(4, "step", "training") as progress:
        progress.update()
        tqdm.write("a line of its own", file=sys.stderr)
    assert capsys.readouterr().err == "a line of its own\n"
