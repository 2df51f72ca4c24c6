"""Whose terms a run, a file and a set are under: every way round a teacher's ends in them."""

import hashlib
import json
import re
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from PIL import Image

from distill.config import compose
from distill.config.registry import schema_of
from distill.config.settings.base import LicenceSettings
from distill.config.settings.training import Prepare
from distill.core.errors import DistillError
from distill.core.licence_terms import NOTE, TAKEN_DOWN, Licence, Terms
from distill.core.onnx_files import load_model
from distill.data import licence_terms, photo_folders
from distill.data.address import Address
from distill.data.manifest import Manifest, write_manifest
from distill.data.photo_table import PhotoRow, write_rows, write_sides
from distill.data.photo_terms import PhotoTerms, photo_links, read_photo_terms, terms_by_row
from distill.data.photos import Photo
from distill.models import zoo


def of_run(*words: str, recipe: str = "distill") -> Terms:
    loaded = compose.load("train", [f"recipe={recipe}", *words], schema_of)
    return licence_terms.terms_of_run(loaded)


@pytest.fixture
def here(tmp_path, monkeypatch):
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


def test_a_student_of_the_package_passes_its_terms_on(here):
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


@pytest.mark.slow
def test_typed_words_do_not_loosen_a_published_teacher(here, tmp_path):
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


def test_a_set_of_the_demo_s_photos_is_free(here):
    write_manifest(here, Manifest("scikit-image", "toon", "0" * 16), {"train": 1})
    settings = compose.load("prepare", ["data=demo"], Prepare)
    licence_terms.keep_terms(here, settings)
    assert Terms(licence_terms.kept_terms(here)).commercial == "yes"


def test_renamed_weights_are_known_by_their_content(here, monkeypatch):
    (here / "mine.pt").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()  # of a published file
    entry = {"name": "x", "file": "x.pt", "sha256": digest, "git_blob": None,
             "licence": "non-commercial", "source": "s"}  # fmt: skip
    monkeypatch.setattr(licence_terms, "_published", lambda: [entry])
    words = ["style=custom", "teacher=cyclegan", "style.weights=mine.pt", "style.licence=MIT"]
    assert of_run(*words).commercial == "no"


def test_a_run_is_a_teacher_or_a_start_with_its_terms(here):
    first = checkpoint(here / "runs/a/checkpoints/best.ckpt", "style=hayao")  # from before terms
    words = ["style=custom", "style.licence=MIT", "licence.pictures=CC0"]
    assert of_run(*words, "teacher.path=runs/a").commercial == "no"
    chain = [e.of for e in of_run(*words, "teacher.path=runs/a").chain]
    assert "teacher a: teacher animegan2_hayao.pt" in chain
    assert not [of for of in chain if str(here) in of]
    said = Terms((Licence.from_text("teacher", "MIT"),)).plain()
    second = checkpoint(here / "runs/b/checkpoints/last.ckpt", "style=toon", terms=said)
    assert licence_terms.terms_of(second).commercial == "yes"
    own = [pairs(here / "mine"), "style=own", "style.licence=MIT"]
    assert of_run(*own, f"init={second}").commercial == "yes"
    assert of_run(*own, f"init={first}").commercial == "no"
    loop = here / "runs/c/checkpoints/last.ckpt"
    checkpoint(loop, "style=toon", f"init={loop}")
    assert licence_terms.terms_of(loop).commercial == "unknown"


def test_a_labelled_set_is_no_pairs_of_ones_own(here):
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
    assert licence_terms.kept_terms(root)[0].commercial == "no"
    # Shards have a dataset.json of their own beside it, which says less than the set's terms.
    shutil.copy(root / "set/dataset.json", root)
    said = Terms(
        (Licence.from_text("teacher hayao", "CC BY-NC 4.0"), Licence.from_text("photos", "CC0"))
    )
    (root / "set/terms.json").write_text(json.dumps(said.plain()))
    assert licence_terms.kept_terms(root) == said.chain


