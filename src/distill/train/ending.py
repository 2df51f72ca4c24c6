"""The messages at the end of a training: figures, files, and the next command."""

import math
from collections.abc import Mapping
from pathlib import Path

from distill.core.next_step import next_step
from distill.runs.run_folder import Run, ended_early, finished_message

LEARNT = 0.9  # of the photos' own distance from the style; more is as good as nothing


def tell_finished(run: Run, checkpoint: Path | None, steps: int, network: str) -> bool:
    """Whether a run has taken all its steps; prints its outcome if so. Without a checkpoint, no."""
    if checkpoint is None or not (message := finished_message(checkpoint, steps)):
        return False
    print("\n".join([f"{run.folder}: {message}", *outcome(run, network)]))
    return True


def outcome(run: Run, network: str) -> list[str]:
    """Lines about the last validation of a run, its last preview and the next command.

    `network` is what the run trained: student or generator. Where photos were compared too and the
    student is no better than they are, a line says what to do.
    """
    table, lines = run.validations(), []
    if table and "val/photo_style" in (row := table[-1]):
        figures = f"style {row['val/style']:.3f} (photos {row['val/photo_style']:.3f})"
        if "val/content" in row:  # of loss.weights.content=0 there is none
            figures += f", content {row['val/content']:.3f}"
        lines.append(f"validation at step {row['step']:.0f}: {figures}")
        if row["val/style"] > LEARNT * row["val/photo_style"]:
            lines.append(
                f"the {network} has not learnt the style yet: train longer, the same command with "
                "a larger trainer.max_steps or picture.minutes goes on"
            )
    elif table and "val/psnr" not in (row := table[-1]):  # a recipe without targets
        others = (f"{key[4:]} {value:.4g}" for key, value in row.items() if key.startswith("val/"))
        figures = f"Fréchet {row['val/frechet']:.1f}" if "val/frechet" in row else ", ".join(others)
        lines.append(f"validation at step {row['step']:.0f}: {figures}")
    elif table:
        line = f"validation at step {row['step']:.0f}: {network} {_pair(row, '')}"
        if "val/photo_psnr" in row:
            line += f"; the photos themselves {_pair(row, 'photo_')}"
        lines.append(line)
        if row["val/psnr"] <= row.get("val/photo_psnr", -math.inf):
            further = "the same command with a larger trainer.max_steps goes on"
            if run.last.is_file() and ended_early(run.last):
                further = "by another run=NAME and a larger trainer.patience"
            lines.append(
                f"the {network} is no better than the photos themselves: train longer, {further}; "
                "or try another rate (lr=auto)"
            )
    if previews := sorted((run.folder / "previews").glob("step-*.png")):
        lines.append(f"preview: {previews[-1]}")
    if run.folder.parent.name.startswith("sweep-"):  # one of many, which a table compares
        return lines
    return [*lines, next_step("export", **run.words)]


def _pair(row: Mapping[str, float], whose: str) -> str:
    ssim = row.get(f"val/{whose}ssim")  # a recipe of one's own may measure PSNR alone
    return f"{row[f'val/{whose}psnr']:.2f} dB" + (f", SSIM {ssim:.3f}" if ssim is not None else "")
