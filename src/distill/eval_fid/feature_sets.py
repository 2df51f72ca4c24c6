"""Sets of pictures to features, remembered, and to figures picture by picture, with intervals."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.images import batches
from distill.data.photos import BadPhoto, Photo, read_photo
from distill.metrics import frechet
from distill.metrics.features import BATCH, FeatureNetwork, cached_features, set_key

Features = NDArray[np.float64]


def features_of_set(network: FeatureNetwork, pictures: Tensor, what: str) -> Features:
    """Features, (n, d), of 8-bit pictures (n, 3, H, W) in memory."""
    shape = str(tuple(pictures.shape)).encode()
    name = set_key(network.fingerprint, [shape, *(p.numpy().tobytes() for p in pictures)])
    return cached_features(
        name, what, lambda: network.features(batches(pictures, BATCH), len(pictures), what)
    )


def features_of_files(network: FeatureNetwork, photos: Sequence[Photo], what: str) -> Features:
    """Features, (n, d), of every readable picture file, of which a few are in memory at a time.

    Raises DistillError when fewer than 2 can be read.
    """
    name = set_key(network.fingerprint, (_bytes(photo.local) for photo in photos))
    return cached_features(
        name,
        what,
        lambda: network.features(batches(_readable(photos, what), BATCH), len(photos), what),
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # reading it as a picture says why
        return b""


def _readable(photos: Sequence[Photo], what: str) -> Iterator[Tensor]:
    count = 0
    for photo in photos:
        try:
            picture = read_photo(photo.path, least=1)
        except BadPhoto as reason:
            print(f"skipped {str(photo.path)!r}: {reason}")
            continue
        count += 1
        yield torch.from_numpy(np.array(picture)).permute(2, 0, 1)
    if count < 2:
        raise DistillError(f"{what}: needs at least 2 readable pictures")


Values = NDArray[np.float64]
Row = dict[str, Any]  # value, interval (None where none can be had), pictures


@torch.inference_mode()
def per_picture(
    measure: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, batch_size: int
) -> Values:
    """Figures of every picture, (n, …), of uint8 (n, 3, H, W) against others of the same size."""
    pairs = zip(batches(a, batch_size), batches(b, batch_size), strict=True)
    return np.concatenate([measure(x, y).double().numpy() for x, y in pairs])


def interval(
    method: Callable[..., tuple[float, float]], *values: Values, rounds: int, **options: Any
) -> list[float] | None:
    """The ends of a 95 % interval by that many resamples; None without any, of one picture or one
    of the `groups`, or where it is not a number."""
    groups = options.get("groups")
    each = groups if isinstance(groups, tuple) else (groups,) * len(values)
    counts = [len(v) if g is None else len(set(g)) for v, g in zip(values, each, strict=True)]
    if not rounds or min(counts) < 2:
        return None
    ends = method(*values, rounds=rounds, **options)
    return list(ends) if np.isfinite(ends).all() else None


def mean_row(values: Values, **how: Any) -> Row:
    """The mean over pictures, with an interval; `how` as `interval` has it."""
    spread = interval(frechet.bootstrap, values, **how)
    return {"value": float(values.mean()), "pictures": len(values), "interval": spread}