def test_a_set_keeps_others_terms_and_its_owners_last_word(here):
    def keep(*words: str) -> Terms:
        settings = compose.load("prepare", ["style=toon", "photos=p", *words], Prepare)
        licence_terms.keep_terms(here, settings)
        return Terms(licence_terms.kept_terms(here))

    assert keep().commercial == "unknown"
    first = keep("card.licence=CC BY 4.0", "card.source=https://x")
    assert first.commercial == "yes"
    assert [(e.of, e.text) for e in first.chain] == [
        ("teacher toon", "MIT, as this project"), ("photos", "CC BY 4.0"),
    ]  # fmt: skip
    assert keep() == first
    assert keep("card.licence=CC BY-NC 4.0").commercial == "no"
    mended = keep("card.licence=CC0")
    assert mended.commercial == "yes"
    assert re.fullmatch(r"stated 2[-: 0-9]{18}, before CC BY-NC 4\.0", mended.chain[-1].note)
    assert keep("card.licence=CC0") == keep() == mended
    (here / "sha256sums.txt").write_text("")  # of somebody else, who said so
    assert keep("card.licence=CC BY-NC 4.0").commercial == "no"
    assert keep("card.licence=CC0").commercial == "no"
    assert json.loads((here / "terms.json").read_text())["commercial"] == "no"


def labelled(folder: Path, *keys: str) -> Path:
    """A set that says of these photos that they are in it."""
    folder.mkdir(parents=True)
    write_rows(folder, [PhotoRow.of(Photo(Path(key), key), "train") for key in keys])
    return folder


ROWS = """photo,author,source,licence
flickr/,Anna,https://flickr.com/anna,CC BY 4.0
flickr/b.jpg,Bert,,CC BY-NC 4.0
*.png,,,CC0
"""


def test_terms_of_photos_by_folder_and_photo(here):
    (here / "p").mkdir()
    (here / "p/terms.csv").write_text(ROWS)
    labelled(here / "set", "flickr/a.jpg", "flickr/x/c.jpg", "flickr/b.jpg", "d.png", "e.jpg")
    words = ["style=toon", "photos=p", "data.root=set"]

    def chain() -> dict[str, str]:
        licence_terms.keep_terms(here / "set", compose.load("prepare", words, Prepare))
        return {e.of: e.text for e in licence_terms.kept_terms(here / "set")[1:]}

    assert chain() == {
        "photos: 1": "CC0", "photos: 2 by Anna": "CC BY 4.0", "photos: 1 by Bert": "CC BY-NC 4.0",
        "photos": "not said",
    }  # fmt: skip
    (here / "p/terms.csv").write_text(ROWS.replace("CC BY-NC 4.0", "CC BY 4.0") + "*,,,CC0\n")
    assert chain() == {
        "photos: 2": "CC0", "photos: 2 by Anna": "CC BY 4.0", "photos: 1 by Bert": "CC BY 4.0",
    }  # fmt: skip
    assert of_run(*words).commercial == "yes"
    (here / "p/terms.csv").unlink()  # what was said stays
    assert of_run(*words).commercial == "yes"


def test_a_run_that_names_the_set_alone_finds_the_photos_of_its_labels(here):
    for folder in ("p", "data/photos"):
        (here / folder).mkdir(parents=True)
    (here / "p/terms.csv").write_text("photo,author,licence\n*,Anna,CC BY 4.0\n")
    root = labelled(here / "set", "a.jpg", "b.jpg")
    words = ["style=toon", "data.root=set"]
    settings = compose.load("train", words, schema_of)

    def photos(of: str) -> Any:
        write_manifest(root, Manifest(of, "toon", "0" * 16), {"train": 2, "val": 0, "test": 0})
        return photo_folders.of_set(settings, "set").photos

    assert photos(str(here / "p")) == [str(here / "p")]
    assert [e.of for e in of_run(*words).chain][1:] == ["photos: 2 by Anna"]
    assert photos("p of another machine") == ["p of another machine"]
    assert photos(str(here / "gone")) == settings.photos == "data/photos"
    assert of_run(*words).chain[1:] == (Licence("photos"),)


def test_a_run_keeps_the_terms_of_pictures_that_its_set_left_out(here: Path) -> None:
    keys = ("azure/a.jpg", "azure/b.jpg", "cliff/c.jpg")
    (here / "p").mkdir()
    (here / "p/terms.csv").write_text("photo,author,licence\nazure/,Azure,MIT\ncliff/,Cliff,CC0\n")
    words = ["style=toon", "photos=p", "data.root=set"]
    names = [Photo(Path(), key).pair_name for key in keys]
    run = labelled(here / "set", *keys) and here / "runs/a"
    path = checkpoint(run / "checkpoints/last.ckpt", *words, terms=of_run(*words).plain())
    (run / "config.yaml").write_text("photos: p\n")
    write_sides(run / "pairs.tsv", [(f"{name}.png", "train") for name in names[1:]])
    before = licence_terms.terms_of(path).chain
    assert [e.of for e in before[1:]] == ["photos: 2 by Azure", "photos: 1 by Cliff"]
    out = [f'picture {name} "{key}"\n' for name, key in zip(names, keys, strict=True)][:2]
    (run / "takedown.txt").write_text("".join(out))
    shutil.rmtree(here / "set")
    labelled(here / "set", keys[2])
    after = {e.of: e.text for e in licence_terms.terms_of(path).chain if e.of.startswith("photos")}
    # The first of Azure's was a test picture: the run did not learn from it.
    assert after == {"photos: 1 by Azure": "MIT", "photos: 1 by Cliff": "CC0"}
    (run / "takedown.txt").unlink()  # the set was made anew without them
    assert licence_terms.terms_of(path).chain == before


