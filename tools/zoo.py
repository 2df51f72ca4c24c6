"""Make the students that come with the package: train, export, score, write the card.

    make zoo PHOTOS=DIR STYLES="hayao whitebox toon"
    python tools/zoo.py NAME... --photos DIR,DIR [KEY=VALUE...]

campaigns/zoo/NAME.yaml has the stages of a student, each a run of distill.train that starts from
the one before, zoo-NAME-1, zoo-NAME-2 and so on, or the mean of the weights of two. A style
without one is made by network.yaml, computed.yaml (a style without weights) or picture.yaml (a
style picture of the package); `faces` of the live page's drawing mode learns from sketches that
distill.prepare makes first. Typed again, the command goes on where it was stopped. --steps 0.01
rehearses with a hundredth of the steps. Where the recipe lists its photos
(campaigns/zoo/photos.txt), others of DIR are left out; where DIR has none of these, all are taken.

The last run is exported, scored on the held-out photos by benchmarks/fidelity.py, and put into
src/distill/models/zoo/ (or --to DIR) as NAME.onnx (of one with global_statistics and a network as
teacher also NAME-256.onnx), with NAME.json and NAME.md, which say what it was made from and how
good it is, and NAME.jpg, samples of its output. A run of recipe=picture is scored by
distill.eval_fid. KEY=VALUE go to every distill.train.

A student may be used for what its photos may be used for: say their terms, card.licence=TEXT, when
distill.prepare labels them, or licence.pictures=TEXT.

What a student still does worse than its teacher is written by hand, after looking, into
tools/zoo_notes.yaml; the same command then only writes the card anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import card
import torch
import yaml
from PIL import Image

from distill.config import compose, groups
from distill.config.registry import schema_of
from distill.config.settings.training import Train
from distill.core.arrays import to_picture
from distill.core.errors import DistillError, OneLine
from distill.core.images import sheet, to_tensor
from distill.data.kinds import registry
from distill.data.photos import centre_square, find_all, read_photo
from distill.metrics import frechet
from distill.metrics.features import feature_network
from distill.models.zoo import STATIC
from distill.stylize.render import stylise_rgb
from distill.stylize.stylizing import open_student
from distill_picture.style_pictures import OURS

ROOT = Path(__file__).resolve().parents[1]
ZOO = ROOT / "src/distill/models/zoo"
SKETCHES = ROOT / "src/distill_lens/sketches"
NOTES = Path(__file__).with_name("zoo_notes.yaml")
LARGEST_SHEET = 300_000  # bytes
FIXED = f"export{STATIC}"  # folder of a run with the file of 256²
RECIPES = ROOT / "campaigns/zoo"
COMPUTED = {each.stem for each in (ROOT / "src/distill_drawings/conf/style").glob("*.yaml")}
DIGITS = 12  # of a photo's SHA-256 in a list
LAST = "checkpoints/last.ckpt"


@dataclass(frozen=True)
class Recipe:
    """campaigns/zoo/NAME.yaml.

    `stages` are words of distill.train, `{mean: [1, 2]}`, the mean of the weights of two stages
    before, or `{prune: [WORDS]}`, the one before made narrower by tools/prune.py; `words` go to
    each training. `start` is the stage of another student whose weights the first begins with.
    `photos` and `test` are lists of photos.txt: what it learnt from and was scored on, and, where
    only that is known, what it was scored on. `sketches` are words of distill.prepare
    recipe=pix2pix: a sketch of every photo by each, all in one set. `domains` are four lists of
    photos.txt: photos to translate, those that show what to, and of both those held out; the stages
    make a generator, from which the student of the words `student` learns.
    """

    name: str
    words: Sequence[str]
    stages: Sequence[Any]
    start: dict[str, Any] | None = None
    photos: str | None = None
    test: str | None = None
    sketches: Sequence[Sequence[str]] = ()
    domains: Sequence[str] = ()
    student: Sequence[str] = ()


def recipe(name: str) -> Recipe:
    """The recipe of a student, else of a style or style picture. Raises DistillError."""
    file, styles = RECIPES / f"{name}.yaml", {*groups.choices("style"), *OURS}
    if not file.is_file():
        if name not in styles:
            known = ", ".join(sorted({each.stem for each in RECIPES.glob("*.yaml")} | styles))
            raise DistillError(f"{name}: no student or style; there are {known}")
        kind = "picture" if name in OURS else "computed" if name in COMPUTED else "network"
        file = RECIPES / f"{kind}.yaml"
    return Recipe(name, **yaml.safe_load(file.read_text().replace("${NAME}", name)))


def listed(name: str) -> set[str]:
    """The hashes of a list of photos.txt: the first digits of the SHA-256 of each file."""
    lists = yaml.safe_load((RECIPES / "photos.txt").read_text())
    return set(lists[name].split())


def others(folders: Sequence[Path], wanted: set[str]) -> list[str]:
    """The photos of the folders that are not among those wanted; none where no wanted one is."""
    found = {
        photo.key: hashlib.sha256(photo.local.read_bytes()).hexdigest()[:DIGITS]
        for photo in find_all(folders, [])
    }
    there = wanted & {*found.values()}
    more = len(found) - len(there)
    print(f"photos: {len(there)} of the recipe's {len(wanted)}, besides them {more}")
    return [key for key, digest in found.items() if digest not in wanted] if there else []


def ship_picture(run: Path, to: Path) -> None:
    """A run of recipe=picture, exported for any size and scored, into the folder `to`."""
    words = [f"run={run.name}", f"runs={run.parent}", "checkpoint=last"]
    # Steep strokes amplify the rounding of float32; 3e-4 are .08 of 255 levels.
    form = ["exporter.dynamic=true", "exporter.size=256", "parity=3e-4"]
    command("-m", "distill.export", *words, *form)
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


def distilled(this: Recipe, generator: Path, photos: list[str], overrides: list[str]) -> Path:
    """The run of the student that learns from a generator, whose weights it begins with."""
    words = [f"run={generator.name}", f"runs={generator.parent}", "checkpoint=last"]
    command("-m", "distill.export", *words)
    own = [f"teacher.path={generator}", f"init={generator / 'export/generator.onnx'}"]
    settings = train([*photos, *this.student, *own, f"run=zoo-{this.name}", *overrides])
    return Path(settings.runs) / settings.run


def ship_translation(this: Recipe, run: Path, folders: Sequence[Path], to: Path) -> None:
    """A student of a generator of recipe=cyclegan, in a file of any size."""
    words = [f"run={run.name}", f"runs={run.parent}", "checkpoint=last"]
    command("-m", "distill.export", *words, "exporter.dynamic=true", "exporter.size=256")
    student, speed = run / "export/student.onnx", run / "speed"
    timing = ["sizes=[256]", "threads=[1]", "with_teacher=false", f"output={speed}"]
    command("-m", "distill.benchmark", f"model={student}", *timing)
    (timed,) = json.loads((speed / "speed.json").read_text())["rows"]
    notes, network = yaml.safe_load(NOTES.read_text()), open_student(student)
    day, evening = (squares_of(folders, listed(name)) for name in this.domains[2:])
    drawn = [stylise_rgb(photo, network) for photo in day]
    sides = {"output": drawn, "photo": day}
    facts = card.translation_facts(this.name, run, timed, notes)
    facts["held out"] = {"photo": len(day), "target": len(evening)}
    facts["distances"] = {key: distances(side, evening) for key, side in sides.items()}
    assert this.test
    shown = [to_tensor(photo) for photo in squares_of(folders, listed(this.test), 352)]
    drawings = [to_tensor(stylise_rgb(to_picture(each.numpy()), network)) for each in shown]
    pairs = [*zip(shown, drawings, strict=True)]
    rows = [(*one, *two) for one, two in zip(pairs[::2], pairs[1::2], strict=True)]
    put(facts, card.translation_page(facts), sheet(rows, ("photo", this.name) * 2), student, to)


def distances(pictures: list[Image.Image], target: list[Image.Image]) -> dict[str, dict[str, Any]]:
    """Fréchet and kernel distance by MobileNetV2 and by the mean colours of 4×4 parts."""
    network = feature_network("mobilenet")
    sides = [torch.stack([*map(to_tensor, side)]) for side in (pictures, target)]
    found: dict[str, dict[str, Any]] = {}
    for name in ("MobileNetV2", "colours"):
        if name == "colours":
            a, b = (torch.nn.functional.adaptive_avg_pool2d(x, 4).flatten(1).numpy() for x in sides)
        else:
            assert network is not None
            a, b = (network.features([x], len(x), "pictures") for x in sides)
        near = {"value": frechet.frechet_from_features(a, b)}
        found[f"Fréchet, {name}"] = near | {"interval": frechet.frechet_interval(a, b, 200)}
        kernel = {"value": 1000 * frechet.kid(a, b)}
        interval = [1000 * each for each in frechet.kid_interval(a, b, 200)]
        found[f"kernel ×1000, {name}"] = kernel | {"interval": interval}
    return found


def squares_of(folders: Sequence[Path], wanted: set[str], size: int = 256) -> list[Image.Image]:
    """The centre squares of the photos with these hashes."""
    return [
        centre_square(read_photo(photo.path), size)
        for photo in find_all(folders, [])
        if hashlib.sha256(photo.local.read_bytes()).hexdigest()[:DIGITS] in wanted
    ]


def ship_sketches(name: str, run: Path, to: Path) -> None:
    """A run of recipe=pix2pix in half precision, scored, with samples of its test pictures."""
    words = [f"run={run.name}", f"runs={run.parent}", "checkpoint=last"]
    command("-m", "distill.export", *words, "formats=[onnx,onnx_fp16]")
    command("-m", "distill.eval_fid", *words, "features=none")
    report = json.loads((run / "export/report.json").read_text())
    scores = json.loads((run / "eval/results.json").read_text())
    export = {row["name"]: row["value"] for row in report["generator"]}
    similarity = {key: row["value"] for key, row in scores["similarity"].items()}
    kinds = ("PSNR (dB), generator", "SSIM, generator", "PSNR (dB), input")
    db, ssim, sketch = (f"{similarity[f'{kind} to target']:.3g}" for kind in kinds)
    terms, notes = report["terms"]["text"], (yaml.safe_load(NOTES.read_text()) or {})
    facts = {"style": name, "export": export, "scores": similarity, "terms": terms}
    page = f"""# {name}

