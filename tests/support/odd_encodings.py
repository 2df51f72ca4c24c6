"""Pictures made by hand: what Pillow does not write, and the one picture that all of them show."""

import base64
import functools
import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageCms

# 128×64 pixels: A above C on the left, B on the right. Every turn and mirror image shows, and the
# borders are those of JPEG's blocks.
A, B, C = (200, 100, 50), (50, 100, 200), (90, 160, 90)
PICTURE = np.empty((64, 128, 3), np.uint8)
PICTURE[:32, :64], PICTURE[32:, :64], PICTURE[:, 64:] = A, C, B
NOISE = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)


def painted(a, b, c):
    """The picture in other colours."""
    other = np.empty((64, 128, 3), np.uint8)
    other[:32, :64], other[32:, :64], other[:, 64:] = a, c, b
    return other


@dataclass(frozen=True)
class Used:
    """What makes the file's bytes, and the pixels to be read; away from edges if not exact."""

    data: Callable[[], bytes]
    pixels: np.ndarray = field(default_factory=lambda: PICTURE)
    tolerance: int = 0


def fits(read, used):
    off = np.abs(np.asarray(read).astype(int) - used.pixels)
    if used.tolerance:  # chroma of half the resolution runs over the edges by up to 8 pixels
        off = off[np.ix_(np.r_[8:24, 40:56], np.r_[8:56, 72:120])]
    return off.max() <= used.tolerance


def encoded(array, kind, mode=None, **options):
    picture = Image.fromarray(array) if mode is None else Image.fromarray(array).convert(mode)
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def saved(kind, array=PICTURE, mode=None, pixels=PICTURE, tolerance=0, **options):
    return Used(functools.partial(encoded, array, kind, mode, **options), pixels, tolerance)


def jpeg(array=PICTURE, mode=None, pixels=PICTURE, tolerance=3, **options):
    return saved("JPEG", array, mode, pixels, tolerance, **{"quality": 95} | options)


# PNG by hand, for what Pillow does not write


def chunk(name, data, checksum=None):
    checksum = zlib.crc32(name + data) if checksum is None else checksum
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def png(width, height, bits, kind, rows, before=b"", interlaced=0):
    """Kind 0 is grey, 2 RGB; each row begins with its filter; `before` is chunks."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlaced))
    body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + before + body


def rows_of(array):
    return b"".join(b"\0" + row.tobytes() for row in array)


def adam7():
    """PNG's interlacing: seven passes of (x, y, step across, step down)."""
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
    parts = [rows_of(PICTURE[y::dy, x::dx]) for x, y, dx, dy in (*passes, (0, 1, 1, 2))]
    return png(128, 64, 8, 2, b"".join(parts), interlaced=1)


def with_chunk(*parts):
    return png(128, 64, 8, 2, rows_of(PICTURE), chunk(*parts))


# JPEG beyond what Pillow writes


def unpacked(text):
    return zlib.decompress(base64.b64decode(text))


# The picture by libjpeg's arithmetic coder, and with one chroma sample to four pixels of a row.
ARITHMETIC = (
    "eNr7f+P/AwYBLzdPNwZGRgYGRiBk+H+bwZmBmYkJhICABYhYOVhZWVhYudjZ2Th4uHh4uLm4uXn5hAR4+QT5uLkFxA"
    "QEhUVERUV5+MUlxEQkhERERUCGMDID9bCwcrKycorwcvOKkAz+n2QQ5GBwYGhgZlRiYBJkZBZk/H+GgYtBQICVUUCQ"
    "9f8tBh5mRqAEsyCDPcPf229ORIVr+rYK8qw+1F1c1bkncCNX3EVDNn7P1Vu7PpYVsjFPacpOd93R0JLaavLl/00AtX"
    "4vog=="
)
FOUR_ONE_ONE = (
    "eNqVjytPA0EUhc+dB/uY3WWnnd0uCZLg+AMgWEJpQgUCAyE0gQRBUCT0B6wpGiyqdfwB0E2owFESQgoYJAaHX2ZRDS"
    "i+e9TJfZxbTsp3xO3WZgtEANlC+YZ1cMYqWYSVdKUUQvqOM+MGfhAoX6kwqsVhpCOl4jTWdZMkSTDbyFKT1UxiqiXE"
    "7YyQnpSeCVVo/k05hHaRo+C0BqaJaypHSG1UG3MaR1jfxL9c+8oIGf0w7brCc6p+/bf/FQEne4prrOKe3z0VWOwvp7"
    "0htelhYwzvOuoNTrFdnD12wU744Hgfpj//1QGuio+9BmRXbD3Di9XhBZKxXtnFQr50nmMnb34e4BK3c6AO1W8K1mST"
    "IzjlyzeplD5B"
)


