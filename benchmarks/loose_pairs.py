"""What `loss=loose` gains where drawings do not keep to the photo, and costs where they do.

    python benchmarks/loose_pairs.py SET

SET is of distill.prepare and has a test side. Of its drawings a second set is made in which each is
shifted and warped on purpose, by 4 pixels at most. One student learns from each with each loss, all
else alike; all are scored by the test side as the teacher drew it. Runs are kept below --out and go
on when the same command is typed again.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import Table, machine, write
from few_pairs import MARK, Drawn, lay_out, score, side_of
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from distill.core.progress import bar
from distill.data.augment import rng_for

MOST = 4.0  # pixels that a drawing lies off
WAVES = 4  # places a side that are warped on their own
LOSSES = ("lines", "loose")


def displacement(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float64]:
    """Pixels right and down, (2, H, W): a shift of the whole and a smooth warp, MOST at most."""
    coarse = rng.normal(size=(2, WAVES, WAVES))
    warp = np.stack(
        [ndimage.zoom(each, (height / WAVES, width / WAVES), order=3) for each in coarse]
    )
    by = rng.uniform(-2, 2, (2, 1, 1)) + 1.2 * warp[:, :height, :width]
    length = np.hypot(*by)
    return by * np.minimum(1, MOST / np.maximum(length, 1e-9))


def warped(picture: Image.Image, by: NDArray[np.float64]) -> Image.Image:
    """Each pixel taken from `by` right and down of it, by cubic splines."""
    values = np.asarray(picture.convert("RGB"), dtype=float)
    down, across = np.indices(values.shape[:2])
    places = [down + by[1], across + by[0]]
    moved = [ndimage.map_coordinates(v, places, mode="nearest") for v in np.moveaxis(values, 2, 0)]
    return Image.fromarray(np.stack(moved, 2).round().clip(0, 255).astype(np.uint8))


def set_off(drawn: Sequence[Drawn], folder: Path, seed: int) -> list[float]:
    """A/ the photos and B/ the drawings off their place; by how many pixels each in the mean."""
    for side in ("A", "B"):
        (folder / side).mkdir(parents=True, exist_ok=True)
    found = []
    with bar(len(drawn), "drawing", str(folder.name)) as progress:
        for each in drawn:
            assert each.pair.target is not None
            name = f"{Path(each.key).stem}.png"
            if not (folder / "A" / name).is_symlink():
                (folder / "A" / name).symlink_to(each.pair.photo.resolve())
            with Image.open(each.pair.target) as drawing:
                by = displacement(rng_for(seed, "off", each.key), drawing.height, drawing.width)
                found.append(float(np.hypot(*by).mean()))
                if not (folder / "B" / name).exists():
                    warped(drawing, by).save(folder / "B" / name)
            progress.update()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, metavar="SET")
    parser.add_argument("--steps", type=int, default=1200, help="of each student (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the warps (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/loose"), help="(%(default)s)")
    given = parser.parse_args()
    facts, out = machine(), given.out.absolute()
    off = []
    for side in ("train", "val"):
        drawn = side_of(given.pairs, side)
        off += set_off(drawn, out / "off" / side, given.seed)
        lay_out(drawn, out / "as-drawn" / side)
    to_score = lay_out(side_of(given.pairs, "test"), out / "scored")
    facts["pixels off, mean"] = f"{statistics.mean(off):.2f}"
    rows = []
    for trained_on in ("off", "as-drawn"):
        for loss in LOSSES:
            words = [f"data.root={out / trained_on}", f"loss={loss}", *MARK]
            words.append(f"trainer.max_steps={given.steps}")
            found = score(f"{trained_on}-{loss}", out, to_score, words)
            rows.append([trained_on, loss, f"{found:.2f}"])
    table = Table("Loose pairs", ["trained on", "loss", "PSNR, dB"], rows)
    write("loose_pairs", given.out, facts, rows, table)


if __name__ == "__main__":
    main()
