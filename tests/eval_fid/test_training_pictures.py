"""Pictures that a run was trained on are not scored, wherever they lie and whatever their names."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageOps
from torch import nn

from distill.config import compose
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import Train, source_of
from distill.core.errors import DistillError
from distill.data.kinds import registry
from distill.data.photo_table import read_rows
from distill.data.photos import find_photos
from distill.eval_fid import heldout
from distill.eval_fid.heldout import held_out_photos
from distill.eval_fid.training_pictures import pictures_of, seen_by
from distill.models import build, checkpoint
from distill.prepare import labelling
from distill_gan.held_out_pairs import held_out_pairs
from distill_gan.unpaired_scores import held_out_domains
from support import gan_runs
from support.labelling import add, picture

SPLIT = ["data.val_fraction=0.3", "data.test_fraction=0.3"]


def settings_of(*arguments, split=SPLIT):
    quick = ["style.resolution=64", "label.workers=0", "encoder.weights=none"]
    return compose.load("train", [*arguments, *split, *quick], Train)


def labelled(*arguments, split=SPLIT):
    """The settings of a run, as its checkpoint keeps them, once its set is made."""
    settings = settings_of(*arguments, split=split)
    labelling.prepare(settings, build.load_teacher(settings.style, settings.teacher))
    return replace(settings, run="it")


def on_side(trained, *sides):
    """The keys of the photos that are on these sides of a run's set."""
    rows = read_rows(registry.data_source(source_of(trained)).folder).values()
    return {row.key.strip("'") for row in rows if row.side in sides}


def scored(trained, *arguments, score=held_out_photos):
    wanted = compose.load("eval_fid", ["features=none", *arguments], EvalFid)
    return score(nn.Identity(), trained, wanted)


def turned_copy(image):
    return ImageOps.mirror(image.rotate(8, Image.Resampling.BICUBIC))


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A working folder with a set of photos=[all/a,all/b], beside which lies all/c."""
    folder = tmp_path_factory.mktemp("once")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        add(Path("all/a"), *range(10))
        add(Path("all/a/deep"), *range(10, 16))
        add(Path("all/b"), *range(20, 28))
        add(Path("all/c"), *range(40, 44))
        return folder, labelled("photos=[all/a,all/b]")


@pytest.fixture
def trained(once, tmp_path, monkeypatch):
    """A run on such a set, in a working folder of the test's own."""
    folder, settings = once
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return settings


def left_out(count, of):
    return (
        f"{count} of {of} photos left out: the run was trained on them or near-duplicates of them"
    )


@pytest.mark.campaign
def test_one_of_the_run_s_folders(trained):
    unseen = {key for key in on_side(trained, "test") if key.startswith("a/")}
    assert 0 < len(unseen) < 16
    found = scored(trained, "photos=all/a")
    assert len(found.input) == len(unseen)
    assert found.about["left_out"] == left_out(16 - len(unseen), 16)
    assert "unchecked" not in found.about


@pytest.mark.campaign
def test_what_another_run_had_labelled_is_not_scored_either(trained, monkeypatch):
    """The set of all/a's held-out photos is kept from one evaluation to the next."""
    with monkeypatch.context() as patch:
        patch.setattr(heldout.training_pictures, "pictures_of", lambda *_: None)
        found = scored(trained, "photos=all/a")
    assert len(found.input) == 16
    assert "toon-a+b-64 is gone" in found.about["unchecked"]
    unseen = {key for key in on_side(trained, "test") if key.startswith("a/")}
    assert len(scored(trained, "photos=all/a").input) == len(unseen)


