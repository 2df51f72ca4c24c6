"""TIFF files of any samples, written from TIFF 6.0 alone: Pillow writes few kinds of them."""

import struct
import zlib
from typing import Any

import numpy as np

REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))  # the bits of each byte
SHORT, LONG = (3, "H"), (4, "I")


def tiff(
    samples: np.ndarray,
    bits: int,
    photometric: int,
    order: str = "<",
    sample_format: int = 1,
    fill: int = 1,
    tile: int | None = None,
    planes: bool = False,
    deflate: bool = False,
    extra: tuple[int, ...] = (),
    colours: Any = None,
    pages: int = 1,
    orientation: int = 1,
) -> bytes:
    """Samples (H, W) or (H, W, C), integers of `bits` bits or (sample_format 3) floats."""
    samples = samples.reshape(*samples.shape[:2], -1)
    height, width, channels = samples.shape

    def packed(block: np.ndarray) -> bytes:
        rows = block.reshape(len(block), -1)
        if sample_format == 3:
            data = rows.astype(f"{order}f{bits // 8}").tobytes()
        elif bits in (8, 16, 32):
            data = (rows.astype(np.int64) % 2**bits).astype(f"{order}u{bits // 8}").tobytes()
        else:  # from the highest bit on, each row from a new byte
            each = rows.astype(np.int64)[..., None] % 2**bits >> np.arange(bits)[::-1] & 1
            data = np.packbits(each.astype(np.uint8).reshape(len(rows), -1), axis=1).tobytes()
        data = data.translate(REVERSED) if fill == 2 else data
        return zlib.compress(data, 1) if deflate else data

    parts = [samples[..., i : i + 1] for i in range(channels)] if planes else [samples]
    side = (height, width) if tile is None else (tile, tile)
    blocks = []
    for part in parts:
        for top in range(0, height, side[0]):
            for left in range(0, width, side[1]):
                inside = part[top : top + side[0], left : left + side[1]]
                block = np.zeros((*side, part.shape[2]), part.dtype)
                block[: inside.shape[0], : inside.shape[1]] = inside
                blocks.append(packed(block))

    data = bytearray((b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 0))
    link = 4

    def put(content: bytes) -> int:
        data.extend(b"\0" * (len(data) % 2))
        data.extend(content)
        return len(data) - len(content)

    for _ in range(pages):
        places, lengths = [put(block) for block in blocks], [len(block) for block in blocks]
        tags = {
            256: (LONG, [width]),
            257: (LONG, [height]),
            258: (SHORT, [bits] * channels),
            259: (SHORT, [8 if deflate else 1]),
            262: (SHORT, [photometric]),
            266: (SHORT, [fill]),
            274: (SHORT, [orientation]),
            277: (SHORT, [channels]),
            284: (SHORT, [1 + planes]),
            339: (SHORT, [sample_format] * channels),
        }
        if tile is None:
            tags |= {273: (LONG, places), 278: (LONG, [height]), 279: (LONG, lengths)}
        else:
            tags |= {322: (LONG, [tile]), 323: (LONG, [tile])}
            tags |= {324: (LONG, places), 325: (LONG, lengths)}
        if extra:
            tags[338] = (SHORT, list(extra))
        if colours is not None:
            tags[320] = (SHORT, [int(each) for each in colours])
        entries = b""
        for tag, ((kind, letter), values) in sorted(tags.items()):
            content = struct.pack(order + letter * len(values), *values)
            if len(content) > 4:
                content = struct.pack(order + "I", put(content))
            entries += struct.pack(order + "HHI", tag, kind, len(values)) + content.ljust(4, b"\0")
        start = put(struct.pack(order + "H", len(tags)) + entries + bytes(4))
        data[link : link + 4] = struct.pack(order + "I", start)
        link = len(data) - 4
    return bytes(data)
