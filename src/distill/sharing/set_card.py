"""The card of a set of pairs, README.md beside them: what is in it, from what, under which terms.

Its front matter is what the Hub reads; a sheet of sample pairs lies beside it. No path of this
machine is in it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from distill import __version__
from distill.config import compose
from distill.config.settings.training import Prepare
from distill.core.errors import DistillError
from distill.core.files import atomic_write, write_whole
from distill.core.images import sheet, to_tensor
from distill.data.datamodule import spread
from distill.data.labelled.manifest import counts_at, manifest_at
from distill.data.labelled.register import (
    PAIR_FOLDERS,
    SIDES,
    SKETCH_FOLDERS,
    TEACHER_FOLDERS,
    pair_of,
    png_names,
    read_rows,
)
from distill.data.labelled.teacher_pass import TEACHER
from distill.sharing.terms import front_matter, licence_entries, one_line

CARD, SHEET = "README.md", "sheet.jpg"
SHOWN = 4  # pairs on the sheet
SIDE = 256  # pixels, where nothing else is said
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
LARGEST = "1M<n<10M"
UNSAID = "not said; whoever publishes the set answers for them (card.licence of distill.prepare)"
INHERITED = (
    "The stylised pictures are a teacher's output, under the terms of its weights: {}. A student "
    "that learns from them inherits both."
)

USE = """\
```
pip install 'distill[hub]'
distill hub pull repo=USER/NAME data.root=DIR      # or this folder; every file is checked
distill train {words} data.root=DIR
```

`sha256sums.txt` has the hash of every file (`sha256sum -c sha256sums.txt`)."""


def check(settings: Prepare) -> None:
    """Raises DistillError, before anything is labelled, where no card can be had."""
    if settings.data.kind == "shards":
        raise DistillError(
            "card=true: of a folder of pairs; leave data=shards out, and python -m distill.shards "
            "packs them"
        )


def write_card(settings: Prepare, root: Path) -> None:
    """Write README.md and the sheet of the set at `root`, which distill.prepare has just made."""
    columns = PAIR_FOLDERS[1] if _of_sketches(root) else PAIR_FOLDERS[0]
    _write_sheet(root, columns)
    write_whole(root / CARD, set_card(settings, root))
    print(f"card: {root / CARD}, {root / SHEET}")


def set_card(settings: Prepare, root: Path) -> str:
    """The card as Markdown. Raises DistillError where no whole set lies at `root`."""
    made, counts = manifest_at(root), counts_at(root)
    if made is None or counts is None:
        raise DistillError(f"{root}: no whole set of distill.prepare; run it to its end first")
    sketches = _of_sketches(root)
    style = settings.style
    name = "Sketches of photos" if sketches else f"Photos and {one_line(style.name)} of them"
    words = "recipe=pix2pix" if sketches else _words(settings)
    parts = [
        front_matter(_head(settings, name, counts, sketches)) + f"\n# {one_line(name)}",
        f"![sample pairs]({SHEET})",
        f"{_total(counts):,} pairs of pictures, {made['size']}×{made['size']} PNG, made with "
        f"distill {__version__}.",
        "| side | pairs |\n| --- | ---: |\n"
        + "\n".join(f"| {side} | {counts.get(side, 0):,} |" for side in SIDES),
        f"`SIDE/{_first(sketches)}/NAME.png` is the input, `SIDE/{_second(sketches)}/NAME.png` of "
        "the same name the target.",
        USE.format(words=words),
        "## Sources",
        _list(_sources(settings, root, counts)),
        "## Terms",
        _list(_terms(settings, sketches)),
        "## How it was made and checked",
        _list(_sketched(made) if sketches else _taught(settings, made, root)),
        "Near-duplicates, and photos of one person by their names, stay on one side.",
    ]
    return "\n\n".join(parts) + "\n"


def _words(settings: Prepare) -> str:
    """What distill.train is told of the set: somebody else has no style of this one's own name."""
    style = settings.style
    named = style.name if style.name in compose.choices("style") else "own"
    size = "" if style.resolution == SIDE else f" style.resolution={style.resolution}"
    return f"style={named}{size}"


def _of_sketches(root: Path) -> bool:
    return "teacher" not in (manifest_at(root) or {"teacher": ""})


def _first(sketches: bool) -> str:
    return "A" if sketches else "photo"


def _second(sketches: bool) -> str:
    return "B" if sketches else "stylized"


