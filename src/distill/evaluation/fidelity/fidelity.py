"""How close students come to their teacher on held-out photos, and what each of them costs.

    python benchmarks/fidelity.py --pairs data/pairs/SET NAME=FILE...

Held out is the test side of a set that distill.prepare made, or its val side where it has no other:
it shares no photo, no near-duplicate and no person with the other sides. FILE is a checkpoint of
distill.train, whose own training photos are checked against these, or an ONNX file; @255 behind it
says that its output is in [0, 255].

PSNR, SSIM, PSNR of edges, the checkerboard beyond the teacher's, LPIPS where its weights are, and
PSNR of the face are means over the pictures of each folder, and of all. Sets of 1,000 pictures and
more are compared by their Fréchet distance too: FD(T, S) over the same photos, and the gap |FD(T,
T') - FD(T, S)| with T of one half of the photos, T' and S of the other; smaller sets by their
kernel distance. `photo` is the photo left as it is.

Ink is what is thin and dark: recall is the share of the teacher's that the student drew within a
pixel, precision the share of the student's that the teacher drew, depth how dark of the teacher's.
Displacement is the largest median shift of any part of the picture. Flicker is the mean change of
the output under noise (sigma 2/255), a step of 1 px and a slow pan, of --flicker photos of each
folder. With --views N the teacher draws shifts, zooms and random crops of N photos of each folder
(its pictures are kept): PSNR off-centre, and how much that is above the PSNR of the same photos as
they are.

Milliseconds are those of all students in turn
in one run, batch 1, one thread, with BatchNorm folded and subnormal weights at zero.

Written are fidelity.json and .md, and as .png fidelity_pareto, fidelity_sheet and fidelity_zoom.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from torch import Tensor, nn

from distill.core.errors import DistillError, OneLine
from distill.core.files import real_path
from distill.core.images import to_float
from distill.core.progress import bar
from distill.core.sessions import open_session
from distill.data.faces import DETECTOR
from distill.data.labelled.manifest import is_complete, manifest_at
from distill.evaluation.drawing_scores import FLICKER
from distill.evaluation.fidelity import fidelity_report, heldout_set, scored_students
from distill.evaluation.fidelity import scores as scoring
from distill.evaluation.fidelity.heldout_set import FidelitySet, Indices
from distill.evaluation.fidelity.scored_students import ScoredStudent, ToGraph
from distill.evaluation.fidelity.scores import PictureFigures
from distill.evaluation.fidelity.views import KINDS, Views, drawn, first_of_each
from distill.evaluation.heldout import infer
from distill.evaluation.paired_scores import features_or_reason
from distill.evaluation.set_teacher import style_teacher
from distill.metrics.features import FeatureNetwork
from distill.models.teachers.teacher import Teacher

TIMINGS, WARM = 200, 10  # rounds timed, and rounds before them
BATCH = 8
SIDE_NOTES = {
    "test": "test: these photos are in no training and chose no checkpoint of this set's runs",
    "val": "val: checkpoints of this set's runs were chosen by these photos",
}
Row = dict[str, Any]


def run(args: argparse.Namespace, to_graph: ToGraph) -> Row:
    """Score all students and write the report; gives its figures."""
    files = scored_students.parse(args.students)
    network, missing = features_or_reason(args.features)
    facts = fidelity_report.machine() | {"onnxruntime": onnxruntime.__version__}
    faces = args.out / "fidelity_faces.json"
    held = heldout_set.read(args.pairs, args.limit, faces, args.side)
    with tempfile.TemporaryDirectory() as folder:
        students = [scored_students.load(each, held, Path(folder), to_graph) for each in files]
        cost = costs(students, held)
        shown = SheetPictures(held, args.sheet)
        more = further(held, args)
        measured = measure(students, held, network, shown, more)
    figures: Row = {
        "set": about(held),
        "features": network.title if network else None,
        "rounds": args.rounds,
        "subsets": score(held, measured, network, args.rounds),
        "cost": cost,
        "notes": [
            *notes(held, args, network, missing),
            *more.notes,
            *((e.name, e.note) for e in students),
        ],
    }
    facts |= {"set": real_path(args.pairs).name, "held-out pictures": len(held.files)}
    tables = fidelity_report.tables(figures)
    fidelity_report.write("fidelity", args.out, facts, figures, *tables)
    fidelity_report.plot(figures, args.out / "fidelity_pareto.png")
    shown.write(args.out)
    return figures


class SheetPictures:
    """The pictures that go onto the sheets: a few of every subset, and a few with a face."""

    def __init__(self, held: FidelitySet, count: int) -> None:
        self.held = held
        self.at, self.faces = held.some(count), held.some(count, faces=True)
        self._outputs: dict[str, Tensor] = {}
        self._faces: dict[str, Tensor] = {}

    def add(self, name: str, output: Tensor) -> None:
        self._outputs[name], self._faces[name] = output[self.at], output[self.faces]

    def write(self, out: Path) -> None:
        if self.at:
            fidelity_report.whole(self.held, self.at, self._outputs, out / "fidelity_sheet.png")
        if self.faces:
            fidelity_report.zoomed(self.held, self.faces, self._faces, out / "fidelity_zoom.png")


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


@dataclass(frozen=True)
class Further:
    """What is asked of networks beyond the set's pictures: flicker of the photos `at`, and views.

    `teacher` is None where it is not at hand; then there are no views either.
    """

    at: Indices
    views: Views | None
    teacher: Teacher | None
    notes: list[tuple[str, str]]


def further(held: FidelitySet, args: argparse.Namespace) -> Further:
    """The photos that flicker is measured on, and the views that the teacher has drawn."""
    teacher = style_teacher(held.root) if args.views or args.flicker else None
    if teacher is None and (args.views or args.flicker):
        said = [("teacher", "not at hand, or not the one that drew the set: no views, no flicker")]
        return Further(first_of_each(held, args.flicker), None, None, said)
    kept = args.out / "fidelity_views"
    views = drawn(held, args.views, teacher, kept) if teacher and args.views else None
    said = [("off-centre", f"{args.views} photos of each folder: {', '.join(KINDS)}")]
    return Further(first_of_each(held, args.flicker), views, teacher, said if views else [])


def measure(
    students: Sequence[ScoredStudent],
    held: FidelitySet,
    network: FeatureNetwork | None,
    shown: SheetPictures,
    more: Further,
) -> dict[str, PictureFigures]:
    """Figures of the teacher, the photo and every student; one student's pictures at a time."""
    by = scoring.measures()

    def figures(name: str, output: Tensor, drawing: nn.Module | None) -> PictureFigures:
        found = scoring.measure(held, output, by, network, name)
        if drawing is not None:
            found.values.update(scoring.flickering(drawing, held, more.at, name))
            if more.views and name != "teacher":
                centre = found.values[scoring.PSNR]
                found.values.update(scoring.off_centre(drawing, more.views, centre, name))
        return found

    measured = {
        "teacher": figures("teacher", held.teacher, more.teacher),
        "photo": figures("photo", held.photo, nn.Identity()),
    }
    for each in students:
        output = infer(each.network, held.photo, BATCH, f"inference of {each.name}")
        shown.add(each.name, output)
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
    faces = sum(box is not None for box in held.boxes)
    said = {key: manifest.get(key) for key in (*made, *split)}
    name = {"name": real_path(held.root).name, "side": held.side}
    return name | {"persons": persons, "with a face": faces} | said


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
        ("faces", f"largest box of the {DETECTOR}, found on the photos"),
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
    made.add_argument("--features", choices=("mobilenet", "inception", "none"), default="mobilenet")
    made.add_argument(
        "--side", choices=tuple(SIDE_NOTES), help="held-out side (test where there is one)"
    )
    made.add_argument("--limit", type=_positive, help="pictures of each folder at most")
    made.add_argument(
        "--flicker", type=_count, default=8, help="photos of each folder for it (%(default)s)"
    )
    made.add_argument(
        "--views", type=_count, default=0,
        help="photos of each folder whose views the teacher draws, 8 each (%(default)s)",
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
