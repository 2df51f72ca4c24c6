"""A folder for Lens Studio: the model, a script that runs it on the camera, and what to type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from distill.core.errors import DistillError
from distill.core.sessions import open_session, picture_call
from distill.core.terms import read_terms
from distill.export.format import ConversionSource, ConvertedFormat, Inference, OnnxFormat
from distill.export.forms import Form
from distill.export.fp16 import halved
from distill.export.graph.operator_sets import foreign_operators
from distill.export.graph.plain import in_strict_operators, pooled_by_convolutions
from distill.export.onnx import OnnxExporter
from distill.export.snippets import filled
from distill.metrics.complexity import graph_macs
from distill.models.students.global_statistics import THUMBNAIL

LIMIT = 10_000_000  # bytes that Snap stores with a lens, and what a larger file is halved for


class LensStudio(OnnxFormat, ConvertedFormat):
    """lens_studio/: STEM.onnx, Stylize.ts and README.md with drawings, made for this network.

    ONNX is a form that Lens Studio imports (Snap, "ML Component Overview", read 2026-11). Values
    are scaled by its import settings and not in the file: the iPhone's NPU has no constants.
    """

    name = "lens_studio"
    least = (55.0, 0.0)

    @classmethod
    def files_of(cls, stem: str) -> tuple[str, ...]:
        return ("lens_studio",)

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        if exporter.batch > 1:
            raise DistillError(f"{self.name}: a camera gives one picture; leave exporter.batch out")
        if exporter.filled:
            raise DistillError(f"{self.name}: 32 must divide exporter.size={exporter.size}")
        return Form(), Form()

    def convert(self, source: ConversionSource, folder: Path) -> None:
        exporter = replace(source.exporter, dynamic=False)
        if exporter.summary_is_input(source.folded):
            exporter = replace(exporter, profile="global")
        if exporter.resizes(source.folded):
            raise DistillError(
                f"{self.name}: Snap's table has no antialiased resize for the thumbnail that global"
                f" statistics need; take exporter.size={THUMBNAIL}"
            )
        model = exporter.export(in_strict_operators(source.folded, transposed=False))
        pooled_by_convolutions(model)
        macs, precision = graph_macs(model), "float32"
        if model.ByteSize() > LIMIT:
            model, precision = halved(model), "float16"
        foreign = sorted(set(foreign_operators(model, "transposed")) - {"Cast"})
        content = self.in_forms(model, exporter, source.channels).SerializeToString()
        target = folder / self.files[0]
        target.mkdir()
        (target / f"{self.stem}.onnx").write_bytes(content)
        about = self.about(exporter, source.channels)
        alpha = "Its alpha is the fourth channel: set the blend mode to Normal."
        supported = "all in the lens models released with the paper, or in Snap's table"
        unsupported = f"**not known to run here: {', '.join(foreign)}**; see Snap's table"
        values: dict[str, Any] = {
            "STEM": self.stem, "STYLE": about["style"], "OPSET": model.opset_import[0].version,
            "HEIGHT": exporter.sides[0], "WIDTH": exporter.sides[1], "PRECISION": precision,
            "CHANNELS": source.channels, "ORDER": about["output"]["channels"],
            "ALPHA": alpha if source.channels == 4 else "It covers the camera's picture.",
            "BYTES": f"{len(content):,}", "MACS": f"{macs / 1e6:,.0f}",
            "TERMS": read_terms(source.description.terms).line,
            "WITHIN": "within" if len(content) <= LIMIT else "**over**",
            "OPERATORS": unsupported if foreign else supported,
        }  # fmt: skip
        for name, file in (("lens_studio.ts", "Stylize.ts"), ("lens_studio.md", "README.md")):
            (target / file).write_text(filled(name, values), "utf-8")
        for step, drawing in enumerate(filled("lens_studio.svg", values).split("\n\n"), 1):
            (target / f"step-{step}.svg").write_text(drawing, "utf-8")

    def open(self, folder: Path) -> Inference:
        path = folder / self.files[0] / f"{self.stem}.onnx"
        return picture_call(open_session(path, threads=1))
