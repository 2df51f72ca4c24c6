"""What a shipped student's card says: facts gathered from the run, its set and its scores."""

from __future__ import annotations

import json
import platform
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from distill.config import compose, groups
from distill.config.settings.networks import StyleSettings
from distill.config.settings.training import Prepare, Train, source_of
from distill.core.images import sheet, to_tensor
from distill.core.report import markdown_table
from distill.data.kinds import registry
from distill.data.licence_terms import terms_of
from distill.data.photo_table import SIDES, read_rows
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.eval_fid.line_scores import by_kind
from distill.eval_fid.whole_pictures import table
from distill.models import zoo
from distill.models.build import load_teacher
from distill.models.checkpoint import load_student
from distill.models.zoo import STATIC
from distill.runs.run_folder import step_of
from distill.stylize.render import stylise_rgb
from distill.stylize.stylizing import open_student
from distill_picture.settings import PictureTrain
from distill_picture.style_pictures import read_square

Facts = dict[str, Any]
PAUSE = 600  # seconds without a word in the log: the run was not running
SHAPE = ("width", "expansion", "multiple")  # of an encoder
SHOWN = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg")
PHOTOS = Path(__file__).with_name("photos")
INHERITED = (
    "A student inherits the terms of all that it was made from: {}. The photos it learnt from are "
    "not in it and not shipped. Its files say the same."
)


def facts(style: str, run: Path, pairs: Path, scores: Facts, notes: str) -> Facts:
    """Everything the card says, as plain values."""
    checkpoint = run / "checkpoints/last.ckpt"
    _, trained = load_student(checkpoint)
    fixed = f"{style}{STATIC}"  # the same student in a file of 256², which says what it costs there

    def of_others(rows: Facts) -> Facts:
        kept = {
            name: [k for k in row["scores"] if not k.startswith(fixed)]
            for name, row in rows.items()
        }
        return {
            name: row | {"scores": {k: row["scores"][k] for k in kept[name]}}
            for name, row in rows.items()
        }

    return {
        "style": style,
        "settings": _settings(trained),
        "width": trained.encoder["width"],
        "decoder": trained.decoder.name,
        "training": stages(checkpoint),
        "hardware": hardware(trained),
        "torch": torch.__version__,
        "data": counts(pairs),
        "shares": trained.data.weights,
        "teacher": teacher_of(trained.style) | {"settings": _changed(trained)},
        "terms": terms_of(run / "export/student.onnx").line,
        "cost": scores["cost"].get(fixed, scores["cost"][style]),
        "held out": {name: row["pictures"] for name, row in scores["subsets"].items()},
        "scores": {name: row["scores"] for name, row in of_others(scores["subsets"]).items()},
        "sizes": of_others(scores["sizes"]),
        "features": scores["features"],
        "limits": notes,
    }


def picture_facts(run: Path, scores: Facts, speed: Facts, notes: dict[str, str]) -> Facts:
    """The same of a run of recipe=picture, by what distill.eval_fid and .benchmark found."""
    checkpoint = run / "checkpoints/last.ckpt"
    _, trained = load_student(checkpoint)
    assert isinstance(trained, PictureTrain)
    (timed,) = speed["rows"]
    ms = {key: timed[f"ms{of}"] for key, of in (("value", ""), ("low", "_p5"), ("high", "_p95"))}
    return {
        "style": trained.style.name,
        "settings": [
            "recipe=picture",
            f"style_image={trained.style_image}",
            f"student={trained.decoder.name.removeprefix('detail_')}",
        ],
        "width": trained.encoder["width"],
        "decoder": trained.decoder.name,
        "training": stages(checkpoint),
        "hardware": hardware(trained),
        "torch": torch.__version__,
        "data": counts(registry.data_source(trained).folder),
        "teacher": teacher_of(trained.style),
        "terms": terms_of(run / "export/student.onnx").line,
        "cost": {key: timed[key] for key in ("macs", "parameters", "bytes")} | {"ms": ms},
        "held out": {"all": scores["pictures"]},
        "scores": scores["similarity"] | scores["drawing"],
        "limits": notes.get(trained.style.name, "Not looked at."),
    }


