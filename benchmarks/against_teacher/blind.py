"""A blind test: is the student told from its teacher, is the new one preferred to the old?

    python benchmarks/blind.py sheets --pairs data/pairs/SET student=FILE
    python benchmarks/blind.py sheets --pairs data/pairs/SET before=FILE now=FILE
    python benchmarks/blind.py count runs/benchmarks/blind

`sheets` writes numbered rows of a held-out photo and two outputs for it, A and B, at their real
size, shuffled: of the student and of the teacher, or of two students. With --size 512 they are
whole pictures of that long side, as distill.stylize gives them. Write a letter behind each
number of answers.txt, the teacher's or the one you would keep, and only then open key.json, or let
`count` do it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from scipy.stats import binomtest
from torch import Tensor

from against_teacher import heldout_set, scored_students
from against_teacher.fidelity_report import Table
from against_teacher.scored_students import StudentFile, ToGraph
from distill.core.arrays import save_png
from distill.core.errors import DistillError, OneLine
from distill.core.files import write_json, write_whole
from distill.core.images import to_float, to_pixels, to_uint8
from distill.core.progress import bar
from distill.eval_fid.heldout import infer

KEY, ANSWERS, REPORT = "key.json", "answers.txt", "blind.md"
TEACHER = "teacher"
ROWS, GAP, MARGIN = 5, 6, 40  # of a sheet: pairs, pixels between pictures, room for the number
LETTERS, BATCH = "AB", 8
_ANSWER = re.compile(r"\s*(\d+)\s*([AaBb]?)\s*")


def write_sheets(args: argparse.Namespace, to_graph: ToGraph) -> None:
    """Sheets, the list to write answers into, and the key."""
    files = scored_students.parse(args.students)
    if len(files) > 2:
        raise DistillError(f"{len(files)} students: give one, against its teacher, or two")
    if args.count < 1:
        raise DistillError(f"--count {args.count}: at least 1")
    if any((args.out / name).exists() for name in (KEY, ANSWERS)):
        raise DistillError(f"{args.out}: holds a test already; name another folder with --out DIR")
    pictures = _wholes(files, args) if args.size else _squares(files, args, to_graph)
    key = shuffle(pictures.who, pictures.outputs, random.Random(args.seed))

    rows = []
    for pair in key:
        place = pair["row"]
        outputs = (pictures.outputs[pair[letter]][place] for letter in LETTERS)
        rows.append([pictures.photos[place], *outputs])
    of_sheet = 1 if args.size else ROWS
    for first in range(0, len(rows), of_sheet):
        page = sheet_of_pairs(rows[first : first + of_sheet], first + 1)
        save_png(page, args.out / f"sheet-{first // of_sheet + 1:02d}.png")
    wanted = list(pictures.outputs)[-1]  # the teacher, or the later student
    asked = "the teacher's output" if wanted == TEACHER else "the one that you would keep"
    lines = [f"# {asked}: A or B", *map(str, range(1, len(rows) + 1))]
    write_whole(args.out / ANSWERS, "\n".join(lines) + "\n")
    write_json(args.out / KEY, {"set": args.pairs.name, "wanted": wanted, "pairs": key})
    print(
        f"{args.out}: {len(rows)} pairs on sheet-*.png; behind each number of {ANSWERS} write "
        f"the letter of {asked}, then: python benchmarks/blind.py count {args.out}"
    )


@dataclass(frozen=True)
class _Pictures:
    """uint8 (3, H, W) each: photos, whose they are (folder, file), the two outputs of each."""

    who: list[tuple[str, str]]
    photos: Sequence[Tensor]
    outputs: dict[str, Sequence[Tensor]]


def _squares(
    files: Sequence[StudentFile], args: argparse.Namespace, to_graph: ToGraph
) -> _Pictures:
    folders = len(set(_folders(args.pairs)))
    held = heldout_set.read(args.pairs, -(-args.count // folders))
    at = held.some(args.count)
    outputs: dict[str, Sequence[Tensor]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for each in files:
            student = scored_students.load(each, held, Path(folder), to_graph)
            outputs[each.name] = infer(student.network, held.photo[at], BATCH, each.name)
    if len(files) == 1:
        outputs[TEACHER] = held.teacher[at]
    return _Pictures([(held.who[i][0], held.files[i]) for i in at], held.photo[at], outputs)


def _wholes(files: Sequence[StudentFile], args: argparse.Namespace) -> _Pictures:
    """Whole pictures of one long side; which of them, --seed says."""
    held = heldout_set.read(args.pairs, None)
    there = held.wholes.get(args.size, ())
    if not there:
        sizes = ", ".join(map(str, held.wholes)) or "none"
        raise DistillError(f"--size {args.size}: {args.pairs} has no such pictures; sizes: {sizes}")
    chosen = random.Random(args.seed).sample(list(there), min(args.count, len(there)))
    read = [tuple(map(to_pixels, pair.read())) for pair in chosen]
    photos, targets = ([pixels[i].permute(2, 0, 1) for pixels in read] for i in (0, 1))
    outputs: dict[str, Sequence[Tensor]] = {}
    for each in files:
        run = scored_students.at_any_size(each)[each.name]
        with bar(len(photos), "picture", f"inference of {each.name}", leave=False) as progress:
            outputs[each.name] = given = []
            for photo in photos:
                given.append(to_uint8(run(to_float(photo[None]))[0]))
                progress.update()
    if len(files) == 1:
        outputs[TEACHER] = targets
    return _Pictures([("", pair.name) for pair in chosen], photos, outputs)


def shuffle(
    who: Sequence[tuple[str, str]], names: Collection[str], dice: random.Random
) -> list[dict[str, Any]]:
    """The key: each pair's row among `who` (folder, file of each picture), and what A and B are."""
    return [
        {"row": row, "folder": who[row][0], "file": who[row][1]}
        | dict(zip(LETTERS, dice.sample(list(names), 2), strict=True))
        for row in dice.sample(range(len(who)), len(who))
    ]


