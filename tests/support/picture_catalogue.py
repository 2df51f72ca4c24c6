"""Bad and odd pictures, each made here, each with what shall become of it.

`USED` says the pixels, `SKIPPED` and `PLACED` the reason, `NOT_TAKEN` what is no photo at all. The
keys are file names.
"""

import functools
import io
import os
import struct
import zipfile
from dataclasses import replace

import numpy as np
from PIL import Image, features

from distill.data.photos import MAX_PIXELS
from support.odd_encodings import (
    ADOBE,
    ARITHMETIC,
    FOUR_ONE_ONE,
    GREY,
    LAB,
    NOISE,
    PHONE,
    PHONE_SEES,
    PICTURE,
    PROPHOTO,
    SRGB,
    WIDE_16,
    A,
    B,
    C,
    Used,
    adam7,
    animated,
    chunk,
    encode_srgb,
    encoded,
    exif,
    gamma,
    indexed,
    jpeg,
    orientation,
    over_white,
    packed_grey,
    painted,
    palette,
    png,
    profile,
    rows_of,
    saved,
    see_through,
    seen_in,
    srgb_curve,
    turned,
    unpacked,
    white,
    wide,
    with_chunk,
    ycck,
)

USED = {
    "plain.jpg": jpeg(),
    "plain.png": saved("PNG"),
    "plain.webp": saved("WEBP", lossless=True),
    "lossy.webp": saved("WEBP", quality=95, tolerance=4),
    # Another kind than the name says
    "a png.jpg": saved("PNG"),
    "a jpeg.png": jpeg(),
    "a webp.jpeg": saved("WEBP", lossless=True),
    "a gif.jpg": Used(lambda: encoded(np.asarray(palette().convert("RGB")), "GIF"), tolerance=1),
    "a bmp.jpg": saved("BMP"),
    "a tiff.jpg": saved("TIFF"),
    "a turned tiff.jpg": saved("TIFF", turned(6), tiffinfo={274: 6}),
    "two pictures of a phone (MPO).jpg": saved(
        "MPO", tolerance=3, save_all=True, append_images=[Image.new("RGB", (80, 80))], quality=95
    ),
    # Kinds of JPEG
    "progressive.jpg": jpeg(progressive=True),
    "chroma 4-2-0.jpg": jpeg(subsampling=2),
    "chroma 4-1-1.jpg": Used(lambda: unpacked(FOUR_ONE_ONE), tolerance=3),
    "arithmetic coding.jpg": Used(lambda: unpacked(ARITHMETIC), tolerance=3),
    "grey.jpg": jpeg(mode="L", pixels=GREY),
    "four inks (Adobe CMYK).jpg": jpeg(mode="CMYK"),
    "four inks (YCCK).jpg": Used(ycck, tolerance=3),
    "garbage behind.jpg": Used(
        lambda: encoded(PICTURE, "JPEG", quality=95) + NOISE.tobytes(), tolerance=3
    ),
    "zeros behind.jpg": Used(
        lambda: encoded(PICTURE, "JPEG", quality=95) + bytes(4096), tolerance=3
    ),
    # Kinds of PNG
    "16 bits grey.png": Used(
        lambda: png(128, 64, 16, 0, rows_of(WIDE_16[..., :1])), np.repeat(PICTURE[..., :1], 3, -1)
    ),
    "16 bits colour.png": Used(lambda: png(128, 64, 16, 2, rows_of(WIDE_16))),
    "1 bit.png": saved(
        "PNG",
        painted((255,) * 3, (0,) * 3, (255,) * 3),
        "1",
        painted((255,) * 3, (0,) * 3, (255,) * 3),
    ),
    "grey.png": saved("PNG", mode="L", pixels=GREY, tolerance=1),
    "palette.png": Used(indexed),
    "palette, one see-through.png": Used(
        lambda: indexed(transparency=0), painted((255,) * 3, B, C)
    ),
    "palette, an alpha each.png": Used(
        lambda: indexed(transparency=bytes([255, 51, 0])),
        painted(A, over_white(B, 0.2), (255,) * 3),
        1,
    ),
    "RGB, one see-through.png": saved("PNG", transparency=A, pixels=painted((255,) * 3, B, C)),
    **{
        f"{bits} bits grey, one see-through.png": Used(
            functools.partial(packed_grey, bits), painted((255,) * 3, (170,) * 3, (0,) * 3)
        )
        for bits in (2, 4)
    },
    "grey and alpha.png": Used(lambda: see_through(51, mode="LA"), 0.2 * GREY + 0.8 * 255, 2),
    "all see-through.png": Used(lambda: see_through(0), painted(*[(255,) * 3] * 3)),
    "half see-through.webp": Used(
        lambda: see_through(51, "WEBP", lossless=True),
        painted(*(over_white(c, 0.2) for c in (A, B, C))),
        1,
    ),
    "interlaced.png": Used(adam7),
    "gamma of sRGB.png": Used(lambda: with_chunk(b"gAMA", struct.pack(">I", 45455))),
    "gamma 1.png": Used(
        lambda: with_chunk(b"gAMA", struct.pack(">I", 100000))
    ),  # often wrong: not heeded
    "garbage behind.png": Used(lambda: encoded(PICTURE, "PNG") + NOISE.tobytes()),
    "last checksum lost.png": Used(lambda: encoded(PICTURE, "PNG")[:-4]),
    # Moving ones: the first picture
    "animated gif.jpg": replace(animated("GIF"), tolerance=1),
    "animated.png": animated("PNG"),
    "animated.webp": animated("WEBP", lossless=True),
    # EXIF
    **{f"orientation {n}.jpg": jpeg(turned(n), exif=exif(orientation(n))) for n in range(1, 9)},
    **{f"orientation {n}.png": saved("PNG", turned(n), exif=exif(orientation(n))) for n in (6, 7)},
    "orientation 9.jpg": jpeg(exif=exif(orientation(9))),
    "orientation in words.jpg": jpeg(exif=exif((274, 2, 4, b"up!\0"))),
    "EXIF of nothing.jpg": jpeg(exif=b"Exif\0\0no TIFF header at all"),
    "EXIF of nothing.webp": saved("WEBP", lossless=True, exif=b"Exif\0\0no TIFF header at all"),
    "EXIF cut in its header.png": saved("PNG", exif=b"Exif\0\0MM\0*"),
    "EXIF cut short.jpg": jpeg(turned(6), exif=exif(orientation(6))[:-3]),
    # A width that is text: Pillow reads such a directory and cannot write it again.
    "EXIF damaged elsewhere.jpg": jpeg(
        turned(6), exif=exif(orientation(6), (256, 2, 3, b"ab\0\0"))
    ),
    # Colour profiles
    "profile sRGB.jpg": jpeg(icc_profile=profile(SRGB, srgb_curve())),
    "profile sRGB.png": saved("PNG", NOISE, pixels=NOISE, icc_profile=profile(SRGB, srgb_curve())),
    "profile sRGB, 26 points.png": saved(
        "PNG", NOISE, pixels=NOISE, icc_profile=profile(SRGB, srgb_curve(26))
    ),
    "profile Display P3.jpg": jpeg(icc_profile=PHONE, pixels=PHONE_SEES),
    "profile Display P3.png": saved("PNG", icc_profile=PHONE, pixels=PHONE_SEES, tolerance=1),
    "profile Display P3.webp": saved(
        "WEBP", lossless=True, icc_profile=PHONE, pixels=PHONE_SEES, tolerance=1
    ),
    "profile Display P3, palette.png": Used(lambda: indexed(icc_profile=PHONE), PHONE_SEES, 1),
    "profile Display P3, half see-through.png": Used(
        lambda: see_through(51, icc_profile=PHONE), 0.2 * PHONE_SEES + 0.8 * 255, 2
    ),
    "profile Display P3, turned.jpg": jpeg(
        turned(6), exif=exif(orientation(6)), icc_profile=PHONE, pixels=PHONE_SEES
    ),
    "profile Adobe RGB.png": saved(
        "PNG",
        icc_profile=profile(ADOBE, gamma(2.2)),
        pixels=seen_in(ADOBE, lambda x: x**2.2),
        tolerance=1,
    ),
    "profile ProPhoto.png": saved(
        "PNG",
        icc_profile=profile(PROPHOTO, gamma(1.8)),
        pixels=seen_in(PROPHOTO, lambda x: x**1.8),
        tolerance=1,
    ),
    "profile linear grey.png": saved(
        "PNG",
        mode="L",
        icc_profile=profile(None, gamma(1)),
        pixels=255 * encode_srgb(GREY / 255),
        tolerance=1,
    ),
    "profile of colours in a grey.jpg": jpeg(mode="L", icc_profile=PHONE, pixels=GREY),
    "profile of Lab.png": saved("PNG", icc_profile=LAB),
    "profile cut short.jpg": jpeg(icc_profile=PHONE[:200]),
    "profile of junk.png": saved("PNG", icc_profile=b"no profile" * 50),
    # Sizes
    "least.png": white(64, 64),
    "flat.png": white(20_000, 64),
    "high.png": white(64, 20_000),
    # Names
    "UPPER.JPG": jpeg(),
    "日本 ü é.jpg": jpeg(),
    "\N{GRINNING FACE}.png": saved("PNG"),
    "new\nline.png": saved("PNG"),
    "tab\tand\rreturn.png": saved("PNG"),
    "line\u2028separator.png": saved("PNG"),
    "-rf.png": saved("PNG"),
    "quotes ' and \".png": saved("PNG"),
    "%s {0} $HOME `id` \\.png": saved("PNG"),
    " .png": saved("PNG"),
    "two.dots.png": saved("PNG"),
    "n" * 251 + ".png": saved("PNG"),
    "folder.jpg/in a folder.png": saved("PNG"),
    os.fsdecode(b"caf\xe9.png"): saved("PNG"),
}
if features.check("avif"):
    USED["an avif.jpg"] = saved("AVIF", quality=95, tolerance=5)

