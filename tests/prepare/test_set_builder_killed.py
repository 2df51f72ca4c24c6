import os
import random
import shutil
import signal
import threading
import time
from dataclasses import replace

import pytest
from tqdm import tqdm

from support.labelling import MANIFEST, add, add_copies, hashes, make
from support.teachers import Inverted

KILLS = 24


@pytest.fixture
def folder(tmp_path):
    """40 photos: near-duplicates, persons, and files that cannot be used."""
    folder = tmp_path / "photos"
    add(folder, *range(20))
    add_copies(folder, *range(8))
    add(folder, *range(100, 108), name="Person_0{}")
    (folder / "empty.jpg").touch()
    (folder / "page.jpg").write_text("<html>")
    (folder / "cut.png").write_bytes((folder / "0.png").read_bytes()[:2000])
    (folder / "dangling.png").symlink_to("nowhere.png")
    return folder


class Slow(Inverted):
    """Takes its time for a batch."""

    def forward(self, photos):
        time.sleep(0.01)
        return super().forward(photos)


def killed(run, delay):
    """Forks, lets `run` go on for `delay` seconds and kills it; whether that was in time."""
    child = os.fork()
    if not child:
        try:
            tqdm.set_lock(threading.RLock())  # its own is shared by forks, and dies locked
            run()
        finally:
            os._exit(0)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.slow
def test_a_set_killed_again_and_again_is_that_of_a_single_run(
    folder, tmp_path, monkeypatch, workers
):
    options = {"manifest": replace(MANIFEST, views=2), "batch_size": 3, "workers": workers}
    start = time.perf_counter()
    single = make(folder, tmp_path / "single", **options)
    patience = time.perf_counter() - start
    assert single.skipped.keys() == {"empty.jpg", "page.jpg", "cut.png", "dangling.png"}
    assert single.counts["near_duplicates"] == 16

    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "an empty cache"))
    root, chance, counts, kills = tmp_path / "killed", random.Random(workers), [0], 0
    while kills < KILLS:
        delay = chance.uniform(0, patience)
        kills += killed(lambda: make(folder, root, teacher=Slow(), **options), delay)
        counts.append(len(list(root.glob("*/stylized/*.png"))))
        gain = counts[-1] - counts[-2]
        assert gain >= 0  # what is done stays
        # However fast the machine is just now, a kill shall hit after a few batches or before any.
        patience *= 1.2 if gain == 0 else 0.6 if gain > single.made / 10 else 1
        if counts[-1] == single.made:  # sooner than thought: once more from the start
            make(folder, root, **options)
            assert hashes(root) == hashes(tmp_path / "single")
            shutil.rmtree(root)
            counts.append(0)
    assert len(set(counts)) > 3  # the kills were spread over the run
    make(folder, root, **options)
    assert hashes(root) == hashes(tmp_path / "single")
    assert not list(root.rglob(".*.part"))