def _folders(root: Path) -> Sequence[str]:
    """The folder of each photo held out for testing, or where there is none for validation."""
    found = heldout_set.persons(root, "test") or heldout_set.persons(root, "val")
    return [folder for folder, _ in found.values()] or [""]


def sheet_of_pairs(rows: Sequence[Sequence[Tensor]], first: int) -> Image.Image:
    """Rows of photo, A and B, uint8 (3, H, W) each, numbered from `first`; no pixel is scaled."""
    heights, widths = zip(*(row[0].shape[-2:] for row in rows), strict=True)
    step = max(widths) + GAP
    size = (MARGIN + 3 * step, MARGIN // 2 + sum(heights) + len(rows) * GAP)
    page = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=16)
    for column, title in enumerate(("photo", *LETTERS)):
        middle = MARGIN + column * step + max(widths) / 2
        draw.text((middle, 10), title, fill="black", font=font, anchor="mm")
    top = MARGIN // 2
    for number, (row, height) in enumerate(zip(rows, heights, strict=True), first):
        place = (MARGIN / 2, top + height / 2)
        draw.text(place, str(number), fill="black", font=font, anchor="mm")
        for column, picture in enumerate(row):
            pixels = picture.permute(1, 2, 0).contiguous()
            page.paste(Image.fromarray(pixels.numpy()), (MARGIN + column * step, top))
        top += height + GAP
    return page


def count(folder: Path) -> Table:
    """How often the answers name what was asked for, by folder of photos, with 95 % intervals.

    Raises DistillError where a test or an answer is missing.
    """
    key = _key(folder / KEY)
    answers = _answers(folder / ANSWERS, len(key["pairs"]))
    wanted = key["wanted"]
    found: dict[str, list[bool]] = {}
    for pair, answer in zip(key["pairs"], answers, strict=True):
        found.setdefault(pair["folder"], []).append(pair[answer] == wanted)
    found = dict(sorted(found.items())) | {"all": [hit for hits in found.values() for hit in hits]}
    title = "the teacher is found" if wanted == TEACHER else f"{wanted} is preferred"
    columns = ["photos", "pairs", title, "95 % (Wilson)"]
    report = Table(f"Blind: {key['set']}", columns, [_row(name, found[name]) for name in found])
    write_whole(folder / REPORT, str(report))
    print(report)
    return report


def _row(name: str, hits: Sequence[bool]) -> list[str]:
    result = binomtest(sum(hits), len(hits))
    low, high = result.proportion_ci(method="wilson")
    return [name, str(len(hits)), f"{result.statistic:.0%}", f"{low:.0%} – {high:.0%}"]


def _key(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DistillError(f"{path}: no blind test there; make one with benchmarks/blind.py sheets")
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise DistillError(f"{path}: damaged; make the sheets anew in another folder") from error


def _answers(path: Path, pairs: int) -> list[str]:
    """The letter of each pair, in order."""
    given: dict[int, str] = {}
    lines = path.read_text().splitlines() if path.is_file() else []
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            match = _ANSWER.fullmatch(line)
            if not match or not 1 <= int(match[1]) <= pairs:
                raise DistillError(
                    f"{path}, line {number}: {line!r} is no pair's number and A or B"
                )
            given[int(match[1])] = match[2].upper()
    if missing := [n for n in range(1, pairs + 1) if not given.get(n)]:
        raise DistillError(
            f"{path}: {len(missing)} of {pairs} pairs have no answer, the first is {missing[0]}; "
            "write A or B behind each number"
        )
    return [given[n] for n in range(1, pairs + 1)]


def options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    doing = made.add_subparsers(dest="doing", required=True)
    sheets = doing.add_parser("sheets", help="write the sheets, the answers' list and the key")
    sheets.add_argument("students", nargs="+", metavar="NAME=FILE", help="one, or two to compare")
    sheets.add_argument("--pairs", type=Path, required=True, help="a set of distill.prepare")
    sheets.add_argument("--count", type=int, default=40, help="pairs (%(default)s)")
    sheets.add_argument("--size", type=int, help="long side of whole pictures (256² squares)")
    sheets.add_argument("--seed", type=int, help="of the order and the letters (by chance)")
    sheets.add_argument("--out", type=Path, default=Path("runs/benchmarks/blind"))
    done = doing.add_parser("count", help="count the answers")
    done.add_argument("folder", type=Path)
    return made


def main(to_graph: ToGraph) -> None:
    """The command line; `to_graph` exports checkpoints, for which this package has no exporter."""
    args = options().parse_args()
    with OneLine():
        if args.doing == "count":
            count(args.folder)
        else:
            write_sheets(args, to_graph)