def _settings(trained: Train) -> list[str]:
    """What makes the untrained student anew, as words of distill.train."""
    encoder, decoder = trained.encoder, trained.decoder
    named, name = trained.style.name in groups.choices("style"), trained.style.name
    words = [f"style={name}"] if named else ["style=own", f"style.name={name}"]
    words.append(f"decoder={decoder.name}")
    words += [f"encoder.{key}={encoder[key]}" for key in SHAPE if key in encoder]
    if decoder.name.startswith("detail"):
        usual = compose.load("train", [f"decoder={decoder.name}", "photos=x"], Train).decoder.build
        words.append(f"decoder.build.context={decoder.build.get('context', 0)}")
        for key in ("half", "blocks", "kernel", "bilinear", "output_kernel"):
            if (value := decoder.build.get(key, usual[key])) != usual[key]:
                words.append(f"decoder.build.{key}={json.dumps(value).replace(' ', '')}")
    if trained.head is not None:  # of its style, conf/head/STYLE.yaml, or that of toon
        known = trained.style.name in groups.choices("head")
        words.append(f"head={trained.style.name if known else 'cartoon'}")
        if (sharpness := trained.head["sharpness"]) != 1:
            words.append(f"head.sharpness={sharpness:g}")
    return [*words, f"global_statistics={trained.global_statistics}"]


def _changed(trained: Train) -> dict[str, Any]:
    """The teacher's settings that are not those of its style."""
    usual = compose.load("prepare", [f"style={trained.style.name}"], Prepare).teacher or {}
    return {k: v for k, v in (trained.teacher or {}).items() if usual.get(k) != v}


def stages(checkpoint: Path) -> list[Facts]:
    """How the student came about: its run, and before it those whose students it started from.

    A student of the package states its own in its JSON file. That file may be of this very run
    already, when the card is written again: then this stage is its last.
    """
    _, trained = load_student(checkpoint)
    steps, batch = step_of(checkpoint), trained.data.batch_size
    stage = {
        "loss": {term: weight for term, weight in trained.loss.weights.items() if weight},
        "lr": trained.lr,
        "ema": trained.ema,
        "steps": steps,
        "batch": batch,
        "pictures seen": steps * batch * trained.trainer.accumulate,
        "hours": round(hours(checkpoint.parents[1]), 2),
    }
    if not trained.init:
        return [stage]
    kind, _, name = trained.init.partition("zoo:")
    if kind:
        return [*stages(Path(trained.init)), stage]
    before = json.loads((Path(zoo.__file__).parent / f"{name}.json").read_text())["training"]
    return [*(before[:-1] if before[-1] == rounded(stage) else before), stage]


def rounded(value: Any) -> Any:
    """Figures to five digits, which is more than they are worth."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def teacher_of(style: StyleSettings) -> Facts:
    """The weights that were used, which may be a file of one's own, and whose they are."""
    own = style.weights
    known = {key: getattr(style, key) for key in ("file", "sha256", "source", "licence")}
    return known | ({"file": Path(own).name, "sha256": None} if own else {})


def counts(pairs: Path) -> dict[str, dict[str, int]]:
    """Photos of each folder on each side of the set."""
    rows = read_rows(pairs).values()
    found = Counter((row.folder or "all", row.side) for row in rows if row.side)
    folders = sorted({folder for folder, _ in found})
    return {f: {side: found[f, side] for side in SIDES} for f in folders}


