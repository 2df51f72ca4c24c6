"""Terms that are stated late: of a finished run, of photos one by one, and the page on them."""

import json
import re
from pathlib import Path

import pytest

from distill.check import __main__ as check
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from support.commands import SMALL, go, run


def exported(here: Path, *words: str) -> dict:
    assert run(export, "run=two", "exporter.size=64", *words) == 0
    return json.loads((here / "runs/two/export/report.json").read_text())["terms"]


@pytest.mark.slow
def test_terms_can_be_stated_and_mended_at_any_time(here, capsys):
    again = ("run=two", "trainer.max_steps=1")
    assert go(*again) == 0
    assert "terms: commercial use allowed" not in capsys.readouterr().out
    assert go(*again, "licence.pictures=CC BY 4.0") == 0
    assert "terms: commercial use allowed" in capsys.readouterr().out
    terms = exported(here, "licence.pictures=CC BY-NC 4.0")
    last = terms["chain"][-1]
    assert terms["commercial"] == "no"
    assert (last["text"], last["note"][-16:]) == ("CC BY-NC 4.0", "before CC BY 4.0")

    (here / "photos/terms.csv").write_text("photo,author,source,licence\n*,Anna,,CC0\n")
    assert run(prepare, "photos=photos", *SMALL) == 0
    assert any("by Anna" in each["of"] for each in exported(here)["chain"])
    assert run(check, "run=two", "report=terms") == 0
    page = (here / "runs/two/terms.md").read_text()
    count = len(list((here / "photos").glob("*.*"))) - 1
    assert f"| {count} | Anna | CC0 | not said |" in page
    chain = (
        rf"\| photos: {count} by Anna \| yes \| no \| no \| CC0 \(says the publisher\) \(stated 2"
    )
    assert re.search(chain + r"[-: 0-9]+, before CC BY-NC 4\.0\)", page)  # of all the photos
    (here / "photos/terms.csv").write_text("photo,licence\n*,CC0\nno.png,CC BY-NC 4.0\n")
    assert run(check, "run=two", "report=terms") == 0
    assert "that no photo has: 'no.png'." in (here / "runs/two/terms.md").read_text()
    (here / "photos/terms.csv").write_text("photo,licence\n*,CC0\n*,CC BY-NC 4.0\n")
    assert run(check, "run=two", "report=terms") == 1
    assert "line 3: other terms of '*' than a line before" in capsys.readouterr().err
    assert run(check, "run=two") == 1
    assert "run=two: of report=terms" in capsys.readouterr().err
