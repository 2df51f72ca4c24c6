"""Networks of other conventions: other ranges of values, BGR, channels last, other element types.

A few nodes before and behind such a graph make it one from float32 (1, 3, height, width), RGB in
[0, 1], to the same: everything after it knows one convention.
"""

import json
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from distill.config.settings.commands import TakesOnnxFiles
from distill.core.arrays import MODES
from distill.core.errors import DistillError
from distill.core.onnx_files import ABOUT, Step, model_inputs, noted, wrapped
from distill.core.sessions import open_session
from distill.data.photos import centre_square, demo_photos, read_photo

Range = tuple[float, float]

OURS: tuple[Range, Range] = ((0, 1), (0, 1))
KEYS, ENDS = ("input_range", "output_range"), ("input", "output")
RANGES: tuple[Range, ...] = ((0, 1), (-1, 1), (0, 255))
SIDE = 256  # pixels of the photographs that ranges are found by, where the file names no size
CELL = 16  # pixels: colours are compared by the means of such squares, whatever the lines are like
NEAR = 0.15  # mean distance of these colours from the photo's: a stylised photo is like it
CLEAR = 0.65  # of the distance with the second-best ranges, at most
BEYOND = 0.1  # how far outside of its range one value in two hundred may be


def adapt(
    model: onnx.ModelProto, convention: TakesOnnxFiles, name: str
) -> tuple[onnx.ModelProto, str]:
    """A network of one picture as one from float32 (1, 3, H, W), RGB in [0, 1], to the same.

    `convention` has its ranges, channels and layout; element types may be float32, float16 or
    uint8. Ranges that it leaves open are estimated by photographs, where one pair of them is
    clearly right; else they are [0, 1]. Also a line with the estimate, "" where that is [0, 1].
    Raises DistillError where one range is named and the other cannot be estimated.
    """
    typed = convention.input_range, convention.output_range
    for key, span in zip(KEYS, typed, strict=True):
        if span and span[0] == span[1]:
            raise DistillError(f"{key}={list(span)}: want two different values, black and white")
    noted_ranges: dict[str, Range] = {}
    with suppress(ValueError, TypeError, KeyError):  # a file of others may have anything there
        about = json.loads(noted(model, ABOUT) or "{}")
        noted_ranges = {end: r for end in ENDS for r in RANGES if [*r] == about[end]["range"]}
    values = model_inputs(model)[0], model.graph.output[0]
    of_bytes = [(0.0, 255.0) if _kind(value) == TensorProto.UINT8 else None for value in values]
    input_range, output_range = (
        span or usual or noted_ranges.get(end)
        for span, usual, end in zip(typed, of_bytes, ENDS, strict=True)
    )
    if input_range and output_range:
        return _adapt(model, convention, input_range, output_range), ""
    estimate = _ranges(model, convention, input_range, output_range)
    if estimate is None and (convention.input_range or convention.output_range):
        other = "output_range" if convention.input_range else "input_range"
        raise DistillError(f"{name}: say {other}=[BLACK,WHITE] too; photographs do not tell it")
    ranges = estimate or OURS
    words = [f"{key}=[{low:g},{high:g}]" for key, (low, high) in zip(KEYS, ranges, strict=True)]
    line = f"{name}: {' '.join(words)}, found by photographs; type another one if it is wrong"
    return _adapt(model, convention, *ranges), "" if ranges == OURS else line


def _adapt(
    model: onnx.ModelProto, convention: TakesOnnxFiles, input_range: Range, output_range: Range
) -> Any:
    """The graph with the nodes that its ranges, channels, layout and element types ask for."""
    entry = model_inputs(model)[0]
    to_kind, from_kind = _kind(entry), _kind(model.graph.output[0])
    last, out_last = (_channels_last(each, convention) for each in (entry, model.graph.output[0]))
    order = np.array([2, 1, 0], np.int64)
    reverse: list[Step] = [("Gather", order, {"axis": 1})] if convention.channels == "bgr" else []

    def number(value: float) -> np.ndarray:
        return np.asarray(value, np.float32)

    before = [*reverse]
    if input_range != (0, 1):
        low, high = input_range
        before += [("Mul", number(high - low), {}), ("Add", number(low), {})]
    before += [("Transpose", None, {"perm": [0, 2, 3, 1]})] if last else []
    before += [("Add", number(0.5), {})] if to_kind == TensorProto.UINT8 else []
    before += [("Cast", None, {"to": to_kind})] if to_kind != TensorProto.FLOAT else []
    behind: list[Step] = []
    if from_kind != TensorProto.FLOAT:
        behind.append(("Cast", None, {"to": TensorProto.FLOAT}))
    behind += [("Transpose", None, {"perm": [0, 3, 1, 2]})] if out_last else []
    if output_range != (0, 1):
        low, high = output_range
        behind += [("Sub", number(low), {}), ("Div", number(high - low), {})]
    behind += reverse
    dims = entry.type.tensor_type.shape.dim
    sides = [dim.dim_value or None for dim in (dims[1:3] if last else dims[2:4])]
    ours = helper.make_tensor_value_info("", TensorProto.FLOAT, [1, 3, *sides])
    stylised = helper.make_tensor_value_info("", TensorProto.FLOAT, [1, None, None, None])
    return wrapped(model, before, behind, ours, stylised) if before or behind else model


