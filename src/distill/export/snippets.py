"""Code for an app, written beside an export for the very file: its size, forms and names."""

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
    "FILL": "edges = [(0, 0), (0, -photo.height % 32), (0, -photo.width % 32), (0, 0)]\n"
    'pixels = np.pad(pixels, edges, "edge")  # the network wants multiples of 32\n',
    "CUT": ", : photo.height, : photo.width",
}


def snippets_of(each: Format, exporter: OnnxExporter, channels: int) -> dict[str, str]:
    """The text of each snippet by its ending, of templates that have the format's first word.

    They show the exporter's sides where a file takes any.
    """
    about = each.about(exporter, channels)
    family = each.name.split("_")[0]
    values = _values(about, each.files[0], exporter.sides)
    dynamic = any("height" in str(side) for side in about["input"]["shape"])
    values |= FILLED if dynamic else FITTED
    values["FREE"] = "  // any multiples of 32: fill others up, and cut the output" * dynamic
    templates = sorted(each.templates().glob(f"{family}.*.txt"))
    return {path.name.split(".")[1]: filled(path, values) for path in templates}


def filled(template: Path, values: Mapping[str, Any]) -> str:
    """A template with its @NAMES@ replaced."""
    text = template.read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def _values(about: Mapping[str, Any], file: str, sides: tuple[int, int]) -> dict[str, Any]:
    input_facts, output_facts = about["input"], about["output"]
    batch, (height, width) = input_facts["shape"][0], sides
    batch, channels = 1 if isinstance(batch, str) else batch, len(output_facts["channels"])
    values: dict[str, Any] = {
        "FILE": file, "WEIGHTS": file.replace(".param", ".bin"), "WIDTH": width, "HEIGHT": height,
        "BATCH": batch, "CHANNELS": channels, "ORDER": output_facts["channels"],
        "INPUT": input_facts["name"], "OUTPUT": output_facts["name"],
        "KT_ALPHA": "byteOf(i, 3)" if channels == 4 else "255",
    }  # fmt: skip
    for key, end, count in (("IN", input_facts, 3), ("OUT", output_facts, channels)):
        byte, last = end["type"] == "uint8", end["layout"] == "NHWC"
        times = "*" if key == "OUT" else "/"  # between bytes and what the file has
        scale = f" {times} 255" if end["range"][1] == 1 else ""
        shape = [batch, height, width, count] if last else [batch, count, height, width]
        picture = end["type"] == "picture"
        what = f"{'a pixel buffer' if picture else 'an array'} of {shape}"
        values |= {
            f"{key}_TYPE": end["type"], f"{key}_SHAPE": shape, f"{key}_SCALE": scale,
            f"{key}_BYTES": 1 if byte else 4, f"{key}_SCALE_C": f"{scale}.0f" if scale else "",
            f"{key}_INDEX": f"{count} * i + c" if last else "c * SIZE + i",
            f"{key}_NORM": f"1.0f{scale}.0f" if scale else "1.0f",
            f"JS_{key}": "Uint8Array" if byte else "Float32Array",
            f"C_{key}": "uint8_t" if byte else "float",
            f"SWIFT_{key}": f"{what}, {end['channels']}, values in {end['range']}",
            "SWIFT_GET": "imageBufferValue" if picture else "multiArrayValue",
        }  # fmt: skip
        if key == "IN":
            array = "pixels" if last else "pixels.transpose(0, 3, 1, 2)"
            kotlin = f"input.putFloat(4 * at, value{f'{scale}f' if scale else '.toFloat()'})"
            values["PY_IN"] = array if byte else f"np.float32({array}){scale}"
            values["KT_PUT"] = "input.put(at, value.toByte())" if byte else kotlin
            values["C_SHAPE"] = str(shape)[1:-1]
            values["SWIFT_AS"] = "pixelBuffer" if picture else "multiArray"
        else:
            output_array = "output" if last else "output.transpose(0, 2, 3, 1)"
            kotlin_byte = f"(output.getFloat(4 * at){scale} + 0.5f).toInt().coerceIn(0, 255)"
            values["PY_OUT"] = (
                output_array if byte else f"np.uint8(np.clip({output_array}{scale} + 0.5, 0, 255))"
            )
            values["PY_GREY"] = "[..., 0]" if channels == 1 else ""
            values["JS_CHANNELS"] = max(channels, 3)  # grey for red, green and blue
            values["JS_INDEX"] = values["OUT_INDEX"] if channels > 1 else "i"
            values["KT_GET"] = "output.get(at).toInt() and 255" if byte else kotlin_byte
    return values