@pytest.mark.parametrize("change", [lambda image: image, ImageOps.mirror, turned_copy])
@pytest.mark.campaign
def test_copies_elsewhere_under_other_names(trained, change):
    add(Path("elsewhere"), *range(8), name="holiday {}x", change=change)
    add(Path("elsewhere"), 50, 51, name="holiday {}x")
    unseen = on_side(trained, "test") & {f"a/{seed}.png" for seed in range(8)}
    found = scored(trained, "photos=elsewhere")
    assert len(found.input) == len(unseen) + 2
    assert found.about["left_out"] == left_out(8 - len(unseen), 10)


@pytest.mark.campaign
def test_copies_are_found_by_the_set_s_own_pictures_when_the_photos_are_gone(trained):
    Path("all").rename("elsewhere")
    unseen = {key for key in on_side(trained, "test") if key.startswith("a/")}
    assert len(scored(trained, "photos=elsewhere/a").input) == len(unseen)


@pytest.mark.campaign
def test_nothing_left_is_an_error_of_one_line(trained):
    seen = sorted(on_side(trained, "train"))[:3]
    Path("some").mkdir()
    for key in seen:
        shutil.copy(Path("all", key), "some")
    with pytest.raises(DistillError, match="photos=some: the run was trained on all 3 of"):
        scored(trained, "photos=some")


@pytest.mark.slow
def test_a_set_that_is_gone_is_said(trained):
    shutil.rmtree("data")
    found = scored(trained, "photos=all/c")
    assert len(found.input) == 4
    root = Path("data/pairs/toon-a+b-64")
    said = f"could not be checked for training photos: the training set {root} is gone"
    assert found.about["unchecked"] == said


@pytest.mark.slow
def test_what_it_started_from_counts(trained, monkeypatch):
    """A start on [a, b], gone on with on b in another split: that one's test photos were seen."""
    later = replace(labelled("photos=all/b", "data.split_seed=5"), init="first.ckpt")
    tested = {f"b/{key}" for key in on_side(later, "test")}
    seen = tested & on_side(trained, "train", "val")
    assert seen
    monkeypatch.setattr(checkpoint, "lineage", lambda run: [run, trained])
    if seen == tested:
        with pytest.raises(DistillError, match="the held-out photos: the run was trained on all"):
            scored(later)
    else:
        found = scored(later)
        assert len(found.input) == len(tested - seen)
        assert found.about["left_out"] == left_out(len(seen), len(tested))

    def gone(_run):
        raise DistillError("first.ckpt: no such file")

    monkeypatch.setattr(checkpoint, "lineage", gone)
    found = scored(later)
    assert len(found.input) == len(tested)
    assert found.about["unchecked"].endswith("photos: first.ckpt: no such file")


@pytest.mark.slow
def test_of_two_sides_validation_is_what_is_held_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add(Path("a"), *range(8))
    add(Path("b"), *range(20, 24))
    older = labelled("photos=[a,b]", split=["data.val_fraction=0.4", "data.test_fraction=0"])
    unseen = {key for key in on_side(older, "val") if key.startswith("a/")}
    assert 0 < len(unseen) < 8
    assert len(scored(older, "photos=a").input) == len(unseen)


def test_one_group_in_one_folder_is_one_person(tmp_path, monkeypatch):
    """Another picture of a trained person counts in that folder; elsewhere a name says nothing."""
    monkeypatch.chdir(tmp_path)
    add(Path("a"), *range(8), name="Person {}_0001")
    trained = labelled("photos=a")
    seen, fresh = seen_by([trained]), map(picture, range(100, 200))
    persons = {key.split("_")[0] for key in on_side(trained, "train", "val")}
    for folder in ("a", "b"):
        add(Path(folder), *range(8), name="Person {}_0002", change=lambda _: next(fresh))
    new = [photo for photo in find_photos(Path("a")) if "_0002" in photo.key]
    found = seen.among({photo.key: photo for photo in new}, "new")
    assert found == {f"{person}_0002.png" for person in persons}
    assert not seen.among({photo.key: photo for photo in find_photos(Path("b"))}, "elsewhere")


