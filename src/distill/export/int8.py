"""ONNX in 8 bits: static QDQ, weights per channel, activations calibrated by percentile on photos.

What decides the picture's quality, in dB to the float student, mean and worst of 24 held-out photos
(a trained `detail`, percentile 99.999): plain 37.2 and 23.3; channels equalised (graph/equalise.py)
41.3 and 27.8; and the tail in float 44.9 and 28.0; and room for channels that sleep on the photos
available, of which there are 96 then and not 48, 44.5 and 33.7. Symmetric activations: 31.5 and
25.4.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

from distill.core.errors import DistillError
from distill.export.format import ConversionSource, ConvertedFormat, OnnxFormat
from distill.export.graph.equalise import equalise
from distill.export.graph.operator_sets import Profile, foreign_operators
from distill.metrics.complexity import tensor_shapes

OPSET = 13  # QuantizeLinear per channel
LEAST_PHOTOS = 40
CHUNK = 8  # photos whose activations are held at once; 64 of them took 4 GB
PERCENTILE = 99.999
# Nothing here runs a norm in 8 bits, and per channel its scales, a row of numbers, cannot be.
IN_FLOAT = frozenset({"Constant", "InstanceNormalization"})
QUANTISED = frozenset({"QuantizeLinear", "DequantizeLinear"})


class Int8(OnnxFormat, ConvertedFormat):
    """A quarter to a half of the bytes; whether it is faster is a matter of the device.

    Its profile `int8` is that of the float file with QuantizeLinear and DequantizeLinear. The tail
    (`tail`) stays in float: it decides the pixels, holds few weights, and is slower quantised.
    """

    name = "onnx_int8"
    endings = ("_int8.onnx",)
    least = (37.0, 30.0)

    def convert(self, source: ConversionSource, folder: Path) -> None:
        photos = source.calibration().numpy()
        if len(photos) < LEAST_PHOTOS:
            raise DistillError(
                f"{self.name}: {len(photos)} photos to calibrate on, {LEAST_PHOTOS} wanted; name a "
                "folder of photos that are not held out: calibration=DIR"
            )
        opset = max(source.exporter.opset or OPSET, OPSET)
        exporter = replace(source.exporter, opset=opset, dynamic=False)
        model = exporter.export(source.folded)
        equalise(model, photos)
        model = quantised(model, photos, folder)
        if foreign := foreign_int8(model, exporter.profile or "strict"):
            raise DistillError(f"{self.name}: operators outside int8: {', '.join(foreign)}")
        (folder / self.files[0]).write_bytes(model.SerializeToString())


def foreign_int8(model: onnx.ModelProto, profile: Profile) -> list[str]:
    """Operators outside the profile `int8`: those of `profile`, quantised and not."""
    return [name for name in foreign_operators(model, profile) if name not in QUANTISED]


def quantised(model: onnx.ModelProto, photos: np.ndarray, scratch: Path) -> onnx.ModelProto:
    """A static graph with QDQ pairs. Passes onnx.checker; leaves no file in `scratch`."""
    plain, inferred = scratch / "plain.onnx", scratch / "inferred.onnx"
    plain.write_bytes(model.SerializeToString())
    quant_pre_process(plain, inferred, skip_optimization=True, skip_symbolic_shape=True)
    ready = onnx.load(str(inferred))
    kinds = sorted({node.op_type for node in ready.graph.node} - IN_FLOAT)
    quantizer = quantization.QDQQuantizer(
        ready,
        True,  # weights per channel
        False,  # all 8 bits
        quantization.QuantType.QInt8,
        quantization.QuantType.QUInt8,  # after a ReLU no value is negative
        _calibrated(inferred, photos, kinds),
        [],
        tail(ready),
        kinds,
        {},
    )
    quantizer.quantize_model()
    quantizer.model.topological_sort()
    made = quantizer.model.model
    del made.metadata_props[:]
    made.metadata_props.extend(model.metadata_props)
    onnx.checker.check_model(made, full_check=True)
    for path in (plain, inferred):
        path.unlink()
    return made


def tail(model: onnx.ModelProto) -> list[str]:
    """Names of the nodes at half size and above after which nothing is smaller again."""
    sides = {name: shape[-1] for name, shape in tensor_shapes(model).items() if len(shape) == 4}
    full = sides[model.graph.input[0].name]
    small: set[str] = set()  # tensors from which a smaller one is still to come
    names = []
    for node in reversed(model.graph.node):
        out = node.output[0]
        if out in small or 2 * sides.get(out, full) < full:
            small.update(node.input)
        elif node.op_type != "Constant":
            names.append(node.name)
    return names


class _Photos(quantization.CalibrationDataReader):
    def __init__(self, photos: np.ndarray, name: str) -> None:
        self._feeds: Iterator[dict[str, np.ndarray]] = ({name: photo[None]} for photo in photos)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def _calibrated(path: Path, photos: np.ndarray, kinds: list[str]) -> Any:
    augmented = path.with_name("augmented.onnx")
    options = {"percentile": PERCENTILE, "num_bins": 2048, "symmetric": False}
    with contextlib.redirect_stdout(io.StringIO()):  # it reports on every tensor
        calibrator = quantization.create_calibrator(
            path,
            kinds,
            str(augmented),
            quantization.CalibrationMethod.Percentile,
            extra_options=options,
        )
        for first in range(0, len(photos), CHUNK):
            calibrator.collect_data(_Photos(photos[first : first + CHUNK], "photo"))
        ranges = calibrator.compute_data()
    augmented.unlink()
    return ranges
