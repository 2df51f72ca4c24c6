"""Frames of a camera that moves over a texture by a known way."""

import numpy as np
from PIL import Image

AFFINE, BICUBIC = Image.Transform.AFFINE, Image.Resampling.BICUBIC


def texture(width=640, height=480, seed=0):
    """Smooth noise of several scales, uint8."""
    rng = np.random.default_rng(seed)
    layers = []
    for scale in (4, 16, 64):
        coarse = rng.uniform(0, 80, (-(-height // scale) + 3, -(-width // scale) + 3, 3))
        layer = Image.fromarray(coarse.astype(np.uint8))
        layers.append(np.asarray(layer.resize((width, height), BICUBIC), np.int32))
    return sum(layers).astype(np.uint8)


def seen(scene, right, down, size=(320, 256), zoom=1.0):
    """What a camera that has moved so far sees, with a camera's noise."""
    at = (zoom, 0, 80 + right, 0, zoom, 80 + down)
    frame = np.asarray(Image.fromarray(scene).transform(size, AFFINE, at, BICUBIC))
    noise = np.random.default_rng(int(100 * (right + down)) % 997).normal(0, 2.5, frame.shape)
    return (frame + noise).clip(0, 255).round().astype(np.uint8)
