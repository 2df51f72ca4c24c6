"""The card of a set of pairs, README.md beside them: what is in it, from what, under which terms.

Sets of every form have the same; only its section `Files` and a line of the front matter differ.
Its front matter is what the Hub reads; a sheet of sample pairs lies beside it. No path of this
machine is in it.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

from distill import __version__
from distill.config.settings.networks import StyleSettings
from distill.config.settings.training import Prepare
from distill.core.errors import DistillError, counted
from distill.core.images import sheet, to_tensor
from distill.core.licence_terms import Terms
from distill.core.report import markdown_table, one_line
from distill.data.address import Address
from distill.data.cards.licence_table import front_matter, licence_entries, terms_section
from distill.data.cards.set_formats import SetFormat
from distill.data.kinds.registry import form_at
from distill.data.licence_terms import kept_terms
from distill.data.manifest import TEACHER, set_facts
from distill.data.photo_table import SIDES, read_rows
from distill.data.photos import Side
from distill.data.takedown import set_with_takedown

CARD, SHEET = "README.md", "sheet.jpg"
SHOWN = 4  # pairs on the sheet
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
LARGEST = "1M<n<10M"
SPLITS: Mapping[Side, str] = {"train": "train", "val": "validation", "test": "test"}  # the Hub's
INHERITED = (
    "A student that learns from this set inherits all of them. What is unknown the set's "
    "publisher answers for (card.licence of distill.prepare)."
)
FILES = "## Files"
_FILES = re.compile(rf"(?ms)^{FILES}\n.*?(?=^## |\Z)")
_HEAD = re.compile(r"(?s)\A---\n(.*?\n)---\n")


def write_card(settings: Prepare, root: Path | Address) -> None:
    """Write README.md and the sheet of the set that distill.prepare has just made at `root`."""
    form = form_at(root)
    rows = [
        [to_tensor(picture.convert("RGBA").convert("RGB")) for picture in pair]
        for pair in form.samples(SHOWN)
    ]
    titles = ("sketch", "photo") if form.of_sketches else ("photo", "stylised")
    drawn = BytesIO()
    sheet(rows, titles).save(drawn, "JPEG", quality=90)
    form.root.write(SHEET, drawn.getvalue())
    form.root.write(CARD, set_card(settings, form).encode())
    print(f"card: {form}/{CARD}, {form}/{SHEET}")


def carry_card(source: Path | Address, target: Path | Address) -> None:
    """Put the card of a set beside the same set in its other form, where it has one.

    What it says of the files is made again; whatever else stands there stays. Of a set without a
    manifest of distill.prepare, and of a card without the section `Files`, none is made.
    """
    before = form_at(source)
    if not before.recipe:
        return
    try:
        text = before.root.read(CARD).decode()
    except (FileNotFoundError, UnicodeDecodeError):
        return
    now = form_at(target)
    if not _FILES.search(text):
        print(f"{before}/{CARD}: has no section `Files`; therefore {now} gets no card")
        return
    with suppress(FileNotFoundError):
        now.root.write(SHEET, before.root.read(SHEET))
    text = _FILES.sub(lambda _: f"{FILES}\n\n{now.files()}\n\n", text, count=1)
    now.root.write(CARD, _HEAD.sub(lambda head: _moved(head, now), text).encode())


def _moved(head: re.Match[str], form: SetFormat) -> str:
    """The front matter with the files of another form; as it is where it is damaged."""
    try:
        header = yaml.safe_load(head[1])
        config = header["configs"][0]
        names = {split: side for side, split in SPLITS.items()}
        config["data_files"] = [
            each | {"path": form.pattern(names[each["split"]])} for each in config["data_files"]
        ]
    except (yaml.YAMLError, KeyError, IndexError, TypeError):
        return head[0]
    return front_matter(header)


def set_card(settings: Prepare, form: SetFormat) -> str:
    """The card as Markdown. Raises DistillError where no whole set lies there."""
    manifest, counts = form.recipe, set_facts(form.folder).get("counts")
    if not manifest or counts is None:
        raise DistillError(f"{form}: no complete set of distill.prepare; run it to its end first")
    sketches = form.of_sketches
    style = settings.style
    name = "Sketches of photos" if sketches else f"Photos and {one_line(style.name)} of them"
    sizes = f"{manifest['size']}×{manifest['size']}"
    if manifest["sizes"]:
        sizes = (
            f"squares of {sizes} (`NAME.png`) and whole photos with long sides of "
            f"{', '.join(map(str, manifest['sizes']))} pixels (`NAME-sSIZE.png`)"
        )
    terms = Terms(kept_terms(form.folder))
    if (there := form.root.local) is not None:
        terms = set_with_takedown(terms, there).published(str(form), settings.takedown.accept)
    if sketches:
        sketched = [key for key in sorted(manifest) if key.startswith("sketch.")]
        checks = {key: one_line(manifest[key]) for key in sketched}
    else:
        checks = _taught(style, manifest, form.folder)
    parts = [
        front_matter(_head(terms, name, counts, form)) + f"\n# {one_line(name)}",
        f"![sample pairs]({SHEET})",
        f"{counted(_total(counts), 'pair')} of pictures, {sizes}, made with distill {__version__}.",
        markdown_table(
            [("side", "pairs"), *((side, f"{counts.get(side, 0):,}") for side in SIDES)], [1]
        ),
        FILES,
        form.files(),
        "## Sources",
        _list(_sources(settings.card.source, form.folder, counts)),
        "## Terms",
        terms_section(terms, "the set"),
        INHERITED,
        "## How it was made and checked",
        _list(checks),
        "Near-duplicates, and photos of one person by their names, stay on one side.",
    ]
    return "\n\n".join(parts) + "\n"


def _total(counts: Mapping[str, int]) -> int:
    return sum(counts.get(side, 0) for side in SIDES)


def _head(terms: Terms, name: str, counts: Mapping[str, int], form: SetFormat) -> dict[str, Any]:
    total = _total(counts)
    files = [
        {"split": split, "path": form.pattern(side)}
        for side, split in SPLITS.items()
        if counts[side]
    ]
    return licence_entries(terms) | {
        "pretty_name": name,
        "task_categories": ["image-to-image"],
        "size_categories": [next((word for most, word in SIZES if total < most), LARGEST)],
        "tags": ["paired-images", "sketch" if form.of_sketches else "stylization"],
        "configs": [{"config_name": "default", "data_files": files}],
    }


def _sources(source: str | None, root: Path, counts: Mapping[str, int]) -> dict[str, str]:
    photos_of = Counter((row.folder, row.side) for row in read_rows(root).values() if row.side)
    named = {
        f"photos of `{one_line(folder)}`" if folder else "photos": ", ".join(
            f"{photos_of[folder, side]:,} {side}" for side in SIDES if photos_of[folder, side]
        )
        for folder in sorted({folder for folder, _ in photos_of})
    }
    return {
        "from": one_line(source or "not said (card.source of distill.prepare)"),
        **named,
        "skipped": f"{counted(counts.get('skipped', 0), 'photo')} that could not be used",
    }


def _taught(style: StyleSettings, manifest: Mapping[str, Any], root: Path) -> dict[str, str]:
    file = Path(style.weights).name if style.weights else style.file
    sha256 = f", sha256 {style.sha256}" if style.sha256 and not style.weights else ""
    rows = {
        "teacher": f"{one_line(file or 'built in')}, {one_line(style.source)}{sha256}",
        "its fingerprint": f"{manifest['teacher']}, drawn in {manifest['precision']}",
        "square": f"the centre {manifest['crop']:.0%} of the short side; "
        f"pictures of a training photo: {manifest['views']}; seed {manifest['seed']}",
    }
    with suppress(OSError, ValueError, KeyError, TypeError):  # there were too few photos
        measured = json.loads((root / TEACHER).read_text())
        photos, far, mirror = (measured[k] for k in ("photos", "displacement_px", "mirror_db"))
        off = "too few details to measure" if far is None else f"{far:g} px"
        rows["measured"] = (
            f"drawn {off} off the photos, {mirror:g} dB to itself on mirrored ones "
            f"({counted(photos, 'photo')})"
        )
    return rows


def _list(rows: Mapping[str, str]) -> str:
    return "\n".join(f"- {key}: {value}" for key, value in rows.items())
