"""Video frames and pictures: colour matrices, the upright turn, even sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from av.sidedata.sidedata import Type
from av.video.reformatter import ColorRange, Colorspace, Interpolation

# H.273, table 4 (matrix coefficients), and what swscale calls them.
_MATRICES = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.ITU601,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
    10: Colorspace.BT2020,
}
_UNSAID = 2
_BT709 = 1
_BEST = Interpolation.BICUBIC | Interpolation.FULL_CHR_H_INT | Interpolation.ACCURATE_RND


@dataclass(frozen=True)
class Colours:
    """How a video says that its numbers are colours, in H.273's numbers; 2 is left unsaid."""

    matrix: int
    primaries: int
    transfer: int
    full: bool

    @property
    def hdr(self) -> bool:
        """Whether its brightness is coded for HDR screens (PQ or HLG)."""
        return self.transfer in (16, 18)


def colours_of(frame: Any) -> Colours:
    """A decoded frame's. RGB video, which has no matrix, gets that of HD."""
    matrix = frame.colorspace if frame.colorspace in {*_MATRICES, _UNSAID} else _BT709
    full = frame.color_range == ColorRange.JPEG or frame.format.name.startswith("yuvj")
    return Colours(matrix, frame.color_primaries, frame.color_trc, full)


def to_rgb(frame: Any, size: tuple[int, int]) -> np.ndarray:
    """A decoded frame as uint8 (height, width, 3); `size` is width and height as stored."""
    colours = colours_of(frame)
    rgb = frame.format.is_rgb
    matrix = None if rgb else _matrix(colours.matrix, size)
    return frame.to_ndarray(
        width=size[0],
        height=size[1],
        format="rgb24",
        src_colorspace=matrix,
        dst_colorspace=matrix,
        src_color_range=ColorRange.JPEG if colours.full or rgb else ColorRange.MPEG,
        dst_color_range=ColorRange.JPEG,
        interpolation=_BEST,
    )


def to_frame(picture: np.ndarray, colours: Colours) -> Any:
    """uint8 (height, width, 3) as a yuv420p frame of even sides: the last line is repeated."""
    height, width = picture.shape[:2]
    even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    kind = ColorRange.JPEG if colours.full else ColorRange.MPEG
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(even), format="rgb24").reformat(
        format="yuv420p",
        dst_colorspace=_matrix(colours.matrix, (width, height)),
        src_color_range=ColorRange.JPEG,
        dst_color_range=kind,
        interpolation=_BEST,
    )
    frame.colorspace, frame.color_range = colours.matrix, kind
    frame.color_primaries, frame.color_trc = colours.primaries, colours.transfer
    return frame


def turn_of(frame: Any) -> tuple[bool, bool, bool]:
    """How a frame is set upright: rows and columns swapped, then mirrored left-right, top-bottom.

    From its display matrix (ISO 14496-12, 8.5.2: x' = a·x + c·y, y' = b·x + d·y), nearest quarter.
    """
    side = frame.side_data.get(Type.DISPLAYMATRIX)
    if side is None:
        return False, False, False
    a, b, _, c, d = np.frombuffer(bytes(side), np.int32)[:5].tolist()
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return False, a < 0, d < 0
    return True, c < 0, b < 0


def turned(picture: np.ndarray, turn: tuple[bool, bool, bool]) -> np.ndarray:
    """(height, width, 3), set upright by what `turn_of` said."""
    swapped, across, down = turn
    picture = picture.transpose(1, 0, 2) if swapped else picture
    return np.ascontiguousarray(picture[:: -1 if down else 1, :: -1 if across else 1])


def _matrix(number: int, size: tuple[int, int]) -> int:
    """Players take unsaid colours for HD's from 1280 or 577 pixels on, for TV's below."""
    if number == _UNSAID:
        number = _BT709 if size[0] >= 1280 or size[1] > 576 else 6
    return _MATRICES[number]
