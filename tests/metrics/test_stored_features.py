import numpy as np
import pytest

from distill.metrics.features import cached_features, set_key

VALUES = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32).astype(np.float64)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path))
    return tmp_path / "features"


def never() -> np.ndarray:
    raise AssertionError("computed though it is kept")


def test_features_are_computed_once_and_read_back_to_the_last_bit(cache, capsys):
    first = cached_features("name", "T(A)", lambda: VALUES)
    assert capsys.readouterr().out == ""
    again = cached_features("name", "T(A)", never)
    assert again.dtype == first.dtype == np.float64
    assert np.array_equal(again, VALUES)
    assert np.array_equal(first, VALUES)
    assert "T(A): 5 pictures, kept from an earlier run" in capsys.readouterr().out
    assert [path.name for path in cache.iterdir()] == ["name.npz"]
    assert (cache / "name.npz").stat().st_size < 5 * 7 * 4 + 500  # float32


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_file_cut_short_is_computed_anew(cache, share):
    cached_features("name", "tests", lambda: VALUES)
    content = (cache / "name.npz").read_bytes()
    (cache / "name.npz").write_bytes(content[: int(share * len(content))])
    assert np.array_equal(cached_features("name", "tests", lambda: -VALUES), -VALUES)
    assert np.array_equal(cached_features("name", "tests", never), -VALUES)


def test_a_flipped_bit_is_noticed(cache):
    cached_features("name", "tests", lambda: VALUES)
    whole = (cache / "name.npz").read_bytes()
    place = whole.index(VALUES.astype(np.float32).tobytes()) + 17
    damaged = bytearray(whole)
    damaged[place] ^= 4
    (cache / "name.npz").write_bytes(damaged)
    assert np.array_equal(cached_features("name", "tests", lambda: VALUES), VALUES)
    assert (cache / "name.npz").read_bytes() == whole


def test_another_file_of_that_name_is_replaced(cache):
    cache.mkdir()
    np.savez(cache / "name.npz", something=VALUES)
    assert np.array_equal(cached_features("name", "tests", lambda: VALUES), VALUES)
    (cache / "name.npz").write_bytes(b"something else")
    assert np.array_equal(cached_features("name", "tests", lambda: VALUES), VALUES)


def test_a_failure_keeps_nothing(cache):
    with pytest.raises(AssertionError, match="computed"):
        cached_features("name", "tests", never)
    assert not cache.exists()


def test_where_nothing_can_be_kept_the_features_are_still_had(cache, capsys):
    cache.write_text("a file where the folder should be")
    assert np.array_equal(cached_features("name", "T(A)", lambda: VALUES), VALUES)
    assert "features of T(A) are not kept: " in capsys.readouterr().out


def test_a_key_tells_networks_and_sets_apart():
    sets = [[b"ab", b"c"], [b"a", b"bc"], [b"c", b"ab"], [b"abc"], [b"ab", b"c", b""], []]
    keys = {set_key(network, pictures) for network in ("net", "ten") for pictures in sets}
    assert len(keys) == 12
    assert set_key("net", iter(sets[0])) == set_key("net", sets[0])
