"""Pictures whose pixels say where they were."""

from pathlib import Path

import numpy as np
from PIL import Image


def coordinates(
    path: Path, blue: int, size: tuple[int, int] = (96, 96), alpha: int | None = None
) -> Path:
    """Saves a picture, width and height `size`, whose red is x and whose green is y; gives `path`.

    It is RGBA with `alpha`.
    """
    picture = np.full((size[1], size[0], 3 if alpha is None else 4), blue, np.uint8)
    picture[..., 0], picture[..., 1] = np.arange(size[0]), np.arange(size[1])[:, None]
    if alpha is not None:
        picture[..., 3] = alpha
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)
    return path
