"""docs/tutorial-extend.md as it stands: its files are written and its commands run, in one go."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The same on a small machine: few steps, small pictures, no weights from the network.
QUICK = (
    "trainer.max_steps=2 encoder.weights=none style.resolution=64 data.batch_size=2 "
    + " ".join(["data.workers=0", "label.workers=0", "data.val_fraction=0.4", "trainer.threads=1"])
)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # four commands, on a busy machine
def test_a_person_with_a_package_and_this_page_does_it_in_one_go(here: Path):
    text = (ROOT / "docs/tutorial-extend.md").read_text()
    blocks = re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", text)
    for kind, block in blocks:
        named = re.match(r"# (mylab/\S+)\n", block)
        if kind in ("python", "yaml") and named:
            path = here / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block)
    file, line = re.search(r"`(mylab/conf/plugin\.yaml)` has one line, `(.*?)`", text).groups()
    (here / file).write_text(line)
    (commands,) = [block for kind, block in blocks if kind == "bash"]
    assert "trainer.max_steps=600" in commands
    for old, new in (
        ("trainer.max_steps=600", QUICK),
        ("photos=DIR", "photos=photos"),
        ("photo.jpg", "photos/Person_1_0001.png"),
        ("python -m", f"'{sys.executable}' -m"),
        ("PYTHONPATH=$PWD", f"PYTHONPATH=$PWD:{ROOT / 'src'}"),
    ):
        commands = commands.replace(old, new)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-e", "-c", commands], cwd=here, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "levels, student to teacher" in (here / "runs/soft/eval/results.md").read_text()
    assert "train/dark" in (here / "runs/soft/metrics.csv").read_text()
    assert (here / "stylized/Person_1_0001-soft.png").is_file()