NO_PICTURE = "not a picture, or of an unknown kind"
CUT = "unreadable or cut short ("
LARGE = f"larger than {MAX_PIXELS} pixels"
NO_FILE = "not a file but a folder, pipe, socket or device"


def cut(tenths, kind, **options):
    data = encoded(NOISE, kind, **options)
    return data[: len(data) * tenths // 10]


def blank_end(kind, **options):
    data = encoded(NOISE, kind, **options)
    return data[: len(data) // 2].ljust(len(data), b"\0")


def changed(data, mark, offset):
    """With one bit of it turned, `offset` behind a chunk's name."""
    data = bytearray(data)
    data[data.index(mark) + offset] ^= 1
    return bytes(data)


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.jpg", encoded(PICTURE, "JPEG"))
    return out.getvalue()


def bomb(width, height):
    """Its header claims that many pixels."""
    return png(width, height, 8, 2, b"")


def of_mode(mode, colour):
    out = io.BytesIO()
    Image.new(mode, (80, 80), colour).save(out, "TIFF")
    return out.getvalue()


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 90 90\n%%EndComments\nshowpage\n%%EOF\n"
KINDS = {
    "jpg": ("JPEG", {}),
    "progressive.jpg": ("JPEG", {"progressive": True}),
    "png": ("PNG", {}),
    "webp": ("WEBP", {}),
    "lossless.webp": ("WEBP", {"lossless": True}),
}

# Name → (what makes its bytes, how the reason begins)
SKIPPED = {
    **{
        f"cut at {n} tenths.{name}": (functools.partial(cut, n, kind, **options), CUT)
        for n in range(1, 10)
        for name, (kind, options) in KINDS.items()
    },
    "end mark lost.jpg": (lambda: encoded(PICTURE, "JPEG")[:-2], CUT),
    "end chunk lost.png": (lambda: encoded(PICTURE, "PNG")[:-12], CUT),
    # What a crash leaves of a file whose end was not written yet; JPEG's decoder takes it for grey.
    "blank end.jpg": (lambda: blank_end("JPEG", quality=95), "cut short: the end of the file is"),
    "blank end.webp": (lambda: blank_end("WEBP"), "cut short: the end of the file is blank"),
    "blank end.png": (lambda: blank_end("PNG"), CUT),
    "all blank.jpg": (lambda: bytes(5000), NO_PICTURE),
    "bad checksum of the header.png": (
        lambda: changed(encoded(NOISE, "PNG"), b"IHDR", 17),
        NO_PICTURE,
    ),
    "bad checksum of the pixels.png": (
        lambda: encoded(PICTURE, "PNG")[:-16] + b"oops" + chunk(b"IEND", b""),
        CUT,
    ),
    "16 bits colour, one see-through.png": (
        lambda: png(128, 64, 16, 2, rows_of(WIDE_16), chunk(b"tRNS", bytes(6))),
        "a PNG of 16-bit colours, one transparent, is not supported",
    ),
    "bad pixels.png": (lambda: changed(encoded(NOISE, "PNG"), b"IDAT", 999), CUT),
    "garbage ahead.jpg": (lambda: b"garbage" + encoded(PICTURE, "JPEG"), NO_PICTURE),
    # Other things
    "empty.jpg": (lambda: b"", "not a picture: the file is empty"),
    "empty.png": (lambda: b"", "not a picture: the file is empty"),
    "one byte.jpg": (lambda: b"\xff", NO_PICTURE),
    "signature alone.png": (lambda: b"\x89PNG\r\n\x1a\n", ""),
    "page.jpg": (lambda: b"<!doctype html><title>404</title>", NO_PICTURE),
    "text.jpg": (lambda: "nothing to see, é".encode(), NO_PICTURE),
    "json.png": (lambda: b'{"error": "not found"}', NO_PICTURE),
    "archive.jpg": (zipped, NO_PICTURE),
    "document.png": (lambda: b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n", NO_PICTURE),
    "drawing.png": (
        lambda: b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"/>',
        NO_PICTURE,
    ),
    "a phone's heic.jpg": (lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(99), NO_PICTURE),
    "film.jpg": (lambda: b"\0\0\0\x18ftypisom\0\0\2\0isomiso2" + bytes(99), NO_PICTURE),
    "program.jpg": (lambda: EPS, "not a photo but a file of the kind EPS"),
    "bare pixels.png": (
        lambda: encoded(PICTURE, "PPM"),
        "not a photo but a file of the kind PPM",
    ),
    "real numbers.jpg": (lambda: of_mode("F", 0.5), "pixels of the kind F"),
    "Lab.jpg": (lambda: of_mode("LAB", (50, 128, 128)), "pixels of the kind LAB"),
    # Sizes
    "dot.png": (lambda: wide(1, 1), "1×1 pixels: smaller than 64 a side"),
    "line.png": (lambda: wide(20_000, 4), "20000×4 pixels: smaller than 64 a side"),
    "pole.png": (lambda: wide(4, 20_000), "4×20000 pixels: smaller than 64 a side"),
    "one row short.png": (lambda: wide(64, 63), "64×63 pixels: smaller than 64 a side"),
    "bomb.png": (lambda: bomb(100_000, 100_000), LARGE),
    "largest PNG.png": (lambda: bomb(2**31 - 1, 2**31 - 1), LARGE),
    "real bomb.png": (lambda: wide(9460, 9459), LARGE),  # a file of 11 KB
    "bomb.jpg": (
        lambda: encoded(PICTURE, "JPEG").replace(b"\0\x40\0\x80", b"\xff\xff\xff\xff"),
        LARGE,
    ),
    # Names
    "a\nb\tc \u2028 \N{GRINNING FACE}.jpg": (lambda: b"no", NO_PICTURE),
    os.fsdecode(b"\xff\xfe.jpg"): (lambda: b"no", NO_PICTURE),
}

# Name → (what puts it there, how the reason begins)
PLACED = {
    "link to nowhere.jpg": (lambda path: path.symlink_to("gone"), "cannot be read (No such file"),
    "link to itself.jpg": (lambda path: path.symlink_to(path), "cannot be read (Too many levels"),
    "link to zeros.jpg": (lambda path: path.symlink_to("/dev/zero"), NO_FILE),
    "pipe.jpg": (os.mkfifo, NO_FILE),
    "link to a pipe.png": (lambda path: path.symlink_to("pipe"), NO_FILE),
    "socket.png": (lambda path: os.mknod(path, 0o140600), NO_FILE),
}

NOT_TAKEN = {
    "no suffix": saved("PNG").data,
    "clip.gif": saved("GIF").data,
    "notes.txt": lambda: b"x",
    "film.jpg.part": saved("PNG").data,
    ".hidden.jpg": saved("PNG").data,
    "._of a Mac.jpg": saved("PNG").data,
    ".thumbnails/x.jpg": saved("PNG").data,
    "pairs of ours/dataset.json": lambda: b"{}",
    "pairs of ours/x.png": saved("PNG").data,
}