![sketch, output and photo, side by side]({name}.jpg)

`python -m distill.lens`, Sketch

## What it is made from

campaigns/zoo/{name}.yaml, by `make zoo STYLES={name}`

## Terms

{card.INHERITED.format(terms)}

## How good it is

{scores["pictures"]} sketches of persons it has not seen, to their photos: {db} dB, SSIM {ssim}
(the sketches: {sketch} dB).

## What it costs

{export["MACs"]:,} MACs, {export["parameters"]:,} parameters

## What still differs

{notes.get(name, "Not looked at.").strip()}
"""
    samples = Image.open(run / "eval/contact_sheet.png").convert("RGB")
    half = run / "export/generator_fp16.onnx"
    put(facts, page, samples, half, SKETCHES if to == ZOO else to)


def make(name: str, overrides: list[str], args: argparse.Namespace) -> None:
    """One student from photos to its card, each step by the command that users have."""
    this = recipe(name)
    settings, run = stages(this, overrides, args)
    if this.sketches:
        ship_sketches(name, run, args.to)
        return
    if not (RECIPES / f"{name}.yaml").is_file():
        name = settings.style.name
    if this.domains:
        folders = [Path(each) for each in args.photos.split(",")]
        student = distilled(this, run, chosen_photos(this, folders), overrides)
        ship_translation(this, student, folders, args.to)
        return
    if settings.recipe == "picture":
        ship_picture(run, args.to)
        return
    # Not the best by validation: a short last stage ends with its averaged weights.
    export = ["-m", "distill.export", f"run={run.name}", f"runs={run.parent}", "checkpoint=last"]
    scores, pairs = run / "fidelity", registry.data_source(settings).folder
    students = [args.baseline] if args.baseline else []
    students.append(f"{name}={run / 'export/student.onnx'}")
    if settings.global_statistics == "thumbnail":
        # One file of every size, and one of 256² that needs no pass of its own for the thumbnail.
        command(*export, "exporter.dynamic=true")
        if settings.style.name not in COMPUTED:
            command(*export, f"output={run / FIXED}")
            students.append(f"{name}{STATIC}={run / FIXED / 'student.onnx'}")
    else:
        command(*export)
    if not scored(scores / "fidelity.json", run, [text.partition("=")[0] for text in students]):
        fidelity = str(ROOT / "benchmarks/fidelity.py")
        command(fidelity, "--pairs", str(pairs), "--out", str(scores), *students)
    ship(name, args.to, run, pairs, scores / "fidelity.json", args.baseline)


def stages(
    this: Recipe, overrides: list[str], args: argparse.Namespace, last: int | None = None
) -> tuple[Train, Path]:
    """All runs of a recipe, or those up to stage `last`: the settings of the last one's training
    and its folder."""
    runs: list[Path] = []
    start: Path | None = None
    folders = [Path(folder) for folder in args.photos.split(",")]
    photos = chosen_photos(this, folders)
    if this.sketches:
        photos = [f"data.root={sketch_set(this, photos)}"]
    if this.domains:
        photos = [f"data.root={domain_set(this, folders)}"]
    words = [*photos, *this.words]
    if this.test:
        others(folders, listed(this.test))  # says how many of its test photos are there
    if this.start:
        from_, stage = recipe(this.start["student"]), this.start["stage"]
        start = stages(from_, overrides, args, stage)[1]
    for number, stage in enumerate(this.stages[:last], 1):
        if "mean" in stage:
            runs.append(mean([runs[each - 1] for each in stage["mean"]], number))
            continue
        if "prune" in stage:
            file = runs[-1].with_name(f"zoo-{this.name}-{number}.safetensors")
            if not file.exists():
                tool, student = str(ROOT / "tools/prune.py"), str(runs[-1] / LAST)
                command(tool, student, str(file), "--photos", args.photos, *stage["prune"])
            runs.append(file)
            continue
        init = runs[-1] if runs else start
        if init and not init.suffix:
            init /= LAST
        typed = [*words, *stage, *([f"init='{init}'"] if init else []), *overrides]
        every = {word.partition("=")[0]: word for word in typed}
        steps = int(every["trainer.max_steps"].partition("=")[2])
        every["trainer.max_steps"] = f"trainer.max_steps={max(1, round(steps * args.steps))}"
        own = (RECIPES / f"{this.name}.yaml").is_file()
        every["run"] = f"run=zoo-{this.name if own else '${style.name}'}-{number}"
        settings = train([*every.values()])
        runs.append(Path(settings.runs) / settings.run)
    return settings, runs[-1]


def chosen_photos(this: Recipe, folders: Sequence[Path]) -> list[str]:
    """Those that the recipe lists, as words of distill.prepare."""
    photos = [f"photos=[{','.join(repr(str(folder)) for folder in folders)}]"]
    if this.photos and (left_out := others(folders, listed(this.photos))):
        drop = Path(f"runs/zoo-{this.name}-others.txt")
        drop.parent.mkdir(exist_ok=True)
        drop.write_text("".join(f"{key}\n" for key in left_out))
        photos.append(f"drop={drop}")
    return photos


def sketch_set(this: Recipe, photos: list[str]) -> Path:
    """The pairs of all kinds of sketches in one folder; those of a photo are on one side."""
    whole = Path(f"data/sketches/zoo-{this.name}")
    for number, words in enumerate(this.sketches):
        part = whole.with_name(f"{whole.name}-{number}")
        command("-m", "distill.prepare", "recipe=pix2pix", *photos, *words, f"data.root={part}")
        for picture in part.glob("*/[AB]/*"):
            place = whole / picture.relative_to(part)
            place = place.with_name(f"{number}-{picture.name}")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, place)
        shutil.copyfile(part / "terms.json", whole / "terms.json")
    return whole


def domain_set(this: Recipe, folders: Sequence[Path]) -> Path:
    """Squares of the photos of both domains: one to three along the long side, and of the second
    domain, which has few photos, three of 0.68 of the short side more."""
    root = Path(f"data/domains/zoo-{this.name}")
    for side, name in zip(("trainA", "trainB", "testA", "testB"), this.domains, strict=True):
        (root / side).mkdir(parents=True, exist_ok=True)
        left_out = {*others(folders, listed(name))}
        for photo in find_all(folders, []):
            if photo.key in left_out:
                continue
            picture = read_photo(photo.path)
            boxes = squares(*picture.size, side == "trainB")
            for number, box in enumerate(boxes if side[:5] == "train" else boxes[:1]):
                part = picture.crop(box)
                part.thumbnail((512, 512), Image.Resampling.LANCZOS)
                part.save(root / side / f"{photo.key.replace('/', '-')}_{number}.png")
    return root


def squares(width: int, height: int, closer: bool) -> list[tuple[int, int, int, int]]:
    """Boxes of a picture, left, top, right and bottom."""
    short, ratio = min(width, height), max(width, height) / min(width, height)
    count = 1 if ratio < 1.12 else 2 if ratio < 1.6 else 3
    shares = [k / (count - 1) for k in range(count)] if count > 1 else [0.5]
    places = [(short, share, share) for share in shares]
    if closer:
        part = int(0.68 * short)
        places += [(part, 0.0, 0.3), (part, 1.0, 0.3), (part, 0.5, 0.6)]
    boxes = []
    for side, x, y in places:
        left, top = int((width - side) * x), int((height - side) * y)
        boxes.append((left, top, left + side, top + side))
    return boxes


def mean(two: list[Path], number: int) -> Path:
    """A copy of the second run's folder whose student has the mean weights of both."""
    folder = two[-1].with_name(f"{two[-1].name.rpartition('-')[0]}-{number}")
    if folder.exists():
        return folder
    first, second = (torch.load(run / LAST, map_location="cpu", weights_only=True) for run in two)

    def student(values: dict[str, Any]) -> dict[str, torch.Tensor]:
        averaged = values.get("callbacks", {}).get("StudentEMA", {}).get("average")
        return averaged or values["state_dict"]

    for name, tensor in student(second).items():
        if tensor.is_floating_point():
            tensor.copy_((tensor + student(first)[name]) / 2)
    part = folder.with_name(f".{folder.name}")
    shutil.copytree(two[-1], part, dirs_exist_ok=True)
    torch.save(second, part / LAST)
    part.rename(folder)
    return folder


def train(typed: list[str]) -> Any:
    """A run, or what is left of it; gives its settings."""
    settings = compose.load("train", typed, schema_of)
    command("-m", "distill.train", *typed)
    return settings


def scored(file: Path, run: Path, students: list[str]) -> bool:
    """Whether `file` holds these students, of the run as it is: then a new note costs seconds."""
    trained = (run / LAST).stat().st_mtime
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
    parser.add_argument("words", nargs="+", metavar="NAME", help="students, styles, KEY=VALUE")
    parser.add_argument("--photos", required=True, metavar="DIR,DIR", help="folders of photos")
    parser.add_argument(
        "--steps", type=float, default=1, metavar="FACTOR", help="0.01: a rehearsal"
    )
    parser.add_argument("--to", type=Path, default=ZOO, help="folder (the package's own)")
    parser.add_argument("--baseline", metavar="NAME=FILE", help="a student to compare with")
    args = parser.parse_intermixed_args()
    overrides = [word for word in args.words if "=" in word]
    with OneLine():
        names = [word for word in args.words if "=" not in word]
        for name in names:
            recipe(name)
        for name in names:
            make(name, overrides, args)


if __name__ == "__main__":
    main()
