"""distill.check run=NAME report=terms: whose terms a run's student is under, on one page."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from distill.config.settings.base import LicenceSettings
from distill.config.settings.training import PhotoSource
from distill.core.errors import DistillError
from distill.core.files import write_whole
from distill.core.report import Report, markdown_table, one_line
from distill.data import photo_folders
from distill.data.cards.licence_table import terms_section
from distill.data.kinds.registry import data_source, seen_from_here
from distill.data.licence_terms import state_terms, terms_of_photos
from distill.data.manifest import set_facts
from distill.data.photo_table import RUN_PAIRS, read_sides
from distill.runs.run_folder import run_named


class TermsReport(Report):
    """Every source, how many photos it gave, photographers, licences and the whole chain."""

    def write(self, run: str | None, runs: str, output: str | None) -> Path:
        """Write RUN/terms.md, or `output`; gives that. Raises DistillError without such a run, and
        for a terms.csv that is no such table."""
        chosen = run_named(run, runs)
        checkpoint = chosen.checkpoint("best")
        terms, name = state_terms(checkpoint, LicenceSettings()), one_line(chosen.folder.name)
        parts = [
            f"# Terms of run {name}",
            f"{terms.line[0].upper()}{terms.line[1:]}. As of {time.strftime('%Y-%m-%d')}.",
            "## Chain",
            terms_section(terms, "the student"),
        ]
        if isinstance(trained := chosen.settings(), PhotoSource) and trained.teacher is not None:
            parts += ["## Photos", *_photos(seen_from_here(trained, checkpoint), chosen.folder)]
        target = Path(output) if output else chosen.folder / "terms.md"
        write_whole(target, "\n\n".join(parts) + "\n")
        return target


def _photos(source: PhotoSource, run: Path) -> Iterator[str]:
    """The sources of the photos, as terms.csv beside them counts them."""
    try:
        root = str(data_source(source).root)
        source = photo_folders.of_set(source, root)
        folders = [*photo_folders.folders_by_name(source).values()]
        listed = terms_of_photos(root, source, run)
    except DistillError as error:
        yield str(error)
        return
    learnt = Counter(side for _, side in read_sides(run / RUN_PAIRS))
    counts = learnt or set_facts(Path(root)).get("counts") or {}
    pairs = ", ".join(
        f"{counts[side]:,} {side}" for side in ("train", "val", "test") if side in counts
    )
    yield f"From {', '.join(f'`{folder}`' for folder in folders)}; pairs: {pairs or 'not counted'}."
    if listed.idle:
        yield f"Rows of terms.csv that no photo has: {', '.join(map(repr, listed.idle[:20]))}."
    if not listed.photos:
        yield "No terms.csv lies beside them: see the chain."
        return
    rows: list[list[str]] = [["photos", "photographer", "licence", "source"]]
    for e, count in Counter(listed.photos).most_common():
        cells = (each or "not said" for each in (e.author, e.licence, e.source))
        rows.append([f"{count:,}", *cells])
    yield markdown_table(rows, right=[0])
