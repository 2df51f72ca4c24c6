"""ONNX that takes and gives bytes, as bitmaps of apps have them."""

from pathlib import Path

from distill.export.format import ConversionSource, ConvertedFormat, OnnxFormat
from distill.export.forms import Form
from distill.export.onnx import OnnxExporter


class Uint8(OnnxFormat, ConvertedFormat):
    """The float32 file with exporter.input=uint8_nhwc, beside one that takes something else.

    Rounding alone leaves 58.9 dB, 20 log10(255 √12).
    """

    name = "onnx_uint8"
    endings = ("_uint8.onnx",)
    least = (57.0, 50.0)

    def forms(self, exporter: OnnxExporter) -> tuple[Form, Form]:
        return Form("uint8", "nhwc"), Form("uint8", "nhwc")

    def convert(self, source: ConversionSource, folder: Path) -> None:
        self.write(source.exporter.export(source.folded), source, folder)
