"""A set of pairs of distill.prepare as it is published: its pairs, what made them, its card.

Of any form. Lists of what was left out stay at home, and so does the path that the
photos lay in.
"""

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from distill.core.errors import DistillError, counted
from distill.core.files import scratch_folder, write_json, write_whole
from distill.core.licence_terms import Terms
from distill.core.next_step import next_step
from distill.data.cards.set_card import CARD, SHEET
from distill.data.cards.set_formats import FolderFormat, SetFormat
from distill.data.kinds.registry import form_at, set_forms
from distill.data.licence_terms import kept_terms
from distill.data.manifest import MANIFEST, SUMS, TEACHER, TERMS, writing
from distill.data.photo_table import PHOTOS
from distill.data.takedown import note_published, set_with_takedown
from distill_hub import transfer

LAST = (MANIFEST, SUMS)  # a set without them is none yet


def push_set(root: Path, place: transfer.Remote, replace: bool, accept: str | None = None) -> None:
    """Publish the set at `root`. Raises DistillError where it is not whole, has no card, or holds
    pictures that were taken down, unless it is published for the reason `accept`."""
    form = form_at(root)
    if not form.complete:
        raise DistillError(
            f"data.root={root}: no complete set of distill.prepare; run that command to make or "
            "finish it"
        )
    if not (root / CARD).is_file():
        raise DistillError(
            f"{root}: has no {CARD} to say what it is and under which terms; the command that made "
            "it writes one with card=true"
        )
    with scratch_folder(root.with_name(f"{root.name}.pushed")) as scratch:
        files = form.published(scratch) | _documents(root, scratch, form, accept)
        sums = transfer.sums_of(files)
        form.check(transfer.read_sums(sums, str(root)))
        (scratch / SUMS).write_bytes(sums.encode())
        files[SUMS] = scratch / SUMS
        gone = list[str]()  # which the version that is there has, as a picture that was taken down
        with suppress(DistillError, OSError, UnicodeDecodeError):  # there is none, or a damaged one
            if replace:
                place.fetch([SUMS], scratch / "before")
                before = (scratch / "before" / SUMS).read_bytes().decode()
                gone = sorted(transfer.read_sums(before, place.name).keys() - files.keys())
        if gone:
            place.remove(gone)
        count = transfer.push(files, place, LAST, replace)
    note_published(root, place.name)
    removed = f", {len(gone):,} others removed" if gone else ""
    print(f"{place.name}: {counted(len(files), 'file')}, {count:,} of them new{removed}")


def _documents(root: Path, scratch: Path, form: SetFormat, accept: str | None) -> dict[str, Path]:
    """Card, terms, lists and manifests, by their paths there; what is changed is below `scratch`.

    Manifests lose the folders of this machine. Terms and card state a takedown that is accepted.
    Raises DistillError for one that is not.
    """
    prefix = form.kept
    files = _beside(root, (CARD, SHEET, *form.beside, f"{prefix}{PHOTOS}", f"{prefix}{TERMS}"))
    terms = Terms(kept_terms(root))
    published = set_with_takedown(terms, root).published(f"data.root={root}", accept)
    for link in published.chain[len(terms.chain) :]:
        write_whole(scratch / CARD, f"{(root / CARD).read_text()}\n{link.text}.\n")
        write_json(scratch / f"{prefix}{TERMS}", published.plain())
        files |= {name: scratch / name for name in (CARD, f"{prefix}{TERMS}")}
    manifests = (MANIFEST, f"{prefix}{MANIFEST}", f"{prefix}{TEACHER}")
    for name, path in _beside(root, manifests).items():
        write_json(scratch / name, without_paths(json.loads(path.read_text())))
        files[name] = scratch / name
    return files


def pull_set(place: transfer.Remote, root: Path, replace: bool) -> None:
    """Fetch a published set into `root`, or what is missing there, every file checked."""
    if (there := place.files([SUMS]).get(SUMS)) is None:
        raise DistillError(
            f"repo={place.name}: no set that was pushed to its end ({SUMS} is missing)"
        )
    with scratch_folder(root.with_name(f"{root.name}.sums")) as scratch:
        try:
            text = transfer.fetch_one(SUMS, there, place, scratch).read_bytes().decode()
        except UnicodeDecodeError as error:
            raise DistillError(f"repo={place.name}: {SUMS}: damaged; push the set again") from error
    expected = transfer.read_sums(text, f"repo={place.name}")
    if MANIFEST not in expected:
        raise DistillError(f"repo={place.name}: no set of pairs ({MANIFEST} is missing)")
    form = next(form for form in set_forms() if form.lists(expected))
    with writing(root, folders=form is FolderFormat):
        count = transfer.pull(expected, place, root, LAST, replace)
        for path in form.removable(root) if replace else ():
            if path.relative_to(root).as_posix() not in expected:
                path.unlink()
        write_whole(root / SUMS, text)
    print(f"{root}: {counted(len(expected), 'file')}, {count:,} of them new")
    choice = {} if form is FolderFormat else {"data": form.kind}
    print(next_step("train", **choice, **{"data.root": str(root)}))


def _beside(root: Path, names: Collection[str]) -> dict[str, Path]:
    return {name: root / name for name in names if (root / name).is_file()}


def without_paths(content: dict[str, Any]) -> dict[str, Any]:
    """What dataset.json or teacher.json say, without the folders of the machine that made them."""
    portable = dict(content)
    if isinstance(recipe := portable.get("recipe"), dict) and isinstance(recipe.get("photos"), str):
        names = (PurePath(each).name for each in recipe["photos"].split(" + "))
        portable["recipe"] = recipe | {"photos": " + ".join(names)}
    if "/" in str(portable.get("settings")):  # of a teacher that is a run, with a file of its own
        portable["settings"] = ""
    return portable
