"""Names on disks of all kinds: what belongs together is found, and doubts are told."""

import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from distill.data.partners import match
from support.refusals import refusal

NAMES = st.text(st.characters(exclude_characters="/\0.", exclude_categories=["Cs"]), min_size=1)


@settings(deadline=None, derandomize=True)
@given(stems=st.lists(NAMES, unique=True), data=st.data())
def test_every_name_finds_its_own_whoever_wrote_the_disk(stems, data):
    alike = {unicodedata.normalize("NFKC", stem.casefold()).casefold() for stem in stems}
    assume(len(alike) == len(stems))
    written = [
        unicodedata.normalize(data.draw(st.sampled_from(["NFC", "NFD"])), stem) for stem in stems
    ]
    photos = [f"{stem}.jpg" for stem in stems]
    others = [f"{stem}.png" for stem in written]
    pairs, lacking, unclaimed = match(photos, others, "")
    assert sorted(pairs) == sorted(zip(photos, others, strict=True))
    assert not lacking
    assert not unclaimed


def test_what_has_no_partner_is_named():
    found = match(["a.png", "b.png"], ["b.jpg", "c.jpg"], "")
    assert found == ([("b.png", "b.jpg")], ["a.png"], ["c.jpg"])


@pytest.mark.parametrize(
    ("photos", "others"),
    [
        (["a.png", "A.png"], ["A.jpg", "a.jpg"]),  # a file system that tells them apart
        (["a.jpg", "a.png"], ["a.png", "a.jpg"]),
    ],
)
def test_the_nearest_name_wins(photos, others):
    assert match(photos, others, "")[0] == [*zip(photos, reversed(others), strict=True)]


@pytest.mark.parametrize(
    ("photos", "others", "said"),
    [
        (["a.jpg", "a.png"], ["a.png"], "B: 'a.png' may be of the photo 'a.jpg' and of 'a.png'"),
        (["a.png"], ["a.png", "a.webp"], "B: 'a.png' and 'a.webp' may both be of the photo"),
        (["a.jpg", "A.jpg"], ["a.png"], "B: 'a.png' may be of the photo 'a.jpg' and of 'A.jpg'"),
        (
            ["\u00e9.png", "e\u0301.png"],
            ["\u00e9.png"],
            "B: '\u00e9.png' may be of the photo '\u00e9.png' and of 'e\\u0301.png'",
        ),
        (["a.jpg", "a.bmp"], ["a.png", "A.png"], "B: 'a.png' may be of the photo 'a.jpg' and of"),
    ],
)
def test_doubts_are_told(photos, others, said):
    assert refusal(match, photos, others, "B: ").startswith(said)
