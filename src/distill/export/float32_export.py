"""The float32 ONNX file: folded, written, measured, and kept only if it passes its limits."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import Tensor

from distill.config.settings.commands import Export
from distill.config.settings.networks import GeneratorSettings
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.core.files import atomic_write, write_json
from distill.core.onnx_files import load_model, summary_file
from distill.export.format import Float32
from distill.export.fp16 import Float16
from distill.export.graph.operator_gate import foreign_operators
from distill.export.onnx import ANOTHER_SIZE, SIDE, batches, has_statistics, parity
from distill.export.reports import REPORT, BudgetCheck, BudgetReport, compressed_size
from distill.export.subject import Subject, limits
from distill.metrics import complexity, timing
from distill.models import build
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.student import Student
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.models.teachers.teacher import Teacher

REPEATS = {"student": 30, "generator": 7}  # timed runs: a generator takes up to a second
SIDES = (512, 1024)  # of pictures, for the share of the thumbnail's pass


def export_float32(subject: Subject, settings: Export, photos: Tensor, folder: Path) -> Path:
    """Write the float32 ONNX file and report.json into `folder`, and print the table.

    Beside it STEM_summary.onnx, where the profile has the student's `summary` as an input.

    Raises DistillError (exit status 1) when a limit is not met; then report.json says so and no
    such file is left, not even an older one.
    """
    target, beside = folder / f"{subject.stem}.onnx", folder / summary_file(subject.stem)
    folded, exporter = fold_batchnorm(subject.network), subject.exporter
    with atomic_write(target) as temporary, ExitStack() as stack:
        model, file = exporter.export(folded), Float32(subject.stem)
        file_model = file.in_forms(model, exporter, subject.trained.channels)
        temporary.write_bytes(file_model.SerializeToString())
        summary = None
        if exporter.summary_is_input(subject.network):
            summary = stack.enter_context(atomic_write(beside))
            summary.write_bytes(exporter.export_summary(folded).SerializeToString())
        checks = list(_checks(subject, model, temporary, settings, photos, summary))
        about = file.about(exporter, subject.trained.channels)
        trained = subject.trained
        if isinstance(trained, GeneratorSettings):
            of = {"recipe": trained.recipe, "run": trained.run, "direction": subject.direction}
            facts: dict[str, Any] = of | {"network": asdict(trained.generator)}
        else:
            assert isinstance(trained, Train)
            facts = {"style": asdict(trained.style), "decoder": trained.decoder.name}
            facts["encoder"] = trained.encoder
        facts |= {
            "exporter": asdict(replace(exporter, terms="", about="")),
            "terms": subject.terms.plain(),
            "input": about["input"],
            "output": about["output"],
        }
        if has_statistics(subject.network):
            facts["summary"] = beside.name if summary else "inside"
        report = BudgetReport(checks, _teacher_figures(subject), facts, subject.stem)
        report.print()
        write_json(folder / REPORT, report.to_json())
        if not (report.ok and summary):
            beside.unlink(missing_ok=True)
        if not report.ok:
            target.unlink(missing_ok=True)
            subject.recipe.end_export(subject, folder, written=False)
            over = ", ".join(check.name for check in checks if not check.ok)
            raise DistillError(f"over the limit: {over}; no file written, see {folder / REPORT}")
    print(f"{f'{subject.stem}:':8} {target}")
    print(f"terms:   {subject.terms.line}")
    if summary:
        print(f"summary: {beside}, from a picture of {SIDE}×{SIDE} to the student's second input")
    print(f"report:  {folder / REPORT}")
    return target


def _checks(
    subject: Subject,
    model: onnx.ModelProto,
    path: Path,
    settings: Export,
    photos: Tensor,
    summary_path: Path | None,
) -> Iterator[BudgetCheck]:
    exporter, network, most = subject.exporter, subject.network, limits(subject, settings)
    folded, repeats = fold_batchnorm(network), REPEATS[subject.stem]
    single = replace(exporter, dynamic=False, batch=1)
    static = model if single == exporter else single.export(folded)
    macs, published = complexity.graph_macs(static), complexity.graph_macs(static, published=True)
    yield BudgetCheck.at_most("MACs", macs, most.macs)
    if subject.recipe.published_macs and published != macs:
        yield BudgetCheck("MACs as published, transposed at output size", published)
    resizes = exporter.dynamic and exporter.resizes(network)
    if resizes and isinstance(network, Student):  # it makes its own thumbnail: what that adds
        for side in SIDES:
            at = replace(single, size=side)
            both = at, replace(at, profile="transposed")  # there the summary is an input
            whole, without = (complexity.graph_macs(each.export(folded)) for each in both)
            yield BudgetCheck(f"MACs at {side}²", whole)
            name = f"% of MACs that the thumbnail adds at {side}²"
            yield BudgetCheck(name, 100 * (whole / without - 1))
    if not any(isinstance(each, torch.jit.ScriptModule) for each in network.modules()):
        # thop cannot watch TorchScript.
        yield BudgetCheck("MACs by thop", complexity.thop_macs(network, exporter.inside))
    yield BudgetCheck.at_most("parameters", complexity.parameters(network), most.parameters)
    if subject.halved:
        half = Float16(subject.stem)
        float16 = half.in_forms(half.graph(exporter, folded), exporter, subject.trained.channels)
        size = len(float16.SerializeToString())
        yield BudgetCheck("bytes", path.stat().st_size)
        yield BudgetCheck.at_most("bytes in half precision", size, most.bytes)
    else:
        yield BudgetCheck.at_most("bytes", path.stat().st_size, most.bytes)
    forms = Float32().forms(exporter)
    few = photos[batches(len(photos), exporter.batch)[0]].numpy()
    picture = forms[0].encode(few)
    yield BudgetCheck("bytes, gzip", compressed_size(path))
    yield BudgetCheck("ms, 1 thread of this CPU", timing.onnx_ms(path, picture, repeats))
    if summary_path:  # the file that computes a strict student's second input
        summary, thumbnail = load_model(summary_path), np.full((len(few), 3, SIDE, SIDE), 0.5, "f4")
        yield BudgetCheck("MACs of the summary", complexity.graph_macs(summary))
        yield BudgetCheck("bytes of the summary", summary_path.stat().st_size)
        yield BudgetCheck("ms of the summary", timing.onnx_ms(summary_path, thumbnail, repeats))
        foreign = foreign_operators(summary, "global")
        yield BudgetCheck.none_of("operators of the summary outside global", foreign)
    difference = parity(path, network, photos, summary_path, forms)
    if exporter.dynamic or resizes:  # also at another size and proportions
        larger = F.interpolate(photos[:1], ANOTHER_SIZE, mode="bilinear", align_corners=False)
        difference = max(difference, parity(path, network, larger, forms=forms))
    limit = settings.parity or subject.parity
    yield BudgetCheck.at_most("largest difference to PyTorch", difference, limit)
    yield BudgetCheck("operators", ", ".join(complexity.operators(load_model(path))))
    profile = exporter.profile or "strict"
    foreign = foreign_operators(model, profile)
    yield BudgetCheck.none_of(f"operators outside {profile}", foreign)


def _teacher_figures(subject: Subject) -> dict[str, Any]:
    """What the same picture costs with the teacher; nothing where it cannot be had here."""
    source, size = subject.source, subject.exporter.inside
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
    return {"name": source.style.name} | figures_of(teacher, size)


def figures_of(teacher: Teacher, size: tuple[int, int]) -> dict[str, Any]:
    """Of one that takes another size only what can be counted."""
    figures: dict[str, Any] = {}
    if isinstance(teacher, OnnxTeacher):
        model = load_model(teacher.path)
        figures["bytes"] = teacher.path.stat().st_size
        figures["parameters"] = complexity.graph_parameters(model)
        with suppress(ValueError, onnx.shape_inference.InferenceError):  # none if dynamic
            figures["MACs"] = complexity.graph_macs(model)
        return figures
    of_size = teacher.fixed in (None, size)
    if of_size:
        figures["ms, 1 thread of this CPU"] = timing.torch_ms(teacher, size)
    else:
        print(f"no time and MACs of the teacher: it does not take {size[0]}×{size[1]}")
    if count := complexity.parameters(teacher):
        figures |= {"parameters": count, "bytes": 4 * count}
        figures |= {"MACs": complexity.module_macs(teacher, size)} if of_size else {}
    return figures