def ycck():
    """Adobe's YCbCr + black: inverted inks, of which the first three are then seen as RGB."""
    bright = np.asarray(Image.fromarray(255 - PICTURE).convert("YCbCr"))
    inks = np.dstack([255 - bright, np.zeros((64, 128), np.uint8)])  # Pillow inverts all four
    out = io.BytesIO()
    Image.fromarray(inks, "CMYK").save(out, "JPEG", quality=95, subsampling=0)
    data = bytearray(out.getvalue())
    data[data.index(b"Adobe") + 11] = 2  # the marker's colour transform: none before
    return bytes(data)


def exif(*entries):
    """A TIFF header and its one directory; entries are (tag, type, count, four bytes)."""
    packed = b"".join(struct.pack(">HHI", *entry[:3]) + entry[3] for entry in entries)
    return b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">H", len(entries)) + packed + bytes(4)


def orientation(value):
    return (274, 3, 1, struct.pack(">HH", value, 0))


def turned(value):
    """The picture as stored with this orientation (EXIF 2.3: sides of row 0 and column 0)."""
    other = PICTURE.transpose(1, 0, 2)
    stored = {
        1: PICTURE,  # top, left
        2: PICTURE[:, ::-1],  # top, right
        3: PICTURE[::-1, ::-1],  # bottom, right
        4: PICTURE[::-1],  # bottom, left
        5: other,  # left, top
        6: other[::-1],  # right, top
        7: other[::-1, ::-1],  # right, bottom
        8: other[:, ::-1],  # left, bottom
    }[value]
    return np.ascontiguousarray(stored)


# Colour profiles: primaries as XYZ under D50 (Bruce Lindbloom's tables) and a gamma

SRGB = [(0.43607, 0.22250, 0.01393), (0.38506, 0.71688, 0.09710), (0.14308, 0.06062, 0.71417)]
DISPLAY_P3 = [
    (0.51512, 0.24120, -0.00105),
    (0.29198, 0.69225, 0.04189),
    (0.15710, 0.06657, 0.78407),
]
ADOBE = [(0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457)]
PROPHOTO = [(0.79767, 0.28804, 0.0), (0.13519, 0.71188, 0.0), (0.03134, 0.00009, 0.82521)]


def gamma(power):
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(power * 256)) + bytes(2)


def decode_srgb(x):
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def encode_srgb(x):
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * np.maximum(x, 1e-9) ** (1 / 2.4) - 0.055)


def srgb_curve(points=1024):
    values = decode_srgb(np.linspace(0, 1, points)) * 65535
    return b"curv" + bytes(4) + struct.pack(">I", points) + values.round().astype(">u2").tobytes()


def profile(primaries, curve):
    """ICC.1 version 2.4, a monitor's; grey without primaries."""
    tags = {b"kTRC": curve} if primaries is None else {}
    for name, xyz in zip("rgb", primaries or (), strict=False):
        fixed = b"".join(struct.pack(">i", round(v * 65536)) for v in xyz)
        tags |= {f"{name}XYZ".encode(): b"XYZ " + bytes(4) + fixed, f"{name}TRC".encode(): curve}
    table, body = struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    kind = b"mntr" + (b"GRAY" if primaries is None else b"RGB ") + b"XYZ "
    header = bytes(4) + bytes(4) + b"\2\x40\0\0" + kind + bytes(12) + b"acsp"
    white = b"".join(struct.pack(">i", round(v * 65536)) for v in (0.9642, 1, 0.8249))
    whole = header.ljust(68, b"\0") + white
    whole = whole.ljust(128, b"\0") + table + body
    return struct.pack(">I", len(whole)) + whole[4:]


