"""Evaluation: `distill.eval_fid a=DIR b=DIR` against pytorch-fid's command line.

Two folders of 256×256 pictures, JPEG and PNG, and one file of random Inception weights go to both
commands; whole processes in turn, each from its start to its exit, threads as each chooses.

cold           nothing is known of the pictures
one side kept  the first folder's features are in the cache, as a teacher's after one evaluation
both kept      an evaluation repeated
intervals      both kept, and the 95 % interval of 200 resamples, which pytorch-fid does not have

pytorch-fid 0.3.0 needs SciPy below 1.18; where a newer one is installed, an older one is fetched
with pip for that process alone. Then the distance alone, and the network alone.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytorch_fid.inception as fid_inception
import scipy
import torch
from common import Table, alternate, apart, machine, parser, ratios, spread, wanted, write
from fid_commands import SIZE, BothCommands
from torch import nn

from distill.metrics import frechet
from distill.metrics.features import BATCH, Inception

DIMS, THEIR_BATCH = 2048, 50
COUNTS = (1000, 3000)  # fewer and more pictures than features
INTERVALS = 200  # resamples by default
Runs = dict[str, list[tuple[float, float]]]  # seconds and value of each run


def commands(both: BothCommands, rounds: int) -> Runs:
    """Both commands in turn; each state of our cache follows from the one before."""
    runs = {
        "pytorch-fid": both.theirs,
        "cold": partial(both.ours, 0),
        "one side kept": partial(both.ours, 1),
        "both kept": partial(both.ours, 2),
        "intervals": partial(both.ours, 2, INTERVALS),
    }
    return alternate(runs, rounds, "commands")


def distances(rounds: int, pictures: int) -> Runs:
    """Seconds and value of the distance of two sets of features, by SciPy's root and by ours."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(DIMS, DIMS)) / np.sqrt(DIMS)
    a, b = (np.maximum(rng.normal(s, 1, (pictures, DIMS)) @ mix, 0) for s in (0.0, 0.3))

    def by_root() -> float:
        s, t = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
        gap, root = a.mean(0) - b.mean(0), scipy.linalg.sqrtm(s @ t)
        return float(gap @ gap + np.trace(s) + np.trace(t) - 2 * np.trace(root).real)

    ways = {"SciPy": by_root, "ours": lambda: frechet.frechet_from_features(a, b)}
    timed = {name: lambda run=run: _timed(run) for name, run in ways.items()}
    return alternate(timed, rounds, f"distance of {pictures} pictures a side")


def networks(rounds: int, file: Path) -> dict[str, list[float]]:
    """Milliseconds a picture of the bare network, pytorch-fid's and ours, after a warm-up."""
    state = torch.load(file, weights_only=True)
    with mock.patch.object(fid_inception, "load_state_dict_from_url", return_value=state):
        theirs = fid_inception.InceptionV3([3]).eval()
    ours, pictures = Inception(state), torch.rand(2 * THEIR_BATCH, 3, SIZE, SIZE)

    def form(network: nn.Module, batch: int) -> Callable[[], object]:
        return lambda: [network(part) for part in pictures.split(batch)]

    forms = {f"pytorch-fid, batch {n}": form(theirs, n) for n in (THEIR_BATCH, BATCH)}
    forms |= {f"ours, batch {n}, threads together": form(ours, n) for n in (THEIR_BATCH, BATCH)}
    side_by_side = f"ours, batch {BATCH}, threads side by side"
    forms[side_by_side] = lambda: ours.features(pictures.split(BATCH), len(pictures), "noise")
    timed = {k: lambda f=f: 1000 * _timed(f)[0] / len(pictures) for k, f in forms.items()}
    with torch.inference_mode():
        return {k: v[1:] for k, v in alternate(timed, rounds + 1, "networks").items()}


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = run()
    return time.perf_counter() - begun, result


def tables(figures: dict[str, Any]) -> list[Table]:
    runs, bare = figures["commands"], figures["networks"]
    seconds = {name: [run[0] for run in values] for name, values in runs.items()}
    theirs = seconds["pytorch-fid"]
    rows = [[name, spread(values, 1)] for name, values in seconds.items()]
    for name, least in (("cold", 1.2), ("one side kept", 2.0)):
        rows.append(
            [f"{name} to pytorch-fid, in speed", wanted(ratios(theirs, seconds[name]), least)]
        )
    rows.append(["both kept to pytorch-fid", spread(ratios(theirs, seconds["both kept"]), 2)])
    rows.append(["values of all runs differ by at most", _apart(runs)])
    named = [[name, spread(values, 1)] for name, values in bare.items()]
    columns = ["", "median (range)"]
    return [
        Table("Evaluation, seconds a command", columns, rows),
        *(_distance_table(count, figures[f"distance {count}"]) for count in COUNTS),
        Table("The bare network, milliseconds a picture", columns, named),
    ]


def _distance_table(pictures: int, runs: Runs) -> Table:
    theirs, ours = ([seconds for seconds, _ in runs[name]] for name in ("SciPy", "ours"))
    rows = [["SciPy's root", spread(theirs, 2)], ["ours", spread(ours, 2)]]
    rows += [["ours to SciPy, in speed", wanted(ratios(theirs, ours), 5)]]
    rows += [["values differ by at most", _apart(runs)]]
    title = f"The distance alone, {pictures} pictures a side, {DIMS} features, seconds"
    return Table(title, ["", "median (range)"], rows)


def _apart(runs: Runs) -> str:
    """How far all values lie apart, as a share of their size."""
    values = [value for several in runs.values() for _, value in several]
    share = (max(values) - min(values)) / statistics.median(values)
    return f"{share:.1e} of {statistics.median(values):.4f}"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, default=1000, help="in a folder (%(default)s)")
    args = options.parse_args()
    facts = machine() | {"scipy": scipy.__version__, "pictures a folder": args.pictures}
    with tempfile.TemporaryDirectory() as folder:
        both = BothCommands(Path(folder), args.pictures)
        figures: dict[str, Any] = {"commands": commands(both, args.rounds)}
        figures["networks"] = apart(networks, args.rounds, both.weights)[0]
    for count in COUNTS:
        figures[f"distance {count}"] = apart(distances, args.rounds, count)[0]
    write("fid", args.out, facts, figures, *tables(figures))


if __name__ == "__main__":
    main()
