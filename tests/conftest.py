"""What all tests share: no network, no cache of the user's, one thread, a fixed seed."""

import gc
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from kept_yaml import keep_compositions, keep_read_files
from PIL import Image
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
keep_read_files()
keep_compositions()


def pytest_collection_finish():
    gc.freeze()  # what is imported stays: a look through all of it for garbage takes .2 s


@pytest.fixture(scope="session", autouse=True)
def _isolated(tmp_path_factory):
    """No weights of the user's and an empty cache."""
    # Two threads on two busy cores wait for each other: the teacher took 40 times as long.
    torch.set_num_threads(1)
    # A suite in the background of a script ignores Ctrl-C, and so would the commands it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DISTILL_WEIGHTS", raising=False)
        patch.setenv("DISTILL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("OMP_NUM_THREADS", "1")  # of commands that a test starts
        # No test asks how exact the times of exported files are: they took a second a file.
        patch.setattr("distill.export.conversion.ROUNDS", 2)
        repeats = {"student": 3, "generator": 1}
        patch.setattr("distill.export.float32_export.REPEATS", repeats)
        yield


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def assets():
    """The folder of real weights and pictures; skips the test where there is none."""
    folder = Path(os.environ.get("DISTILL_ASSETS") or ROOT / "../shared/assets")
    if not folder.is_dir():
        pytest.skip(f"no real weights: DISTILL_ASSETS names no folder ({folder})")
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with photos of eight persons, two each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for person in range(8):
        for number in (1, 2):
            noise = rng.integers(0, 255, (6, 7, 3), dtype=np.uint8)
            picture = Image.fromarray(noise).resize((90, 80), Image.Resampling.BICUBIC)
            path = tmp_path / "photos" / f"Person_{person}_{number:04d}.png"
            path.parent.mkdir(exist_ok=True)
            picture.save(path)
    return tmp_path


@pytest.fixture(scope="session")
def _student_files(tmp_path_factory):
    from support.stylize_setup import save_students

    folder = tmp_path_factory.mktemp("zoo")
    save_students(folder)
    return folder


@pytest.fixture
def shipped_students(tmp_path, monkeypatch, _student_files):
    """A working folder; its zoo/ is the package's: `hayao` (the negative), `toon` (untrained)."""
    shutil.copytree(_student_files, tmp_path / "zoo")
    monkeypatch.setattr("distill.models.zoo.FOLDER", tmp_path / "zoo")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_downloads(monkeypatch):
    """As on a machine without a network."""

    def refuse(url: str, target: Path) -> None:
        raise OSError(f"no network in tests: {url}")

    monkeypatch.setattr("distill.core.weights._fetch", refuse)


@pytest.fixture(scope="session")
def lively():
    """A function that makes a network's BatchNorm matter: random scales, measured statistics.

    A fresh BatchNorm does nothing in evaluation mode, and folding it would prove nothing.
    """

    def make(network: nn.Module, size: int = 64) -> nn.Module:
        norms = [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
        for norm in norms:
            if norm.affine:
                nn.init.uniform_(norm.weight, 0.5, 1.5)
                nn.init.normal_(norm.bias, 0.0, 0.2)
            norm.momentum = 1.0
        with torch.no_grad():
            network.train()(torch.rand(8, 3, size, size))
        for norm in norms:
            norm.momentum = 0.1
        return network.eval()

    return make


@pytest.fixture
def signal_at(monkeypatch):
    """Send the process a signal while the batch after step `step` is being trained."""
    from distill.train.callbacks.reports import MetricsTable

    def at(step, number):
        plain, sent = MetricsTable.on_train_batch_end, []

        def hook(self, trainer, *args):
            if trainer.global_step == step and not sent:
                sent.append(step)
                os.kill(os.getpid(), number)
            return plain(self, trainer, *args)

        monkeypatch.setattr(MetricsTable, "on_train_batch_end", hook)

    return at