def test_a_run_keeps_the_terms_of_pairs_whose_files_are_gone(here):
    root = pairs(here / "own")
    for name in ("a.png", "b.png"):
        for side in "AB":
            Image.new("RGB", (64, 64)).save(here / "own" / side / name)
    table = here / "own/terms.csv"
    table.write_text("photo,author,licence\na.png,Anna,CC BY-NC 4.0\nb.png,Bert,CC0\n")
    words = [root, "style=own"]
    path = checkpoint(here / "runs/a/checkpoints/last.ckpt", *words, terms=of_run(*words).plain())
    (here / "runs/a/config.yaml").write_text("x: y\n")
    write_sides(here / "runs/a/pairs.tsv", [("a.png", "train"), ("b.png", "train")])
    before = licence_terms.terms_of(path)
    assert [e.of for e in before.chain] == ["pictures own: 2 by Anna", "pictures own: 2 by Bert"]
    for side in "AB":
        (here / "own" / side / "a.png").unlink()
    assert licence_terms.terms_of(path) == before
    assert of_run(*words).commercial == "yes"  # what would be learnt from now


def test_rows_that_no_photo_fits_are_named() -> None:
    of = {name: PhotoTerms(name) for name in ("a/", "a/b.jpg", "*", "c/", "*.png")}
    listed, idle = terms_by_row(["a/b.jpg", "d.jpg"], of)
    assert [each.author for each in listed] == ["a/b.jpg", "*"]
    assert idle == ["*.png", "c/"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a,b\n1,2\n", "want.* photo,author,source,licence"),
        ("photo,licence\na\n", "line 2: 1 values for 2 columns"),
        ("photo,licence\n\na,CC0\na,MIT\n", "line 4: other terms of 'a'"),
        ("\udcff", "not a table of terms"),
        ("", "want.* photo,author,source,licence"),
    ],
)
def test_a_table_of_terms_that_is_none(tmp_path, content, reason):
    (tmp_path / "metadata.csv").write_bytes(content.encode(errors="surrogateescape"))
    assert read_photo_terms(tmp_path) == {}  # a manifest that says nothing of terms
    (tmp_path / "terms.csv").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(DistillError, match=f"terms.csv: .*{reason}"):
        read_photo_terms(tmp_path)


def test_the_columns_of_a_manifest(tmp_path):
    text = 'file_name,label,author,license\na.png,"cat,\nblack",Ann,CC0\n'
    (tmp_path / "metadata.csv").write_text(text)
    assert read_photo_terms(tmp_path) == {"a.png": PhotoTerms("Ann", "", "CC0")}
    assert read_photo_terms(Address(f"file://{tmp_path}")) == read_photo_terms(tmp_path)


def test_a_table_as_a_spreadsheet_writes_it(tmp_path):
    text = "\ufeffFile;Photographer;License\r\n.\\a\\b.jpg;Ängström;CC0\r\n"
    (tmp_path / "terms.csv").write_text(text, encoding="utf-8")
    assert read_photo_terms(tmp_path) == {"a/b.jpg": PhotoTerms("Ängström", "", "CC0")}


def test_many_photographers_are_counted(tmp_path):
    links = photo_links("photos", (PhotoTerms(f"a{n % 100}", "", "CC0") for n in range(1000)))
    assert [(e.of, e.text) for e in links] == [("photos: 1,000 by 100 photographers", "CC0")]


def stated(pictures: str) -> LicenceSettings:
    return LicenceSettings(pictures=pictures)


