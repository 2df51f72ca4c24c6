"""How close students come to their teacher on held-out photos, and what each of them costs.

    python benchmarks/fidelity.py --pairs data/pairs/SET NAME=FILE...

Held out is the test side of a set that distill.prepare made, or its val side where it has no other:
it shares no photo, no near-duplicate and no person with the other sides. FILE is a checkpoint of
distill.train, whose own training photos are checked against these, or an ONNX file; @255 behind it
says that its output is in [0, 255].

PSNR, SSIM, PSNR of edges, the checkerboard beyond the teacher's and LPIPS, where its weights are,
are means over the pictures of each folder, and of all. Sets of 1,000 pictures and more are compared
by their Fréchet distance too, FD(T, S) over the same photos; smaller sets by their kernel distance.
`photo` is the identity baseline.

A set made with data.sizes is also scored by whole pictures at each long side: as distill.stylize
runs a student there, and the network alone, beside the photo and the teacher at 256, enlarged.

Ink is what is thin and dark: recall is the share of the teacher's that the student drew within a
pixel, precision the share of the student's that the teacher drew, depth how dark of the teacher's;
mass is the black of all of it and sharpness the absolute Laplacian, both as shares of the
teacher's, and the chamfer distance is how far the lines of the one are from the other's.
Displacement is the largest median shift of any part of the picture. Flicker is the mean change of
the output under noise (sigma 2/255), a step of 1 px and a slow pan, of --flicker photos of each
folder.

Milliseconds are those of all students in turn in one run, batch 1, one thread, with BatchNorm
folded and subnormal weights at zero.

Written are fidelity.json, fidelity.md and fidelity_sheet.png.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from torch import Tensor, nn

from against_teacher import fidelity_report, heldout_set, scored_students
from against_teacher import scores as scoring
from against_teacher.heldout_set import FidelitySet, Indices
from against_teacher.scored_students import ScoredStudent, StudentFile, ToGraph
from against_teacher.scores import PictureFigures
from distill.config import compose, groups
from distill.config.settings.training import Prepare
from distill.core.errors import DistillError, OneLine
from distill.core.files import real_path
from distill.core.images import to_float
from distill.core.progress import bar
from distill.core.sessions import open_session
from distill.data.manifest import is_complete, manifest_at
from distill.eval_fid.heldout import group_of_pair, infer
from distill.eval_fid.line_scores import FLICKER, teacher_of
from distill.eval_fid.paired_scores import features_or_reason
from distill.eval_fid.whole_pictures import Infer, score_sizes
from distill.metrics.features import FeatureName, FeatureNetwork
from distill.models.teachers.teacher import Teacher

TIMINGS, WARM = 200, 10  # rounds timed, and rounds before them
BATCH = 8
SIDE_NOTES = {
    "test": "test: these photos are in no training and chose no checkpoint of this set's runs",
    "val": "val: checkpoints of this set's runs were chosen by these photos",
}
NO_TEACHER = ("teacher", "not at hand, or not the one that labelled the set: no flicker of it")
Row = dict[str, Any]


def run(args: argparse.Namespace, to_graph: ToGraph) -> Row:
    """Score all students and write the report; gives its figures."""
    files = scored_students.parse(args.students)
    network, missing = features_or_reason(args.features)
    facts = fidelity_report.machine() | {"onnxruntime": onnxruntime.__version__}
    held = heldout_set.read(args.pairs, args.limit, args.side)
    with tempfile.TemporaryDirectory() as folder:
        students = [scored_students.load(each, held, Path(folder), to_graph) for each in files]
        cost = costs(students, held)
        shown: dict[str, Tensor] = {}
        on_sheet = held.some(args.sheet)
        teacher, style = None, (manifest_at(held.root) or {}).get("style")
        if args.flicker and style in groups.choices("style"):
            settings = compose.load("prepare", [f"style={style}"], Prepare)
            teacher = teacher_of(held.root, settings.style, settings.teacher)
        at = first_of_each(held, args.flicker)
        measured = measure(students, held, network, at, teacher, shown, on_sheet)
    sizes, skipped = score_sizes_of(files, held, network, args)
    figures: Row = {
        "set": about(held),
        "features": network.title if network else None,
        "rounds": args.rounds,
        "subsets": score(held, measured, network, args.rounds),
        "sizes": sizes,
        "cost": cost,
        "notes": [
            *notes(held, args, network, missing),
            *([] if teacher or not args.flicker else [NO_TEACHER]),
            *((e.name, e.note) for e in students),
            *skipped,
        ],
    }
    facts |= {"set": real_path(args.pairs).name, "held-out pictures": len(held.files)}
    tables = fidelity_report.tables(figures)
    fidelity_report.write("fidelity", args.out, facts, figures, *tables)
    fidelity_report.whole(held, on_sheet, shown, args.out / "fidelity_sheet.png")
    return figures


def costs(students: Sequence[ScoredStudent], held: FidelitySet) -> dict[str, Row]:
    """What each student costs, and its milliseconds to those of the first."""
    timed = interleaved(students, held.photo[:1])
    times = {name: np.array(each) for name, each in timed.items()}
    first = times[students[0].name]
    return {
        each.name: each.cost
        | {"ms": _middle(times[each.name]), "ratio": _middle(times[each.name] / first)}
        for each in students
    }


def _middle(values: NDArray[np.float64]) -> Row:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return {"value": middle, "low": low, "high": high}


def interleaved(students: Sequence[ScoredStudent], photo: Tensor) -> dict[str, list[float]]:
    """Milliseconds of every round, A B C A B C …: what slows the machine slows all of them."""
    sessions = {each.name: open_session(each.graph, 1) for each in students}
    picture = to_float(photo).numpy()
    feeds = {name: {s.get_inputs()[0].name: picture} for name, s in sessions.items()}
    times: dict[str, list[float]] = {name: [] for name in sessions}
    with bar(WARM + TIMINGS, "round", "timing", leave=False) as progress:
        for number in range(WARM + TIMINGS):
            for name, session in sessions.items():
                begun = time.perf_counter()
                session.run(None, feeds[name])
                if number >= WARM:
                    times[name].append(1000 * (time.perf_counter() - begun))
            progress.update()
    return times


def first_of_each(held: FidelitySet, count: int) -> Indices:
    """The first pictures of every folder, `count` of each."""
    return np.sort(np.concatenate([at[:count] for at in held.folders()]))


def score_sizes_of(
    files: Sequence[StudentFile],
    held: FidelitySet,
    network: FeatureNetwork | None,
    args: argparse.Namespace,
) -> tuple[Row, list[tuple[str, str]]]:
    """Figures of the set's whole pictures by long side, and which students have none, and why."""
    networks: dict[str, Infer] = {}
    skipped: list[tuple[str, str]] = []
    for each in files if held.wholes else ():
        try:
            networks |= scored_students.at_any_size(each)
        except DistillError as error:
            skipped.append((each.name, f"no figures by size: {error}"))
    found = score_sizes(
        held.wholes, networks, network, group_of_pair, args.rounds, flickering=args.flicker
    )
    return found, skipped