def hours(run: Path) -> float:
    """How long the run trained by TensorBoard's log, pauses left out."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    seconds = 0.0
    for log in sorted((run / "tensorboard").glob("events.*")):
        times = [event.wall_time for event in LegacyEventFileLoader(str(log)).Load()]
        gaps = (b - a for a, b in zip(times, times[1:], strict=False))
        seconds += sum(gap for gap in gaps if 0 < gap < PAUSE)
    return seconds / 3600


def hardware(trained: Train) -> str:
    """What the run trained on, taken from the machine that makes the card."""
    if trained.trainer.accelerator != "cpu" and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    threads = trained.trainer.threads or torch.get_num_threads()
    return f"{threads} thread{'s' if threads > 1 else ''} of a {platform.machine()} CPU"


def sheet_of(run: Path, facts: Facts, baseline: str | None = None) -> Image.Image:
    """Photo, teacher, student of photographs that scikit-image carries, which nobody trained on,
    and of those in tools/photos; fewer of the former, but larger, where it learnt real sizes.

    `baseline`, NAME=FILE, has a column before the student's.
    """
    _, trained = load_student(run / "checkpoints/last.ckpt")
    settings = source_of(trained)
    teacher = load_teacher(settings.style, settings.teacher).fast()
    name, _, file = (baseline or "").partition("=")
    files = [Path(file)] if file else []
    students = [open_student(path) for path in [*files, run / "export/student.onnx"]]
    small, rows = settings.data.sizes is None, []
    size, shown = (settings.style.resolution, SHOWN) if small else (352, SHOWN[:2])
    demo = [photo.path for photo in demo_photos() if photo.path.name in shown]
    for path in (*demo, *sorted(PHOTOS.glob("*.jpg"))):
        square = centre_square(read_photo(path), size)
        with torch.inference_mode():
            target = teacher(to_tensor(square)[None])[0]
        outputs = (to_tensor(stylise_rgb(square, student)) for student in students)
        rows.append((to_tensor(square), target, *outputs))
    return sheet(rows, ("photo", "teacher", *([name] if file else []), facts["style"]))


def picture_sheet(run: Path, facts: Facts) -> Image.Image:
    """Style picture, photo, student, of the same two photographs."""
    student = open_student(run / "export/student.onnx")
    squares = [
        centre_square(read_photo(photo.path), 320)
        for photo in demo_photos()
        if photo.path.name in SHOWN[:2]
    ]
    style = read_square(facts["style"], 320)
    rows = [(style, to_tensor(each), to_tensor(stylise_rgb(each, student))) for each in squares]
    return sheet(rows, ("style", "photo", facts["style"]))


def page(facts: Facts) -> str:
    """The card as Markdown."""
    style = facts["style"]
    parts = [
        f"# {style}",
        f"![photo, teacher and student, side by side]({style}.jpg)",
        "Photos: scikit-image (NASA, public domain; S. van der Walt, CC0); Pexels (CC0), of which "
        "the students of styles without weights have learnt from larger versions.",
        f"`python -m distill.stylize photo.jpg {facts['use']}`",
        "## What it is made from",
        _list(_made(facts)),
        "## Terms",
        INHERITED.format(facts["terms"]),
        "## How good it is",
        f"Against its teacher on held-out photos of which it shares no photo, near-duplicate or "
        f"person (95 % intervals; {facts['features'] or 'no feature network at hand'}).",
        *(_scores(name, facts) for name in facts["scores"]),
        *_sizes(facts["sizes"]),
        "## What it costs",
        _list(_cost(facts["cost"])),
        "## What still differs",
        facts["limits"].strip(),
    ]
    return "\n\n".join(parts) + "\n"


def picture_page(facts: Facts) -> str:
    """The card of a student of recipe=picture as Markdown."""
    style, rows = facts["style"], facts["scores"]
    columns = ["content", "style", "flicker, noise (levels)"]
    table = [["", *columns]]
    for who in ("photo", "student", "optimised"):
        found = (rows.get(f"{column}, {who}") for column in columns)
        table.append([who, *("–" if row is None else f"{row['value']:.3f}" for row in found)])
    made = {
        "style picture": f"{style}.webp, drawn by {facts['teacher']['source']}",
        **_made(facts),
        "losses": "by VGG19 to relu3_1 (activations normalised, Apache-2.0), not in the student",
    }
    del made["teacher"]
    parts = [
        f"# {style}",
        f"![style picture, photo and student, side by side]({style}.jpg)",
        f"`python -m distill.stylize photo.jpg style={style}`",
        "## What it is made from",
        _list(made),
        "## Terms",
        INHERITED.format(facts["terms"]),
        "## How good it is",
        f"Relative content and style losses of {facts['held out']['all']} held-out photos, as "
        "`distill.eval_fid` has them: as they are, the student's, and after 300 iterations on "
        "their own pixels.",
        markdown_table(table),
        "## What it costs",
        _list(_cost(facts["cost"])),
        "## What still differs",
        facts["limits"].strip(),
    ]
    return "\n\n".join(parts) + "\n"


def translation_facts(name: str, run: Path, timed: Facts, notes: Facts) -> Facts:
    """The same of a student of a generator of recipe=cyclegan, timed by distill.benchmark."""
    checkpoint = run / "checkpoints/last.ckpt"
    _, trained = load_student(checkpoint)
    terms = terms_of(run / "export/student.onnx")
    ms = {key: timed[f"ms{of}"] for key, of in (("value", ""), ("low", "_p5"), ("high", "_p95"))}
    return {
        "style": name,
        "settings": _settings(trained),
        "width": trained.encoder["width"],
        "decoder": trained.decoder.name,
        "loss": {term: weight for term, weight in trained.loss.weights.items() if weight},
        "steps": step_of(checkpoint),
        "data": counts(registry.data_source(trained).folder),
        "teacher": {"file": None, "sha256": None, "licence": terms.chain[0].text},
        "terms": terms.line,
        "cost": {key: timed[key] for key in ("macs", "parameters", "bytes")} | {"ms": ms},
        "limits": notes.get(name, "Not looked at."),
    }


def translation_page(facts: Facts) -> str:
    """Its card as Markdown."""
    style, held, rows = facts["style"], facts["held out"], facts["distances"]
    titles = [*rows["photo"]]
    table = [
        ["", *titles],
        *([who, *(_figure(row[t]) for t in titles)] for who, row in rows.items()),
    ]
    data = ", ".join(f"{name} ({_sides(each)})" for name, each in facts["data"].items())
    parts = [
        f"# {style}",
        f"![held-out photos, each beside the output]({style}.jpg)",
        "Photos: 18F and Pexels (CC0), WordPress (CC0), not learnt from.",
        f"`python -m distill.stylize photo.jpg style={style}`",
        "## What it is made from",
        f"campaigns/zoo/{style}.yaml: two domains without pairs, recipe=cyclegan "
        f"generator=student; then {facts['steps']:,} steps from its labels of photos: {data}.",
        "## Terms",
        INHERITED.format(facts["terms"]),
        "## How good it is",
        f"{held['photo']} held-out photos, as they are and as output, against {held['target']} "
        "held-out ones of the other domain (95 % intervals; few pictures bias a distance upwards):",
        markdown_table(table),
        "## What it costs",
        _list(_cost(facts["cost"])),
        "## What still differs",
        facts["limits"].strip(),
    ]
    return "\n\n".join(parts) + "\n"


def _made(facts: Facts) -> dict[str, str]:
    data = ", ".join(f"{name} ({_sides(each)})" for name, each in facts["data"].items())
    hours = sum(stage["hours"] for stage in facts["training"])
    teacher = facts["teacher"]
    named = [teacher["file"] or "built in", teacher["source"]]
    named += [f"{key}={value:g}" for key, value in teacher.get("settings", {}).items()]
    return {
        "teacher": ", ".join(named),
        "photos": data,
        "student": f"MobileNetV2-{facts['width']}, decoder {facts['decoder']}",
        "training": "; then ".join(map(_stage, facts["training"])),
        "time": f"{hours:.2f} h on {facts['hardware']}, torch {facts['torch']}",
    }


def _sides(photos: dict[str, int]) -> str:
    """What is held out is the test side; of a set without one, validation's."""
    learnt, chosen, test = photos["train"], photos["val"], photos.get("test", 0)
    if not test:
        return f"{learnt:,} + {chosen:,} held out"
    return f"{learnt:,} + {chosen:,} to choose by + {test:,} held out"