def seen_in(primaries, linear, array=PICTURE):
    """The sRGB pixels of the colours that `array` means in that space."""
    xyz = linear(array / 255) @ np.array(primaries)
    rgb = encode_srgb((xyz @ np.linalg.inv(np.array(SRGB))).clip(0, 1))
    return (255 * rgb).round().clip(0, 255).astype(np.uint8)


PHONE = profile(DISPLAY_P3, srgb_curve())
PHONE_SEES = seen_in(DISPLAY_P3, decode_srgb)
LAB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


def grey(array):
    """ITU-R 601 luma of every pixel."""
    return (array @ np.array([0.299, 0.587, 0.114]))[..., None].repeat(3, -1).round()


def over_white(colour, alpha):
    return tuple(round(c * alpha + 255 * (1 - alpha)) for c in colour)


def palette():
    """Indices of A, B and C."""
    indices = Image.fromarray(painted(0, 1, 2)[..., 0], "P")
    indices.putpalette([*A, *B, *C])
    return indices


def indexed(**options):
    out = io.BytesIO()
    palette().save(out, "PNG", **options)
    return out.getvalue()


def packed_grey(bits):
    """A PNG of 1/3 of white, which is transparent, 2/3 and black, in `bits` each."""
    levels = painted(*((2**bits - 1) * part // 3 for part in (1, 2, 0)))[..., 0]
    ones = np.unpackbits(levels[..., None], axis=-1)[..., -bits:]
    rows = rows_of(np.packbits(ones.reshape(64, -1), axis=-1))
    return png(128, 64, bits, 0, rows, chunk(b"tRNS", struct.pack(">H", levels[0, 0])))


def see_through(alpha, kind="PNG", mode="RGBA", **options):
    picture = Image.fromarray(PICTURE).convert(mode)
    picture.putalpha(alpha)
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def animated(kind, **options):
    others = [Image.fromarray(255 - PICTURE), Image.fromarray(PICTURE[::-1].copy())]
    return saved(kind, save_all=True, append_images=others, **options)


def wide(width, height):
    """White, one bit a pixel."""
    return png(width, height, 1, 0, (b"\0" + b"\xff" * -(-width // 8)) * height)


def white(width, height):
    return Used(functools.partial(wide, width, height), np.full((height, width, 3), 255, np.uint8))


GREY = grey(PICTURE)
WIDE_16 = PICTURE.astype(">u2") * 257


def black_ink():
    """ICC.1 version 2.4, a press's: lightness is what black leaves of the paper.

    Its lut8 goes from four inks by a grid of 2⁴ points to L*, a*, b* (0 to 255, a and b about 128).
    """
    steps = bytes(range(256))
    grid = b"".join(
        bytes([255 * (1 - point % 2), 128, 128]) for point in range(16)
    )  # K runs fastest
    one = b"".join(struct.pack(">i", 65536 * (i % 4 == 0)) for i in range(9))
    lut = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + one + steps * 4 + grid + steps * 3
    table = struct.pack(">I4sII", 1, b"A2B0", 144, len(lut))
    header = bytes(8) + b"\2\x40\0\0" + b"prtrCMYKLab " + bytes(12) + b"acsp"
    white = b"".join(struct.pack(">i", round(v * 65536)) for v in (0.9642, 1, 0.8249))
    whole = (header.ljust(68, b"\0") + white).ljust(128, b"\0") + table + lut
    return struct.pack(">I", len(whole)) + whole[4:]


def linear_grey():
    """ICC.1 version 2.4, a grey display of gamma 1: an empty curve is the identity."""
    tags = [(b"wtpt", b"XYZ " + bytes(4)), (b"kTRC", b"curv" + bytes(8))]
    white = b"".join(struct.pack(">i", round(v * 65536)) for v in (0.9642, 1, 0.8249))
    data = [tags[0][1] + white, tags[1][1]]
    table, place = struct.pack(">I", len(tags)), 128 + 4 + 12 * len(tags)
    for (name, _), each in zip(tags, data, strict=True):
        table += name + struct.pack(">II", place, len(each))
        place += len(each)
    header = bytes(8) + b"\2\x40\0\0" + b"mntrGRAYXYZ " + bytes(12) + b"acsp"
    whole = (header.ljust(68, b"\0") + white).ljust(128, b"\0") + table + b"".join(data)
    return struct.pack(">I", len(whole)) + whole[4:]
