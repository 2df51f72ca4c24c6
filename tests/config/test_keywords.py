"""Settings as Python's keywords: the same as typed, whatever characters or kinds they have."""

from pathlib import Path

import numpy as np
import pytest

from distill.config import compose, registry
from distill.config.settings.commands import Stylize
from distill.config.settings.training import Prepare, Train
from support.refusals import refusal


@pytest.mark.parametrize(
    ("settings", "typed"),
    [
        ({"lr": 1e-3, "resume": False, "init": None}, ["lr=0.001", "resume=false", "init=null"]),
        ({"decoder": "nnconv", "seed": 3}, ["decoder=nnconv", "seed=3"]),
        ({"trainer": {"max_steps": 5, "clip": None}}, ["trainer.max_steps=5", "trainer.clip=null"]),
        ({"trainer": "few", "trainer.max_steps": 5}, ["trainer=few", "trainer.max_steps=5"]),
        ({"decoder": {"build": {"blocks": [1, 1, 0]}}}, ["decoder.build.blocks=[1,1,0]"]),
        ({"logger": ["csv", "tensorboard"]}, ["logger=[csv,tensorboard]"]),
        ({"photos": (Path("a"), "b c")}, ["photos=[a,'b c']"]),
        ({"data": {"sizes": [256, 512]}, "lr": "auto"}, ["data.sizes=[256,512]", "lr=auto"]),
        ({"lr": np.float64(0.5)}, ["lr=0.5"]),
    ],
)
def test_keywords_are_what_the_command_line_says(settings, typed):
    found = compose.from_keywords("train", registry.schema_of, {}, settings)
    assert found == compose.load("train", typed, registry.schema_of)


@pytest.mark.parametrize(
    "text",
    ["a b", "a,b=c", "[a]", "it's", 'say "no"', "back\\slash", "C:\\new", "日本", "null", "", "5"],
)
def test_any_text_stays_what_it_is(text):
    settings = {"photos": text, "style": {"source": text}}
    found = compose.from_keywords("train", Train, {}, settings)
    assert (found.photos, found.style.source) == (text, text)


def test_a_name_alone_and_what_others_replace():
    found = compose.from_keywords("prepare", Prepare, {"card": False}, {"card": True})
    assert found.card.name is True
    assert compose.from_keywords("stylize", Stylize, {}, {"style": "toon"}).style.name == "toon"
    first = {"style": "hayao", "data.kind": "loader", "lr": 1e-5}
    found = compose.from_keywords("train", Train, first, {"style": {"resolution": 64}, "lr": 0.5})
    assert (found.style.name, found.style.resolution, found.lr) == ("hayao", 64, 0.5)
    assert compose.from_keywords("train", Train, first, {"style": "toon"}).style.name == "toon"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"trainer": {"max_step": 5}}, "trainer.max_step: no such setting; did you mean"),
        ({"photos": {1, 2}}, "photos: a set; want text, a number, a bool, None or a list"),
        ({"decoder": {"build": {"half": object()}}}, "decoder.build.half: a object; want text"),
        ({"optimizer": 5}, "optimizer=5: no such choice"),
    ],
)
def test_what_no_setting_takes_ends_in_one_line(settings, line):
    assert refusal(compose.from_keywords, "train", Train, {}, settings).startswith(line)
