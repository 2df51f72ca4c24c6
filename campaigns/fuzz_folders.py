"""Readers of folders that are ours: a set of pairs and its index files, and a run's folder."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain
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

from distill.config import compose
from distill.config.settings.base import LicenceSettings
from distill.config.settings.commands import RunChoice
from distill.config.settings.training import Prepare, Train
from distill.core.licence_terms import Licence, Terms, read_terms
from distill.data import photo_table
from distill.data.cards.licence_table import terms_section
from distill.data.dropped import content_line
from distill.data.licence_terms import keep_terms, kept_terms, state_terms, terms_of
from distill.data.manifest import Manifest
from distill.data.pairs import find_pairs
from distill.data.photos import BadPhoto, Photo, find_photos, read_photo
from distill.data.takedown import record_takedown, set_with_takedown, with_takedown
from distill.eval_fid.line_scores import teacher_of
from distill.eval_fid.training_pictures import pictures_of
from distill.prepare import labelling
from distill.prepare.pair_maker import PairJob, PairMaker, PairPictures, PairStore
from distill.prepare.set_builder import build_set
from distill.runs import run_folder
from distill.train.callbacks.reports import MetricsTable
from distill_drawings.toon import Toon
from distill_search import sweep_summary

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

    def pairs(self, batch: Sequence[Image.Image]) -> Iterable[PairPictures]:
        return ((photo, Image.fromarray(255 - np.asarray(photo))) for photo in batch)

    def still_bad(self, photo: Photo, reason: str, since: float) -> bool:
        return False

    def nothing_usable(self, listed: Path, others: int) -> str:
        return "could be read"

    def check(self, store: PairStore, todo: Sequence[PairJob], done: Sequence[PairJob]) -> None:
        pass

    def finish(self, root: Path, done: Sequence[PairJob]) -> None:
        pass


class PairSets(TextFiles):
    """A set's index files and a drop list, by what prepares, trains on and evaluates a set."""

    name = "sets"
    lists = ("drop.txt", "restore.txt")
    names = (
        *("dataset.json", "photos.tsv", "skipped.tsv", "dropped.txt", "teacher.json", "terms.json"),
        *("takedown.txt", "terms.csv"),
        *lists,
    )

    def begin(self) -> None:
        _photos(Path("photos"), 7)
        Path("photos/bad.png").write_bytes(b"no picture")
        words = ["photos=photos", "style.resolution=64", "data.val_fraction=0.3"]
        self._source = compose.load("prepare", [*words, "data.root=set"], Prepare)
        rows = (
            "photo,author,source,licence\nphoto_0.png,Anna,,CC0\nsub/,Bert,x,MIT\n*,,,CC BY 4.0\n"
        )
        for folder in ("", "photos"):
            Path(folder, "terms.csv").write_text(rows)
        self._photos = find_photos(Path("photos"))
        self._manifest = labelling.manifest_of(self._source, Toon())
        Path("drop.txt").write_text("photo_0.png\nnobody.png\n")
        Path("restore.txt").write_text("photo_0.png\nsub/nobody.png\n")
        self._build(Path("drop.txt"))
        keep_terms(Path("set"), self._source)
        Path("set/teacher.json").write_text('{"settings": "", "photos": 4, "mirror_db": 60.0}\n')
        record_takedown(Path("set"), {"photo_0-1": "photo_0.png"}, Path("."))
        shutil.copytree("set", "kept")

    def put(self, case: tuple[str, list], folder: Path) -> None:
        name, changes = case
        place = dict.fromkeys(self.lists, "") | {"terms.csv": "photos"}
        source = Path(place.get(name, "kept"), name)
        (folder / name).write_bytes(self.changed(name, source.read_bytes(), changes))

    def read(self, case: tuple[str, list], folder: Path) -> None:
        shutil.rmtree("set", ignore_errors=True)
        shutil.copytree("kept", "set")
        name, root = case[0], Path("set")
        shutil.copyfile("terms.csv", "photos/terms.csv")
        if name not in self.lists:
            shutil.copyfile(folder / name, Path("photos" if name == "terms.csv" else root, name))
        manifest: Manifest = labelling.manifest_of(self._source, Toon())
        manifest.check(root)
        pictures_of(self._source)
        photo_table.folders_of(root, ["photo_1.png"])
        teacher_of(root, self._source.style, self._source.teacher)
        find_pairs(root, "toon", 0.3, 0)
        keep_terms(root, self._source)
        Terms(kept_terms(root)).json()
        set_with_takedown(Terms(()), Path("photos"))  # as the list of the set beside it has it
        with_takedown(Terms(()), Path("set/x.onnx"))
        drop, restore = (folder / each if name == each else None for each in self.lists)
        self._build(drop, restore)

    def _build(self, drop: Path | None, restore: Path | None = None) -> None:
        maker = Negatives()
        made = (self._photos, maker, self._manifest, PairStore(Path("set"), maker.folders))
        record_takedown(Path("set"), build_set(*made, drop=drop, restore=restore).newly, Path("."))


