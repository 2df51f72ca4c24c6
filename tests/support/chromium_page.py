"""For tests and benchmarks of the page: Chromium, a clip for its camera, what the page shows."""

import base64
import io
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

FLAGS = [  # quiet: a browser that looks for updates waits for a network that is not there
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--use-fake-device-for-media-stream", "--deny-permission-prompts"),
]
# WebGPU by Chromium's own software renderer, without a graphics card: instead of --disable-gpu.
WEBGPU = (
    *("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"),
    # A canvas of WebGPU's needs all of the browser to be drawn so.
    *("--enable-features=Vulkan", "--use-vulkan=swiftshader", "--enable-unsafe-swiftshader"),
    *("--use-gl=angle", "--use-angle=swiftshader"),
)
READY = "window.distill !== undefined && distill.speed().frames > 0"
CLIP = (640, 480)  # width and height
PATIENCE = float(os.environ.get("PATIENCE", "60"))  # seconds: the machine may be busy
SLOW = 15 * PATIENCE  # an emulated graphics card takes its time


def chromium() -> str:
    """The browser that is installed, else a reason to skip; nothing is downloaded."""
    named = os.environ.get("CHROMIUM") or "chromium"
    path = shutil.which(named) or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no browser: install Debian's package chromium, or name one in CHROMIUM")
    return path


def write_clip(path: Path, square: bool = False) -> None:
    """The astronaut's face, panned, as an uncompressed video (Y4M); its centre square."""
    shifts = [round(30 * np.sin(2 * np.pi * i / 24)) for i in range(24)]
    width, height = CLIP
    edge = (width - height) // 2
    box = (edge, 0, width - edge, height) if square else (0, 0, *CLIP)
    write_frames(path, [clip_frame(dx).crop(box) for dx in shifts])


def write_frames(path: Path, frames: Sequence[Image.Image]) -> None:
    """Pictures of one size as an uncompressed video (Y4M), which a made camera repeats."""
    width, height = frames[0].size
    header = f"YUV4MPEG2 W{width} H{height} F30:1 Ip A1:1 C420jpeg\n".encode()
    path.write_bytes(header + b"".join(b"FRAME\n" + _yuv(frame) for frame in frames))


def noisy_camera(
    playwright: Any, file: Path, deviation: float, scene: Image.Image | None = None
) -> Any:
    """Chromium whose camera shows a still scene, the astronaut's face, with noise (levels of 255),
    the clip in `file`."""
    rng = np.random.default_rng(0)
    still = np.asarray(scene.resize(CLIP) if scene else clip_frame(0)).astype(float)
    noisy = [still + rng.normal(0, deviation, still.shape) for _ in range(12)]
    write_frames(file, [Image.fromarray(each.clip(0, 255).astype(np.uint8)) for each in noisy])
    flags = [*FLAGS, f"--use-file-for-fake-video-capture={file}"]
    return playwright.chromium.launch(executable_path=chromium(), args=flags)


def clip_frame(shift: int) -> Image.Image:
    """A frame of it, panned by so many pixels of the photo."""
    left = 64 + shift
    crop = Image.fromarray(astronaut()).crop((left, 10, left + 320, 250))
    return crop.resize(CLIP, Image.Resampling.BICUBIC)


def canvas(page: Any, name: str) -> np.ndarray:
    """A canvas's pixels, (H, W, 4)."""
    url = page.evaluate(f"document.getElementById('{name}').toDataURL()")
    content = io.BytesIO(base64.b64decode(url.partition(",")[2]))
    return np.asarray(Image.open(content).convert("RGBA"))


def download(page: Any, button: str) -> Image.Image:
    """The PNG file that a button gives."""
    with page.expect_download() as found:
        page.click(button)
    assert found.value.suggested_filename.endswith(".png")
    content = io.BytesIO(found.value.path().read_bytes())
    picture = Image.open(content)
    assert picture.format == "PNG"
    return picture


def encoded(picture: Image.Image, kind: str = "PNG", **options) -> bytes:
    """A picture file."""
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def show(at: Any, picture: Image.Image, name="picture.png", **options) -> None:
    """Open a picture on the page and wait until the network has seen it."""
    kind = {"png": "PNG", "jpg": "JPEG"}[name.rpartition(".")[2]]
    content = encoded(picture, kind, **options)
    at.settle()
    count = at.page.evaluate("distill.speed().frames")
    at.page.set_input_files("#file", {"name": name, "mimeType": "", "buffer": content})
    at.wait(f"distill.speed().frames > {count}")
    at.settle()


def _yuv(frame: Image.Image) -> bytes:
    planes = np.asarray(frame.convert("YCbCr"))
    height, width = planes.shape[:2]
    small = planes[..., 1:].reshape(height // 2, 2, width // 2, 2, 2).mean((1, 3)).round()
    chroma = small.astype(np.uint8)
    return planes[..., 0].tobytes() + chroma[..., 0].tobytes() + chroma[..., 1].tobytes()
