"""Make the students that come with the package: train, export, score, write the card.

    make zoo PHOTOS=DIR STYLES="hayao whitebox toon"
    python tools/zoo.py STYLE... --photos DIR,DIR [KEY=VALUE...]

Of each style a run zoo-STYLE-ink is trained (or goes on where it was stopped), then zoo-STYLE,
which starts from it with another loss. That one is exported, scored on the held-out photos by
benchmarks/fidelity.py, and put into src/distill/models/zoo/ (or --to DIR) as
STYLE.onnx (of one with global_statistics also STYLE-256.onnx), with STYLE.json and STYLE.md, which
say what it was made from and how good it is, and STYLE.jpg, samples of its output. KEY=VALUE go
to distill.train.

A style that is computed, without weights, has one run, zoo-STYLE, of student=small at real sizes,
from noise or from init=FILE, and the file of every size alone. Its student may be used for what its
photos may be used for: say their terms, card.licence=TEXT, when distill.prepare labels them.

A style picture of the package (distill_picture/pictures) has one run of recipe=picture, zoo-NAME,
and a file of 256²; distill.eval_fid scores it. Its photos' terms: licence.pictures=TEXT.

What a student still does worse than its teacher is written by hand, after looking, into
tools/zoo_notes.yaml; the same command then only writes the card anew.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import card
import yaml
from PIL import Image

from distill.config import compose, groups
from distill.config.registry import schema_of
from distill.config.settings.training import Train
from distill.core.errors import DistillError, OneLine
from distill.data.kinds import chosen
from distill.models.zoo import STATIC
from distill_picture.style_pictures import OURS

ROOT = Path(__file__).resolve().parents[1]
ZOO = ROOT / "src/distill/models/zoo"
NOTES = Path(__file__).with_name("zoo_notes.yaml")
LARGEST_SHEET = 300_000  # bytes
FIXED = f"export{STATIC}"  # folder of a run with the file of 256²
# What every shipped student has in common; the rest are the defaults of distill.train.
COMMON = ["decoder=detail", "crop=0.8", "data.test_fraction=0.15", "style_backbone=vgg19_relu3_1"]
INK = ["run=zoo-${style.name}-ink", "loss=ink", "lr=3e-3", "data.crop_size=224"]
STEPS = 9450  # of 16 pictures: 151,200 in all
# What is slow to compute or to learn from comes at the end, on whole pictures: features,
# steadiness, and the steps between pixels, which take out the grid that the first run leaves.
START = "loss.start={differences:0,features:0,stable:0}"
FINISH = ["run=zoo-${style.name}", "loss=draw", START, "lr=5e-4"]

# The loss of each computed style, by what its pictures have: black lines, grey ones, or none.
COMPUTED = {
    "comic": "black", "toon": "black", "pencil": "ink", "crayons": "ink", "ink": "clean",
    "neon": "clean", "oil": "clean", "poster": "clean", "screenprint": "clean",
    "watercolour": "clean",
}  # fmt: skip
# Without the noise that no student learns, and what that leaves stronger.
LEARNABLE = {
    "oil": ["teacher.bristles=0"],
    "crayons": ["teacher.hatching=0"],
    "pencil": ["teacher.hatching=0"],
    "watercolour": ["teacher.pools=0", "teacher.grain=0", "teacher.edges=14", "teacher.washes=4"],
}
AT_SIZES = [
    "run=zoo-${style.name}", "student=small", "encoder.weights=none", "data=sizes",
    "data.sizes=[512,768,1024]", "data.crop_size=256", "data.batch_size=8",
    "data.val_fraction=0.05", "data.test_fraction=0.09", "global_statistics=thumbnail",
    "ema=0.998", "lr=2e-3", "trainer.max_steps=5000", "loss.weights.differences=2",
]  # fmt: skip


def make_picture(style: str, overrides: list[str], args: argparse.Namespace) -> None:
    """The same of a style picture."""
    listed = ",".join(f"'{folder}'" for folder in args.photos.split(","))
    words = ["recipe=picture", f"style_image={style}", f"photos=[{listed}]", f"run=zoo-{style}"]
    settings = train([*words, "trainer.max_steps=2500", *overrides])
    ship_picture(Path(settings.runs) / settings.run, args.to)


def ship_picture(run: Path, to: Path) -> None:
    """A run of recipe=picture, exported and scored, into the folder `to`."""
    words = [f"run={run.name}", f"runs={run.parent}", "checkpoint=last"]
    command("-m", "distill.export", *words)
    if not (run / "eval/results.json").is_file():
        command("-m", "distill.eval_fid", *words, "features=none")
    student, speed = run / "export/student.onnx", run / "speed"
    timing = ["sizes=[256]", "threads=[1]", "with_teacher=false", f"output={speed}"]
    command("-m", "distill.benchmark", f"model={student}", *timing)
    scores = json.loads((run / "eval/results.json").read_text())
    speeds = json.loads((speed / "speed.json").read_text())
    notes = yaml.safe_load(NOTES.read_text()) or {}
    facts = card.picture_facts(run, scores, speeds, notes)
    put(facts, card.picture_page(facts), card.picture_sheet(run, facts), student, to)


def make(style: str, overrides: list[str], args: argparse.Namespace) -> None:
    """One student from photos to its card, each step by the command that users have."""
    listed = ",".join(f"'{folder}'" for folder in args.photos.split(","))
    common = [f"style={style}", f"photos=[{listed}]"]
    if style in COMPUTED:
        own = [f"loss={COMPUTED[style]}", *LEARNABLE.get(style, [])]
        settings = train([*common, *AT_SIZES, *own, *overrides])
    else:
        common += [*COMMON, f"trainer.max_steps={STEPS}"]
        first = train([*common, *overrides, *INK])
        init = Path(first.runs) / first.run / "checkpoints/last.ckpt"
        settings = train(
            [*common, *overrides, f"init='{init}'", *FINISH, f"trainer.max_steps={args.finish}"]
        )
    name, run = settings.style.name, Path(settings.runs) / settings.run
    # Not the best by validation: a short last stage ends with its averaged weights.
    export = ["-m", "distill.export", f"run={settings.run}", f"runs={settings.runs}"]
    export.append("checkpoint=last")
    scores, pairs = run / "fidelity", chosen.pairs_root(settings)
    students = [args.baseline] if args.baseline else []
    students.append(f"{name}={run / 'export/student.onnx'}")
    if settings.global_statistics == "thumbnail":
        # One file of every size, and one of 256² that needs no pass of its own for the thumbnail.
        command(*export, "exporter.dynamic=true")
        if style not in COMPUTED:
            command(*export, f"output={run / FIXED}")
            students.append(f"{name}{STATIC}={run / FIXED / 'student.onnx'}")
    else:
        command(*export)
    if not scored(scores / "fidelity.json", run, [text.partition("=")[0] for text in students]):
        fidelity = str(ROOT / "benchmarks/fidelity.py")
        where = ("--pairs", str(pairs), "--out", str(scores))
        command(fidelity, *where, *students)
    ship(name, args.to, run, pairs, scores / "fidelity.json", args.baseline)


def train(typed: list[str]) -> Train:
    """A run, or what is left of it; gives its settings."""
    settings = compose.load("train", typed, schema_of)
    assert isinstance(settings, Train)
    command("-m", "distill.train", *typed)
    return settings


def scored(file: Path, run: Path, students: list[str]) -> bool:
    """Whether `file` holds these students, of the run as it is: then a new note costs seconds."""
    trained = (run / "checkpoints/last.ckpt").stat().st_mtime
    if not file.is_file() or file.stat().st_mtime < trained:
        return False
    return list(json.loads(file.read_text())["figures"]["cost"]) == students


def command(*words: str) -> None:
    """Run a command of this project; its exit status, when not 0, is ours."""
    done = subprocess.run([sys.executable, *words], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def ship(style: str, to: Path, run: Path, pairs: Path, scores: Path, baseline: str | None) -> None:
    """The student and its card into the folder `to`."""
    student = run / "export/student.onnx"
    notes = (yaml.safe_load(NOTES.read_text()) or {}).get(style)
    if not notes:
        print(f"{NOTES.name}: nothing about {style} yet; see {scores.parent} and write it")
    facts = card.facts(
        style, run, pairs, json.loads(scores.read_text())["figures"], notes or "Not looked at."
    )
    facts["use"] = f"style={style}" if to == ZOO else f"model={to / style}.onnx"
    put(facts, card.page(facts), card.sheet_of(run, facts, baseline), student, to)
    (to / f"{style}{STATIC}.onnx").unlink(missing_ok=True)
    if (fixed := run / FIXED / "student.onnx").is_file():
        shutil.copy(fixed, to / f"{style}{STATIC}.onnx")


def put(facts: card.Facts, page: str, samples: Image.Image, student: Path, to: Path) -> None:
    """The four files of a student."""
    to.mkdir(parents=True, exist_ok=True)
    base = to / facts["style"]
    shutil.copy(student, base.with_suffix(".onnx"))
    base.with_suffix(".json").write_text(json.dumps(card.rounded(facts), indent=0) + "\n")
    base.with_suffix(".md").write_text(page)
    for quality in (88, 80, 72, 64, 56):
        samples.save(base.with_suffix(".jpg"), quality=quality)
        if base.with_suffix(".jpg").stat().st_size <= LARGEST_SHEET:
            break
    print(f"shipped: {base}.onnx (.json, .md, .jpg)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="+", metavar="STYLE", help="styles, and KEY=VALUE")
    parser.add_argument("--photos", required=True, metavar="DIR,DIR", help="folders of photos")
    parser.add_argument("--finish", type=int, default=600, help="steps at the end (%(default)s)")
    parser.add_argument("--to", type=Path, default=ZOO, help="folder (the package's own)")
    parser.add_argument("--baseline", metavar="NAME=FILE", help="a student to compare with")
    args = parser.parse_intermixed_args()
    overrides = [word for word in args.words if "=" in word]
    with OneLine():
        styles = [word for word in args.words if "=" not in word]
        known = [*groups.choices("style"), *sorted(OURS)]
        if unknown := sorted({*styles} - {*known}):
            raise DistillError(f"{unknown[0]}: no style; there are {', '.join(known)}")
        for style in styles:
            (make_picture if style in OURS else make)(style, overrides, args)


if __name__ == "__main__":
    main()
