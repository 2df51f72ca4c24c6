"""Quick, Draw!'s simplified drawings as a domain: strokes to pictures."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.prepare import __main__ as prepare
from distill_gan.domains import find_unpaired
from distill_sets.quickdraw import RIM, drawn
from support.commands import run


def how(**settings):
    return compose.load(
        "prepare", [f"quickdraw.{k}={v}" for k, v in settings.items()], Prepare
    ).quickdraw


def line(key, drawing, recognised=True):
    row = {"word": "cat", "countrycode": "DE", "timestamp": "2017-03-01", "recognized": recognised}
    return json.dumps(row | {"key_id": key, "drawing": drawing})


L = [[[0, 0], [0, 255]], [[0, 128], [255, 255]]]  # down, then half as far to the right
DOT = [[[7], [9]]]


@pytest.mark.parametrize("size", [64, 256, 100])
def test_strokes_lie_in_the_middle_at_any_size(size):
    levels = np.asarray(drawn([np.array(s) for s in L], how(size=size, width=size / 16), 0))
    assert levels.shape == (size, size, 3)
    dark = levels[..., 0] < 128
    rows, columns = np.nonzero(dark)
    half, margin = size / 32, RIM * size
    assert rows.min() == pytest.approx(margin - half, abs=1.5)
    assert rows.max() == pytest.approx(size - margin + half, abs=1.5)
    width = (size - 2 * margin) * 128 / 255
    assert columns.min() == pytest.approx((size - width) / 2 - half, abs=1.5)
    assert columns.max() == pytest.approx((size + width) / 2 + half, abs=1.5)
    # Two bars with round ends: their length times their width, and a disc's area.
    bar = size / 16
    area = (size - 2 * margin + width) * bar + np.pi * bar**2 / 4
    assert (255 - levels[..., 0].astype(float)).sum() / 255 == pytest.approx(area, rel=0.08)


def test_a_point_is_a_dot():
    levels = np.asarray(drawn([np.array(s) for s in DOT], how(size=64, width=8), 0))[..., 0]
    assert (255 - levels.astype(float)).sum() / 255 == pytest.approx(np.pi * 16, rel=0.1)


def test_jitter_moves_points_and_the_same_drawing_alike():
    strokes = [np.array(s) for s in L]
    plain, moved, again, other = (
        np.asarray(drawn(strokes, how(size=128, jitter=j), seed))
        for j, seed in ((0, 1), (4, 1), (4, 1), (4, 2))
    )
    assert (moved == again).all()
    assert (plain != moved).any()
    assert (moved != other).any()


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("photos/more").mkdir(parents=True)
    for name in ("a.png", "more/b.png", "c.png"):
        Image.new("RGB", (64, 64), (len(name), 0, 0)).save(f"photos/{name}")
    lines = [
        line("11", L),
        line("12", L, recognised=False),
        "{}",
        line("13", DOT),
        line("14", L),
        "",
    ]
    Path("cat.ndjson").write_text("\n".join(lines))
    return tmp_path


def go(*words):
    return run(prepare, "recipe=cyclegan", "photos=photos", "quickdraw.files=cat.ndjson", *words)


def names(folder):
    return sorted(p.relative_to(folder).as_posix() for p in Path(folder).rglob("*.png"))


def test_drawings_and_photos_become_two_domains(there, capsys):
    assert go("quickdraw.size=64") == 0
    root = Path("data/domains/cat-photos-64")
    assert names(root / "A") == ["cat-11.png", "cat-13.png", "cat-14.png"]
    assert names(root / "B") == ["a.png", "c.png", "more/b.png"]
    assert Image.open(root / "A/cat-11.png").size == (64, 64)
    said = capsys.readouterr().out
    assert "A: 3 drawings, B: 3 photos" in said
    assert "left out: 1 not recognised, 1 line damaged" in said
    assert f"data.root={root}" in said
    sides = find_unpaired(root, None, None, 0.3, 0)  # as training reads it
    assert sum(len(domain) for two in sides.values() for domain in two) == 6
    assert go() == 0
    assert go("quickdraw.recognised=false", "quickdraw.most=2", "data.root=two") == 0
    assert names("two/A") == ["cat-11.png", "cat-12.png"]


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        ('{"a": 1}\n', [], "want Quick, Draw!'s simplified .ndjson"),
        ("[]\n", [], "want Quick, Draw!'s simplified .ndjson"),
        (line("../x", L), [], "want Quick, Draw!'s simplified .ndjson"),
        (None, [], "cat.ndjson: cannot be read"),
        (line("1", L, recognised=False), [], "no drawing is left; 1 not recognised"),
        (line("1", L), [], "1 drawing, 3 photos: training holds out one of each"),
        (line("1", L), ["attributes=list.txt"], "leave one"),
        (line("1", L), ["data.root=photos"], "photos: is there"),
    ],
)
def test_what_does_not_fit_is_said_and_leaves_nothing(there, capsys, content, words, said):
    Path("cat.ndjson").unlink()
    if content:
        Path("cat.ndjson").write_text(content)
    assert go(*words) == 1
    assert said in capsys.readouterr().err
    assert not Path("data").exists() or not [*Path("data").rglob("*.png")]
