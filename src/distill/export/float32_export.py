"""The float32 ONNX file: folded, written, measured, and kept only if it passes its limits."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import onnx
import torch.nn.functional as F
from torch import Tensor

from distill.config.settings.commands import Export
from distill.core.errors import DistillError
from distill.core.files import atomic_write, write_json
from distill.core.onnx_files import load_model, summary_file
from distill.export import sizes
from distill.export.budget import REPORT, BudgetCheck, BudgetReport, compressed_size
from distill.export.fp16 import Float16
from distill.export.graph.operator_sets import foreign_operators
from distill.export.onnx import SIDE, has_statistics, parity
from distill.export.subject import Subject, limits
from distill.metrics import complexity, timing
from distill.models import build
from distill.models.fold import fold_batchnorm
from distill.models.students.student import Student
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.models.teachers.teacher import Teacher

REPEATS = {"student": 30, "generator": 7}  # timed runs: a generator takes up to a second


SIDES = (512, 1024)  # at which the share of the thumbnail's pass is told


def export_float32(subject: Subject, settings: Export, photos: Tensor, folder: Path) -> Path:
    """Write the float32 ONNX file and report.json into `folder`, and print the table.

    Beside it STEM_summary.onnx, where the profile has the student's `summary` as an input.

    Raises DistillError (exit status 1) when a limit is not met; then report.json says so and no
    such file is left, not even an older one.
    """
    target, beside = folder / f"{subject.stem}.onnx", folder / summary_file(subject.stem)
    folded, exporter = fold_batchnorm(subject.network), subject.exporter
    with atomic_write(target) as temporary, ExitStack() as stack:
        target.unlink(missing_ok=True)
        beside.unlink(missing_ok=True)
        model = exporter.export(folded)
        temporary.write_bytes(model.SerializeToString())
        told_by = None
        if exporter.apart(subject.network):
            told_by = stack.enter_context(atomic_write(beside))
            told_by.write_bytes(exporter.export_summary(folded).SerializeToString())
        checks = _checks(subject, model, temporary, settings, photos, told_by)
        facts = subject.recipe.facts(subject.trained, subject.direction) | {
            "exporter": asdict(subject.exporter),
            "input": {"name": model.graph.input[0].name, "range": [0, 1], "channels": "rgb"},
            "output": {"name": model.graph.output[0].name, "range": [0, 1]},
        }
        if has_statistics(subject.network):
            facts["summary"] = beside.name if told_by else "inside"
        report = BudgetReport(checks, _teacher_figures(subject), facts, subject.stem)
        report.print()
        write_json(folder / REPORT, report.to_json())
        if not report.ok:
            sizes.report_sizes(subject, folder, written=False)
            over = ", ".join(check.name for check in checks if not check.ok)
            raise DistillError(f"over the limit: {over}; no file written, see {folder / REPORT}")
    print(f"{f'{subject.stem}:':8} {target}")
    if told_by:
        print(f"summary: {beside}, from a picture of {SIDE}×{SIDE} to the student's second input")
    print(f"report:  {folder / REPORT}")
    return target


def _checks(
    subject: Subject,
    model: onnx.ModelProto,
    path: Path,
    settings: Export,
    photos: Tensor,
    told_by: Path | None,
) -> list[BudgetCheck]:
    exporter, network = subject.exporter, subject.network
    most = limits(subject, settings)
    profile = exporter.profile or "strict"
    difference = parity(path, network, photos, told_by)
    if exporter.dynamic and exporter.resizes(network):
        difference = max(difference, parity(path, network, _larger(photos[:1])))
    foreign = foreign_operators(model, profile)
    return [
        *_macs(subject, model, most.macs),
        *_macs_at_sizes(subject),
        BudgetCheck("MACs by thop", complexity.thop_macs(network, subject.side)),
        BudgetCheck.at_most("parameters", complexity.parameters(network), most.parameters),
        *_bytes(subject, path, most.bytes),
        BudgetCheck("bytes, gzip", compressed_size(path)),
        BudgetCheck(
            "ms, 1 thread of this CPU", timing.onnx_ms(path, subject.side, REPEATS[subject.stem])
        ),
        *_summary_checks(subject, told_by),
        BudgetCheck.at_most(
            "largest difference to PyTorch", difference, settings.parity or subject.parity
        ),
        BudgetCheck("operators", ", ".join(complexity.operators(model))),
        BudgetCheck.none_of(f"operators outside {profile}", foreign),
    ]


def _macs(subject: Subject, model: onnx.ModelProto, limit: int | None) -> list[BudgetCheck]:
    """On the exported graph; for CycleGAN's generator also as the papers count them."""
    exporter = subject.exporter
    if exporter.dynamic:
        model = replace(exporter, dynamic=False).export(fold_batchnorm(subject.network))
    macs, published = complexity.graph_macs(model), complexity.graph_macs(model, published=True)
    found = [BudgetCheck.at_most("MACs", macs, limit)]
    if subject.recipe.published_macs and published != macs:
        found.append(BudgetCheck("MACs as published, transposed at output size", published))
    return found


