"""Features kept between runs, so that the same pictures go through a network once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from distill.weights import aside, cache_folder

Array = NDArray[np.float64]


def key(network: str, pictures: Iterable[bytes]) -> str:
    """The name of a set's features: a hash of the network's fingerprint and the set's content.

    `pictures` are the bytes of each picture, in order, of files or of pixels.
    """
    digest = hashlib.sha256(network.encode())
    for content in pictures:
        digest.update(len(content).to_bytes(8, "big"))  # so that no two sets join to the same bytes
        digest.update(content)
    return digest.hexdigest()


def remembered(name: str, what: str, compute: Callable[[], Array]) -> Array:
    """The (n, d) features kept as `name`; without them those of `compute`, which are then kept.

    They are float32 values, so those read back are the same to the last bit. A damaged file counts
    as none; where none can be written, that is said and nothing else.
    """
    path = cache_folder() / "features" / f"{name}.npz"
    kept = _read(path)
    if kept is not None:
        print(f"features of {what}: {len(kept)} pictures, kept from an earlier run")
        return kept
    features = compute()
    try:
        with aside(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, features=features.astype(np.float32))
    except OSError as error:
        print(f"features of {what} are not kept: {error}")
    return features


def _read(path: Path) -> Array | None:
    try:
        with np.load(path) as archive:  # reading checks the archive's checksum
            return archive["features"].astype(np.float64)
    except Exception:  # no file, or whatever a damaged one makes its reader raise
        return None
