"""The bar's figures are of the last step, and what of metrics.csv a resumed run keeps."""

import io
from types import SimpleNamespace

import pytest
import torch
from tqdm.auto import tqdm

from distill.train.callbacks.reports import MetricsTable, Progress


def told(progress, trainer, by_itself: bool, loss: float) -> str:
    """What the bar shows after a step of that loss."""
    shown = () if by_itself else ("train/generator", "train/discriminator")
    module = SimpleNamespace(automatic_optimization=by_itself, progress=shown)
    progress.on_train_batch_end(trainer, module, {"loss": torch.tensor(loss)}, None, 0)
    return getattr(progress.bar, "postfix", None) or ""


def begun(interval: float, **logged: float) -> tuple[Progress, SimpleNamespace]:
    progress = Progress()
    progress.bar = tqdm(total=9, file=io.StringIO(), mininterval=interval)
    metrics = {f"train/{name}": torch.tensor(value) for name, value in logged.items()}
    trainer = SimpleNamespace(callback_metrics=metrics, accumulate_grad_batches=4, global_step=1)
    return progress, trainer


def test_the_loss_is_that_of_the_step_not_the_one_logged_last():
    progress, trainer = begun(0, loss=9.0)
    assert told(progress, trainer, True, 0.5) == "loss=2"  # Lightning gives a quarter of four


def test_two_losses_of_one_s_own_steps_are_as_logged():
    progress, trainer = begun(0, generator=3.0, discriminator=5.0)
    assert told(progress, trainer, False, 0.5) == "generator=3, discriminator=5"


def test_what_is_not_shown_is_not_read():
    progress, trainer = begun(1000)
    del trainer.callback_metrics
    assert told(progress, trainer, True, 0.5) == ""
    assert progress.bar.n == 1


def test_the_last_line_has_the_last_step_s_loss():
    progress, trainer = begun(1000, loss=9.0)
    trainer.global_step = progress.bar.total
    assert told(progress, trainer, True, 0.5) == "loss=2"


@pytest.mark.parametrize("by_itself", [True, False])
def test_another_process_than_the_first_has_no_bar(by_itself):
    progress = Progress()
    _, trainer = begun(0)
    assert told(progress, trainer, by_itself, 0.5) == ""


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
