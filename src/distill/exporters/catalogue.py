"""The formats by name."""

from __future__ import annotations

from distill.exporters.coreml import CoreML
from distill.exporters.format import Float32, Format
from distill.exporters.fp16 import Float16
from distill.exporters.int8 import Int8
from distill.exporters.ncnn import Ncnn
from distill.exporters.safetensors import Safetensors
from distill.exporters.tflite import TfLite

FORMATS: dict[str, type[Format]] = {
    each.name: each for each in (Float32, Float16, Int8, CoreML, Ncnn, TfLite, Safetensors)
}
