"""Networks of other conventions: other ranges of values, BGR, channels last, other element types.

A few nodes before and behind such a graph make it one from float32 (1, 3, height, width), RGB in
[0, 1], to the same: everything after it knows one convention.
"""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from distill.config.settings.commands import TakesOnnxFiles
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


def adapt(model: onnx.ModelProto, said: TakesOnnxFiles, name: str) -> tuple[onnx.ModelProto, str]:
    """A network of one picture as one from float32 (1, 3, H, W), RGB in [0, 1], to the same.

    `said` are its ranges, channels and layout; its element types may be float32, float16 or uint8.
    Ranges that are not said are found by photographs, where one pair of them is clearly right; else
    they are [0, 1]. Also a line on what was found, "" where that is [0, 1]. Raises DistillError
    where one range is said and the other is not found.
    """
    for key, span in zip(KEYS, (said.input_range, said.output_range), strict=True):
        if span and span[0] == span[1]:
            raise DistillError(f"{key}={list(span)}: want two different values, black and white")
    told: dict[str, Range] = {}
    with suppress(ValueError, TypeError, KeyError):  # a file of others may have anything there
        about = json.loads(noted(model, ABOUT) or "{}")
        told = {end: r for end in ENDS for r in RANGES if [*r] == about[end]["range"]}
    taken, given = (
        span or ((0.0, 255.0) if _kind(value) == TensorProto.UINT8 else None) or told.get(end)
        for span, value, end in zip(
            (said.input_range, said.output_range),
            (model_inputs(model)[0], model.graph.output[0]),
            ENDS,
            strict=True,
        )
    )
    if taken and given:
        return _adapted(model, said, taken, given), ""
    found = _ranges(model, said, taken, given)
    if found is None and (said.input_range or said.output_range):
        missing = "output_range" if said.input_range else "input_range"
        raise DistillError(f"{name}: say {missing}=[BLACK,WHITE] too; photographs do not tell it")
    ranges = found or OURS
    shown = [f"{key}=[{low:g},{high:g}]" for key, (low, high) in zip(KEYS, ranges, strict=True)]
    line = f"{name}: {' '.join(shown)}, found by photographs; type another one if it is wrong"
    return _adapted(model, said, *ranges), "" if ranges == OURS else line


def _adapted(model: onnx.ModelProto, said: TakesOnnxFiles, taken: Range, given: Range) -> Any:
    """The graph with the nodes that its ranges, channels, layout and element types ask for."""
    entry = model_inputs(model)[0]
    to_kind, from_kind = _kind(entry), _kind(model.graph.output[0])
    last, out_last = (_channels_last(each, said) for each in (entry, model.graph.output[0]))
    order = np.array([2, 1, 0], np.int64)
    reverse: list[Step] = [("Gather", order, {"axis": 1})] if said.channels == "bgr" else []

    def number(value: float) -> np.ndarray:
        return np.asarray(value, np.float32)

    before = [*reverse]
    if taken != (0, 1):
        before += [("Mul", number(taken[1] - taken[0]), {}), ("Add", number(taken[0]), {})]
    before += [("Transpose", None, {"perm": [0, 2, 3, 1]})] if last else []
    before += [("Add", number(0.5), {})] if to_kind == TensorProto.UINT8 else []
    before += [("Cast", None, {"to": to_kind})] if to_kind != TensorProto.FLOAT else []
    behind: list[Step] = []
    if from_kind != TensorProto.FLOAT:
        behind.append(("Cast", None, {"to": TensorProto.FLOAT}))
    behind += [("Transpose", None, {"perm": [0, 3, 1, 2]})] if out_last else []
    if given != (0, 1):
        behind += [("Sub", number(given[0]), {}), ("Div", number(given[1] - given[0]), {})]
    behind += reverse
    dims = entry.type.tensor_type.shape.dim
    sides = [dim.dim_value or None for dim in (dims[1:3] if last else dims[2:4])]
    ours = helper.make_tensor_value_info("", TensorProto.FLOAT, [1, 3, *sides])
    stylised = helper.make_tensor_value_info("", TensorProto.FLOAT, [1, None, None, None])
    return wrapped(model, before, behind, ours, stylised) if before or behind else model


def _ranges(
    model: onnx.ModelProto,
    said: TakesOnnxFiles,
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
    dims, last = entry.type.tensor_type.shape.dim, _channels_last(entry, said)
    sides = [dim.dim_value or SIDE for dim in (dims[1:3] if last else dims[2:4])]
    photos = [centre_square(read_photo(photo.path), max(sides)) for photo in demo_photos()]
    pictures = [np.asarray(p, np.float32).transpose(2, 0, 1)[None] / 255 for p in photos]

    def cells(picture: np.ndarray) -> np.ndarray:
        rows, columns = (side // CELL * CELL for side in picture.shape[2:])
        cut = picture[0, :3, :rows, :columns].reshape(3, rows // CELL, CELL, -1, CELL)
        return cut.mean((2, 4))

    distances = dict[tuple[Range, Range], float]()
    for taken in [input_range] if input_range else RANGES:
        try:
            session = open_session(_adapted(model, said, taken, (0, 1)), threads=1)
            name = session.get_inputs()[0].name
            cut = [picture[..., : sides[0], : sides[1]] for picture in pictures]
            outputs = [np.asarray(session.run(None, {name: each})[0]) for each in cut]
        except Exception:  # ONNX Runtime's own classes; what cannot run is said where it is opened
            return None
        if any(o.shape[2:] != each.shape[2:] for o, each in zip(outputs, cut, strict=True)):
            return None
        for given in [output_range] if output_range else RANGES:
            scaled = [(output - given[0]) / (given[1] - given[0]) for output in outputs]
            edges = np.array([np.quantile(each, (0.005, 0.995)) for each in scaled])
            if edges.min() >= -BEYOND and edges.max() <= 1 + BEYOND:  # false for NaN too
                pairs = zip(scaled, cut, strict=True)
                far = [np.abs(cells(each) - cells(photo)).mean() for each, photo in pairs]
                distances[taken, given] = float(np.mean(far))
    best, *others = sorted(distances, key=distances.__getitem__) or [OURS]
    near = distances.get(OURS, 1) <= NEAR  # linear networks make sense in several ranges
    clear = not others or distances[best] <= CLEAR * distances[others[0]]
    return best if not near and clear and distances.get(best, 1) <= NEAR else None


def _kind(value: onnx.ValueInfoProto) -> int:
    return value.type.tensor_type.elem_type


def _channels_last(value: onnx.ValueInfoProto, said: TakesOnnxFiles) -> bool:
    sides = [dim.dim_value for dim in value.type.tensor_type.shape.dim]  # 0 where left open
    return (
        (len(sides) == 4 and sides[3] in (3, 4) and sides[1] not in (3, 4))
        if said.layout is None
        else (said.layout == "nhwc")
    )
