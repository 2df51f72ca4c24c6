"""What goes along with the training of a student: its average, its health, late loss terms."""

from copy import deepcopy
from typing import Any

import pytorch_lightning as pl
import torch
from torch.optim.swa_utils import get_ema_multi_avg_fn

from distill.metrics.nonzero_weights import weight_shares
from distill.models.batchnorm import fold_batchnorm


class StudentEMA(pl.Callback):
    """Keeps averaged weights of `module.student`, validates with them and saves them.

    Lightning's own averaging deep-copies the whole module, teacher and VGG included. The decay
    rises as (1 + n) / (10 + n) up to `decay`, so that a short run is not held back by its random
    start. BatchNorm statistics are averaged with the weights.
    """

    def __init__(self, decay: float = 0.999) -> None:
        self.decay, self.updates = decay, 0
        self.average: dict[str, torch.Tensor] = {}
        self._student: dict[str, torch.Tensor] = {}  # the tensors that training changes in place
        self._live: dict[str, torch.Tensor] | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._student = pl_module.student.state_dict()
        if not self.average:
            self.average = deepcopy(self._student)
        self.average = {k: v.to(pl_module.device) for k, v in self.average.items()}

    @torch.no_grad()
    def on_train_batch_end(self, trainer: pl.Trainer, *_rest: object) -> None:
        if trainer.global_step <= self.updates:
            return  # gradients are being accumulated: no step was taken
        self.updates = trainer.global_step
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        live = self._student
        moving = [name for name, value in live.items() if value.is_floating_point()]
        # All tensors in one go: a GPU would wait for some hundred launches of a few microseconds.
        get_ema_multi_avg_fn(decay)(
            [self.average[name] for name in moving], [live[name] for name in moving], 0
        )
        for name in live.keys() - {*moving}:
            self.average[name].copy_(live[name])

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self.average:
            self._live = deepcopy(pl_module.student.state_dict())
            pl_module.student.load_state_dict(self.average)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self._live is not None:
            pl_module.student.load_state_dict(self._live)
            self._live = None

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.average, "updates": self.updates}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.average, self.updates = state_dict["average"], state_dict["updates"]


class Health(pl.Callback):
    """Logs the share of nonzero weights, dead channels and subnormal weights per validation.

    Of the 366,407 weights of the paper's released paprika student 25,412 are alive: coupled
    weight decay ate the rest.
    """

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        shares = weight_shares(fold_batchnorm(pl_module.student))
        names = ("living_weights", "dead_channels", "subnormal_weights")
        values = {f"health/{name}": share for name, share in zip(names, shares, strict=True)}
        pl_module.log_dict(values, sync_dist=True)


class LateTerms(pl.Callback):
    """Tells the criterion before each batch how far the run is, by its steps alone.

    So a resumed run trains the same terms. A callback and not part of the step, because the
    learning-rate finder's steps do not count as steps of the run.
    """

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, *_rest: object) -> None:
        pl_module.criterion.advance(trainer.global_step / trainer.max_steps)
