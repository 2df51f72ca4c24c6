"""How the validations of several runs went, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from distill.weights import aside

Curves = Mapping[str, Sequence[Mapping[str, float]]]  # a run's name: its validations, by column
PANELS = {"val/psnr": "val/psnr (dB)", "val/ssim": "val/ssim"}
DISTANCES = {"val/frechet": "val/frechet", "val/kid": "val/kid"}  # of runs without pairs


def draw(curves: Curves, path: Path) -> None:
    """PSNR and SSIM over steps, a line per run, into a PNG file; distances where none has them."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    panels = PANELS if any("val/psnr" in r for t in curves.values() for r in t) else DISTANCES
    lines = -(-len(curves) // 2)  # of the legend, which has two columns
    figure = Figure(figsize=(12, 4.8 + 0.25 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (column, label) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        axes.set(xlabel="step", ylabel=label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        for number, (name, table) in enumerate(curves.items()):
            steps = [row["step"] for row in table]
            values = [row.get(column, float("nan")) for row in table]
            style = ("-", "--", "-.", ":")[number % 4]  # shows what lies below, too
            colour = colormaps["tab10"](number % 10)
            axes.plot(steps, values, style, color=colour, marker="o", markersize=3, label=name)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    with aside(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
