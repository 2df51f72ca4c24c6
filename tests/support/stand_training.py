"""A training's stand-in: for searches and sweeps in this process, and as a command in others."""

import math
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from distill.config import registry
from distill.config.command import Command
from distill.core.errors import INTERRUPTED
from support.commands import run

FATAL = 666  # the seed of a run that the system kills


def psnr_of(settings):
    """20 at the rate 1e-2, one less for every factor of ten away from it."""
    return 20 - abs(math.log10(settings.lr) + 2)


class Stand:
    """In the place of a training: writes its validations, and notes what it was given."""

    def __init__(self, psnr=psnr_of, steps=(1, 2), stop_at=None, **columns):
        self.seen, self.psnr, self.steps, self.columns = [], psnr, steps, columns
        self.stop_at = stop_at  # the number of the run in which Ctrl-C comes

    def __call__(self, settings, callbacks=()):
        self.seen.append(settings)
        folder = Path(settings.runs) / settings.run
        folder.mkdir(parents=True, exist_ok=True)
        if len(self.seen) == self.stop_at:
            raise SystemExit(INTERRUPTED)
        rows = ["step,val/psnr" + "".join(f",val/{name}" for name in self.columns)]
        for step in self.steps:
            figures = [self.psnr(settings), *(of(settings) for of in self.columns.values())]
            rows.append(",".join(map(str, [step, *figures])))
            (folder / "metrics.csv").write_text("\n".join(rows))
            at = SimpleNamespace(global_step=step, callback_metrics={"val/psnr": figures[0]})
            for callback in callbacks:
                callback.on_train_start(at, None)
                callback.on_validation_end(at, None)

    def typed(self, *words):
        """The exit status of distill.train with this in the training's place."""
        command = Command("train", registry.schema_of, self)
        return run(SimpleNamespace(__name__="distill.train", main=command), *words)


def command(_name, only):
    """In the place of jobs.command: a process with the stand-in, for one job alone."""
    typed = [word for word in sys.argv[1:] if not word.startswith("launcher")]
    return [sys.executable, "-m", "support.stand_training", *typed, f"launcher.only={only}"]


def _or_die(settings):
    if settings.seed == FATAL:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(float(os.environ.get("SLOW", 0)))
    return psnr_of(settings)


if __name__ == "__main__":
    sys.exit(Stand(psnr=_or_die).typed(*sys.argv[1:]))