def test_a_finished_run_takes_a_later_word(here):
    (here / "runs/a").mkdir(parents=True)
    (here / "runs/a/config.yaml").write_text("photos: p\n")
    first = Terms((Licence.from_text("teacher toon", "MIT"), Licence("photos")))
    path = checkpoint(here / "runs/a/checkpoints/last.ckpt", "style=toon", terms=first.plain())
    assert licence_terms.terms_of(path).commercial == "unknown"
    assert licence_terms.state_terms(path, stated("CC BY 4.0")).commercial == "yes"
    assert licence_terms.terms_of(path).commercial == "yes"
    typed = compose.load("train", ["style=toon", "licence.pictures=CC BY-NC 4.0"], schema_of)
    licence_terms.keep_terms_of_run(path, typed)
    found = licence_terms.terms_of(path)
    assert found.commercial == "no"
    assert "before CC BY 4.0" in found.chain[-1].note
    (here / "data/photos").mkdir(parents=True)  # where style=toon looks for photos
    (here / "data/photos/terms.csv").write_text("photo\n")
    with pytest.raises(DistillError, match=r"terms.csv: not a table"):
        licence_terms.state_terms(path, LicenceSettings())
    others = Terms((Licence.from_text("init zoo:hayao: photos", "CC BY-NC 4.0", stated=True),))
    with pytest.raises(DistillError, match="from no pictures of yours"):
        others.restated("CC0")


def test_a_later_word_reaches_what_was_made_of_the_run(here):
    (here / "runs/a").mkdir(parents=True)
    (here / "runs/b").mkdir()
    for name in "ab":
        (here / f"runs/{name}/config.yaml").write_text("photos: p\n")
    unsaid = Terms((Licence.from_text("teacher toon", "MIT, as this project"), Licence("photos")))
    first = checkpoint(here / "runs/a/checkpoints/last.ckpt", "style=toon", terms=unsaid.plain())
    words = [pairs(here / "mine"), "style=own", "style.licence=MIT", f"init={first}"]
    made = here / "runs/b/checkpoints/last.ckpt"
    checkpoint(made, *words, terms=of_run(*words).plain())
    assert licence_terms.terms_of(made).commercial == "unknown"
    licence_terms.state_terms(first, stated("CC BY-NC 4.0"))
    assert licence_terms.terms_of(made).commercial == "no"
    time.sleep(1)  # what is stated is dated to the second
    licence_terms.state_terms(first, stated("CC0"))
    assert licence_terms.terms_of(made).commercial == "yes"
    assert [e.of for e in licence_terms.terms_of(made).chain] == [
        "pictures mine", "init a: teacher toon", "init a: photos",
    ]  # fmt: skip


def test_no_word_loosens_a_file_that_was_fetched(here):
    said = Terms((Licence.from_text("photos", "CC BY-NC 4.0", stated=True), Licence("pictures b")))
    path = checkpoint(here / "fetched/x.ckpt", "style=toon", terms=said.plain())
    found = licence_terms.state_terms(path, stated("CC0"))
    assert found.commercial == "no"
    assert [(e.of, e.text) for e in found.chain] == [
        ("photos", "CC BY-NC 4.0"), ("photos", "CC0"), ("pictures b", "CC0"),
    ]  # fmt: skip


def test_a_takedown_is_no_picture_of_ones_own():
    down = Licence(TAKEN_DOWN, "unknown", text="taken down: 1 picture; accepted: x", stated=True)
    assert down in Terms((down, Licence("photos"))).restated("CC0").chain


def test_a_table_of_all_photos_replaces_an_earlier_word_on_all():
    def rows(when: str) -> Licence:
        return Licence.from_text("photos: 2", "MIT", stated=True, note=f"stated {when}")

    first = Terms((Licence("photos"),)).restated("CC BY-NC 4.0")  # dated today
    later = first.amended([rows("2999-01-01 00:00:00")])
    assert [(e.of, e.text, e.note) for e in later.chain] == [
        ("photos: 2", "MIT", "stated 2999-01-01 00:00:00, before CC BY-NC 4.0")
    ]
    assert later.amended([rows("2999-01-02 00:00:00")]) == later
    assert first.amended([rows("2000-01-01 00:00:00")]).commercial == "no"
    assert first.amended([rows("2999-01-01 00:00:00"), Licence("photos")]).commercial == "no"
    fetched = first.of_others.amended([rows("2999-01-01 00:00:00")])
    assert fetched.commercial == "no"


def test_a_chain_read_anew_says_the_same(here):
    rows = [Licence.from_text("photos: 2 by A", "CC0", "u", stated=True), Licence("photos")]
    first = Terms((Licence.from_text("teacher t", "MIT"), *rows))
    assert first.amended(rows) == first.amended(rows, fresh=True) == first
    all_said = first.amended(rows[:1])
    assert [e.of for e in all_said.chain] == ["teacher t", "photos: 2 by A"]
    assert all_said.amended([Licence("photos")]) == all_said  # terms.csv is gone
    assert all_said.amended(rows).chain[-1] == Licence("photos")  # a photo came that has no row