class TermsFiles(TextFiles):
    """What states terms, at every place: what others fixed is never loosened, nor lost."""

    name = "terms"
    tables = ("terms.csv", "manifest.csv", "metadata.csv")  # beside the photos
    kept = ("set/terms.json", "runs/a/terms.json")
    names = (*tables, *kept)

    def begin(self) -> None:
        _photos(Path("photos"), 3)
        rows = "photo,author,source,licence\nphoto_0.png,Anna,,CC0\nsub/,Bert,x,MIT\n*,,,CC0\n"
        for name in self.tables:
            Path(name).write_text(rows.replace("photo,", "file_name,", name == "metadata.csv"))
        words = ["style=hayao", "photos=photos", "data.root=set", "runs=runs", "run=a"]
        self._typed: Train = compose.load("train", words, Train)
        photo_table.write_rows(
            Path("set"), [photo_table.PhotoRow.of(p, "train") for p in find_photos(Path("photos"))]
        )
        own = Licence.from_text("photos", "CC0", stated=True)
        first = Terms((Licence.from_text("teacher x", "CC BY-NC 4.0"), own))
        self._checkpoint = Path("runs/a/checkpoints/last.ckpt")
        self._checkpoint.parent.mkdir(parents=True)
        Path("runs/a/config.yaml").write_text(yaml.safe_dump(asdict(self._typed)))
        torch.save({"distill": asdict(self._typed), "terms": first.plain()}, self._checkpoint)
        for name in self.kept:
            Path(name).write_text(first.restated("MIT").json())
            Path(name.replace("/", "-")).write_text(first.restated("MIT").json())

    def put(self, case: tuple[str, list], folder: Path) -> None:
        name = case[0].replace("/", "-")
        (folder / name).write_bytes(self.changed(name, Path(name).read_bytes(), case[1]))

    def read(self, case: tuple[str, list], folder: Path) -> None:
        for name in self.names:
            at = folder if name == case[0] else Path()
            target = Path("photos" if name in self.tables else "", name)
            target.unlink(missing_ok=True)
            if name in (case[0], *self.kept):
                shutil.copyfile(at / name.replace("/", "-"), target)
        for found in (
            terms_of(self._checkpoint),
            state_terms(self._checkpoint, LicenceSettings(pictures="CC0")),
        ):
            assert found.commercial == "no", found.line
            card = terms_section(found, "it").split("\n")
            assert len(card) == len(found.chain) + 3, card
            assert read_terms(found.json()).commercial == "no"
        keep_terms(Path("set"), self._typed)
        assert Terms(kept_terms("set")).commercial == "no"


class PairFolders(Reader):
    """A/ and B/ with files of any names, kinds and shapes: no photo has another's target."""

    name = "pair-folders"
    allowed = (BadPhoto,)

    def begin(self) -> None:
        kinds = {".png": "PNG", ".JPG": "JPEG", ".tif": "TIFF", ".heic": "PNG", ".txt": "PNG"}
        for suffix, kind in kinds.items():
            for shape in ((64, 64), (96, 64)):
                Image.new("RGB", shape).save(f"{shape[0]}{suffix}", kind)

    def cases(self) -> SearchStrategy:
        stem = st.sampled_from(
            ["a", "A", "\xe9", "e\u0301", "\xdf", "ss", "\u0130", "a.b", "-", " "]
        )
        suffix = st.sampled_from([".png", ".png", ".JPG", ".tif", ".heic", ".txt"])
        file = st.tuples(st.sampled_from("AB"), stem, suffix, st.sampled_from([64, 64, 96]))
        both = st.tuples(stem, suffix, suffix).map(
            lambda f: [("A", *f[:2], 64), ("B", *f[::2], 64)]
        )
        pairs = st.lists(both, min_size=2, max_size=4, unique_by=lambda two: two[0][1])
        return st.tuples(pairs, st.lists(file, max_size=1)).map(lambda c: {*chain(*c[0]), *c[1]})

    def put(self, case: set[tuple[str, str, str, int]], folder: Path) -> None:
        for side, stem, suffix, width in case:
            (folder / side).mkdir(exist_ok=True)
            shutil.copyfile(f"{width}{suffix}", folder / side / f"{stem}{suffix}")

    def read(self, case: set[tuple[str, str, str, int]], folder: Path) -> None:
        pairs = [pair for side in find_pairs(folder, None, 0.3, 0).values() for pair in side]
        assert len({pair.target for pair in pairs}) == len(pairs)
        for pair in pairs:
            pair.read()


