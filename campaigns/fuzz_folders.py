"""Readers of folders that are ours: a set of pairs and its index files, and a run's folder."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from fuzz_engine import Reader
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from mutations import ODD_TEXT, damage, damaged, edited, edits
from PIL import Image

from distill.config import compose, registry
from distill.config.settings.commands import RunChoice
from distill.config.settings.training import Prepare, Train
from distill.data import photo_table
from distill.data.manifest import Manifest
from distill.data.pairs import find_pairs
from distill.data.photos import Photo, find_photos, read_photo
from distill.eval_fid.line_scores import teacher_of
from distill.eval_fid.training_pictures import pictures_of
from distill.models.recipes import RECIPES
from distill.models.teachers.toon import Toon
from distill.prepare import labelling
from distill.prepare.pair_maker import PairJob, PairMaker, Pictures
from distill.prepare.set_builder import build_set
from distill.runs import run_folder
from distill.train.callbacks.reports import MetricsTable
from distill.train.search import summary

SIDE = 64


class TextFiles(Reader):
    """A valid folder of which one text file is changed: its bytes, its values, or its lines."""

    names: tuple[str, ...]

    def cases(self) -> SearchStrategy:
        line = st.lists(st.one_of(st.sampled_from(ODD_TEXT), st.text(max_size=8)), max_size=8)
        lines = st.tuples(st.integers(0, 20), st.booleans(), line)
        changes = st.one_of(damage(), edits(), st.lists(lines, min_size=1, max_size=2))
        return st.tuples(st.sampled_from(self.names), changes)

    def changed(self, name: str, content: bytes, changes: list) -> bytes:
        """The bytes of a text file after changes of any of the three kinds."""
        if len(changes[0]) == 4:
            return damaged(content, changes)
        if isinstance(changes[0][0], str):
            return self._edited(name, content, changes)
        lines = content.decode().split("\n")
        for where, insert, cells in changes:
            at = where % len(lines)
            lines[at : at + (not insert)] = [(",", "\t")[name.endswith("tsv")].join(cells)]
        return "\n".join(lines).encode(errors="surrogatepass")

    def _edited(self, name: str, content: bytes, changes: list) -> bytes:
        if name.endswith(".json"):
            return json.dumps(edited(json.loads(content), changes)).encode(errors="replace")
        if name.endswith(".yaml"):
            return yaml.safe_dump(edited(yaml.safe_load(content), changes)).encode()
        rows = [line.split("\t") for line in content.decode().split("\n")]
        text = "\n".join("\t".join(map(str, _list(row))) for row in _list(edited(rows, changes)))
        return text.encode(errors="surrogatepass")


class Negatives(PairMaker):
    """Pairs of a photo and its negative: what needs no teacher, and no time."""

    folders, doing = photo_table.TEACHER_FOLDERS, "labelling"

    def read(self, job: PairJob) -> Image.Image:
        return read_photo(job.photo.path).resize((16, 16))

    def pairs(self, batch: Sequence[Image.Image]) -> Iterable[Pictures]:
        return ((photo, Image.fromarray(255 - np.asarray(photo))) for photo in batch)

    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        return False

    def nothing_usable(self, listed: Path, others: int) -> str:
        return "could be read"

    def check(self, root: Path, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        pass

    def finish(self, root: Path, done: Sequence[PairJob]) -> None:
        pass


class PairSets(TextFiles):
    """A set's index files and a drop list, by what prepares, trains on and evaluates a set."""

    name = "sets"
    names = ("dataset.json", "photos.tsv", "skipped.tsv", "dropped.txt", "teacher.json", "drop.txt")

    def begin(self) -> None:
        registry.register(*RECIPES)
        _photos(Path("photos"), 7)
        Path("photos/bad.png").write_bytes(b"no picture")
        words = ["photos=photos", "style.resolution=64", "data.val_fraction=0.3"]
        self._source = compose.load("prepare", [*words, "data.root=set"], Prepare)
        self._photos = find_photos(Path("photos"))
        self._manifest = labelling.manifest(self._source, Toon())
        Path("drop.txt").write_text("photo_0.png\nnobody.png\n")
        self._build(Path("drop.txt"))
        Path("set/teacher.json").write_text('{"settings": "", "photos": 4, "mirror_db": 60.0}\n')
        shutil.copytree("set", "kept")

    def put(self, case: tuple[str, list], folder: Path) -> None:
        name, changes = case
        source = Path("drop.txt") if name == "drop.txt" else Path("kept", name)
        (folder / name).write_bytes(self.changed(name, source.read_bytes(), changes))

    def read(self, case: tuple[str, list], folder: Path) -> None:
        shutil.rmtree("set", ignore_errors=True)
        shutil.copytree("kept", "set")
        name, root = case[0], Path("set")
        if name != "drop.txt":
            shutil.copyfile(folder / name, root / name)
        manifest: Manifest = labelling.manifest(self._source, Toon())
        manifest.check(root)
        pictures_of(self._source)
        photo_table.folders_of(root, ["photo_1.png"])
        teacher_of(root, self._source.style, self._source.teacher)
        find_pairs(root, "toon", 0.3, 0)
        self._build(folder / name if name == "drop.txt" else None)

    def _build(self, drop: Path | None) -> None:
        build_set(self._photos, Negatives(), self._manifest, Path("set"), drop=drop)


class RunFolders(TextFiles):
    """A run's config.yaml and metrics.csv, by what resumes, lists and sums it up."""

    name = "runs"
    names = ("config.yaml", "metrics.csv")

    def begin(self) -> None:
        registry.register(*RECIPES)
        from dataclasses import asdict

        settings = compose.load("train", ["data.root=own", "run=kept"], Train)
        self._config, self._run = asdict(settings), run_folder.Run(Path("runs/kept"))
        self._run.last.parent.mkdir(parents=True)
        saved = {"global_step": 4, "callbacks": {}, "state_dict": {}, "distill": self._config}
        torch.save(saved, self._run.last)
        rows = [{"step": n, "train/loss": 0.5 / n, "val/psnr": 20 + n, "lr": 1e-3} for n in (2, 4)]
        with Path("metrics.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        Path("config.yaml").write_text(yaml.safe_dump(self._config, sort_keys=False))

    def put(self, case: tuple[str, list], folder: Path) -> None:
        name, changes = case
        (folder / name).write_bytes(self.changed(name, Path(name).read_bytes(), changes))

    def read(self, case: tuple[str, list], folder: Path) -> None:
        for name in self.names:
            place = folder if name == case[0] else Path()
            shutil.copyfile(place / name, self._run.folder / name)
        table = summary.validations(self._run.folder / "metrics.csv")
        summary.figures(self._run, table)
        metrics = MetricsTable(self._run.folder / "metrics.csv")
        metrics.on_train_start(_AtStep(4), None)  # type: ignore[arg-type]
        run_folder.find_run(RunChoice(run="kept", runs="runs", checkpoint="best", output=None))
        self._run.resumable(self._config, resume=True)


class _AtStep:
    """What MetricsTable asks of a trainer that goes on."""

    def __init__(self, step: int) -> None:
        self.global_step = step


def _photos(folder: Path, count: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        noise = Image.fromarray(rng.integers(0, 255, (5, 5, 3), np.uint8))
        noise.resize((SIDE, SIDE)).save(folder / f"photo_{number}.png")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


READERS = (PairSets, RunFolders)