@pytest.mark.slow
def test_a_set_of_photos_that_were_never_drawn_is_known_by_its_list(trained):
    """data=photos labels on the fly: the set holds photos.tsv and no pictures."""
    for side in ("train", "val", "test"):
        shutil.rmtree(Path("data/pairs/toon-a+b-64", side), ignore_errors=True)
    pictures = pictures_of(source_of(trained))
    assert {photo.key for photo in pictures.pictures.values()} == on_side(trained, "train", "val")
    assert all(photo.path.is_file() for photo in pictures.pictures.values())
    assert not seen_by([trained]).unknown
    Path("all").rename("elsewhere")
    count = len(pictures.pictures)
    assert f"{count} of {count} training photos" in seen_by([trained]).unknown


def test_pairs_of_one_s_own(tmp_path, monkeypatch):
    """A run on A/ + B/, scored on another folder of pairs that holds mirrored copies of its A/."""
    monkeypatch.chdir(tmp_path)
    for folder in ("own/train", "own/val", "own/test"):
        first = 10 * len(folder)
        add(Path(folder, "A"), *range(first, first + 3))
        add(Path(folder, "B"), *range(first, first + 3))
    trained = gan_runs.settings("pix2pix", gan_runs.UNET, root="own")
    for side in ("A", "B"):
        add(Path("other/val", side), 90, 91, 92, 200, name="x{}", change=ImageOps.mirror)
    found = scored(trained, "photos=other", score=held_out_pairs)
    assert len(found.input) == 1
    assert found.about["left_out"] == left_out(3, 4)
    assert len(scored(trained, score=held_out_pairs).input) == 3
    names = "".join(f"{path.name}\n" for path in sorted(Path("own/train/A").iterdir())[:2])
    Path("own/dropped.txt").write_text(names)  # since it was trained: it has seen them all the same
    assert scored(trained, "photos=other", score=held_out_pairs).about["left_out"] == left_out(3, 4)
    shutil.rmtree("own")
    found = scored(trained, "photos=other", score=held_out_pairs)
    assert len(found.input) == 4
    assert "the training pairs own are gone" in found.about["unchecked"]


def test_two_domains(tmp_path, monkeypatch):
    """Horses and zebras of one's own, scored on another folder with copies of some of them."""
    monkeypatch.chdir(tmp_path)
    trained = gan_runs.settings("cyclegan", gan_runs.RESNET, root="own")
    for name, first in (("trainA", 0), ("trainB", 10), ("testA", 20), ("testB", 30)):
        add(Path("own", name), *range(first, first + 3))
    add(Path("other/testA"), 0, 1, 200, name="x{}", change=turned_copy)
    add(Path("other/testB"), 10, 201, 202, name="x{}", change=turned_copy)

    def score(network, trained, wanted):
        return held_out_domains(network, network, trained, wanted)

    found = scored(trained, "photos=other", score=score)
    assert (len(found.source), len(found.real)) == (1, 2)
    assert found.about["left_out"] == left_out(3, 6)
    assert "left_out" not in scored(trained, score=score).about
    shutil.rmtree("own")
    found = scored(trained, "photos=other", score=score)
    assert (len(found.source), len(found.real)) == (3, 3)
    assert found.about["unchecked"].endswith("the training pictures of own are gone")


def test_pairs_of_one_s_own_that_a_teacher_s_student_learnt_from(tmp_path, monkeypatch):
    """With data.root=DIR of one's own pairs photos=DIR are labelled by the run's style."""
    monkeypatch.chdir(tmp_path)
    for folder, first in (("train", 0), ("val", 10)):
        for side in ("A", "B"):
            add(Path("own", folder, side), *range(first, first + 3))
    trained = replace(settings_of("data.root=own"), run="it")
    add(Path("some"), 0, 1, 10, 50, name="x{}")
    found = scored(trained, "photos=some")
    assert len(found.input) == 2
    assert found.about["left_out"] == left_out(2, 4)
