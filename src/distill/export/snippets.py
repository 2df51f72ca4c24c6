"""Code for an app, written beside an export for the very file: its size, forms and names."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from distill.export.format import Format
from distill.export.onnx import OnnxExporter

READ = 'photo.convert("RGB")'
# How Python takes a photo: fitted, or of its own size and filled up by its last row and column.
FITTED = {"PICTURE": f"ImageOps.fit({READ}, (WIDTH, HEIGHT))", "FILL": "", "CUT": ""}
FILLED = {
    "PICTURE": READ,
    "FILL": "\nedges = [(0, 0), (0, -photo.height % 32), (0, -photo.width % 32), (0, 0)]\n"
    'pixels = np.pad(pixels, edges, "edge")  # the network wants multiples of 32',
    "CUT": ", : photo.height, : photo.width",
}
# What a call has more where another file computes a second input.
BESIDE = {
    "PY_MORE": ', "summary": summary',
    "JS_MORE": ", summary",
    "JS_ARGUMENT": ", summarizer",
    "C_ARGUMENT": "Ort::Session& summarizer, ",
    "C_MORE": ', "summary"',
    "C_SUMMARIZER": ', summarizer(env, "@SUMMARY@", Ort::SessionOptions{})',
}


def snippets_of(
    each: Format, exporter: OnnxExporter, channels: int, summary: str = ""
) -> dict[str, str]:
    """The text of each snippet by its ending, of templates that have the format's first word.

    They show the exporter's sides where a file takes any. `summary` is the file that computes the
    second input of one that has it.
    """
    about = each.about(exporter, channels)
    family = each.name.split("_")[0]
    values = _values(about, each.files[0], exporter.sides)
    dynamic = any("height" in str(side) for side in about["input"]["shape"])
    values |= FILLED if dynamic else FITTED
    values["FREE"] = "  // any multiples of 32: fill others up, and cut the output" * dynamic
    values |= {key: text if summary else "" for key, text in BESIDE.items()}
    values |= {"SUMMARY": summary or None, "TWO_INPUTS": "" if summary else None}
    templates = sorted(each.templates().glob(f"{family}.*.txt"))
    return {path.name.split(".")[1]: filled(path, values) for path in templates}


def filled(template: Path, values: Mapping[str, Any]) -> str:
    """A template with its @NAMES@ replaced, without the lines that have a name of value None."""
    text = template.read_text(encoding="utf-8")
    for key, value in values.items():
        if value is None:
            text = re.sub(rf".*@{key}@.*\n", "", text)
        text = text.replace(f"@{key}@", str(value))
    return text


def _values(about: Mapping[str, Any], file: str, sides: tuple[int, int]) -> dict[str, Any]:
    input_facts, output_facts = about["input"], about["output"]
    batch, (height, width) = input_facts["shape"][0], sides
    batch, channels = 1 if isinstance(batch, str) else batch, len(output_facts["channels"])
    shared: dict[str, Any] = {
        "FILE": file, "WEIGHTS": file.replace(".param", ".bin"), "WIDTH": width, "HEIGHT": height,
        "BATCH": batch, "CHANNELS": channels, "ORDER": output_facts["channels"],
        "INPUT": input_facts["name"], "OUTPUT": output_facts["name"],
        "KT_ALPHA": "byteOf(i, 3)" if channels == 4 else "255",
    }  # fmt: skip
    size = batch, height, width
    return shared | _input_values(input_facts, size) | _output_values(output_facts, size, channels)


def _input_values(end: Mapping[str, Any], size: tuple[int, int, int]) -> dict[str, Any]:
    values = _end_values("IN", end, size, 3, "/")
    scale, byte = values["IN_SCALE"], end["type"] == "uint8"
    array = "pixels" if end["layout"] == "NHWC" else "pixels.transpose(0, 3, 1, 2)"
    kotlin = f"input.putFloat(4 * at, value{f'{scale}f' if scale else '.toFloat()'})"
    return values | {
        "PY_IN": array if byte else f"np.float32({array}){scale}",
        "KT_PUT": "input.put(at, value.toByte())" if byte else kotlin,
        "C_SHAPE": str(values["IN_SHAPE"])[1:-1],
        "SWIFT_AS": "pixelBuffer" if end["type"] == "picture" else "multiArray",
    }


def _output_values(
    end: Mapping[str, Any], size: tuple[int, int, int], channels: int
) -> dict[str, Any]:
    values = _end_values("OUT", end, size, channels, "*")
    scale, byte = values["OUT_SCALE"], end["type"] == "uint8"
    array = "output" if end["layout"] == "NHWC" else "output.transpose(0, 2, 3, 1)"
    kotlin = f"(output.getFloat(4 * at){scale} + 0.5f).toInt().coerceIn(0, 255)"
    return values | {
        "PY_OUT": array if byte else f"np.uint8(np.clip({array}{scale} + 0.5, 0, 255))",
        "PY_GREY": "[..., 0]" if channels == 1 else "",
        "JS_CHANNELS": max(channels, 3),  # grey for red, green and blue
        "JS_INDEX": values["OUT_INDEX"] if channels > 1 else "i",
        "KT_GET": "output.get(at).toInt() and 255" if byte else kotlin,
        "SWIFT_GET": "imageBufferValue" if end["type"] == "picture" else "multiArrayValue",
    }


def _end_values(
    key: str, end: Mapping[str, Any], size: tuple[int, int, int], count: int, times: str
) -> dict[str, Any]:
    """What input and output have alike; `times`: between bytes and what the file has, / or *."""
    (batch, *sides), last = size, end["layout"] == "NHWC"
    byte, picture = end["type"] == "uint8", end["type"] == "picture"
    shape = [batch, *sides, count] if last else [batch, count, *sides]
    scale = f" {times} 255" if end["range"][1] == 1 else ""
    what = f"{'a pixel buffer' if picture else 'an array'} of {shape}"
    return {
        f"{key}_TYPE": end["type"], f"{key}_SHAPE": shape, f"{key}_SCALE": scale,
        f"{key}_BYTES": 1 if byte else 4, f"{key}_SCALE_C": f"{scale}.0f" if scale else "",
        f"{key}_INDEX": f"{count} * i + c" if last else "c * SIZE + i",
        f"{key}_NORM": f"1.0f{scale}.0f" if scale else "1.0f",
        f"JS_{key}": "Uint8Array" if byte else "Float32Array",
        f"C_{key}": "uint8_t" if byte else "float",
        f"SWIFT_{key}": f"{what}, {end['channels']}, values in {end['range']}",
    }  # fmt: skip
