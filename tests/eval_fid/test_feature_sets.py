import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from distill.config import compose
from distill.config.settings.commands import EvalFid
from distill.core.errors import DistillError
from distill.data.photos import Photo, find_photos
from distill.eval_fid import feature_sets, paired_scores, run_scores
from distill.eval_fid.feature_sets import features_of_files, features_of_set, interval
from distill.metrics import frechet
from distill.metrics.features import BATCH
from support.feature_networks import Corner


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """21 pictures, number i with the corner (i, 2i, 3i), and two that cannot be read."""
    where = tmp_path / "pictures"
    where.mkdir()
    for i in range(21):
        Image.new("RGB", (5, 4), (i, 2 * i, 3 * i)).save(where / f"{i:02}.png")
    (where / "07-bad.png").write_bytes(b"no picture")
    (where / "30-bad.png").touch()
    return where


def expected(numbers: range) -> np.ndarray:
    return np.outer(numbers, [1, 2, 3]) / 255


def test_files_are_read_in_order_without_the_bad_ones(folder, capsys):
    network = Corner()
    got = features_of_files(network, find_photos(folder), "it")
    np.testing.assert_allclose(got, expected(range(21)), rtol=1e-6)
    said = capsys.readouterr().out
    assert said.index("07-bad.png': not a picture") < said.index("30-bad.png': not a picture")
    assert sorted(network.seen) == [21 % BATCH] + [BATCH] * (21 // BATCH)


def test_the_second_time_no_picture_is_decoded(folder, monkeypatch, capsys):
    first = features_of_files(Corner(), find_photos(folder), "it")
    monkeypatch.setattr(feature_sets, "read_photo", lambda *_a, **_k: pytest.fail("decoded"))
    capsys.readouterr()
    shutil.copytree(folder, folder.parent / "copy")  # what counts is what is in the files
    again = features_of_files(Corner(), find_photos(folder.parent / "copy"), "it")
    assert np.array_equal(again, first)
    assert capsys.readouterr().out == "features of it: 21 pictures, kept from an earlier run\n"


def one_changed(folder: Path) -> None:
    Image.new("RGB", (5, 4), (99, 0, 0)).save(folder / "03.png")


def one_gone(folder: Path) -> None:
    (folder / "03.png").unlink()


def test_pictures_in_memory_are_remembered_too():
    pictures = torch.randint(0, 256, (11, 3, 4, 6), dtype=torch.uint8)
    network = Corner()
    first = features_of_set(network, pictures, "T(A)")
    np.testing.assert_allclose(first, pictures[:, :, 0, 0].numpy() / 255, rtol=1e-6)
    assert sorted(network.seen) == [11 % BATCH] + [BATCH] * (11 // BATCH)
    assert np.array_equal(features_of_set(network, pictures.clone(), "T(A)"), first)
    assert sorted(network.seen) == [11 % BATCH] + [BATCH] * (11 // BATCH)
    for other in (pictures.flip(0), pictures.reshape(11, 3, 6, 4), pictures[:10]):
        network.seen.clear()
        features_of_set(network, other, "T(A)")
        assert network.seen


def test_two_readable_pictures_are_needed(tmp_path, folder):
    for number, readable in enumerate((0, 1)):
        where = tmp_path / str(number)
        where.mkdir()
        shutil.copy(folder / "07-bad.png", where)
        for i in range(readable):
            shutil.copy(folder / f"{i:02}.png", where)
        with pytest.raises(DistillError, match="MINE: needs at least 2 readable pictures"):
            features_of_files(Corner(), find_photos(where), "MINE")
    assert not (tmp_path / "cache").exists()


def test_a_file_that_vanishes_is_skipped(folder, capsys):
    photos = [*find_photos(folder), Photo(folder / "gone.png", "gone.png")]
    assert len(features_of_files(Corner(), photos, "it")) == 21
    assert "gone.png': cannot be read (No such file" in capsys.readouterr().out


@pytest.mark.parametrize("which", ["a", "b", "both"])
def test_statistics_from_a_file_stand_for_their_folder(folder, tmp_path, which):
    """As pytorch-fid and clean-fid save them: NumPy's mean and covariance of the features."""
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    one_changed(other)
    settings = replace(compose.load("eval_fid", [], EvalFid), bootstrap=0, features="mobilenet")
    sides = {}
    for name, place in (("a", folder), ("b", other)):
        x = features_of_files(Corner(), find_photos(place), name)
        sides[name] = tmp_path / f"{name}.npz"
        np.savez(sides[name], mu=x.mean(0), sigma=np.cov(x, rowvar=False))
    a, b = (sides[n] if which in (n, "both") else p for n, p in (("a", folder), ("b", other)))
    whole = paired_scores.score_folders(folder, other, Corner(), settings)
    found = paired_scores.score_folders(a, b, Corner(), settings)
    value = whole["distances"]["a against b"]["value"]
    assert found["distances"]["a against b"]["value"] == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert found["distances"]["a against b"]["kid"] is None
    counts = {"a": [None, 21], "b": [21, None], "both": [None, None]}
    assert found["pictures"] == counts[which]
    run_scores.write(found | {"fid_missing": None}, tmp_path / "out")
    assert "taken to be of the same network" in (tmp_path / "out/results.md").read_text()


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"mu": np.zeros(3)}, "holds no statistics, arrays mu and sigma"),
        ({"mu": np.zeros(3), "sigma": np.zeros((2, 2))}, "mu (3,) and sigma (2, 2) are not"),
        ({"mu": np.full(2, np.nan), "sigma": np.eye(2)}, "mu (2,) and sigma (2, 2) are not"),
        ({"mu": np.zeros(5), "sigma": np.eye(5)}, "features of 3 and of 5 values are of different"),
        ({"mu": np.array([{}]), "sigma": np.eye(1)}, "holds no statistics, arrays mu and sigma"),
    ],
)
def test_other_files_are_no_statistics(folder, tmp_path, arrays, said):
    np.savez(tmp_path / "s.npz", **arrays)
    settings = replace(compose.load("eval_fid", [], EvalFid), features="mobilenet")
    with pytest.raises(DistillError) as error:
        paired_scores.score_folders(folder, tmp_path / "s.npz", Corner(), settings)
    assert said in str(error.value)


def test_two_folders_have_one_result_with_and_without_what_is_kept(folder, tmp_path):
    """And the kept side is the teacher's: only the other folder goes through the network."""
    other, third = tmp_path / "other", tmp_path / "third"
    shutil.copytree(folder, other)
    one_changed(other)
    shutil.copytree(folder, third)
    one_gone(third)
    settings = replace(compose.load("eval_fid", [], EvalFid), bootstrap=20, features="mobilenet")
    networks = [Corner() for _ in range(3)]
    cold = paired_scores.score_folders(folder, other, networks[0], settings)
    assert sum(networks[0].seen) == 42
    assert paired_scores.score_folders(folder, other, networks[1], settings) == cold
    assert networks[1].seen == []
    paired_scores.score_folders(folder, third, networks[2], settings)
    assert sum(networks[2].seen) == 20
    assert cold["pictures"] == [21, 21]
    assert cold["distances"]["a against b"]["value"] > 0


def test_an_interval_that_is_no_number_is_none():
    """Of two pictures a resample may hold one alone: it is compared with none."""
    a, b = np.random.default_rng(0).normal(size=(2, 2, 3))
    ends = [interval(frechet.kid_interval, a, b, rounds=1, seed=seed) for seed in range(20)]
    assert None in ends
    assert all(each is None or np.isfinite(each).all() for each in ends)
    assert len({*map(str, ends)}) > 1
