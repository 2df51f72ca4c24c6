"""A page of pairs, photo beside target, sorted by each score, where a drop list is made.

One HTML file with pictures beside it; it opens from the disk and asks nothing of any server.
"""

import html
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template

import numpy as np
from PIL import Image

from distill.core.errors import counted
from distill.core.files import atomic_write, write_whole
from distill.core.progress import track
from distill.data.pairs import Pair
from distill.data.photos import BadPhoto, centre_square
from distill_curate.settings import Curate
from distill_curate.verdicts import Verdict

SHOWN = 200  # pixels of a picture's side on the page
# Of a verdict's figures: title and order of its part of the page, and how a card has it.
FIGURES = {
    "agreement": ("Edges that agree", "the lowest first", "agrees {:.2f}"),
    "shift": ("Off its photo, pixels at 256", "the farthest first", "off {:.1f} px"),
    "style": ("Away from the set's style", "1 is usual, the farthest first", "style {:.1f}"),
    "difference": ("Difference from the photo, of 255", "the smallest first", "differs {:.0f}"),
    "landmarks": (
        "Points of the face moved, in its widths",
        "the farthest first",
        "face moved {:.2f}",
    ),
}
SORTED_BY = tuple(FIGURES)
_LOWEST_FIRST = {"agreement", "difference"}


def write_page(
    output: Path, pairs: Mapping[str, Pair], verdicts: Sequence[Verdict], settings: Curate
) -> None:
    """OUTPUT/index.html and the pictures it shows, in OUTPUT/pictures.

    `pairs` are by what names each in a drop list.
    """
    sections, lines = _sections(verdicts, settings), [*pairs]
    shown = sorted({index for _, _, _, indices in sections for index in indices})
    _draw(output / "pictures", [*pairs.values()], shown)
    parts = []
    for key, title, remark, indices in sections:
        cards = "".join(_card(index, lines[index], verdicts[index]) for index in indices)
        parts.append(f'<h2 id="{key}">{title}</h2><p>{remark}</p><div class="grid">{cards}</div>\n')
    drop = [line for line, each in zip(lines, verdicts, strict=True) if each.reasons]
    root = html.escape(str(settings.data.root))
    page = Template(Path(__file__).with_suffix(".html").read_text())
    write_whole(
        output / "index.html",
        page.substitute(
            title=f"Pairs of {root}",
            summary="Photo and target side by side. Tick pairs to leave out; those beyond a limit "
            "are ticked already.",
            links=" ".join(f'<a href="#{key}">{name}</a>' for key, name, _, _ in sections),
            sections="".join(parts),
            place=f"put it into {root}, or give distill.curate apply=true",
            # A name may hold </script>.
            drop=json.dumps(drop).replace("<", "\\u003c"),
            total=len(verdicts),
        ),
    )


def _sections(
    verdicts: Sequence[Verdict], settings: Curate
) -> list[tuple[str, str, str, list[int]]]:
    """Name, title, remark and pairs of each part of the page, as far as there is one to show."""
    dropped = [i for i, each in enumerate(verdicts) if each.reasons]
    uncertain = [i for i, each in enumerate(verdicts) if each.uncertain]
    sections = [
        ("look", "Uncertain", "kept unless you tick them", uncertain[: settings.show]),
        ("out", "Left out", counted(len(dropped), "pair"), dropped[: settings.show]),
    ]
    for name, (title, by, _) in FIGURES.items():
        values = np.array([getattr(each, name) for each in verdicts])
        order = np.argsort(values if name in _LOWEST_FIRST else -values, kind="stable")
        indices = [int(i) for i in order if not np.isnan(values[i])][: settings.show]
        remark = f"{by}; limit {getattr(settings.limits, name):g}"
        sections.append((name, title, remark, indices))
    return [each for each in sections if each[3]]


def _card(index: int, line: str, verdict: Verdict) -> str:
    name = html.escape(line)
    values = {text: getattr(verdict, figure) for figure, (*_, text) in FIGURES.items()}
    figures = [text.format(value) for text, value in values.items() if not np.isnan(value)]
    why = html.escape("; ".join(verdict.reasons))
    return (
        f'<label><img loading="lazy" src="pictures/{index}.jpg" width="{2 * SHOWN}" '
        f'height="{SHOWN}" alt="photo and target of {name}"><input type="checkbox" '
        f'data-line="{name}"> <span class="name">{name}</span><br><small>{", ".join(figures)}'
        f'</small><div class="why">{why}</div></label>'
    )


def _draw(folder: Path, pairs: Sequence[Pair], indices: Sequence[int]) -> None:
    """One picture of both for each pair; what cannot be read is grey. Those of before go."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {f"{index}.jpg" for index in indices}
    for old in folder.glob("*.jpg"):
        if old.name not in names:
            old.unlink()
    for index in track(indices, len(indices), "picture", "page"):
        both = Image.new("RGB", (2 * SHOWN, SHOWN), "grey")
        with suppress(BadPhoto):
            for column, picture in enumerate(pairs[index].read()):
                both.paste(centre_square(picture, SHOWN), (column * SHOWN, 0))
        with atomic_write(folder / f"{index}.jpg") as temporary:
            both.save(temporary, "JPEG", quality=85)
