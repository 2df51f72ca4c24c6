"""ONNX in 8 bits: static QDQ, weights per channel, activations calibrated by percentile on photos.

What decides the picture's quality, in dB to the float student, mean and worst of 24 held-out photos
(a trained `detail`, percentile 99.999): plain 37.2 and 23.3; channels equalised (graph/equalise.py)
41.3 and 27.8; and the tail in float 44.9 and 28.0; and room for channels that sleep on the photos
available, of which there are 96 then and not 48, 44.5 and 33.7. Symmetric activations: 31.5 and
25.4.
Weights whose sums fit in 16 bits (`weight_ranges`) cost up to 1 dB where no processor needs them.
"""

import contextlib
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

from distill.core.errors import counted
from distill.core.onnx_files import SUMMARY, model_inputs
from distill.export.format import ConversionSource, ConvertedFormat, OnnxFormat
from distill.export.fp16 import of_inks
from distill.export.graph.equalise import equalise
from distill.metrics.complexity import tensor_shapes
from distill.models.students.global_statistics import thumbnail_of
from distill.models.students.student import Student

OPSET = 13  # QuantizeLinear per channel
LEAST_PHOTOS = 40
CHUNK = 8  # photos of 256² whose activations are held at once; 64 of them took 4 GB
PERCENTILE = 99.999
# Nothing here runs a norm in 8 bits, and per channel its scales, a row of numbers, cannot be.
IN_FLOAT = frozenset({"Constant", "InstanceNormalization"})


class Int8(OnnxFormat, ConvertedFormat):
    """A quarter to a half of the bytes; whether it is faster is a matter of the device.

    Its profile `int8` is that of the float file with QuantizeLinear and DequantizeLinear. The tail
    (`tail`) stays in float: it decides the pixels, holds few weights, and is slower quantised. The
    file has one size, beside a dynamic one too.
    """

    name = "onnx_int8"
    endings = ("_int8.onnx",)
    least = (37.0, 30.0)
    fixed = True

    def convert(self, source: ConversionSource, folder: Path) -> None:
        photos, others = calibration_photos(self.name, source), dict[str, np.ndarray]()
        opset = max(source.exporter.opset or OPSET, OPSET)
        exporter = replace(source.exporter, opset=opset, dynamic=False)
        single = replace(exporter, batch=1)  # which photos calibrate one by one
        model = single.export(source.folded)
        if single.summary_is_input(source.folded):
            assert isinstance(source.folded, Student)
            with torch.inference_mode():
                thumbnails = (thumbnail_of(photo[None]) for photo in torch.from_numpy(photos))
                summaries = [source.folded.summary(each) for each in thumbnails]
            others[SUMMARY] = torch.cat(summaries).numpy()
        equalise(model, photos, **others)
        model = quantised(model, photos, folder, **others)
        for value in (*model_inputs(model), *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = exporter.batch
        del model.graph.value_info[:]
        onnx.checker.check_model(model, full_check=True)
        self.write(model, replace(source, exporter=exporter), folder)


def calibration_photos(name: str, source: ConversionSource) -> np.ndarray:
    """Photos (N, 3, H, W) in [0, 1] of the sides that the network sees; few are mirrored too.

    `name` is the format's, for the line that says so.
    """
    photos = source.calibration().numpy()
    edges = np.subtract(source.exporter.inside, source.exporter.sides)
    photos = np.pad(photos, ((0, 0), (0, 0), *((0, edge) for edge in edges)), "edge")
    if len(photos) < LEAST_PHOTOS:
        print(
            f"{name}: calibrated on the {counted(len(photos), 'photo')} there are, and "
            f"mirrored; {LEAST_PHOTOS} or more would tell its ranges better: calibration=DIR"
        )
        photos = np.concatenate([photos, photos[..., ::-1]])
    return photos


def quantised(
    model: onnx.ModelProto, photos: np.ndarray, scratch: Path, **others: np.ndarray
) -> onnx.ModelProto:
    """A static graph with QDQ pairs. Passes onnx.checker; leaves no file in `scratch`.

    `others` are values of further inputs by name, a row for each photo (N, 3, H, W).
    """
    plain, inferred = scratch / "plain.onnx", scratch / "inferred.onnx"
    plain.write_bytes(model.SerializeToString())
    quant_pre_process(plain, inferred, skip_optimization=True, skip_symbolic_shape=True)
    ready = onnx.load(str(inferred))
    kinds = sorted({node.op_type for node in ready.graph.node} - IN_FLOAT)
    floating = [*tail(ready), *of_inks(ready)]
    quantizer = quantization.QDQQuantizer(
        ready,
        True,  # weights per channel
        False,  # all 8 bits
        quantization.QuantType.QInt8,
        quantization.QuantType.QUInt8,  # after a ReLU no value is negative
        _calibrated(inferred, {"photo": photos, **others}, kinds),
        [],
        floating,
        kinds,
        {"TensorQuantOverrides": weight_ranges(ready, set(floating))},
    )
    quantizer.quantize_model()
    quantizer.model.topological_sort()
    result = quantizer.model.model
    del result.metadata_props[:]
    result.metadata_props.extend(model.metadata_props)
    onnx.checker.check_model(result, full_check=True)
    for path in (plain, inferred):
        path.unlink()
    return result


def weight_ranges(model: onnx.ModelProto, floating: set[str]) -> dict[str, list[dict[str, Any]]]:
    """The range of every output channel's weights, by their tensor, as the quantiser takes it.

    x86 processors with AVX2 or AVX-512 but not VNNI add the products of two neighbouring weights in
    16 bits and cut off what does not fit: the same file was 44 dB from the float student on one
    processor and 35 on another. So no two neighbours of a sign, as ONNX Runtime lays them out (by
    place in the kernel, then by input channel), make more than one weight of 8 bits may.
    """
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    ranges = {}
    for node in model.graph.node:
        if node.op_type != "Conv" or node.name in floating or node.input[1] not in tensors:
            continue
        weights = numpy_helper.to_array(tensors[node.input[1]])
        if weights.shape[1] == 1:  # depthwise: no products are added in 16 bits
            continue
        rows = weights.transpose(0, 2, 3, 1).reshape(len(weights), -1)
        rows = np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))
        pairs = np.stack([rows, -rows]).clip(min=0).reshape(2, len(rows), -1, 2).sum(-1)
        widest = np.maximum(pairs.max((0, 2)), np.finfo(np.float32).tiny)
        ranges[node.input[1]] = [{"rmin": -w, "rmax": w} for w in widest.astype(np.float32)]
        ranges[node.input[1]][0] |= {"axis": 0, "quant_type": quantization.QuantType.QInt8}
    return ranges


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


class _Feeds(quantization.CalibrationDataReader):
    def __init__(self, values: Mapping[str, np.ndarray], numbers: range) -> None:
        rows = (slice(number, number + 1) for number in numbers)
        self._feeds = ({name: each[row] for name, each in values.items()} for row in rows)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def _calibrated(path: Path, values: Mapping[str, np.ndarray], kinds: list[str]) -> Any:
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
        photos = values["photo"]
        some = max(1, CHUNK * 256**2 // photos[0, 0].size)
        for first in range(0, len(photos), some):
            numbers = range(first, min(first + some, len(photos)))
            calibrator.collect_data(_Feeds(values, numbers))
        ranges = calibrator.compute_data()
    augmented.unlink()
    return ranges
