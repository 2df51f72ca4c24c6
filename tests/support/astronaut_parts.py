"""Where scikit-image's astronaut is in her picture, and where her face: masks of (512, 512)."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import maximum_filter, minimum_filter

# What MediaPipe itself gives for the astronaut: 255 where a pixel shows her for sure.
PERSON_OF_MEDIAPIPE = Path(__file__).parents[1] / "tools/mediapipe_astronaut.png"
# The outline of her face in the photo's pixels, drawn by hand; her forehead under the fringe is in.
OUTLINE = np.array(
    [
        *[(190, 73), (200, 67), (213, 63), (226, 62), (240, 64), (253, 69), (263, 79), (269, 93)],
        *[(271, 106), (270, 121), (267, 137), (262, 152), (252, 165), (240, 174), (228, 178)],
        *[(215, 177), (203, 171), (192, 162), (185, 150), (182, 135), (180, 115), (182, 93)],
    ]
)


def person_and_rest() -> tuple[np.ndarray, np.ndarray]:
    """Where the astronaut surely is and is not, with some distance to her outline: (512, 512).

    Not at the flag and not at her helmet: there the network is unsure, and a mirrored photo, or one
    made smaller in another way, gives another answer.
    """
    with Image.open(PERSON_OF_MEDIAPIPE) as picture:
        mask = np.asarray(picture.resize((512, 512), Image.Resampling.BILINEAR))
    sure, other = minimum_filter(mask, 41) > 250, maximum_filter(mask, 41) < 5
    sure[360:] = other[140:] = False
    return sure, other


def outlined(grown: float, size: tuple[int, int] = (512, 512)) -> np.ndarray:
    """What lies inside of her outline, grown about its middle: (height, width)."""
    middle = (OUTLINE.min(0) + OUTLINE.max(0)) / 2
    mask = Image.new("1", (512, 512))
    ImageDraw.Draw(mask).polygon([*map(tuple, middle + grown * (OUTLINE - middle))], fill=1)
    return np.asarray(mask.resize(size))


def face_and_rest() -> tuple[np.ndarray, np.ndarray]:
    """Her face within its edge, and all but her face and what is around it."""
    return outlined(0.75), ~outlined(1.35)
