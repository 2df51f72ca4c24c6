"""Record what the commands make, and compare it after a refactoring that should change nothing.

    python tools/goldens.py record DIR                 with the code before
    python tools/goldens.py compare DIR                with the code after; exit 1 if it differs
    python tools/goldens.py compare DIR --wanted FILE  FILE lists differences that are meant

Recorded are the settings of all eight commands (`--cfg job`; of a `_target_` the class alone, since
modules move), 20 seeded steps of all three recipes (metrics.csv and the checkpoint's tensors),
a run that was interrupted and continued, the SHA-256 of three exported ONNX files, the check of a
student that comes with the package, and a stylised picture. A line of FILE is `NAME: TEXT`; lines
of the golden NAME that hold TEXT, before or after, do not count.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from PIL import Image
from skimage import data

COMMANDS = (
    *("train", "prepare", "shards", "export", "eval_fid", "stylize", "check", "benchmark", "lens"),
)
SHORT = [
    *("seed=3", "trainer.max_steps=20", "trainer.val_every=10", "trainer.log_every=1"),
    *("trainer.threads=1", "data.workers=0"),
]
RUNS = {
    "distill": ["photos=photos", "style.resolution=128", "label.workers=0", "encoder.weights=none",
                "data.val_fraction=0.4", "data.batch_size=4", "crop=0.9", *SHORT],
    "transposed": ["photos=photos", "style.resolution=128", "label.workers=0", "loss=l1_sobel",
                   "encoder.weights=none", "data.val_fraction=0.4", "data.batch_size=2",
                   "decoder=residual", *SHORT],
    "pix2pix": ["recipe=pix2pix", "data.root=pairs", "data.size=72", "data.crop_size=64",
                "generator.build.encoder=0.1", "generator.build.decoder=0.1",
                "discriminator.width=0.25", "distance=none", *SHORT],
    "cyclegan": ["recipe=cyclegan", "data.a=photos", "data.b=drawings", "data.size=72",
                 "data.crop_size=64", "generator.build.blocks=2", "generator.build.width=8",
                 "discriminator.width=0.25", "distance=none", *SHORT],
}  # fmt: skip
EXPORTS = {"strict": "distill", "transposed": "transposed", "unet": "pix2pix"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wanted", type=Path, help="differences that are meant, NAME: TEXT a line")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        made = everything(Path(work))
    if arguments.action == "record":
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (arguments.folder / f"{name}.txt").write_text(text)
        print(f"{arguments.folder}: {len(made)} goldens")
        return
    wanted = arguments.wanted.read_text().splitlines() if arguments.wanted else []
    kept = {path.stem: path.read_text() for path in arguments.folder.glob("*.txt")}
    lines = [line for name in sorted(kept | made) for line in differences(name, kept, made, wanted)]
    print("\n".join(lines) or f"{len(made)} goldens equal")
    sys.exit(bool(lines))


def differences(
    name: str, kept: dict[str, str], made: dict[str, str], wanted: list[str]
) -> list[str]:
    """The lines of one golden that came or went, without those that are meant."""
    before, after = (texts.get(name, "").splitlines() for texts in (kept, made))
    meant = [text for line in wanted for key, _, text in [line.partition(": ")] if key == name]
    found = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
    return [f"{name}: {line}" for line in found if not any(text in line for text in meant)]


def everything(work: Path) -> dict[str, str]:
    """Every golden by its name, as text."""
    pictures(work)
    goldens = {f"cfg_{name}": settings(work, name) for name in COMMANDS}
    goldens |= {f"cfg_train_{name}": settings(work, "train", f"recipe={name}")
                for name in ("pix2pix", "cyclegan")}  # fmt: skip
    for name, typed in RUNS.items():
        call(work, "train", *typed, f"run={name}")
        goldens[f"metrics_{name}"] = table(work / "runs" / name)
        goldens[f"tensors_{name}"] = tensors(work / "runs" / name)
    interrupted(work)
    goldens["metrics_resumed"] = table(work / "runs" / "resumed")
    for name, run in EXPORTS.items():
        call(work, "export", f"run={run}", f"photos={work / 'photos'}")
        file = next((work / "runs" / run / "export").glob("*.onnx"))
        goldens[f"onnx_{name}"] = f"{file.name} {digest(file.read_bytes())}\n"
    student = next(Path(__file__).parents[1].glob("src/distill/models/zoo/hayao*.onnx"))
    call(work, "check", str(student), "profile=snapml", "output=check.json", status=None)
    goldens["check"] = (work / "check.json").read_text().replace(str(student), student.name)
    call(work, "stylize", "photos/astronaut_0001.png", "-o", "out.png", "threads=1")
    with Image.open(work / "out.png") as picture:
        goldens["stylized"] = f"{picture.size} {digest(picture.tobytes())}\n"
    return goldens


def pictures(work: Path) -> None:
    """photos/, drawings/ and pairs/{A,B}/, made of what scikit-image carries."""
    whole = {name: Image.fromarray(getattr(data, name)()).convert("RGB")
             for name in ("astronaut", "cat", "coffee", "rocket", "chelsea")}  # fmt: skip
    for name, photo in whole.items():
        for number, left in enumerate((0, 60, 120)):
            part = photo.crop((left, left // 2, left + 240, left // 2 + 240)).resize((144, 144))
            flat = part.quantize(8).convert("RGB")
            for folder, picture in {"photos": part, "drawings": flat, "pairs/A": flat,
                                    "pairs/B": part}.items():  # fmt: skip
                path = work / folder / f"{name}_{number + 1:04d}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                picture.save(path)


def settings(work: Path, command: str, *typed: str) -> str:
    """`--cfg job` as sorted lines of dotted keys; of a `_target_` the class alone."""
    text = call(work, command, "--cfg", "job", *typed)
    values = yaml.safe_load(re.sub(r"(_target_: )\S*\.", r"\1", text))
    return "".join(f"{line}\n" for line in sorted(flat(values)))


def flat(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}: {value}"


def interrupted(work: Path) -> None:
    """The run `distill` again, ended by SIGTERM once a step is logged, and continued."""
    typed = [*RUNS["distill"], "run=resumed"]
    log = work / "runs" / "resumed" / "metrics.csv"
    process = start(work, "train", *typed)
    while process.poll() is None and not (log.is_file() and len(log.read_text().split()) > 4):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.wait()
    call(work, "train", *typed)


def table(run: Path) -> str:
    return (run / "metrics.csv").read_text()


def tensors(run: Path) -> str:
    """Names and shapes in the last checkpoint."""
    import torch

    state = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    return "".join(f"{name} {tuple(value.shape)}\n" for name, value in sorted(state.items()))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def start(work: Path, command: str, *typed: str) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "DISTILL_CACHE": str(work / "cache")}
    return subprocess.Popen(
        [sys.executable, "-m", f"distill.{command}", *typed],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def call(work: Path, command: str, *typed: str, status: int | None = 0) -> str:
    """A command's standard output; ends this program where it fails (`status` None: it may)."""
    process = start(work, command, *typed)
    out, errors = process.communicate()
    if status is not None and process.returncode != status:
        sys.exit(f"distill.{command} {' '.join(typed)}: exit {process.returncode}\n{errors}")
    return out


if __name__ == "__main__":
    main()
