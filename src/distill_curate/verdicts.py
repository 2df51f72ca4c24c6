"""Which pairs of a set should not be learnt from, and why: scores against limits."""

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from distill.data.split import Edges
from distill_curate.pair_scores import Scores
from distill_curate.settings import CurationLimits
from distill_curate.style_change import distances

DOUBTFUL = 2  # times the least agreement: below it a person should look


@dataclass(frozen=True)
class Verdict:
    """One pair's figures, as people read them, and the reasons to leave it out; none: keep it.

    `agreement` of the directions of edges, at most 1; `shift` in pixels at 256 (`down`, `right` its
    parts), `style` in usual distances from the set's median, `difference` in levels of 255,
    `landmarks` in widths of the face. NaN: not known. `copy_of` is the index of the pair that it
    repeats. `uncertain`: nothing speaks against it for sure, but a person should look.
    """

    agreement: float
    down: float
    right: float
    style: float
    difference: float
    landmarks: float
    copy_of: int | None = None
    reasons: list[str] = field(default_factory=list)
    uncertain: bool = False

    @property
    def shift(self) -> float:
        return float(np.hypot(self.down, self.right))


def verdicts(scores: Scores, edges: Edges, limits: CurationLimits, align: bool) -> list[Verdict]:
    """One of each pair. `edges` are near-duplicates among the photos; with `align` no shift that
    training takes back is a reason."""
    style = distances(scores["change"])
    results = [_verdict(*both, limits, align) for both in zip(scores, style, strict=True)]
    return _with_copies(results, edges) if limits.copies else results


def _verdict(row: np.void, style: float, limits: CurationLimits, align: bool) -> Verdict:
    figures = ("agreement", "down", "right", "difference", "landmarks")
    agreement, down, right, difference, landmarks = (float(row[name]) for name in figures)
    each = Verdict(agreement, down, right, float(style), difference, landmarks)
    if not row["readable"]:
        return replace(each, reasons=["cannot be read"])
    far, shifted = each.agreement < limits.agreement, each.shift > limits.shift
    faults = {
        "the target is the photo itself": each.difference < limits.difference,
        "another picture, or far from the photo": far and not row["fits"],
        f"lies {each.shift:.1f} px off": shifted and row["shifted"] and not align,
        "its face has moved": np.isfinite(each.landmarks) and each.landmarks > limits.landmarks,
        "another style": each.style > limits.style,
    }
    reasons = [reason for reason, holds in faults.items() if holds]
    doubtful = each.agreement < DOUBTFUL * limits.agreement or (shifted and not row["shifted"])
    return replace(each, reasons=reasons, uncertain=doubtful and not reasons)


def _with_copies(results: list[Verdict], edges: Edges) -> list[Verdict]:
    """Of near-duplicates one stays: without a reason against it, then of the best agreement."""
    order = sorted(
        range(len(results)), key=lambda i: (bool(results[i].reasons), -results[i].agreement)
    )
    beside = defaultdict[int, list[int]](list)
    for a, b in np.asarray(edges).tolist():
        beside[a].append(b)
        beside[b].append(a)
    kept: dict[int, int] = {}  # the pairs that stay, with their place in that order
    for place, index in enumerate(order):
        if better := [other for other in beside[index] if other in kept]:
            of = min(better, key=kept.__getitem__)
            reasons = [*results[index].reasons, "a near-duplicate of another photo"]
            results[index] = replace(results[index], copy_of=of, reasons=reasons, uncertain=False)
        else:
            kept[index] = place
    return results
