"""metrics.csv of a resumed run, whatever became of the file meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from distill.train.callbacks.table import MetricsTable

WHOLE = "step,train/loss\n2,0.5\n4,0.25\n6,0.125\n"
DAMAGED = {
    "whole": (WHOLE, ["2", "4"]),
    "no text": (WHOLE.encode().replace(b"0.5", b"\xff\xfe"), ["2", "4"]),
    "a step that is no number": (WHOLE.replace("4,", "²,"), ["2"]),
    "endless": (WHOLE.replace("0.25", "1" * 200_000), ["2"]),
    "empty": ("", []),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_what_can_be_read_up_to_the_step_is_kept(tmp_path, kind):
    content, steps = DAMAGED[kind]
    path = tmp_path / "metrics.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = MetricsTable(path)
    table.on_train_start(SimpleNamespace(global_step=4), None)
    assert [row["step"] for row in table.rows] == steps
