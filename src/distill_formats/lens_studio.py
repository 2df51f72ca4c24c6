"""A folder for Lens Studio: the model, a script that runs it on the camera, and what to type."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from distill.core.errors import DistillError
from distill.core.licence_terms import read_terms
from distill.core.sessions import open_session, picture_call
from distill.export.format import ConversionSource, ConvertedFormat, Inference, OnnxFormat
from distill.export.forms import Form
from distill.export.fp16 import halved
from distill.export.graph.operator_gate import foreign_operators
from distill.export.graph.plain import in_strict_operators
from distill.export.onnx import OnnxExporter
from distill.export.snippets import filled
from distill.metrics.complexity import graph_macs, tensor_shapes
from distill.models.students.global_statistics import THUMBNAIL

LIMIT = 10_000_000  # bytes that Snap stores with a lens, and what a larger file is halved for


class LensStudio(OnnxFormat, ConvertedFormat):
    """lens_studio/: STEM.onnx, Stylize.ts and README.md with drawings, made for this network.

    ONNX is a form that Lens Studio imports (Snap, "ML Component Overview", read 2026-11). Values
    are scaled by its import settings and not in the file: the iPhone's NPU has no constants.
    """

    name = "lens_studio"
    least = (55.0, 0.0)
    fixed = True

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
            (target / file).write_text(filled(self.templates() / f"{name}.txt", values), "utf-8")
        for step, drawing in enumerate(
            filled(self.templates() / "lens_studio.svg.txt", values).split("\n\n"), 1
        ):
            (target / f"step-{step}.svg").write_text(drawing, "utf-8")

    def open(self, folder: Path) -> Inference:
        path = folder / self.files[0] / f"{self.stem}.onnx"
        return picture_call(open_session(path, threads=1))


def pooled_by_convolutions(model: onnx.ModelProto) -> None:
    """GlobalAveragePool as depthwise convolutions of squares, in place, for a graph of one size.

    The same means but for rounding, in an operator that every device has.
    """
    sizes = tensor_shapes(model)
    for place, node in reversed(list(enumerate(model.graph.node))):
        if node.op_type != "GlobalAveragePool":
            continue
        _, channels, *sides = sizes[node.input[0]]
        steps: list[onnx.NodeProto] = []
        source = node.input[0]
        while sides != [1, 1]:
            kernel = max(n for n in range(1, 17) if not any(side % n for side in sides))
            kernels = [kernel, kernel] if kernel > 1 else sides
            sides = [side // of for side, of in zip(sides, kernels, strict=True)]
            into = node.output[0] if sides == [1, 1] else f"{node.output[0]}/{len(steps)}"
            weight = np.full((channels, 1, *kernels), 1 / (kernels[0] * kernels[1]), np.float32)
            model.graph.initializer.append(numpy_helper.from_array(weight, f"{into}/weight"))
            how: Any = {"group": channels, "kernel_shape": kernels, "strides": kernels}
            inputs = [source, f"{into}/weight"]
            steps.append(onnx.helper.make_node("Conv", inputs, [into], f"{into}/Conv", **how))
            source = into
        model.graph.node.remove(node)
        for step in reversed(steps):
            model.graph.node.insert(place, step)
    onnx.checker.check_model(model, full_check=True)
