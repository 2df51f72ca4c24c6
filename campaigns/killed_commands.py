"""The commands that kill_points.py kills: what each is given, and the pictures it works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import Image

from distill.data.photos import demo_photos

SIDE = 96  # pixels of a made photo
_QUICK = [
    *("encoder.weights=none", "style.resolution=64", "label.workers=0", "data.val_fraction=0.4"),
    *("trainer.max_steps=6", "trainer.val_every=2", "trainer.log_every=1", "trainer.threads=1"),
]
_DISTILL = [*_QUICK, "photos=photos", "decoder=residual", "data.batch_size=2", "data.workers=1"]
_GAN = [
    *("data.size=72", "data.crop_size=64", "distance=none", "discriminator.width=0.125"),
    *("trainer.max_steps=6", "trainer.val_every=2", "trainer.log_every=1", "trainer.threads=1"),
    *("data.val_fraction=0.4", "data.workers=1"),
]
_PUSHED = ["push", "data.root=set", "repo=./shared"]
_PULLED = ["pull", "repo=./shared", "data.root=got"]
_PACKED = ["data.root=pairs", "output=packed", "pairs=3", "workers=1", "data.val_fraction=0.4"]


@dataclass(frozen=True)
class Command:
    """A command line of `python -m distill.MODULE`, and the stage that has to be there first.

    Stages: "pictures" are photos, pairs, two domains and a video; "labelled" has their set of
    pairs too, "trained" a run of a student on it; "packed" the pairs as shards; "carded" has a set
    with its card, "pushed" that set in a folder too, and both of them there are with shards.
    """

    module: str
    words: Sequence[str]
    stage: str = "pictures"


COMMANDS = {
    "prepare": Command(
        "prepare",
        ["photos=photos", "style.resolution=64", "label.workers=1", "data.views=3"],
    ),
    "prepare-shards": Command(
        "prepare",
        [
            *("photos=photos", "style.resolution=64", "label.workers=1", "label.batch_size=2"),
            *("data=shards", "shard.pairs=3"),
        ],
    ),
    "prepare-sketches": Command(
        "prepare", ["recipe=pix2pix", "photos=photos", "data.root=sketched", "sketch.size=64"]
    ),
    "train-distill": Command("train", [*_DISTILL, "run=tiny"], "labelled"),
    "train-pix2pix": Command(
        "train",
        [
            *("recipe=pix2pix", "data.root=pairs", "run=tiny", *_GAN),
            *("generator.build.encoder=0.1", "generator.build.decoder=0.1"),
        ],
    ),
    "train-cyclegan": Command(
        "train",
        [
            *("recipe=cyclegan", "data.root=domains", "run=tiny", *_GAN),
            *("generator.build.blocks=1", "generator.build.width=4"),
        ],
    ),
    "sweep": Command(
        "train", ["-m", *_DISTILL, "loss=l1,l1_sobel", "trainer.max_steps=2"], "labelled"
    ),
    "export": Command(
        "export",
        ["run=trained", "exporter.size=64", "formats=[onnx,onnx_fp16,ncnn]"],
        "trained",
    ),
    "eval_fid": Command(
        "eval_fid", ["run=trained", "features=none", "bootstrap=20", "flicker=1"], "trained"
    ),
    "stylize": Command("stylize", ["photos/*.png", "style=toon", "threads=1"]),
    "stylize-video": Command("stylize", ["clip.mp4", "style=toon", "threads=1", "stability=true"]),
    "benchmark": Command(
        "benchmark",
        [
            "run=trained",
            "with_teacher=false",
            "sizes=[64]",
            "threads=[1]",
            "rounds=2",
            "output=timed",
        ],
        "trained",
    ),
    "shards": Command("shards", _PACKED),
    "shards-back": Command("shards", ["data.root=packed", "to=pairs", "output=unpacked"], "packed"),
    "train-shards": Command(
        "train",
        [
            *_QUICK,
            *("style=own", "data=shards", "data.root=packed", "run=tiny"),
            *("decoder=residual", "data.batch_size=2", "data.workers=1"),
        ],
        "packed",
    ),
    "hub-push": Command("hub", _PUSHED, "carded"),
    "hub-pull": Command("hub", _PULLED, "pushed"),
    "hub-push-shards": Command("hub", _PUSHED, "carded-shards"),
    "hub-pull-shards": Command("hub", _PULLED, "pushed-shards"),
    "lens": Command("lens", ["students=[toon]", "serve=false", "output=page"]),
}
STAGES = {  # the stage before, and what makes the next one of it
    "labelled": ("pictures", Command("prepare", ["photos=photos", *_QUICK[1:4]])),
    "packed": ("pictures", Command("shards", _PACKED)),
    "carded": (
        "pictures",
        Command("prepare", ["photos=photos", "data.root=set", *_QUICK[1:4], "card=true"]),
    ),
    "pushed": ("carded", Command("hub", _PUSHED)),
    "carded-shards": (
        "pictures",
        Command(
            "prepare",
            [
                *("photos=photos", "data.root=set", *_QUICK[1:4], "card=true"),
                *("data=shards", "shard.pairs=2"),
            ],
        ),
    ),
    "pushed-shards": ("carded-shards", Command("hub", _PUSHED)),
    "trained": (
        "labelled",
        Command("train", [*_DISTILL, "run=trained", "trainer.max_steps=2"]),
    ),
}


def make_pictures(folder: Path, photos: int = 14) -> None:
    """Crops of scikit-image's photographs, pairs and domains of them, and a video."""
    rng = np.random.default_rng(0)
    sources = [Image.open(photo.path).convert("RGB") for photo in demo_photos()]
    for number in range(photos):
        image = sources[number % len(sources)]
        left, top = (int(rng.integers(side - 2 * SIDE)) for side in image.size)
        crop = image.crop((left, top, left + 2 * SIDE, top + 2 * SIDE)).resize((SIDE, SIDE))
        target = Image.fromarray(255 - np.asarray(crop))
        _save(crop, folder / "photos" / f"photo_{number:02d}.png")
        for top_folder in ("pairs", "domains"):
            _save(crop, folder / top_folder / "A" / f"{number:02d}.png")
            _save(target, folder / top_folder / "B" / f"{number:02d}.png")
    (folder / "photos" / "broken.jpg").write_bytes(b"no picture")  # a set that skips something
    _make_clip(folder / "clip.mp4", np.asarray(sources[0].resize((SIDE, 64))))


def _save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def _make_clip(path: Path, picture: np.ndarray, frames: int = 12) -> None:
    """A picture that moves to the left by two pixels a frame."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = picture.shape[1], picture.shape[0], "yuv420p"
        stream.codec_context.time_base = Fraction(1, 25)
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(np.roll(picture, -2 * number, 1), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
