"""Which pairs of a set should not be learnt from, and why: scores against limits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from distill.config.settings.commands import CurationLimits
from distill.curate.pair_scores import Scores, registration_of
from distill.curate.style_change import distances
from distill.data.split import Edges

# Agreement of outlines below which they do not say for sure how far a target lies off: measured on
# 12 styles that move nothing, see docs/results.md.
CLEAR = 0.32


@dataclass(frozen=True)
class Verdict:
    """One pair's figures, as people read them, and the reasons to leave it out; none: keep it.

    `agreement` -1 to 1, of outlines or of large areas if that is more, and whether outlines are
    `clear`; `shift` in pixels at 256 (`down`, `right` its parts), `style` in usual distances from
    the set's median, `difference` in levels of 255, `landmarks` in widths of the face. NaN: not
    known. `copy_of` is the index of the pair that it repeats.
    """

    agreement: float
    clear: bool
    down: float
    right: float
    style: float
    difference: float
    landmarks: float
    copy_of: int | None = None
    reasons: list[str] = field(default_factory=list)

    @property
    def shift(self) -> float:
        return float(np.hypot(self.down, self.right))

    @property
    def uncertain(self) -> bool:
        """Nothing speaks against it for sure, and too little for it: a person has to look."""
        return not self.clear and not self.reasons


def verdicts(scores: Scores, edges: Edges, limits: CurationLimits, align: bool) -> list[Verdict]:
    """One of each pair. `edges` are near-duplicates among the photos; with `align` no shift that
    training takes back is a reason."""
    style = distances(scores["change"])
    found = [_figures(row, float(away)) for row, away in zip(scores, style, strict=True)]
    for each, row in zip(found, scores, strict=True):
        each.reasons.extend(_reasons(each, bool(row["readable"]), limits, align))
    return _with_copies(found, edges) if limits.copies else found


def _figures(row: np.void, style: float) -> Verdict:
    fine, coarse = registration_of(row), registration_of(row, "coarse_")
    clear = fine.agreement >= CLEAR
    off = max(fine, coarse, key=lambda each: (clear and each is fine, each.agreement))
    return Verdict(
        max(fine.agreement, coarse.agreement), clear, off.down, off.right, style,
        float(row["difference"]), float(row["landmarks"]),
    )  # fmt: skip


def _reasons(each: Verdict, readable: bool, limits: CurationLimits, align: bool) -> list[str]:
    if not readable:
        return ["cannot be read"]
    said = []
    if each.difference < limits.difference:
        said.append("the target is the photo itself")
    if limits.agreement > 0 and each.agreement < limits.agreement:
        said.append("another picture, or far from the photo")
    elif each.clear and each.shift > limits.shift and not align:
        said.append(f"lies {each.shift:.1f} px off")
    if np.isfinite(each.landmarks) and each.landmarks > limits.landmarks:
        said.append("its face has moved")
    if each.style > limits.style:
        said.append("another style")
    return said


def _with_copies(found: list[Verdict], edges: Edges) -> list[Verdict]:
    """Of near-duplicates one stays: without a reason against it, then of the best agreement."""
    order = sorted(range(len(found)), key=lambda i: (bool(found[i].reasons), -found[i].agreement))
    rank = {index: place for place, index in enumerate(order)}
    beside: dict[int, list[int]] = {}
    for a, b in np.asarray(edges).tolist():
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    original: dict[int, int] = {}
    for index in order:  # who is compared with those that stay, so a chain is no single copy
        stays = [other for other in beside.get(index, []) if other not in original]
        better = [other for other in stays if rank[other] < rank[index]]
        if better:
            original[index] = min(better, key=rank.__getitem__)
    for index, of in original.items():
        said = [*found[index].reasons, "a near-duplicate of another photo"]
        found[index] = replace(found[index], copy_of=of, reasons=said)
    return found
