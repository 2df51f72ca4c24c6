"""The certificate of https=true: kept for the next starts while it is good for them."""

import os
import stat
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from distill_lens import https

x509 = pytest.importorskip("cryptography.x509", reason="the extra `lens` is not installed")
NAMES = ["localhost", "127.0.0.1", "192.168.1.7"]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lens" / "certificate.pem"


def serial(path: Path) -> int:
    return x509.load_pem_x509_certificate(path.read_bytes()).serial_number


def test_the_next_start_has_the_same_certificate(kept):
    https.context(NAMES)
    first = serial(kept)
    https.context(NAMES)
    https.context(["127.0.0.1", "localhost"])  # another network, covered all the same
    assert serial(kept) == first


def test_the_key_is_its_owners_alone(kept):
    https.context(NAMES)
    assert b"PRIVATE KEY" in kept.read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]


def replaced(kept: Path, names: list[str] = NAMES) -> bool:
    before = kept.read_bytes()
    https.context(names)
    return kept.read_bytes() != before


def test_a_new_address_takes_a_new_certificate(kept):
    https.context(NAMES)
    assert replaced(kept, [*NAMES, "10.0.0.2"])
    assert not replaced(kept, ["10.0.0.2"])


@pytest.mark.parametrize(("days", "new"), [(28.9, False), (29.1, True), (31, True)])
def test_one_that_ends_within_a_day_is_replaced(kept, monkeypatch, days, new):
    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(days=days)

    https.context(NAMES)
    monkeypatch.setattr(https, "datetime", Later)
    assert replaced(kept) is new


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 3],
        lambda content: content[: content.index(b"-----BEGIN PRIVATE KEY")],
        lambda content: content.replace(b"MI", b"\0\0"),
        lambda content: (
            content[: content.index(b"-----BEGIN PRIVATE KEY")] + https.certificate(NAMES)[1]
        ),  # the key of another
    ],
)
def test_a_damaged_one_is_replaced_without_a_word(kept, damage, capsys):
    https.context(NAMES)
    kept.write_bytes(damage(kept.read_bytes()))
    assert replaced(kept)
    assert not replaced(kept)
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_one_that_others_could_read_is_replaced(kept):
    https.context(NAMES)
    kept.chmod(0o644)
    assert replaced(kept)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_without_a_cache_there_is_a_certificate_for_this_start(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "file"))  # no folder can be made there
    assert https.context(NAMES)
