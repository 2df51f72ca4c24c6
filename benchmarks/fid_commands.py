"""Both evaluation commands on the same folders of pictures with the same weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytorch_fid.inception as fid_inception
import scipy
import torch
import torchvision
from PIL import Image, ImageEnhance, ImageFilter
from torch import nn

from distill.core.images import to_tensor
from distill.data.photos import demo_photos
from distill.metrics.features import INCEPTION

SIZE = 256
# The file's name promises a hash that random weights do not have.
OURS = """
from distill.eval_fid.__main__ import main
from distill.metrics import features
features.INCEPTION = features.WeightsFile(features.INCEPTION.name)
main()
"""


def make_pictures(folder: Path, count: int, seed: int, flat: bool) -> None:
    """Crops of scikit-image's photographs, brighter or darker; `flat` ones as PNG, else JPEG."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    photos = [Image.open(photo.path).convert("RGB") for photo in demo_photos()]
    for number in range(count):
        photo = photos[number % len(photos)]
        left, top = (int(rng.integers(side - SIZE + 1)) for side in photo.size)
        crop = photo.crop((left, top, left + SIZE, top + SIZE))
        crop = ImageEnhance.Brightness(crop).enhance(rng.uniform(0.7, 1.3))
        crop = ImageEnhance.Color(crop).enhance(rng.uniform(0.5, 1.5))
        if flat:
            crop = crop.filter(ImageFilter.ModeFilter(5))
        crop.save(folder / f"{number:05d}.{'png' if flat else 'jpg'}", quality=92)


def make_weights(file: Path, pictures: Path) -> None:
    """Random weights whose norms have seen pictures, so that features have a size."""
    torch.manual_seed(0)
    with (
        mock.patch.object(fid_inception, "load_state_dict_from_url"),
        mock.patch.object(torchvision.models.Inception3, "load_state_dict"),
    ):
        network = fid_inception.fid_inception_v3()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0
    photos = [to_tensor(Image.open(path)) for path in sorted(pictures.iterdir())[:16]]
    with torch.no_grad():
        network.train()(nn.functional.interpolate(torch.stack(photos) * 2 - 1, 299))
    file.parent.mkdir(parents=True)
    torch.save(network.state_dict(), file)


def older_scipy(folder: Path) -> str:
    """A folder with a SciPy that pytorch-fid can use; empty where the installed one will do."""
    if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 18):
        return ""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    subprocess.run([*pip, "scipy<1.18"], check=True)
    return str(folder)


class BothCommands:
    """Both commands on the same two folders; ours in three states of its cache."""

    def __init__(self, work: Path, pictures: int) -> None:
        self.a, self.b, self.work = work / "a", work / "b", work
        self.cache, self.weights = work / "cache", work / "torch/hub/checkpoints" / INCEPTION.name
        make_pictures(self.a, pictures, 0, flat=False)
        make_pictures(self.b, pictures, 1, flat=True)
        make_weights(self.weights, self.a)
        self.env = os.environ | {
            "DISTILL_WEIGHTS": str(self.weights.parent),
            "DISTILL_CACHE": str(self.cache),
            "TORCH_HOME": str(work / "torch"),
        }
        older = older_scipy(work / "scipy")
        self.their_env = self.env | ({"PYTHONPATH": older} if older else {})

    def theirs(self) -> tuple[float, float]:
        """Seconds and distance of pytorch-fid's command line."""
        command = [sys.executable, "-m", "pytorch_fid", str(self.a), str(self.b)]
        seconds, said = self._run(command, self.their_env)
        return seconds, float(said.split("FID:")[1])

    def ours(self, kept: int, bootstrap: int = 0) -> tuple[float, float]:
        """Seconds and distance of ours with the features of so many folders in the cache."""
        for path in self._kept()[kept:]:
            path.unlink()
        out = self.work / "out"
        asked = [f"a={self.a}", f"b={self.b}", f"output={out}", f"bootstrap={bootstrap}"]
        seconds, _ = self._run([sys.executable, "-c", OURS, *asked], self.env)
        results = json.loads((out / "results.json").read_text())
        return seconds, results["distances"]["a against b"]["value"]

    def _kept(self) -> list[Path]:
        """The first folder's features are the older file."""
        return sorted(self.cache.glob("features/*"), key=lambda path: path.stat().st_mtime_ns)

    def _run(self, command: list[str], env: dict[str, str]) -> tuple[float, str]:
        begun = time.perf_counter()
        done = subprocess.run(command, env=env, cwd=self.work, capture_output=True, text=True)
        seconds = time.perf_counter() - begun
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
        return seconds, done.stdout
