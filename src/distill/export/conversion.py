"""One network in several formats: float32 first, the others measured beside it, in one table."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.config.groups import nodes_of
from distill.config.settings.base import Node
from distill.config.settings.commands import Export
from distill.core.arrays import over_white
from distill.core.errors import DistillError, library_errors, reason_of
from distill.core.files import home_path, scratch_folder, sha256, write_json, write_whole
from distill.core.nodes import class_of, part
from distill.core.onnx_files import summary_file
from distill.data.photos import check_local
from distill.export import samples, snippets
from distill.export.float32_export import export_float32
from distill.export.format import ConversionSource, ConvertedFormat, Float32, Format, Inference
from distill.export.onnx import ANOTHER_SIZE, OnnxExporter, batches
from distill.export.reports import REPORT, Comparison, FormatRow, compressed_size
from distill.export.samples import Samples
from distill.export.subject import Subject, load
from distill.metrics.similarity import psnr
from distill.metrics.timing import Times, interleave, ratio
from distill.models.batchnorm import fold_batchnorm
from distill.models.network_file import description
from distill.models.teachers.teacher import at_any_size
from distill.runs.run_folder import Run, find_run

PAGES = ("formats.json", "formats.md")
SNIPPETS = "snippets"  # the folder of code for apps
ROUNDS = 15  # of timing
# Of a format that runs here: (batch, 3, H, W) in [0, 1] to the same, and its output for the photos,
# and for some at another size where it takes any.
Trial = tuple[Inference, list[Tensor]]


def formats_of(nodes: Mapping[str, Node], stem: str = "student") -> list[Format]:
    """The formats of these Nodes, float32 first: it is always made. Raises DistillError."""
    others = [(name, node) for name, node in nodes.items() if name != "onnx"]
    formats = [part(f"formats.{name}", node, Format, stem=stem) for name, node in others]
    if wrong := next((each for each in formats if not hasattr(each, "name")), None):
        raise DistillError(f"formats: {type(wrong).__name__} has no `name`; files and rows need it")
    return [Float32(stem), *formats]


def carry_out(settings: Export) -> tuple[Run, dict[str, Path]]:
    """distill.export: the run that the settings name, and the files written, by format."""
    formats_of(settings.formats or {})  # what is wrong ends here, before anything is read
    check_local(settings.photos, "photos=")
    check_local(settings.calibration, "calibration=")
    run = find_run(settings)
    checkpoint = run.checkpoint(settings.checkpoint)
    subject = load(checkpoint, settings)
    folder = home_path(settings.output) if settings.output else subject.folder(run.folder)
    print(f"exporting {checkpoint}")
    return run, export_formats(subject, settings, folder)


def export_formats(subject: Subject, settings: Export, folder: Path) -> dict[str, Path]:
    """Write the float32 ONNX file, then the other formats, formats.json and formats.md.

    Gives each format's file, of several the first. Other formats that an earlier network left in
    the folder are removed. Raises DistillError when the float32 file is over a limit (then there is
    no format at all), and at the end when a format could not be made or its output differs too
    much. What the recipe says of an export it says in any case.
    """
    photos = samples.parity(subject, settings.photos)
    usual = ["onnx", "onnx_fp16"] if subject.halved else ["onnx"]
    nodes = settings.formats or {name: nodes_of("formats")[name] for name in usual}
    formats = formats_of(nodes, subject.stem)
    files = {each.name: folder / each.files[0] for each in formats}
    held_out = samples.held_out(subject, settings.photos) if len(formats) > 1 else None
    try:
        target = export_float32(subject, settings, photos, folder)
    except DistillError:
        _remove_others(folder, subject.stem)
        raise
    digest = sha256(target)
    earlier = None  # of the float32 file that the formats in the folder were made beside
    with suppress(OSError, ValueError, KeyError, TypeError):
        earlier = json.loads((folder / PAGES[0]).read_text())[subject.stem]
    if digest != earlier:
        _remove_others(folder, subject.stem)
    _write_snippets(formats[0], subject.exporter, subject.trained.channels, folder)
    if held_out is None:
        subject.recipe.end_export(subject, folder, written=True)
        return files
    source = ConversionSource(
        fold_batchnorm(subject.network),
        subject.exporter,
        subject.trained.channels,
        cache(partial(samples.calibration, subject, settings.calibration)),
        subject.network,
        replace(
            description(subject.trained, subject.direction),
            terms=subject.terms.plain(),
            folded=subject.folded,
        ),
    )
    remove(folder, PAGES)  # they would speak of files that are gone
    rows = compare(formats, source, subject.network, held_out, folder)
    subject.recipe.end_export(subject, folder, written=True)
    facts = {"size": subject.sides, "photos": held_out.where, "pictures": len(held_out.photos)}
    facts |= {"other_size": ANOTHER_SIZE} if subject.exporter.dynamic else {}
    comparison = Comparison(rows, {subject.stem: digest} | facts, subject.stem)
    comparison.print()
    write_json(folder / PAGES[0], comparison.to_json())
    write_whole(folder / PAGES[1], comparison.to_markdown())
    print(f"formats: {folder / PAGES[0]}, {folder / PAGES[1]}")
    if lines := comparison.lines:
        raise DistillError("; ".join(lines))
    return files


def compare(
    formats: Sequence[Format],
    source: ConversionSource,
    network: nn.Module,
    held_out: Samples,
    folder: Path,
) -> list[FormatRow]:
    """Make all formats; those that run are timed in turn, so that what slows one slows all."""
    photos = held_out.photos
    trials: dict[str, Trial | str | None] = {}  # a text is why there is none
    for each in formats:
        try:
            trials[each.name] = _make(each, source, folder, photos)
        except DistillError as problem:
            print(f"left out {problem}")
            trials[each.name] = str(problem)
    photo = photos[batches(len(photos), source.exporter.batch)[0]].numpy()
    runs = {name: trial[0] for name, trial in trials.items() if isinstance(trial, tuple)}
    times = interleave({name: partial(run, photo) for name, run in runs.items()}, ROUNDS)
    with torch.inference_mode():
        expected = [
            torch.cat([at_any_size(network.eval(), each[None]) for each in pictures])
            for pictures in _at_sizes(photos, source.exporter)
        ]
    return [
        FormatRow(each.name, problem=trial)
        if isinstance(trial := trials[each.name], str)
        else _row(each, trial and trial[1], times, expected, held_out, folder)
        for each in formats
    ]


def remove(folder: Path, names: Iterable[str]) -> None:
    """Remove files and folders of these names, where they are there."""
    for name in names:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)


def _remove_others(folder: Path, stem: str) -> None:
    """Remove all formats but the float32 file, which its own step removes, and their pages."""
    remove(folder, [*PAGES, SNIPPETS])
    float32 = {f"{stem}.onnx", summary_file(stem), REPORT}
    if folder.is_dir() and any(path.name not in float32 for path in folder.iterdir()):
        for name, node in nodes_of("formats").items():
            if name != "onnx":
                remove(folder, class_of("formats", node).files_of(stem))


def _write_snippets(each: Format, exporter: OnnxExporter, channels: int, folder: Path) -> None:
    """Code for an app beside what was written, for the very file."""
    codes = snippets.snippets_of(each, exporter, channels, each.summary_in(folder))
    for ending, text in codes.items():
        write_whole(folder / SNIPPETS / f"{each.stem}_{each.name}.{ending}", text)


def _make(each: Format, source: ConversionSource, folder: Path, photos: Tensor) -> Trial | None:
    """Convert in a temporary folder, try it there, and move what is whole to its place."""
    if not isinstance(each, ConvertedFormat):  # the export step has written it
        return _try(each, source, folder, photos)
    if each.fixed:
        source = replace(source, exporter=replace(source.exporter, dynamic=False))
    with scratch_folder(folder / each.name) as scratch:
        remove(folder, each.files)
        print(f"making {each.name}", flush=True)
        try:
            each.convert(source, scratch)
        except (DistillError, OSError):
            raise
        except Exception as error:  # converters raise whatever they like
            reason = f"{type(error).__name__}: {reason_of(error, 200)}"
            raise DistillError(f"{each.name}: its converter failed ({reason})") from error
        trial = _try(each, source, scratch, photos)
        for file in reversed([name for name in each.files if (scratch / name).exists()]):
            os.replace(scratch / file, folder / file)
    _write_snippets(each, source.exporter, source.channels, folder)
    return trial


def _at_sizes(photos: Tensor, exporter: OnnxExporter) -> list[Tensor]:
    """The photos, and of a dynamic file every fourth at another size and proportions too."""
    if not exporter.dynamic:
        return [photos]
    some = F.interpolate(photos[::4], ANOTHER_SIZE, mode="bilinear", align_corners=False)
    return [photos, some]


def _try(each: Format, source: ConversionSource, folder: Path, photos: Tensor) -> Trial | None:
    with library_errors(f"{each.name}: {each.runs_in} cannot run it"):
        inside = each.open(folder)
        if inside is None:
            return None
        input_form, output_form = each.forms(source.exporter)

        def run(pictures: np.ndarray) -> np.ndarray:
            return output_form.decode(inside(input_form.encode(pictures)))

        outputs = []
        for pictures in _at_sizes(photos, source.exporter):
            groups = batches(len(pictures), source.exporter.batch)
            batch_outputs = [torch.from_numpy(run(pictures[rows].numpy())) for rows in groups]
            outputs.append(torch.cat(batch_outputs)[: len(pictures)])
        return run, outputs


def _row(
    each: Format,
    outputs: Sequence[Tensor] | None,
    times: dict[str, Times],
    expected: Sequence[Tensor],
    held_out: Samples,
    folder: Path,
) -> FormatRow:
    paths = [path for name in each.files if (path := folder / name).exists()]
    names = [path.name for path in paths]
    files = [p for path in paths for p in (path, *path.rglob("*")) if p.is_file()]
    sizes = sum(path.stat().st_size for path in files), sum(map(compressed_size, files))
    if outputs is None:
        return FormatRow(each.name, names, *sizes, note=each.note)
    same = torch.cat([psnr(*pair) for pair in zip(outputs, expected, strict=False)])
    output, target = outputs[0], held_out.target
    like = None if target is None else float(psnr(over_white(output), over_white(target)).mean())
    ms, against = times[each.name].median, ratio(times[each.name], times["onnx"])
    interval = against.median, against.low, against.high
    both = float(same.mean()), float(same.min())
    figures = *sizes, *both, like, ms, interval, each.least
    return FormatRow(each.name, names, *figures, note=each.note)
