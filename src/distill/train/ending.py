"""The messages at the end of a training: figures, files, and the next command."""

import math
from collections.abc import Mapping
from pathlib import Path

from distill.config.settings.training import Machine
from distill.core.next_step import next_step
from distill.runs.run_folder import Run, ended_early, finished_message

LEARNT = 0.9  # of the photos' own distance from the style; more is as good as nothing


def tell_finished(run: Run, checkpoint: Path | None, t: Machine, network: str) -> bool:
    """Whether a run has taken all its steps; prints its outcome if so. Without a checkpoint, no."""
    if checkpoint is None or not (message := finished_message(checkpoint, t.max_steps, t.patience)):
        return False
    print("\n".join([f"{run.folder}: {message}", *outcome(run, network)]))
    return True


def outcome(run: Run, network: str) -> list[str]:
    """Lines about the last validation of a run, its last preview and the next command.

    `network` is what the run trained: student or generator. Where photos were compared too and the
    student is no better than they are, a line says what to do.
    """
    lines = []
    if table := run.validations():
        row = table[-1]
        if "val/photo_style" in row:
            figures, advice = _style(row, network)
        elif "val/psnr" in row:
            figures, advice = _targets(row, network, run)
        else:  # a recipe without targets
            each = (f"{key[4:]} {v:.4g}" for key, v in row.items() if key.startswith("val/"))
            frechet = f"Fréchet {row['val/frechet']:.1f}" if "val/frechet" in row else ""
            figures, advice = frechet or ", ".join(each), ""
        lines = [f"validation at step {row['step']:.0f}: {figures}", advice]
    if previews := sorted((run.folder / "previews").glob("step-*.png")):
        lines.append(f"preview: {previews[-1]}")
    if run.folder.parent.name.startswith("sweep-"):  # one of many, which a table compares
        return [*filter(None, lines)]
    return [*filter(None, lines), next_step("export", **run.words)]


def _style(row: Mapping[str, float], network: str) -> tuple[str, str]:
    """Figures of a style's distance, and what to do where the photos' own is as small."""
    figures = f"style {row['val/style']:.3f} (photos {row['val/photo_style']:.3f})"
    if "val/content" in row:  # of loss.weights.content=0 there is none
        figures += f", content {row['val/content']:.3f}"
    if row["val/style"] <= LEARNT * row["val/photo_style"]:
        return figures, ""
    return figures, (
        f"the {network} has not learnt the style yet: train longer, the same command with "
        "a larger trainer.max_steps or picture.minutes goes on"
    )


def _targets(row: Mapping[str, float], network: str, run: Run) -> tuple[str, str]:
    """Figures of the likeness to targets, and what to do where the photos are as like them."""
    figures = f"{network} {_pair(row, '')}"
    if "val/photo_psnr" in row:
        figures += f"; the photos themselves {_pair(row, 'photo_')}"
    if row["val/psnr"] > row.get("val/photo_psnr", -math.inf):
        return figures, ""
    early = run.last.is_file() and ended_early(run.last)
    return figures, (
        f"the {network} is no better than the photos themselves: train longer, the same command "
        f"with a larger trainer.{'patience' if early else 'max_steps'} goes on; or try another "
        "rate (lr=auto)"
    )


def _pair(row: Mapping[str, float], whose: str) -> str:
    ssim = row.get(f"val/{whose}ssim")  # a recipe of one's own may measure PSNR alone
    return f"{row[f'val/{whose}psnr']:.2f} dB" + (f", SSIM {ssim:.3f}" if ssim is not None else "")