def _stage(stage: Facts) -> str:
    loss = " + ".join(f"{weight:g} {term}" for term, weight in stage["loss"].items())
    return (
        f"{stage['steps']:,} steps of {stage['batch']} ({stage['pictures seen']:,} pictures seen), "
        f"loss {loss}, learning rate {stage['lr']}, average {stage['ema']}"
    )


def _cost(cost: Facts) -> dict[str, str]:
    ms, ratio = cost["ms"], cost.get("ratio", {"value": 1})
    known = {"MACs at 256²": f"{cost['macs']:,}", "parameters": f"{cost['parameters']:,}"}
    if "living" in cost:
        known["nonzero weights"] = f"{cost['living']:.1%}"
    known["bytes"] = f"{cost['bytes']:,}"
    known["ONNX Runtime, 1 thread"] = f"{ms['value']:.2f} ms ({ms['low']:.2f} – {ms['high']:.2f})"
    if ratio["value"] != 1:
        known["to the baseline"] = f"×{ratio['value']:.2f}"
    return known


def _scores(name: str, facts: Facts) -> str:
    """One subset's tables, by what they are about: a row a student, a column a figure."""
    parts = by_kind(facts["scores"][name]).items()
    return "\n\n".join(_table(f"**{name}**{title}", part, facts, name) for title, part in parts)


def _sizes(sizes: Facts) -> list[str]:
    """The table by long side, of a set that has whole pictures; their intervals are in the JSON."""
    title = "**Whole pictures by their long side**, as `distill.stylize` runs it and the file alone"
    return [title, markdown_table(table(sizes))] if sizes else []


def _table(title: str, rows: Facts, facts: Facts, name: str) -> str:
    columns = list(dict.fromkeys(c for row in rows.values() for c in row))
    lines = [["", *columns]]
    lines += [[student, *(_figure(row.get(c)) for c in columns)] for student, row in rows.items()]
    body = markdown_table(lines)
    return f"{title}, {facts['held out'][name]:,} pictures\n\n{body}"


def _figure(row: Facts | None) -> str:
    if row is None:
        return "–"
    span = row.get("interval")
    return f"{row['value']:.3g}" + (f" ({span[0]:.3g} – {span[1]:.3g})" if span else "")


def _list(rows: dict[str, str]) -> str:
    return "\n".join(f"- {key}: {value}" for key, value in rows.items())
