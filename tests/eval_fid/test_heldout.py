import json
from pathlib import Path

import pytest
import torch

from distill.core.images import batches, to_uint8
from distill.data.pairs import Pair
from distill.data.photos import Photo
from distill.eval_fid import __main__ as eval_fid
from distill.eval_fid.heldout import _by_group
from support.commands import go, run
from support.labelling import sides

SET, RUN = Path("data/pairs/toon-photos-64-crop90"), Path("runs/toon-residual")
STEP = ("trainer.max_steps=1", "trainer.val_every=1")


def scored(*arguments: str) -> tuple[dict, str]:
    """What `distill.eval_fid` writes of the run, as JSON and as Markdown."""
    assert run(eval_fid, "features=none", "flicker=0", "bootstrap=0", *arguments) == 0
    folder = RUN / "eval"
    return json.loads((folder / "results.json").read_text()), (folder / "results.md").read_text()


@pytest.mark.campaign
def test_figures_are_of_the_test_side(here):
    assert go(*STEP) == 0
    on = list(sides(SET).values())
    assert set(on) == {"train", "val", "test"}
    results, page = scored()
    assert (results["side"], results["pictures"]) == ("test", on.count("test"))
    assert "remark" not in results
    assert f"pictures: {on.count('test')}, side: test" in page
    for path in SET.glob("val/*/*.png"):  # nothing of it is looked at
        path.write_bytes(b"no picture")
    assert scored()[0]["similarity"] == results["similarity"]


@pytest.mark.campaign
def test_a_run_and_a_set_from_before_are_scored_on_validation_and_it_is_said(here, capsys):
    assert go(*STEP, "data.test_fraction=0") == 0
    manifest = SET / "dataset.json"
    content = json.loads(manifest.read_text())
    del content["recipe"]["test_fraction"], content["counts"]["test"]
    manifest.write_text(json.dumps(content))
    for checkpoint in (RUN / "checkpoints").glob("*.ckpt"):
        saved = torch.load(checkpoint, weights_only=True)
        del saved["distill"]["data"]["test_fraction"]
        torch.save(saved, checkpoint)
    results, page = scored()
    assert (results["side"], results["pictures"]) == ("val", [*sides(SET).values()].count("val"))
    assert "best.ckpt was chosen by these pictures" in results["remark"]
    assert results["remark"] in page
    assert results["remark"] in capsys.readouterr().out
    assert json.loads(manifest.read_text()) == content


def test_one_person_s_pictures_lie_side_by_side():
    names = [
        Photo(Path(), f"Person_{person}_{number:04d}.jpg").pair_name + ".png"
        for person in range(20)
        for number in (1, 2, 3)
    ]
    ordered = sorted((Pair(Path(name), None) for name in names), key=_by_group)
    persons = [pair.name.split("_")[1] for pair in ordered]
    assert persons != sorted(persons)
    changes = sum(a != b for a, b in zip(persons, persons[1:], strict=False))
    assert changes == 19


def test_batches_keep_the_order_and_break_where_the_size_changes():
    sizes = [4, 4, 4, 8, 8, 4]
    pictures = [torch.full((3, s, s), i, dtype=torch.uint8) for i, s in enumerate(sizes)]
    made = list(batches(pictures, 2))
    assert [tuple(b.shape) for b in made] == [
        (2, 3, 4, 4), (1, 3, 4, 4), (2, 3, 8, 8), (1, 3, 4, 4),
    ]  # fmt: skip
    order = [round(float(picture[0, 0, 0]) * 255) for batch in made for picture in batch]
    assert order == list(range(6))


def test_bytes_are_what_a_png_would_hold():
    values = torch.tensor([-0.1, 0.0, 0.499 / 255, 0.501 / 255, 1.0, 1.2])
    assert to_uint8(values).tolist() == [0, 0, 0, 1, 255, 255]
