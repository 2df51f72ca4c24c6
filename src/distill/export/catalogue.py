"""The formats by name."""

from __future__ import annotations

from distill.export.coreml import CoreML
from distill.export.format import Float32, Format
from distill.export.fp16 import Float16
from distill.export.int8 import Int8
from distill.export.ncnn import Ncnn
from distill.export.safetensors import Safetensors
from distill.export.tflite import TfLite

FORMATS: dict[str, type[Format]] = {
    each.name: each for each in (Float32, Float16, Int8, CoreML, Ncnn, TfLite, Safetensors)
}
