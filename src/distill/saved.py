"""What a checkpoint tells of its run, without anything being built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from distill.errors import DistillError


def step_of(checkpoint: Path) -> int:
    """The number of optimiser steps a checkpoint was saved after."""
    return int(_saved(checkpoint)["global_step"])


def over(checkpoint: Path, max_steps: int) -> str:
    """In words, that the run is at its end and why; empty where it may go on."""
    step = step_of(checkpoint)
    if why := ended_early(checkpoint):
        return f"ended early at step {step}: {why}"
    return f"finished at step {step}; for more: trainer.max_steps=N" if step >= max_steps else ""


def ended_early(checkpoint: Path) -> str | None:
    """Why the run had ended before its last step, None where it had not."""
    for key, state in _saved(checkpoint)["callbacks"].items():
        if key.startswith("EarlyStopping") and state["wait_count"] >= state["patience"]:
            watched = re.search(r"'monitor': '([^']+)'", key)
            name = watched.group(1) if watched else "val/loss"
            return f"{name} had not fallen for {state['patience']} validations"
    return None


def _saved(checkpoint: Path) -> dict[str, Any]:
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        return {"global_step": saved["global_step"], "callbacks": saved.get("callbacks", {})}
    except Exception as error:
        raise DistillError(
            f"{checkpoint}: damaged ({type(error).__name__}); delete it, or use resume=false"
        ) from error
