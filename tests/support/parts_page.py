"""For tests of what the page draws of a picture: a part picked, what is saved, what is said."""

from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from support.chromium_page import canvas, download, show

SAID = "document.getElementById('message').textContent !== ''"
CUT = "document.querySelector('.viewer.blended') !== null"
GONE = {"status": 404, "body": ""}


def draw(at: Any, part: str) -> None:
    """Pick what is drawn, and wait until it is."""
    at.settle()
    count = at.page.evaluate("distill.speed().frames")
    at.page.select_option("#draw", part)
    at.wait(f"distill.speed().frames > {count}")
    at.settle()


def saved(at: Any) -> np.ndarray:
    return np.asarray(download(at.page, "#save").convert("RGB")).astype(int)


def negated(
    visit: Callable[..., Any],
    part: str,
    photo: np.ndarray,
    query: str = "?compare=0&size=256&full=0",
) -> tuple[Any, np.ndarray]:
    """The page with a part of a photo in negative, and the photo's pixels as the page has them."""
    at = visit(query)
    show(at, Image.fromarray(photo))
    draw(at, part)
    return at, canvas(at.page, "photo")[..., :3].astype(int)


def opacity(at: Any) -> np.ndarray:
    """How much of the result covers the photo, 0 to 255."""
    return canvas(at.page, "stylised")[..., 3].astype(int)
