"""A page of pairs, photo beside target, sorted by each score, where a drop list is made.

One HTML file with pictures beside it; it opens from the disk and asks nothing of any server.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np
from PIL import Image

from distill.config.settings.commands import Curate
from distill.core.files import atomic_write, write_whole
from distill.core.progress import bar
from distill.curate.verdicts import Verdict
from distill.data.pairs import Pair
from distill.data.photos import BadPhoto, centre_square

SHOWN = 200  # pixels of a picture's side on the page
SORTED_BY = ("agreement", "shift", "style", "difference", "landmarks")
TITLES = {
    "agreement": ("Outlines that agree", "the lowest first; limit {:g}"),
    "shift": ("Off its photo, pixels at 256", "the farthest first; limit {:g}"),
    "style": ("Away from the set's style", "1 is usual, the farthest first; limit {:g}"),
    "difference": ("Difference from the photo, of 255", "the smallest first; limit {:g}"),
    "landmarks": ("Points of the face moved, in its widths", "the farthest first; limit {:g}"),
}
_LOWEST_FIRST = {"agreement", "difference"}

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --line: #8884; --out: #c33 }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 1.25rem 5rem }
h1 { font-size: 1.3rem; margin: 1rem 0 .2rem } h2 { font-size: 1.05rem; margin: 2rem 0 .1rem }
p { margin: 0 0 .6rem; opacity: .8 }
nav a { margin-right: 1rem }
.grid { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)) }
label { border: 2px solid var(--line); border-radius: 8px; padding: .5rem; cursor: pointer }
label.out { border-color: var(--out) }
img { width: 100%; height: auto; display: block; border-radius: 4px }
.name { overflow-wrap: anywhere } .why { color: var(--out) } .why:empty { display: none }
small { opacity: .8 }
footer { position: fixed; inset: auto 0 0; padding: .6rem 1.25rem; display: flex; gap: 1rem;
  align-items: center; background: Canvas; border-top: 1px solid var(--line) }
button { font: inherit; padding: .3rem .9rem }
</style></head><body>
<h1>$title</h1>
<p>$summary</p>
<nav>$links</nav>
<main>$sections</main>
<footer><output id="count" aria-live="polite"></output>
<button id="save">Save dropped.txt</button><small>$place</small></footer>
<script>
const out = new Set($drop);
const boxes = [...document.querySelectorAll("input[data-line]")];
function show() {
  for (const box of boxes) {
    box.checked = out.has(box.dataset.line);
    box.closest("label").classList.toggle("out", box.checked);
  }
  document.getElementById("count").textContent = out.size + " of $total pairs left out";
}
addEventListener("change", (event) => {
  const line = event.target.dataset.line;
  event.target.checked ? out.add(line) : out.delete(line);
  show();
});
document.getElementById("save").addEventListener("click", () => {
  const text = [...out].map((line) => line + "\\n").join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = "dropped.txt";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
show();
</script></body></html>
""")


def write_page(
    output: Path,
    pairs: Sequence[Pair],
    lines: Sequence[str],
    found: Sequence[Verdict],
    settings: Curate,
) -> None:
    """OUTPUT/index.html and the pictures it shows, in OUTPUT/pictures.

    `lines` are what names each pair in a drop list.
    """
    sections = _sections(found, settings)
    shown = sorted({index for _, _, _, indices in sections for index in indices})
    _draw(output / "pictures", pairs, shown)
    parts = []
    for key, title, remark, indices in sections:
        cards = "".join(_card(index, lines[index], found[index]) for index in indices)
        parts.append(f'<h2 id="{key}">{title}</h2><p>{remark}</p><div class="grid">{cards}</div>\n')
    drop = [line for line, each in zip(lines, found, strict=True) if each.reasons]
    root = html.escape(str(settings.data.root))
    write_whole(
        output / "index.html",
        _PAGE.substitute(
            title=f"Pairs of {root}",
            summary="Photo and target side by side. Tick pairs to leave out; those beyond a limit "
            "are ticked already.",
            links=" ".join(f'<a href="#{key}">{name}</a>' for key, name, _, _ in sections),
            sections="".join(parts),
            place=f"put it into {root}, or give distill.curate apply=true",
            # A name may hold </script>.
            drop=json.dumps(drop).replace("<", "\\u003c"),
            total=len(found),
        ),
    )


def _sections(found: Sequence[Verdict], settings: Curate) -> list[tuple[str, str, str, list[int]]]:
    """Name, title, remark and pairs of each part of the page, as far as there is one to show."""
    out = [i for i, each in enumerate(found) if each.reasons]
    sections = [("out", "Left out", f"{len(out)} pairs", out[: settings.show])]
    for name in SORTED_BY:
        values = np.array([getattr(each, name) for each in found])
        order = np.argsort(values if name in _LOWEST_FIRST else -values, kind="stable")
        indices = [int(i) for i in order if not np.isnan(values[i])][: settings.show]
        title, remark = TITLES[name]
        sections.append((name, title, remark.format(getattr(settings.limits, name)), indices))
    return [each for each in sections if each[3]]


def _card(index: int, line: str, verdict: Verdict) -> str:
    name = html.escape(line)
    known = {
        f"agrees {verdict.agreement:.2f}": verdict.agreement,
        f"off {verdict.shift:.1f} px": verdict.shift,
        f"style {verdict.style:.1f}": verdict.style,
        f"differs {verdict.difference:.0f}": verdict.difference,
        f"face moved {verdict.landmarks:.2f}": verdict.landmarks,
    }
    figures = [text for text, value in known.items() if not np.isnan(value)]
    why = html.escape("; ".join(verdict.reasons))
    return (
        f'<label><img loading="lazy" src="pictures/{index}.jpg" width="{2 * SHOWN}" '
        f'height="{SHOWN}" alt="photo and target of {name}"><input type="checkbox" '
        f'data-line="{name}"> <span class="name">{name}</span><br><small>{", ".join(figures)}'
        f'</small><div class="why">{why}</div></label>'
    )


def _draw(folder: Path, pairs: Sequence[Pair], shown: Sequence[int]) -> None:
    """One picture of both for each pair; what cannot be read is grey. Those of before go."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"{index}.jpg" for index in shown}
    for old in folder.glob("*.jpg"):
        if old.name not in wanted:
            old.unlink()
    with bar(len(shown), "picture", "page", leave=False) as progress:
        for index in shown:
            both = Image.new("RGB", (2 * SHOWN, SHOWN), "grey")
            try:
                for column, picture in enumerate(pairs[index].read()):
                    both.paste(centre_square(picture, SHOWN), (column * SHOWN, 0))
            except BadPhoto:
                pass
            with atomic_write(folder / f"{index}.jpg") as temporary:
                both.save(temporary, "JPEG", quality=85)
            progress.update()