class NetworkOutputs(Reader):
    """What a teacher's network may give: a picture of values in [0, 1], or one clear line."""

    name = "network-outputs"

    def begin(self) -> None:
        self._photo = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))

    def cases(self) -> SearchStrategy:
        odd = st.sampled_from([float("nan"), float("inf"), -1e-4, 1.0001, 0.5, 1.5, -1.0, 1e38])
        places = st.lists(st.tuples(st.integers(0, 383), odd), max_size=1)
        wrong = [(2, 8, 8, 3), (1, 3, 16, 8), (384,), (2, 3, 64)]
        shape = st.sampled_from([*[(2, 3, 8, 8)] * 6, *wrong])
        return st.tuples(places, st.sampled_from([0.0, 0.3, 1.0, 1.0, 255.0]), shape)

    def put(self, case: tuple[list, float, tuple[int, ...]], folder: Path) -> None:
        (folder / "output.txt").write_text(repr(case))

    def read(self, case: tuple[list, float, tuple[int, ...]], folder: Path) -> None:
        places, factor, shape = case
        teacher = Toon()
        given = (self._photo * factor).flatten()
        for place, value in places:
            given[place] = value
        teacher.forward = lambda photo: given.reshape(shape)  # type: ignore[method-assign]
        output = teacher(self._photo)
        teacher.check_together(output, self._photo)
        assert output.shape == self._photo.shape
        assert output.min() >= 0
        assert output.max() <= 1


class RunFolders(TextFiles):
    """A run's config.yaml and metrics.csv, by what resumes, lists and sums it up."""

    name = "runs"
    names = ("config.yaml", "metrics.csv", "takedown.txt")

    def begin(self) -> None:
        settings = compose.load("train", ["data.root=own", "run=kept"], Train)
        self._settings, self._config = settings, asdict(settings)
        self._run = run_folder.Run(Path("runs/kept"))
        self._run.last.parent.mkdir(parents=True)
        saved = {"global_step": 4, "callbacks": {}, "state_dict": {}, "distill": self._config}
        torch.save(saved, self._run.last)
        rows = [{"step": n, "train/loss": 0.5 / n, "val/psnr": 20 + n, "lr": 1e-3} for n in (2, 4)]
        with Path("metrics.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        Path("config.yaml").write_text(yaml.safe_dump(self._config, sort_keys=False))
        lines = ["2026-11-27 10:00 left out 1 picture", 'picture photo-1 "photo.png"']
        lines += [content_line(self._run.last), "public x/y: pushed from runs/kept"]
        Path("takedown.txt").write_text("\n".join(lines))

    def put(self, case: tuple[str, list], folder: Path) -> None:
        name, changes = case
        (folder / name).write_bytes(self.changed(name, Path(name).read_bytes(), changes))

    def read(self, case: tuple[str, list], folder: Path) -> None:
        for name in self.names:
            place = folder if name == case[0] else Path()
            shutil.copyfile(place / name, self._run.folder / name)
        sweep_summary.figures(self._run, self._run.validations())
        metrics = MetricsTable(self._run.folder / "metrics.csv")
        metrics.on_train_start(_AtStep(4), None)  # type: ignore[arg-type]
        run_folder.find_run(RunChoice(run="kept", runs="runs", checkpoint="best", output=None))
        self._run.resumable(self._settings)
        with_takedown(Terms(()), self._run.last)
        record_takedown(Path(), {"photo": "photo.png"}, Path("runs"), restored=["photo-1"])


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


READERS = (PairSets, TermsFiles, PairFolders, NetworkOutputs, RunFolders)
