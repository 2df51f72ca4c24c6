from __future__ import annotations

import os

import pytest

from distill.training.callbacks.table import MetricsTable


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