def measure(
    students: Sequence[ScoredStudent],
    held: FidelitySet,
    network: FeatureNetwork | None,
    flickering: Indices,
    teacher: Teacher | None,
    shown: dict[str, Tensor],
    on_sheet: list[int],
) -> dict[str, PictureFigures]:
    """Figures of the teacher, the photo and every student; one student's pictures at a time.

    Flicker of the photos `flickering`. `shown` receives each student's pictures `on_sheet`.
    """
    by = scoring.measures()

    def figures(name: str, output: Tensor, drawing: nn.Module | None) -> PictureFigures:
        found = scoring.measure(held, output, by, network, name)
        if drawing is not None:
            found.values.update(scoring.flickering(drawing, held, flickering, name))
        return found

    measured = {
        "teacher": figures("teacher", held.teacher, teacher),
        "photo": figures("photo", held.photo, nn.Identity()),
    }
    for each in students:
        output = infer(each.network, held.photo, BATCH, f"inference of {each.name}")
        shown[each.name] = output[on_sheet]
        measured[each.name] = figures(each.name, output, each.network)
    return measured


def score(
    held: FidelitySet,
    measured: Mapping[str, PictureFigures],
    network: FeatureNetwork | None,
    rounds: int,
) -> dict[str, Row]:
    """Every figure of every student, subset by subset; leads are over the first student."""
    teacher = measured["teacher"]
    groups = held.groups
    names = [name for name in measured if name != "teacher"]
    first, subsets = names[1], held.subsets()
    flickers = [name for name in FLICKER if name in teacher.values]
    results: dict[str, Row] = {subset: {"pictures": len(at)} for subset, at in subsets.items()}
    with bar(len(subsets) * len(names), "score", "scoring", leave=False) as progress:
        for subset, at in subsets.items():
            scores = results[subset]["scores"] = {}
            for name in names:
                scores[name] = scoring.score(at, measured[name], teacher, network, rounds, groups)
                if name not in ("photo", first):
                    ahead = scoring.lead(at, measured[name], measured[first], rounds, groups)
                    scores[name][f"PSNR above {first} (dB)"] = ahead
                progress.update()
            own = {
                name: scoring.mean(teacher.values[name][at], rounds, groups[at])
                for name in flickers
            }
            if any(own.values()):
                scores["teacher"] = {name: row for name, row in own.items() if row}
    return results


