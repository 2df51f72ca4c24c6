"""Terms by the text of a licence, the strictest of a chain, and what a file may say of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distill.core.licence_terms import Licence, Terms, read_terms

ANIME = "AnimeGANv2: free for academic and non-commercial use only"
ORDER = {"no": 0, "unknown": 1, "yes": 2}


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("MIT", ("yes", "no", "yes")),
        ("MIT, as this project", ("yes", "no", "yes")),
        ("mit", ("yes", "no", "yes")),
        ("CC0", ("yes", "no", "no")),
        ("CC BY-SA 4.0", ("yes", "yes", "yes")),
        ("cc-by-nc-sa-4.0", ("no", "yes", "yes")),
        ("CC BY-NC-SA 4.0 (White-box)", ("no", "yes", "yes")),
        ("CC BY-NC-ND 4.0", ("no", "unknown", "unknown")),
        ("MIT, but non-commercial", ("no", "unknown", "unknown")),
        ("MITRE's own", ("unknown", "unknown", "unknown")),
        (ANIME, ("no", "unknown", "unknown")),
        ("research only", ("no", "unknown", "unknown")),
        ("ask the authors", ("unknown", "unknown", "unknown")),
        ("yours to say", ("unknown", "unknown", "unknown")),
    ],
)
def test_answers_of_a_text(text, answers):
    found = Licence.from_text("x", text)
    assert (found.commercial, found.share_alike, found.attribution) == answers


answer = st.sampled_from(["yes", "no", "unknown"])
licences = st.lists(st.builds(Licence, st.text(), answer, answer, answer, st.text(), st.text()))


@given(licences, licences)
def test_more_parts_never_loosen(first, more):
    one, both = Terms(tuple(first)), Terms((*first, *more))
    if first:
        assert ORDER[both.commercial] <= ORDER[one.commercial]
        assert both.commercial == min((e.commercial for e in (*first, *more)), key=ORDER.get)
    typed = one.beside(Licence.from_text("x", "MIT", stated=True))
    assert ORDER[typed.commercial] <= ORDER[one.commercial] or not first
    allowed = Terms(tuple(e for e in first if not e.stated)).permitted("hub", True)
    assert allowed.commercial == "yes"
    assert allowed.chain == tuple(e for e in first if not e.stated)
    assert one.permitted("hub", False) == one


def test_a_later_word_names_what_the_same_photos_were_under_before():
    def rows(cliff, when):
        said = {"photos: 2 by Azure": "CC BY 4.0", "photos: 3 by Cliff": cliff}
        return [
            Licence.from_text(of, text, "", True, f"stated {when}") for of, text in said.items()
        ]

    first = Terms((Licence("photos"),)).amended(rows("CC BY-NC 4.0", "2026-01-01 00:00:00"))
    assert [e.note for e in first.chain] == ["stated 2026-01-01 00:00:00"] * 2
    later = first.amended(rows("CC0", "2026-01-02 00:00:00"))
    assert [(e.of, e.text, e.note) for e in later.chain] == [
        ("photos: 2 by Azure", "CC BY 4.0", "stated 2026-01-01 00:00:00"),
        ("photos: 3 by Cliff", "CC0", "stated 2026-01-02 00:00:00, before CC BY-NC 4.0"),
    ]


def test_permission_is_recorded_and_goes_to_nobody_else():
    stated = Licence.from_text("pictures", "CC BY 4.0", stated=True)
    terms = Terms((Licence.from_text("teacher", ANIME), stated)).permitted("train", True)
    assert {k: terms.plain()[k] for k in ("commercial", "share_alike", "attribution", "text")} == {
        "commercial": "yes", "share_alike": "no", "attribution": "yes", "text": "CC BY 4.0",
    }  # fmt: skip
    assert terms.plain()["permission"] == ("train",)
    assert terms.line == "commercial use allowed (CC BY 4.0)"
    assert Terms((Licence.from_text("teacher", ANIME),)).permitted("hub", True).commercial == "yes"
    child = Terms(terms.inherited("init mine"))
    assert (child.commercial, child.permission) == ("no", ())
    assert child.chain[0].of == "init mine: teacher"
    again = Terms(terms.chain).beside(*child.chain).inherited("init mine")
    assert again == child.chain  # trained on again and again, the chain does not grow
    assert terms.permitted("hub", True).permission == ("train", "hub")


def test_what_is_stored_comes_back_and_damage_is_unknown():
    terms = Terms((Licence.from_text("teacher", ANIME, "https://x"),)).permitted("hub", True)
    assert read_terms(terms.json()) == read_terms(json.loads(terms.json())) == terms
    loose = terms.plain() | {"commercial": "yes", "permission": []}  # edited by hand
    assert read_terms(loose).commercial == "no"
    for damaged in ("", "{", "[]", "7", None, {"chain": [{"of": 1}]}, {"chain": []}, {}):
        assert read_terms(damaged).commercial == "unknown"
    long = Terms((Licence("a\nb", text="x" * 9999),))
    assert read_terms(long.plain()).chain[0].of == "a b"
    assert len(read_terms(long.plain()).chain[0].text) == 300
