"""The export step by step: fold, write aside, measure, and show the file only if it passes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from distill import sources
from distill.data.photos import BadPhoto, Photo, centre_square, find_photos, read_photo
from distill.data.pictures import to_tensor
from distill.errors import DistillError
from distill.exporters.onnx import OnnxExporter, foreign_operators, parity
from distill.exporters.report import Check, Report, compressed_size
from distill.metrics import complexity, latency
from distill.settings import Budget, Export
from distill.students.fold import fold_batchnorm
from distill.teachers.onnx import OnnxTeacher
from distill.weights import aside

PARITY_PHOTOS = 4
BUDGET_SIZE = 256  # the budget's limits are for pictures of this side
RGBA_EXTRA = {"macs": 3_300_000, "parameters": 64, "bytes": 1_000}  # a fourth output channel


def export(
    student: nn.Module,
    trained: dict[str, Any],
    exporter: OnnxExporter,
    settings: Export,
    photos: Tensor,
    folder: Path,
) -> Path:
    """Write `folder`/student.onnx and report.json, and print the table.

    Raises DistillError (exit status 1) when a limit is not met; then report.json says so and no
    student.onnx is left, not even an older one.
    """
    exporter = with_profile(exporter, trained)
    target = folder / "student.onnx"
    with aside(target) as temporary:
        target.unlink(missing_ok=True)
        model = exporter.export(fold_batchnorm(student))
        temporary.write_bytes(model.SerializeToString())
        checks = _checks(student, model, temporary, exporter, settings, trained, photos)
        report = Report(
            checks, _teacher_figures(trained, exporter.size), _facts(trained, exporter, model)
        )
        report.print()
        with aside(folder / "report.json") as page:
            page.write_text(json.dumps(report.to_json(), indent=2) + "\n")
        if not report.ok:
            over = ", ".join(check.name for check in checks if not check.ok)
            raise DistillError(
                f"over the limit: {over}; no file written, see {folder / 'report.json'}"
            )
    print(f"student: {target}\nreport:  {folder / 'report.json'}")
    return target


def _checks(
    student: nn.Module,
    model: onnx.ModelProto,
    path: Path,
    exporter: OnnxExporter,
    settings: Export,
    trained: dict[str, Any],
    photos: Tensor,
) -> list[Check]:
    limits = _budget(trained, settings.budget, exporter.size)
    static = (
        model
        if not exporter.dynamic
        else replace(exporter, dynamic=False).export(fold_batchnorm(student))
    )
    difference = parity(path, student, photos)
    foreign = foreign_operators(model, exporter.profile or "strict")
    return [
        Check.at_most("MACs", complexity.graph_macs(static), limits.macs),
        Check("MACs by thop", complexity.thop_macs(student, exporter.size)),
        Check.at_most("parameters", complexity.parameters(student), limits.parameters),
        Check.at_most("bytes", path.stat().st_size, limits.bytes),
        Check("bytes, gzip", compressed_size(path)),
        Check("ms, 1 thread of this CPU", latency.onnx_ms(path, exporter.size)),
        Check.at_most("largest difference to PyTorch", difference, settings.parity),
        Check("operators", ", ".join(complexity.operators(model))),
        Check(
            f"operators outside {exporter.profile}", ", ".join(foreign) or "none", None, not foreign
        ),
    ]


def with_profile(exporter: OnnxExporter, trained: dict[str, Any]) -> OnnxExporter:
    """With the profile asked for, else the decoder's; runs older than profiles are strict."""
    profile = exporter.profile or trained["decoder"].get("profile", "strict")
    return replace(exporter, profile=profile)


def parity_photos(trained: dict[str, Any], folder: str | None, size: int) -> Tensor:
    """Real photos (n, 3, size, size), the last one with a black border, where padding shows."""
    found = find_photos(Path(folder)) if folder else _validation_photos(trained)
    pictures: list[Tensor] = []
    for photo in found:
        try:
            pictures.append(to_tensor(centre_square(read_photo(photo.path), size)))
        except BadPhoto:
            continue
        if len(pictures) == PARITY_PHOTOS:
            break
    if not pictures:
        raise DistillError("no photo to compare PyTorch and ONNX Runtime on; name some: photos=DIR")
    framed = torch.zeros_like(pictures[0])
    edge = size // 8
    framed[:, edge:-edge, edge:-edge] = pictures[0][:, edge:-edge, edge:-edge]
    return torch.stack([*pictures, framed])


def _validation_photos(trained: dict[str, Any]) -> list[Photo]:
    settings = sources.source_of(trained)
    folder = sources.pairs_root(settings) / "val" / "photo"
    return find_photos(folder) if folder.is_dir() else sources.photos(settings)


def _budget(trained: dict[str, Any], override: Budget, size: int) -> Budget:
    """The override where it is set, else the limit of the run's encoder width.

    That limit is for RGB at 256²: a larger picture gets its share more MACs, RGBA what its fourth
    output channel costs.
    """
    own = {key: value for key, value in asdict(override).items() if value is not None}
    budget = dict(trained["budget"])
    if trained["channels"] == 4:
        for key, extra in RGBA_EXTRA.items():
            budget[key] = budget[key] and budget[key] + extra
    budget["macs"] = budget["macs"] and round(budget["macs"] * (size / BUDGET_SIZE) ** 2)
    return Budget(**(budget | own))


def _teacher_figures(trained: dict[str, Any], size: int) -> dict[str, Any]:
    """What the same picture costs with the teacher; nothing where it cannot be had here."""
    settings = sources.source_of(trained)
    try:
        teacher = sources.teacher(settings.style, settings.teacher)
    except DistillError as error:
        print(f"no figures of the teacher: {error}")
        return {}
    figures: dict[str, Any] = {"name": settings.style.name}
    if isinstance(teacher, OnnxTeacher):
        return figures | _onnx_figures(teacher.path)
    figures["ms, 1 thread of this CPU"] = latency.torch_ms(teacher, size)
    if count := complexity.parameters(teacher):
        figures |= {"parameters": count, "bytes": 4 * count}
        figures["MACs"] = complexity.module_macs(teacher, size)
    return figures


def _onnx_figures(path: Path) -> dict[str, Any]:
    model = complexity.load_graph(path)
    figures: dict[str, Any] = {"bytes": path.stat().st_size}
    figures["parameters"] = complexity.graph_parameters(model)
    with suppress(ValueError, onnx.shape_inference.InferenceError):  # no single number if dynamic
        figures["MACs"] = complexity.graph_macs(model)
    return figures


def _facts(
    trained: dict[str, Any], exporter: OnnxExporter, model: onnx.ModelProto
) -> dict[str, Any]:
    return {
        "style": trained["style"],
        "decoder": trained["decoder"]["name"],
        "encoder": trained["encoder"],
        "exporter": asdict(exporter),
        "input": {"name": model.graph.input[0].name, "range": [0, 1], "channels": "rgb"},
        "output": {"name": model.graph.output[0].name, "range": [0, 1]},
    }
