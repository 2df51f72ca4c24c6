"""distill.curate, step by step: measure every pair, judge, and write page, scores and drop list."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distill.config.settings.commands import PairsFolder
from distill.core.errors import DistillError, counted
from distill.core.files import home_path, real_path, room_in, write_whole
from distill.core.next_step import same_settings
from distill.data.dropped import content_line, drop_list
from distill.data.duplicates import find_near_duplicates
from distill.data.pairs import Pair, find_pairs
from distill.data.photo_folders import drop_lists
from distill.data.photo_table import DROPPED, read_dropped, write_dropped
from distill.data.photos import Photo, Side
from distill.data.split import NO_EDGES
from distill.data.takedown import record_takedown
from distill_curate.curation_page import SORTED_BY, write_page
from distill_curate.pair_scores import available_landmarks, measure
from distill_curate.settings import Curate
from distill_curate.style_change import style_change
from distill_curate.verdicts import Verdict, verdicts

OUTPUT = "data/curation"
MUCH = 0.3  # share left out that is more often wrong limits than a bad set
NOT_TRAINED = ("output", "limits", "align", "apply", "drop", "restore", "show")  # of Curate
COLUMNS = ("pair", "side", "dropped", *SORTED_BY, "down", "right", "copy_of", "reasons")


@dataclass(frozen=True)
class CuratedPair:
    """A pair, its side and the line that names it in a drop list."""

    pair: Pair
    side: Side
    line: str


def curate(settings: Curate) -> None:
    """Measure, judge and write. Raises DistillError."""
    if settings.data.root is None:
        raise DistillError("data.root=null: name the set of pairs with data.root=DIR")
    root = home_path(settings.data.root)
    pairs = _pairs(root, settings.data)
    if settings.drop or settings.restore:
        _take_down(root, pairs, settings)
    output = home_path(settings.output or f"{OUTPUT}/{real_path(root).name}")
    if real_path(output) == real_path(root):
        raise DistillError(f"output={output}: that is the set itself; name another folder")
    with room_in(output, "free some, or name another place with output=DIR"):
        results = _verdicts(root, pairs, output, settings)
        drop_lines = [each.line for each, v in zip(pairs, results, strict=True) if v.reasons]
        write_whole(output / "scores.csv", _table(pairs, results))
        write_page(output, {each.line: each.pair for each in pairs}, results, settings)
        write_whole(output / "drop.txt", "".join(f"{line}\n" for line in drop_lines))
    if settings.apply:
        write_dropped(root, list(dict.fromkeys([*read_dropped(root / DROPPED), *drop_lines])))
    _print_summary(settings, output, pairs, results)


def _take_down(root: Path, pairs: Sequence[CuratedPair], settings: Curate) -> None:
    """Leave out what drop=FILE names, copies of it too, but for what restore=FILE does."""
    files = drop_lists(settings).values()
    drop, restore = (read_dropped(file) if file else [] for file in files)
    photos = [Photo(each.pair.photo, each.line) for each in pairs]
    drops = drop_list(read_dropped(root / DROPPED), drop, restore, photos)
    contents = [content_line(photo.local) for photo in photos if photo.pair_name in drops.new]
    record_takedown(root, drops.new, contents=contents, restored=drops.restored)
    write_dropped(root, drops.lines)  # last: what is killed before finds them again


def _pairs(root: Path, d: PairsFolder) -> list[CuratedPair]:
    sides = find_pairs(root, d.style, d.val_fraction, d.split_seed, d.test_fraction, True)
    times = Counter(pair.name for pairs in sides.values() for pair in pairs)
    return [
        CuratedPair(
            pair,
            side,
            pair.name if times[pair.name] == 1 else pair.photo.relative_to(root).as_posix(),
        )
        for side, pairs in sides.items()
        for pair in pairs
    ]


def _verdicts(
    root: Path, pairs: Sequence[CuratedPair], output: Path, settings: Curate
) -> list[Verdict]:
    style = style_change()
    if style is None:
        print("style: not measured, no VGG weights are available (see DISTILL_WEIGHTS)")
    scores = measure(
        [each.pair for each in pairs], output / "scores.npy", style, available_landmarks()
    )
    edges = NO_EDGES
    if settings.limits.copies:
        photos = [Photo(each.pair.photo, each.line) for each in pairs]
        edges = find_near_duplicates(photos, f"curated {real_path(root)}")
    return verdicts(scores, edges, settings.limits, settings.align)


def _table(pairs: Sequence[CuratedPair], results: Sequence[Verdict]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for each, verdict in zip(pairs, results, strict=True):
        values = [getattr(verdict, name) for name in (*SORTED_BY, "down", "right")]
        figures = ["" if np.isnan(value) else f"{value:.4g}" for value in values]
        copy = "" if verdict.copy_of is None else pairs[verdict.copy_of].line
        dropped = int(bool(verdict.reasons))
        rows.writerow([each.line, each.side, dropped, *figures, copy, "; ".join(verdict.reasons)])
    return text.getvalue()


def _print_summary(
    settings: Curate, output: Path, pairs: Sequence[CuratedPair], results: Sequence[Verdict]
) -> None:
    reasons = Counter(
        "lies off its photo" if reason.startswith("lies ") else reason
        for each in results
        for reason in each.reasons
    )
    count = sum(bool(each.reasons) for each in results)
    unsure = sum(each.uncertain for each in results)
    look = f", {unsure} uncertain (first on the page)" if unsure else ""
    summary = f"{counted(len(pairs), 'pair')}{look}, {count} to leave out"
    print(summary + (":" if reasons else ""))
    for reason, times in reasons.most_common():
        print(f"  {times:5}  {reason}")
    print(f"page           {output / 'index.html'}\ndrop list      {output / 'drop.txt'}")
    if count > MUCH * len(pairs):
        print(
            f"warning: that is {count / len(pairs):.0%} of the set: limits.* may not fit its "
            "style; look through the page before apply=true"
        )
    if settings.apply:
        print(f"left out       by {home_path(str(settings.data.root)) / DROPPED}")
        print(same_settings("train", without=NOT_TRAINED) + " data.align=true" * settings.align)
    else:
        print(same_settings("curate", without=("drop", "restore")) + " apply=true")