def _ranges(
    model: onnx.ModelProto,
    convention: TakesOnnxFiles,
    input_range: Range | None,
    output_range: Range | None,
) -> tuple[Range, Range] | None:
    """The ranges with which outputs have nearly the colours of photographs; None if in doubt.

    Colours are means of squares, which a style of lines changes little. The photographs are
    scikit-image's; without it nothing is found.
    """
    if find_spec("skimage") is None:
        return None
    entry = model_inputs(model)[0]
    dims, last = entry.type.tensor_type.shape.dim, _channels_last(entry, convention)
    sides = [dim.dim_value or SIDE for dim in (dims[1:3] if last else dims[2:4])]
    photos = [centre_square(read_photo(photo.path), max(sides)) for photo in demo_photos()]
    pictures = [np.asarray(p, np.float32).transpose(2, 0, 1)[None] / 255 for p in photos]
    distances = dict[tuple[Range, Range], float]()
    crops = [picture[..., : sides[0], : sides[1]] for picture in pictures]
    for input_candidate in [input_range] if input_range else RANGES:
        outputs = _outputs(model, convention, input_candidate, crops)
        if outputs is None:
            return None
        for low, high in [output_range] if output_range else RANGES:
            scaled = [(output - low) / (high - low) for output in outputs]
            edges = np.array([np.quantile(each, (0.005, 0.995)) for each in scaled])
            if edges.min() >= -BEYOND and edges.max() <= 1 + BEYOND:  # false for NaN too
                pairs = zip(scaled, crops, strict=True)
                far = [np.abs(_cells(each) - _cells(photo)).mean() for each, photo in pairs]
                distances[input_candidate, (low, high)] = float(np.mean(far))
    best, *others = sorted(distances, key=distances.__getitem__) or [OURS]
    near = distances.get(OURS, 1) <= NEAR  # linear networks make sense in several ranges
    clear = not others or distances[best] <= CLEAR * distances[others[0]]
    return best if not near and clear and distances.get(best, 1) <= NEAR else None


def _outputs(
    model: onnx.ModelProto, convention: TakesOnnxFiles, input_range: Range, photos: list[np.ndarray]
) -> list[np.ndarray] | None:
    """Of photos (1, 3, H, W); None where it cannot run, or gives no picture that is like one."""
    try:
        session = open_session(_adapt(model, convention, input_range, (0, 1)), threads=1)
        name = session.get_inputs()[0].name
        outputs = [np.asarray(session.run(None, {name: each})[0]) for each in photos]
    except Exception:  # ONNX Runtime's own classes; what cannot run is said where it is opened
        return None
    sizes = all(o.shape[2:] == each.shape[2:] for o, each in zip(outputs, photos, strict=True))
    return outputs if sizes and outputs[0].shape[1] != 1 else None  # not a matte, nor depth


def _cells(picture: np.ndarray) -> np.ndarray:
    """The mean colours of the squares of (1, C, H, W)."""
    rows, columns = (side // CELL * CELL for side in picture.shape[2:])
    crops = picture[0, :3, :rows, :columns].reshape(3, rows // CELL, CELL, -1, CELL)
    return crops.mean((2, 4))


def _kind(value: onnx.ValueInfoProto) -> int:
    return value.type.tensor_type.elem_type


def _channels_last(value: onnx.ValueInfoProto, convention: TakesOnnxFiles) -> bool:
    sides = [dim.dim_value for dim in value.type.tensor_type.shape.dim]  # 0 where left open
    return (
        (len(sides) == 4 and sides[3] in MODES and sides[1] not in MODES)
        if convention.layout is None
        else (convention.layout == "nhwc")
    )