def _macs_at_sizes(subject: Subject) -> list[BudgetCheck]:
    """What a student costs that makes its own thumbnail, and what it would without."""
    student, exporter, found = subject.network, subject.exporter, []
    if exporter.dynamic and exporter.resizes(student) and isinstance(student, Student):
        for side in SIDES:
            at = replace(exporter, dynamic=False, size=side)
            macs = complexity.graph_macs(at.export(fold_batchnorm(student)))
            untold = Student(student.encoder, student.decoder)
            without = complexity.graph_macs(at.export(fold_batchnorm(untold)))
            found.append(BudgetCheck(f"MACs at {side}²", macs))
            name = f"% of MACs that the thumbnail adds at {side}²"
            found.append(BudgetCheck(name, 100 * (macs / without - 1)))
    return found


def _summary_checks(subject: Subject, path: Path | None) -> list[BudgetCheck]:
    """Of the file that computes a strict student's second input."""
    if path is None:
        return []
    model = load_model(path)
    return [
        BudgetCheck("MACs of the summary", complexity.graph_macs(model)),
        BudgetCheck("bytes of the summary", path.stat().st_size),
        BudgetCheck("ms of the summary", timing.onnx_ms(path, SIDE, REPEATS[subject.stem])),
        BudgetCheck.none_of(
            "operators of the summary outside global", foreign_operators(model, "global")
        ),
    ]


def _larger(photos: Tensor) -> Tensor:
    """Of another size and proportions than the thumbnail: (N, 3, 384, 512)."""
    return F.interpolate(photos, (384, 512), mode="bilinear", align_corners=False)


def _bytes(subject: Subject, path: Path, limit: int | None) -> list[BudgetCheck]:
    size = path.stat().st_size
    if not subject.halved:
        return [BudgetCheck.at_most("bytes", size, limit)]
    half = Float16(subject.stem).graph(subject.exporter, fold_batchnorm(subject.network))
    return [
        BudgetCheck("bytes", size),
        BudgetCheck.at_most("bytes in half precision", len(half.SerializeToString()), limit),
    ]


def _teacher_figures(subject: Subject) -> dict[str, Any]:
    """What the same picture costs with the teacher; nothing where it cannot be had here."""
    source, size = subject.recipe.photo_source(subject.trained), subject.side
    if source is None or source.teacher is None:
        return {}
    try:
        teacher = build.inference_teacher(source.style, source.teacher)
    except DistillError as error:
        print(f"no figures of the teacher: {error}")
        return {}
    if not teacher.timed:
        print(f"no figures of the teacher: {source.style.name} takes too long to be timed")
        return {}
    figures: dict[str, Any] = {"name": source.style.name}
    if isinstance(teacher, OnnxTeacher):
        return figures | _onnx_figures(teacher.path)
    return figures | _torch_figures(teacher, size)


def _torch_figures(teacher: Teacher, size: int) -> dict[str, Any]:
    """One that takes another size, as a U-Net may, is only counted."""
    figures: dict[str, Any] = {}
    of_size = teacher.fixed is None or teacher.fixed == (size, size)
    if of_size:
        figures["ms, 1 thread of this CPU"] = timing.torch_ms(teacher, size)
    else:
        print(f"no time and MACs of the teacher: it does not take {size}×{size}")
    if count := complexity.parameters(teacher):
        figures |= {"parameters": count, "bytes": 4 * count}
        figures |= {"MACs": complexity.module_macs(teacher, size)} if of_size else {}
    return figures


def _onnx_figures(path: Path) -> dict[str, Any]:
    model = load_model(path)
    figures: dict[str, Any] = {"bytes": path.stat().st_size}
    figures["parameters"] = complexity.graph_parameters(model)
    with suppress(ValueError, onnx.shape_inference.InferenceError):  # no single number if dynamic
        figures["MACs"] = complexity.graph_macs(model)
    return figures
