import os

import pytest
import torch

from distill.train.callbacks.reports import MetricsTable
from support.small_vgg import small_vgg


@pytest.fixture
def vgg_in_small(monkeypatch):
    """Random, with no weights to look for, and always the same."""

    def made(*_):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return small_vgg()

    monkeypatch.setattr("distill.losses.feature_distance.vgg_features", made)


@pytest.fixture
def signal_at(monkeypatch):
    """Send the process a signal while the batch after step `step` is being trained."""

    def at(step, number):
        plain, sent = MetricsTable.on_train_batch_end, []

        def hook(self, trainer, *args):
            if trainer.global_step == step and not sent:
                sent.append(step)
                os.kill(os.getpid(), number)
            return plain(self, trainer, *args)

        monkeypatch.setattr(MetricsTable, "on_train_batch_end", hook)

    return at
