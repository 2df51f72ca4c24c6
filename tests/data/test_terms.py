"""Whose terms a run, a file and a set are under: every way round a teacher's ends in them."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from distill.config import compose
from distill.config.registry import schema_of
from distill.config.settings.training import Prepare
from distill.core.onnx_files import load_model
from distill.core.terms import NOTE, Licence, Terms
from distill.data import terms
from distill.data.manifest import Manifest, write_manifest
from distill.models import zoo


def of_run(*words: str, recipe: str = "distill") -> Terms:
    loaded = compose.load("train", [f"recipe={recipe}", *words], schema_of)
    return terms.terms_of_run(loaded)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISTILL_WEIGHTS", raising=False)
    return tmp_path


def pairs(folder: Path) -> str:
    for side in "AB":
        (folder / side).mkdir(parents=True)
    return f"data.root={folder}"


def checkpoint(path: Path, *words: str, **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    loaded = asdict(compose.load("train", list(words), schema_of))
    torch.save({"distill": loaded, "state_dict": {}} | more, path)
    return path


def test_a_student_of_the_package_passes_its_terms_on(here: Path) -> None:
    own = [pairs(here / "mine"), "style=own", "style.licence=MIT"]
    assert of_run(*own).commercial == "yes"
    found = of_run(*own, "init=zoo:hayao")
    assert found.commercial == "no"
    of, texts = [e.of for e in found.chain], [e.text for e in found.chain]
    assert "init zoo:hayao: teacher animegan2_hayao.pt" in of
    assert texts[0] == "MIT"
    assert texts[1].startswith("AnimeGANv2")
    copy = shutil.copy(zoo.find("hayao"), here / "harmless.onnx")
    assert of_run(*own, f"init={copy}").commercial == "no"
    bare = load_model(Path(copy))
    del bare.metadata_props[:]
    onnx.save(bare, here / "bare.onnx")
    assert of_run(*own, "init=bare.onnx").commercial == "unknown"
    assert of_run(*own, "init=gone.onnx").commercial == "unknown"


def test_typed_words_do_not_loosen_a_published_teacher(here: Path, tmp_path: Path) -> None:
    word = "style.licence=MIT"
    assert of_run("style=hayao", word).commercial == "no"
    for words in (
        ["style=custom", "style.file=paprika.pt"],
        ["style=custom", "style.weights=x/animegan2_hayao.pt"],
        [
            "style=custom",
            "style.sha256=e0a6dcd8e49d8ccf74154ab6399b3b664c8a866b9bec4abddd76a98d3574d24c",
        ],
    ):
        assert of_run(*words, "teacher=animegan2", word).commercial == "no", words
    assert of_run("style=toon", word, "licence.pictures=CC0").commercial == "yes"
    assert of_run("style=toon", word).commercial == "unknown"  # of the photos
    assert of_run("style=toon", "data=demo").commercial == "yes"
    assert of_run("style=toon", "style.licence=research only", "data=demo").commercial == "no"


def test_renamed_weights_are_known_by_their_content(here: Path, monkeypatch: Any) -> None:
    (here / "mine.pt").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()  # of a published file
    entry = {"name": "x", "file": "x.pt", "sha256": digest, "git_blob": None,
             "licence": "non-commercial", "source": "s"}  # fmt: skip
    monkeypatch.setattr(terms, "_published", lambda: [entry])
    words = ["style=custom", "teacher=cyclegan", "style.weights=mine.pt", "style.licence=MIT"]
    assert of_run(*words).commercial == "no"


def test_a_run_is_a_teacher_or_a_start_with_its_terms(here: Path) -> None:
    first = checkpoint(here / "runs/a/checkpoints/best.ckpt", "style=hayao")  # from before terms
    words = ["style=custom", "style.licence=MIT", "licence.pictures=CC0"]
    assert of_run(*words, "teacher.path=runs/a").commercial == "no"
    chain = [e.of for e in of_run(*words, "teacher.path=runs/a").chain]
    assert "teacher a: teacher animegan2_hayao.pt" in chain
    assert not [of for of in chain if str(here) in of]
    said = Terms((Licence.said("teacher", "MIT"),)).plain()
    second = checkpoint(here / "runs/b/checkpoints/last.ckpt", "style=toon", terms=said)
    assert terms.terms_of(second).commercial == "yes"
    own = [pairs(here / "mine"), "style=own", "style.licence=MIT"]
    assert of_run(*own, f"init={second}").commercial == "yes"
    assert of_run(*own, f"init={first}").commercial == "no"
    loop = here / "runs/c/checkpoints/last.ckpt"
    checkpoint(loop, "style=toon", f"init={loop}")
    assert terms.terms_of(loop).commercial == "unknown"


def test_a_labelled_set_is_no_pairs_of_ones_own(here: Path) -> None:
    """Nor its folders, shards, or its drawings as a domain or a teacher."""
    root = here / "data/pairs/quiet"
    for side in ("photo", "stylized"):
        (root / "train" / side).mkdir(parents=True)
    write_manifest(root, Manifest("p", "hayao", "0" * 16), {"train": 1, "val": 0, "test": 0})
    word = "style.licence=MIT"
    for folder in (root, root / "train"):
        assert of_run(f"data.root={folder}", "style=own", word).commercial == "no"
    assert of_run(f"data.root={root}", recipe="pix2pix").commercial == "no"
    domains = [f"data.a={here}", f"data.b={root}/train/stylized", "licence.pictures=CC0"]
    assert of_run(*domains, recipe="cyclegan").commercial == "no"
    drawn = ["style=custom", "teacher=folder", f"teacher.folder={root}/train/stylized", word]
    assert of_run(*drawn, "licence.pictures=CC0").commercial == "no"
    (root / "set").mkdir()
    (root / "dataset.json").rename(root / "set/dataset.json")
    assert terms.kept_terms(root)[0].commercial == "no"
    # Shards have a dataset.json of their own beside it, which says less than the set's terms.
    shutil.copy(root / "set/dataset.json", root)
    said = Terms((Licence.said("teacher hayao", "CC BY-NC 4.0"), Licence.said("photos", "CC0")))
    (root / "set/terms.json").write_text(json.dumps(said.plain()))
    assert terms.kept_terms(root) == said.chain


def test_what_a_set_keeps_only_grows(here: Path) -> None:
    def keep(*words: str) -> Terms:
        settings = compose.load("prepare", ["style=toon", "photos=p", *words], Prepare)
        terms.keep_terms(here, settings)
        return Terms(terms.kept_terms(here))

    assert keep().commercial == "unknown"
    first = keep("card.licence=CC BY 4.0", "card.source=https://x")
    assert first.commercial == "yes"
    assert [(e.of, e.text) for e in first.chain] == [
        ("teacher toon", "MIT, as this project"), ("photos", "CC BY 4.0"),
    ]  # fmt: skip
    assert keep() == first
    assert keep("card.licence=CC BY-NC 4.0").commercial == "no"
    assert keep("card.licence=CC0").commercial == "no"
    assert json.loads((here / "terms.json").read_text())["commercial"] == "no"


def test_every_shipped_student_carries_its_terms() -> None:
    bound = {"hayao": "no", "hayao-small": "no", "whitebox": "no"}
    for name in zoo.shipped():
        answer = bound.get(name, "yes")
        for path in {zoo.find(name), zoo.static(name)}:
            found = terms.terms_of(path)
            card = json.loads((zoo.FOLDER / f"{name}.json").read_text())["teacher"]
            assert found.commercial == answer
            assert found.chain[0].text == card["licence"]
    assert NOTE == "distill.terms"
