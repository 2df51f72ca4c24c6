"""Ctrl-C and SIGTERM during training: finish the batch, save, say how to go on."""

from __future__ import annotations

import signal
from types import FrameType

import pytorch_lightning as pl


class Interrupt(pl.Callback):
    """Stops after the running batch once a signal came; a second Ctrl-C ends at once."""

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def on_train_batch_end(self, trainer: pl.Trainer, *_args: object) -> None:
        if self.asked:
            trainer.should_stop = True

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, signal.default_int_handler)