def _total(counts: Mapping[str, int]) -> int:
    return sum(counts.get(side, 0) for side in SIDES)


def _head(
    settings: Prepare, name: str, counts: Mapping[str, int], sketches: bool
) -> dict[str, Any]:
    """The photos' licence where that is all there is to say; a teacher's own terms: `other`."""
    card, teacher = settings.card, settings.style
    ours = licence_entries(teacher.licence, teacher.source)["license"] == "mit"
    if card.licence and (sketches or ours):
        licence = licence_entries(card.licence, card.source or "")
    else:
        licence = licence_entries("", "")
    total = _total(counts)
    splits = [(side, "validation" if side == "val" else side) for side in SIDES if counts[side]]
    return licence | {
        "pretty_name": name,
        "task_categories": ["image-to-image"],
        "size_categories": [next((word for most, word in SIZES if total < most), LARGEST)],
        "tags": ["paired-images", "sketch" if sketches else "stylization"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"{side}/**"} for side, split in splits],
            }
        ],
    }


def _sources(settings: Prepare, root: Path, counts: Mapping[str, int]) -> dict[str, str]:
    found = Counter((row.folder, row.side) for row in read_rows(root).values() if row.side)
    named = {
        f"photos of `{one_line(folder)}`" if folder else "photos": ", ".join(
            f"{found[folder, side]:,} {side}" for side in SIDES if found[folder, side]
        )
        for folder in sorted({folder for folder, _ in found})
    }
    return {
        "from": one_line(settings.card.source or "not said (card.source of distill.prepare)"),
        **named,
        "skipped": f"{counts.get('skipped', 0):,} photos that could not be used",
    }


def _terms(settings: Prepare, sketches: bool) -> dict[str, str]:
    photos = {"the photos": one_line(settings.card.licence or UNSAID)}
    if sketches:
        return photos
    return photos | {"their teacher": INHERITED.format(one_line(settings.style.licence))}


def _taught(settings: Prepare, made: Mapping[str, Any], root: Path) -> dict[str, str]:
    style = settings.style
    file = Path(style.weights).name if style.weights else style.file
    sha256 = f", sha256 {style.sha256}" if style.sha256 and not style.weights else ""
    said = {
        "teacher": f"{one_line(file or 'built in')}, {one_line(style.source)}{sha256}",
        "its fingerprint": f"{made['teacher']}, drawn in {made['precision']}",
        "square": f"the centre {made['crop']:.0%} of the short side; {made['views']} "
        f"picture(s) of a training photo; seed {made['seed']}",
    }
    return said | _checked(root / TEACHER)


def _checked(kept: Path) -> dict[str, str]:
    """What `teacher_check` measured, where there were enough photos."""
    try:
        found = json.loads(kept.read_text())
        photos, off, mirror = (found[k] for k in ("photos", "displacement_px", "mirror_db"))
        said = "too little to see how far" if off is None else f"{off:g} px"
        return {
            "measured": f"drawn {said} off the photos, {mirror:g} dB to itself on mirrored ones "
            f"({photos} photos)"
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _sketched(made: Mapping[str, Any]) -> dict[str, str]:
    return {key: one_line(made[key]) for key in sorted(made) if key.startswith("sketch.")}


def _write_sheet(root: Path, folders: tuple[str, str]) -> None:
    """Pairs that lie evenly over the last side that has any: held-out ones before others."""
    first, second = sorted(folders) if folders == SKETCH_FOLDERS else folders
    rows = []
    for path in _samples(root, first, second):
        pictures = (path, path.parents[1] / second / path.name)
        rows.append(
            [to_tensor(Image.open(each).convert("RGBA").convert("RGB")) for each in pictures]
        )
    titles = ("photo", "stylised") if folders == TEACHER_FOLDERS else ("sketch", "photo")
    with atomic_write(root / SHEET) as temporary:
        sheet(rows, titles).save(temporary, "JPEG", quality=90)


def _samples(root: Path, first: str, second: str) -> Iterator[Path]:
    for side in reversed(SIDES):
        names = sorted(png_names(root, side, first) & png_names(root, side, second))
        whole = [name for name in names if name == f"{pair_of(name)}.png"] or names
        if whole:
            yield from (root / side / first / whole[at] for at in spread(range(len(whole)), SHOWN))
            return


def _list(rows: Mapping[str, str]) -> str:
    return "\n".join(f"- {key}: {value}" for key, value in rows.items())
