"""Training for a time: what it has taken so far, and an end where the steps become too slow."""

from time import monotonic

import pytorch_lightning as pl

SLOWER = 1.5  # times the time planned: the steps that are left are planned again
LEAST = 5  # steps by which their pace is judged
NEARLY = 0.9  # of the time; less than the rest is not worth another start


class Pace(pl.Callback):
    """Counts the seconds of a training, also of one that resumes, up to a budget of them.

    It stops after the step with which the budget is over, or where the planned steps would take
    `SLOWER` times the budget.
    """

    def __init__(self, budget: float) -> None:
        self.budget, self.seconds = budget, 0.0

    @property
    def over(self) -> bool:
        """Whether nearly all of the budget is spent."""
        return self.seconds >= NEARLY * self.budget

    def state_dict(self) -> dict[str, float]:
        return {"seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, float]) -> None:
        self.seconds = state_dict["seconds"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._before = monotonic()
        self._start = trainer.global_step, self.seconds

    def on_train_batch_end(self, trainer: pl.Trainer, *_rest: object) -> None:
        now = monotonic()
        self.seconds, self._before = self.seconds + now - self._before, now
        done, planned = trainer.global_step - self._start[0], trainer.max_steps
        to_come = (planned - trainer.global_step) * (self.seconds - self._start[1]) / max(1, done)
        slow = done >= LEAST and self.seconds + to_come > SLOWER * self.budget
        if trainer.global_step < planned and (slow or self.seconds >= self.budget):
            trainer.fit_loop.epoch_loop.max_steps = trainer.global_step
            trainer.should_stop = True
