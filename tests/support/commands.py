"""Commands run in this process as a user types them, and the settings of small runs."""

import sys
from types import ModuleType

from distill.train import __main__ as train

SMALL = ["style.resolution=64", "label.workers=0", "data.val_fraction=0.4", "crop=0.9"]
QUICK = [
    *SMALL,
    "encoder.weights=none",
    "data.workers=0",
    "data.batch_size=2",
    "trainer.log_every=1",
]


def run(command: ModuleType, *overrides: str) -> int:
    """Run an entry point as `python -m` would, in this process; gives the exit status."""
    argv, sys.argv = sys.argv, [command.__name__, *overrides]
    try:
        command.main()
    except SystemExit as stop:
        return stop.code
    finally:
        sys.argv = argv
    return 0


def go(*overrides: str) -> int:
    """A short training on the photos of the fixture `here`."""
    return run(train, "photos=photos", "decoder=residual", *QUICK, *overrides)
