import os
import sys
from pathlib import Path

import pytest

from distill_search import jobs
from support import stand_training


@pytest.fixture
def stand_ins(monkeypatch):
    """Processes train with the stand-in."""
    paths = [str(Path(stand_training.__file__).parents[1]), *sys.path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setattr(jobs, "command", stand_training.command)
