"""The held-out pictures of a run with its network's output, their scores, and these for people."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from distill.config.registry import recipe_named
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import Train, source_of
from distill.core.arrays import save_png
from distill.core.errors import DistillError, counted
from distill.core.files import write_json, write_whole
from distill.core.images import sheet, to_float
from distill.core.report import markdown_table
from distill.data.kinds import registry
from distill.data.photos import check_local
from distill.eval_fid import heldout, line_scores, paired_scores, whole_pictures
from distill.eval_fid.feature_sets import Row
from distill.metrics.decision_figures import metrics_of_head
from distill.metrics.features import FeatureNetwork
from distill.metrics.metric import user_metrics
from distill.metrics.similarity import GREY
from distill.models.checkpoint import load_network
from distill.runs.run_folder import Run, find_run

# Pictures with `columns`, uint8 (n, 3, H, W), and `titles` of a contact sheet; their scores.
Scored = tuple[Any, dict[str, Any]]


def carry_out(settings: EvalFid) -> tuple[Run | None, dict[str, Any]]:
    """distill.eval_fid: the run that was scored, None for two folders, and what json says.

    Its `fid_missing` is None, or says why there is no FID.
    """
    for key in ("photos", "a", "b"):
        check_local(getattr(settings, key), f"{key}=")
    folders, run = settings.a or settings.b, None
    if folders and not (settings.a and settings.b):
        raise DistillError("two folders are compared: name both, a=DIR b=DIR")
    for key in ("run", "style", "decoder", "photos"):
        if folders and getattr(settings, key):
            raise DistillError(f"{key}: a=DIR and b=DIR are compared without a run; leave it out")
    user_metrics(settings.metrics)  # what is wrong with them ends here
    if not folders:  # before weights are fetched
        checkpoint = (run := find_run(settings)).checkpoint(settings.checkpoint)
    features, missing = paired_scores.features_or_reason(settings.features)
    if run is None:
        assert settings.a
        assert settings.b
        folder = Path(settings.output or "runs/eval")
        scores = paired_scores.score_folders(Path(settings.a), Path(settings.b), features, settings)
    else:
        pictures, scores = score_run(checkpoint, settings, features)
        folder = Path(settings.output or run.folder / "eval")
        if settings.direction != "AtoB" and not settings.output:
            folder /= settings.direction
        # Of a student photo | teacher | student, the paper's Figure 1.
        columns = (to_float(column[: settings.sheet]) for column in pictures.columns)
        page = sheet([*zip(*columns, strict=False)], pictures.titles)
        save_png(page, folder / "contact_sheet.png")
        print(f"contact sheet: {folder / 'contact_sheet.png'}")
    scores = {"fid_missing": missing or None} | scores  # a style of one picture has no FID
    write(scores, folder)
    return run, scores


def score_run(checkpoint: Path, settings: EvalFid, features: FeatureNetwork | None) -> Scored:
    """Pictures that a run has not learnt from, and how good its network's output is there.

    Raises DistillError, as `load_network` does too.
    """
    network, trained = load_network(checkpoint, settings.direction)
    trained = registry.seen_from_here(trained, checkpoint)
    recipe = recipe_named(trained.recipe)
    if result := recipe.scores(network, trained, checkpoint, settings, features):
        return result
    assert isinstance(trained, Train)
    metrics = GREY if trained.channels == 1 else metrics_of_head(trained.head)
    settings = replace(settings, metrics=metrics | settings.metrics)
    pictures, networks = heldout.held_out_photos(network, trained, settings), {}
    if settings.flicker:
        networks["student"], source = network, source_of(trained, settings.photos)
        root = registry.data_source(source).folder
        if teacher := line_scores.teacher_of(root, source.style, source.teacher):
            networks["teacher"] = teacher
    scores = paired_scores.score_pairs(pictures, features, settings, networks)
    if trained.channels == 1:  # a matte has no lines
        rows = scores["drawing"].items()
        scores["drawing"] = {n: row for n, row in rows if n.startswith("flicker")}
    if pictures.wholes:
        scores["sizes"] = whole_pictures.score_sizes(
            pictures.wholes, {"student": network}, features, heldout.group_of_pair,
            settings.bootstrap, settings.seed, settings.flicker, user_metrics(settings.metrics),
        )  # fmt: skip
    return pictures, scores


def write(results: Row, folder: Path) -> None:
    """results.json, results.md and the same table on the terminal."""
    lines = _lines(results)
    write_json(folder / "results.json", results)
    parts = [markdown_table([("figure", "value", "95 % interval"), *lines])]
    sizes = whole_pictures.table(results["sizes"]) if results.get("sizes") else []
    if sizes:
        parts.append(markdown_table(sizes))
    parts.append("\n".join(_notes(results)))
    write_whole(folder / "results.md", "\n\n".join(parts) + "\n")
    screen = Table("figure", "value", "95 % interval")
    for line in lines:
        screen.add_row(*line)
    Console().print(screen)
    if sizes:  # wide: a line each figure, a column each output
        screen = Table("whole pictures", *(f"{name}, {size}" for size, name, *_ in sizes[1:]))
        for line in list(zip(*sizes, strict=True))[2:]:
            screen.add_row(*line)
        Console().print(screen)
    for note in _notes(results):
        print(note)
    print(f"results: {folder / 'results.json'}")


def _lines(results: Row) -> list[tuple[str, str, str]]:
    lines = []
    for name, row in (results.get("distances") or {}).items():
        lines.append((f"{results['fid_name']}, {name}", f"{row['value']:.3f}", _span(row)))
        if row["kid"] is not None:
            span = row.get("kid_interval")
            spread = _span({"interval": [1000 * end for end in span]}) if span else ""
            lines.append((f"{results['kid_name']}, {name}", f"{1000 * row['kid']:.3f}", spread))
    for name, row in (results.get("similarity", {}) | results.get("drawing", {})).items():
        lines.append((name, f"{row['value']:.4g}", _span(row)))
    if results["fid_missing"]:
        lines.insert(0, ("FID", "missing", ""))
    return lines


def _notes(results: Row) -> list[str]:
    counts = results.get("pictures", "none")
    if isinstance(counts, dict):  # of two domains
        counts = ", ".join(f"{count} of {domain}" for domain, count in counts.items())
    notes = [f"pictures: {counts}" + (f", side: {results['side']}" if "side" in results else "")]
    notes += [f"remark: {results['remark']}"] if "remark" in results else []
    notes += [results[key] for key in ("left_out", "unchecked") if key in results]
    how = results.get("resampled")
    if how and how["rounds"]:
        groups = f"{counted(how['groups'], 'group')} (one person's pictures)"
        of = groups if how["groups"] else "the pictures"
        note = f"intervals: {how['rounds']} resamples of {of}"
        if results.get("distances"):
            note += "; that of a distance is of its value at so few pictures, not of all there are"
        notes.append(note)
    if results["features"]:
        notes += [f"features: {results['features']}", f"resize: {results['resize']}"]
    return notes + ([f"warning: {results['warning']}"] if "warning" in results else [])


def _span(row: Row) -> str:
    return "" if row["interval"] is None else f"{row['interval'][0]:.4g} – {row['interval'][1]:.4g}"
