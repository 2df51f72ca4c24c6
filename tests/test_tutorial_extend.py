"""docs/tutorial-extend.md as it stands: its files are written and its commands run, in one go."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
# The same on a small machine: few steps, small pictures, no weights from the network.
QUICK = (
    "trainer.max_steps=2 encoder.weights=none style.resolution=64 data.batch_size=2 "
    + " ".join(["data.workers=0", "label.workers=0", "data.val_fraction=0.4", "trainer.threads=1"])
)
# By one interpreter, as PyTorch takes seconds to import; each line begins with python -m.
ONE_AFTER_ANOTHER = """
import runpy, shlex, sys

for line in sys.argv[1:]:
    python, m, *sys.argv = shlex.split(line)
    assert (python, m) == ("python", "-m")
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code:
            raise
"""
PLUGIN = ROOT / "tests/plugin/mylab"
RUN_BY = ROOT / "tests/commands/test_plugin_package.py"


def test_every_row_of_the_table_is_in_the_package_that_a_test_runs():
    text = (ROOT / "docs/tutorial-extend.md").read_text()
    rows = re.findall(r"(?m)^\| [a-z][^|]* \|[^|]*\| ((?:`\w+/NAME`(?:, )?)+) \| (.*) \|$", text)
    assert len(rows) == 15
    commands = RUN_BY.read_text()
    for files, place in rows:
        for group in re.findall(r"`(\w+)/NAME`", files):
            (file,) = (PLUGIN / "conf" / group).glob("*.yaml")
            assert re.search(rf"{group}=(\[.*)?{file.stem}", commands) or group == "teacher", group
            whole = file.read_text().startswith("# @package _global_")
            assert whole == ("# @package _global_" in place), group


@pytest.mark.slow
@pytest.mark.timeout(600)  # six commands, on a busy machine
def test_a_person_with_a_package_and_this_page_does_it_in_one_go(here):
    text = (ROOT / "docs/tutorial-extend.md").read_text()
    blocks = re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", text)
    for kind, block in blocks:
        named = re.match(r"(?:# @package .*\n)?# (mylab/\S+)\n", block)
        if kind in ("python", "yaml") and named:
            path = here / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block)
    file, line = re.search(r"`(mylab/conf/plugin\.yaml)` has one line, `(.*?)`", text).groups()
    (here / file).write_text(line)
    for side in ("A", "B"):
        (here / "PAIRS" / side).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (64, 64), (number, 9, 99)).save(here / f"PAIRS/{side}/{number}.png")
    commands = "".join(block for kind, block in blocks if kind == "bash")
    assert commands.count("trainer.max_steps=600") == 2
    recipe = "trainer.max_steps=2 data.workers=0 data.size=36 data.crop_size=32 data.batch_size=2 "
    recipe += "generator=resnet generator.build.blocks=1 generator.build.width=8 trainer.threads=1"
    commands = commands.replace("PAIRS trainer.max_steps=600", f"PAIRS {recipe}")
    for old, new in (
        ("trainer.max_steps=600", QUICK),
        ("photos=DIR", "photos=photos"),
        ("photo.jpg", "photos/Person_1_0001.png"),
        ("\\\n", ""),
    ):
        commands = commands.replace(old, new)
    exported, *typed = commands.strip().splitlines()
    assert exported == "export PYTHONPATH=$PWD DISTILL_PLUGINS=mylab"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "DISTILL_PLUGINS": "mylab"}
    environment["PYTHONPATH"] = f"{here}:{ROOT / 'src'}"
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, *typed],
        cwd=here, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "levels, student to teacher" in (here / "runs/soft/eval/results.md").read_text()
    assert "train/dark" in (here / "runs/soft/metrics.csv").read_text()
    for run in ("soft", "plain-PAIRS"):
        assert (here / f"stylized/Person_1_0001-{run}.png").is_file()
