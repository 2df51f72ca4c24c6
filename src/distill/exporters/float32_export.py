"""The float32 ONNX file: folded, written, measured, and kept only if it passes its limits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import onnx
from torch import Tensor

from distill.config.settings.commands import Export
from distill.core.errors import DistillError
from distill.core.files import atomic_write, write_json
from distill.core.onnx_files import load_model
from distill.exporters import sizes
from distill.exporters.budget import REPORT, BudgetCheck, BudgetReport, compressed_size
from distill.exporters.fp16 import Float16
from distill.exporters.graph.operator_sets import foreign_operators
from distill.exporters.onnx import parity
from distill.exporters.subject import Subject, limits
from distill.metrics import complexity, timing
from distill.models import build
from distill.models.fold import fold_batchnorm
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.models.teachers.teacher import Teacher

REPEATS = {"student": 30, "generator": 7}  # timed runs: a generator takes up to a second


def export_float32(subject: Subject, settings: Export, photos: Tensor, folder: Path) -> Path:
    """Write the float32 ONNX file and report.json into `folder`, and print the table.

    Raises DistillError (exit status 1) when a limit is not met; then report.json says so and no
    such file is left, not even an older one.
    """
    target = folder / f"{subject.stem}.onnx"
    with atomic_write(target) as temporary:
        target.unlink(missing_ok=True)
        model = subject.exporter.export(fold_batchnorm(subject.network))
        temporary.write_bytes(model.SerializeToString())
        checks = _checks(subject, model, temporary, settings, photos)
        facts = subject.recipe.facts(subject.trained, subject.direction) | {
            "exporter": asdict(subject.exporter),
            "input": {"name": model.graph.input[0].name, "range": [0, 1], "channels": "rgb"},
            "output": {"name": model.graph.output[0].name, "range": [0, 1]},
        }
        report = BudgetReport(checks, _teacher_figures(subject), facts, subject.stem)
        report.print()
        write_json(folder / REPORT, report.to_json())
        if not report.ok:
            sizes.report_sizes(subject, folder, written=False)
            over = ", ".join(check.name for check in checks if not check.ok)
            raise DistillError(f"over the limit: {over}; no file written, see {folder / REPORT}")
    print(f"{f'{subject.stem}:':8} {target}\nreport:  {folder / REPORT}")
    return target


def _checks(
    subject: Subject, model: onnx.ModelProto, path: Path, settings: Export, photos: Tensor
) -> list[BudgetCheck]:
    exporter, network = subject.exporter, subject.network
    most = limits(subject, settings)
    profile = exporter.profile or "strict"
    difference = parity(path, network, photos)
    foreign = foreign_operators(model, profile)
    return [
        *_macs(subject, model, most.macs),
        BudgetCheck("MACs by thop", complexity.thop_macs(network, subject.side)),
        BudgetCheck.at_most("parameters", complexity.parameters(network), most.parameters),
        *_bytes(subject, path, most.bytes),
        BudgetCheck("bytes, gzip", compressed_size(path)),
        BudgetCheck(
            "ms, 1 thread of this CPU", timing.onnx_ms(path, subject.side, REPEATS[subject.stem])
        ),
        BudgetCheck.at_most(
            "largest difference to PyTorch", difference, settings.parity or subject.parity
        ),
        BudgetCheck("operators", ", ".join(complexity.operators(model))),
        BudgetCheck(
            f"operators outside {profile}", ", ".join(foreign) or "none", None, not foreign
        ),
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
        teacher = build.drawing_teacher(source.style, source.teacher)
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