def about(held: FidelitySet) -> Row:
    """The set in words that hold on every machine."""
    manifest = manifest_at(held.root) or {}
    made = ("style", "teacher", "size", "crop")
    split = ("val_fraction", "test_fraction", "seed", "folders", "val_folders")
    persons = {name: len({held.who[i] for i in at}) for name, at in held.subsets().items()}
    said = {key: manifest.get(key) for key in (*made, *split)}
    name = {"name": real_path(held.root).name, "side": held.side}
    return name | {"persons": persons} | said


def notes(
    held: FidelitySet, args: argparse.Namespace, network: FeatureNetwork | None, missing: str
) -> list[tuple[str, str]]:
    """What a reader must know besides the figures."""
    said = [
        ("side", SIDE_NOTES[held.side]),
        (
            "intervals",
            f"95 %, {args.rounds} resamples of persons (of pictures that show none: each one)",
        ),
        ("parameters", "trained values of a checkpoint, BatchNorm's too; those in an ONNX file"),
    ]
    if "LPIPS" not in scoring.measures():
        said.append(("LPIPS", "missing: AlexNet's weights are not at hand"))
    if network:
        said.append(("features", f"{network.title}; {network.resize}"))
    if missing:
        said.append(("features", f"missing: {missing}"))
    if args.limit:
        said.append(("limit", f"only the first {args.limit} pictures of every folder"))
    if not is_complete(held.root):
        said.append(("set", "still being labelled: these are the pairs that were there"))
    return said


def options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("students", nargs="+", metavar="NAME=FILE", help="the first is the baseline")
    made.add_argument("--pairs", type=Path, required=True, help="a set of distill.prepare")
    made.add_argument("--features", choices=get_args(FeatureName), default="mobilenet")
    made.add_argument(
        "--side", choices=tuple(SIDE_NOTES), help="held-out side (test where there is one)"
    )
    made.add_argument("--limit", type=_positive, help="pictures of each folder at most")
    made.add_argument(
        "--flicker", type=_count, default=8,
        help="photos for it, of each folder and of each long side (%(default)s)",
    )  # fmt: skip
    made.add_argument("--sheet", type=_positive, default=8, help="rows of pictures (%(default)s)")
    made.add_argument("--rounds", type=int, default=200, help="resamples; 0: none (%(default)s)")
    made.add_argument(
        "--out", type=Path, default=Path("runs/benchmarks"), help="folder of reports (%(default)s)"
    )
    return made


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return int(text)


def _count(text: str) -> int:
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f"{text}: 0 or more")
    return int(text)


def main(to_graph: ToGraph) -> None:
    """The command line; `to_graph` exports checkpoints, for which this package has no exporter."""
    args = options().parse_args()
    with OneLine():
        if args.rounds < 0:
            raise DistillError(f"--rounds {args.rounds}: 0 or more")
        run(args, to_graph)