def test_one_word_is_enough_for_a_style_picture(here):
    Image.new("RGB", (64, 64)).save(here / "look.png")
    words = ["style_image=look.png", "photos=p", "licence.pictures=CC0"]
    assert of_run(*words, recipe="picture").commercial == "yes"
    assert of_run(*words, "style.licence=CC BY-NC 4.0", recipe="picture").commercial == "no"
    assert of_run(*words[:2], "style.licence=CC0", recipe="picture").commercial == "unknown"


@pytest.mark.parametrize("folder", ["CelebA-HQ/x", "p/lfw", "FFHQ_256", "p", "link"])
def test_collections_for_research_are_known_by_their_names(here, folder):
    (here / "p/mine/imagenet").mkdir(parents=True)
    (here / "p/mine/imagenet/a.jpg").touch()
    (here / "lfw").mkdir()
    (here / "link").symlink_to("lfw")
    card = compose.load("prepare", [f"photos={folder}", "style=toon", "card.licence=CC0"], Prepare)
    with pytest.raises(DistillError, match=r"card.licence=CC0: .* for research only; state in .*"):
        licence_terms.check_stated(card.card, card)


@pytest.mark.slow
def test_one_licence_over_a_research_collection_is_asked_about(here):
    folder = "celeba"
    (here / folder).mkdir()

    def check(word: str, photos: str, more: str = "style=toon") -> None:
        said = f"photos={photos}"
        card = compose.load("prepare", [said, more, f"card.licence={word}"], Prepare)
        licence_terms.check_stated(card.card, card)
        run = compose.load("train", [said, more, f"licence.pictures={word}"], schema_of)
        licence_terms.check_stated(run.licence, run)

    check("null", folder)
    check("CC BY-NC 4.0", folder)
    with pytest.raises(DistillError, match=r"card.licence=CC0: .* for research only; state in .*"):
        check("CC0", folder)
    with pytest.raises(DistillError, match=r"licence=CC0: .*looks like celeba"):
        check("CC0", "elf", f"data.root={here}/pairs-of-celeba")
    permitted = LicenceSettings(pictures="CC0", i_have_permission=True)
    run = compose.load("train", [f"photos={folder}", "style=toon"], schema_of)
    licence_terms.check_stated(permitted, run)
    (here / folder / "terms.csv").write_text("photo,licence\n*,CC0\n")
    check("CC0", folder)
    check("CC0", "[elf,s3://celeba/x]")
    (here / folder / "terms.csv").write_text("photo\n*\n")
    with pytest.raises(DistillError, match=r"terms.csv: not a table"):
        check("null", folder)


def test_a_set_remembers_what_collection_it_was_labelled_from(here):
    made = Manifest("/data/CelebA/img", "toon", "0" * 16)
    write_manifest(here / "set", made, {"train": 1, "val": 0, "test": 0})
    words = ["style=toon", "photos=p", "data.root=set", "licence.pictures=CC0"]
    run = compose.load("train", words, schema_of)
    with pytest.raises(DistillError, match="/data/CelebA/img looks like CelebA"):
        licence_terms.check_stated(run.licence, run)


def test_every_shipped_student_carries_its_terms():
    bound = {"hayao": "no", "hayao-small": "no", "whitebox": "no"}
    for name in zoo.shipped():
        answer = bound.get(name, "yes")
        for path in {zoo.find(name), zoo.static(name)}:
            found = licence_terms.terms_of(path)
            card = json.loads((zoo.FOLDER / f"{name}.json").read_text())["teacher"]
            assert found.commercial == answer
            assert found.chain[0].text == card["licence"]
    assert NOTE == "distill.terms"


def test_another_teacher_under_the_name_of_a_style_has_not_its_terms(here):
    (here / "other.onnx").write_bytes(b"of somebody")
    words = ["style=toon", "photos=p", "card.licence=CC0", "teacher=onnx"]
    words.append(f"style.weights={here / 'other.onnx'}")
    licence_terms.keep_terms(here, compose.load("prepare", words, Prepare))
    kept = Terms(licence_terms.kept_terms(here))
    assert kept.commercial == "unknown"
    assert "MIT, as this project" not in [each.text for each in kept.chain]
