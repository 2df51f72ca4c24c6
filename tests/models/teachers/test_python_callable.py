import hashlib
import pickle
import re
import sys
from pathlib import Path

import pytest
import torch

from distill.core.errors import DistillError
from distill.core.files import sha256
from distill.models.teachers.python_callable import CallTeacher
from distill.prepare import __main__ as prepare
from support.commands import run

PHOTOS = torch.rand(2, 3, 24, 20, generator=torch.Generator().manual_seed(3))
NEGATIVE = "def draw(photos):\n    return 1 - photos\n"
SMALL = ["style.resolution=64", "label.workers=0", "data.val_fraction=0.4", "crop=0.9"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """What was typed is remembered in the cache; and no module of another test."""
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("mine"):
            del sys.modules[name]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes mine.py into the current folder, as if it had just been saved."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "mine") -> str:
        sys.modules.pop(name, None)
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        for kept in path.parent.glob("__pycache__/*"):
            kept.unlink()
        return name

    return write


def message(call: str | None, photos: torch.Tensor | None = None) -> str:
    def draw() -> None:
        teacher = CallTeacher(call)
        if photos is not None:
            teacher(photos)

    with pytest.raises(DistillError) as error:
        draw()
    return str(error.value)


def test_gives_what_the_function_gives(module):
    module(NEGATIVE)
    teacher = CallTeacher("mine:draw")
    assert torch.equal(teacher(PHOTOS), 1 - PHOTOS)
    assert not teacher.gives_activations
    assert teacher(PHOTOS[..., :7, :5]).shape == (2, 3, 7, 5)


def test_any_kind_of_callable_in_any_package(module):
    module("class Tint:\n    def __call__(self, p):\n        return p / 2\n"
           "class Box:\n    tint = Tint()\n", "mine_kit.tools")  # fmt: skip
    assert torch.equal(CallTeacher("mine_kit.tools:Box.tint")(PHOTOS), PHOTOS / 2)


def test_a_function_may_write_into_what_it_is_given(module):
    module("def draw(photos):\n    return photos.mul_(0)\n")
    photos = PHOTOS.clone()
    assert not CallTeacher("mine:draw")(photos).any()
    assert torch.equal(photos, PHOTOS)


def test_a_network_is_frozen_and_its_weights_count(module):
    layers = "nn.Conv2d(3, 3, 3, padding=1), nn.Dropout(0.5), nn.Sigmoid()"
    module(f"from torch import nn\nnet = nn.Sequential({layers})\n")
    teacher = CallTeacher("mine:net")
    assert not any(each.requires_grad for each in teacher.parameters())
    assert torch.equal(teacher(PHOTOS), teacher(PHOTOS))  # no dropout
    assert teacher.gives_activations
    before = teacher.fingerprint()
    with torch.no_grad():
        teacher.net[0].bias.add_(1)
    assert teacher.fingerprint() != before


def test_the_fingerprint_follows_call_code_and_version(module):
    module(NEGATIVE + "again = draw\n")
    known = CallTeacher("mine:draw").fingerprint()
    assert CallTeacher("mine:draw").fingerprint() == known
    assert CallTeacher("mine:again").fingerprint() != known
    assert CallTeacher("mine:draw", version="2").fingerprint() != known
    module(NEGATIVE.replace("1 -", "1.0 -") + "again = draw\n")
    assert CallTeacher("mine:draw").fingerprint() != known


def test_the_fingerprint_follows_own_modules_that_are_imported_anywhere(module):
    """By name, by a constant, from a package, inside a function, and by what is imported so."""
    module("from mine_sums import HALF\nimport mine_kit.more\n\n\ndef draw(photos):\n"
           "    import mine_late\n    return photos * mine_late.X * HALF\n")  # fmt: skip
    module("HALF = 0.5\n", "mine_sums")
    module("from . import deep\nX = deep.X\n", "mine_kit.more")
    module("X = 1\n", "mine_kit.deep")
    module("import mine_kit.more as more\nX = more.X\n", "mine_late")
    modules = ["mine", "mine_sums", "mine_kit.more", "mine_kit.deep", "mine_late"]

    def known() -> str:
        for name in modules:
            sys.modules.pop(name, None)
        return CallTeacher("mine:draw").fingerprint()

    seen = [known()]
    for name in modules[1:]:
        path = Path(f"{name.replace('.', '/')}.py")
        path.write_text(path.read_text() + "# more\n")
        seen.append(known())
    assert len({*seen}) == len(modules)
    module("X = 2\n", "mine_unused")
    assert known() == seen[-1]
    assert "teacher.version=WORD" in CallTeacher("mine:draw").unseen


def test_the_fingerprint_of_one_file_is_that_of_older_versions(module):
    module("import math\nimport numpy\nfrom torch import nn\n\n" + NEGATIVE)
    code = hashlib.sha256(sha256(Path("mine.py")).encode()).hexdigest()[:16]
    assert CallTeacher("mine:draw").settings() == f"mine:draw {code} "


WRONG = {
    None: "teacher.call: missing; name a callable",
    "mine": "want package.module:name",
    "mine:": "want package.module:name",
    "mine:draw:more": "want package.module:name",
    "./mine.py:draw": "want package.module:name",
    "mine_gone:draw": "there is no module mine_gone",
    "mine_gone.deep:draw": "there is no module mine_gone",
    "mine.deep:draw": "there is no module mine.deep",
    "mine:drew": "there is no drew in mine; did you mean draw?",
    "mine:draw.deep": "there is no deep in draw",
    "mine:NUMBER": "is a int, which cannot be called",
    "mine_lacks:draw": "importing mine_lacks needs no_such_package; install it",
    "mine_raises:draw": "importing mine_raises raised ValueError (bad day, ",
    "mine_broken:draw": "importing mine_broken raised SyntaxError (",
    "mine_ends:draw": "importing mine_ends raised SystemExit (3",
    "sys:intern": "is built into Python",
}


@pytest.mark.parametrize("call", WRONG)
def test_a_name_that_does_not_do(module, call):
    module(NEGATIVE + "NUMBER = 3\n")
    module("import no_such_package\n", "mine_lacks")
    module("raise ValueError('bad\\nday')\n", "mine_raises")
    module("def draw(:\n", "mine_broken")
    module("import sys\nsys.exit(3)\n", "mine_ends")
    said = message(call)
    assert WRONG[call] in said
    assert said.startswith("teacher.call")


BODIES = {
    "photos[:, :2]": "gave (2, 2, 24, 20) float32, want (2, 3, 24, 20) float32",
    "photos[:1]": "gave (1, 3, 24, 20) float32, want (2, 3, 24, 20) float32",
    "photos.double()": "gave (2, 3, 24, 20) float64, want (2, 3, 24, 20) float32",
    "photos.numpy()": "gave a numpy.ndarray, want a torch.Tensor",
    "None": "gave a NoneType, want a torch.Tensor",
    "photos * 255": "want [0, 1]",
    "photos - 0.5": "want [0, 1]",
    "photos / 0": "gave values that are not finite",
    "exit(3)": "a call with (2, 3, 24, 20) float32 raised SystemExit (3",
    "photos.unknown_name()": "a call with (2, 3, 24, 20) float32 raised AttributeError (",
}


@pytest.mark.parametrize("body", BODIES)
def test_what_is_no_picture(module, body):
    module(f"def draw(photos):\n    return {body}\n")
    said = message("mine:draw", PHOTOS)
    assert said.startswith("teacher.call=mine:draw: ")
    assert BODIES[body] in said


def test_the_place_in_the_user_s_file_is_named(module):
    module("def draw(photos):\n    bad = photos.reshape(7)\n    return bad\n")
    assert re.search(r"mine\.py:2\)$", message("mine:draw", PHOTOS))


def test_a_copy_for_another_process_imports_it_anew(module):
    module(NEGATIVE)
    teacher = CallTeacher("mine:draw")
    content = pickle.dumps(teacher)
    sys.modules.pop("mine")
    copy = pickle.loads(content)
    assert torch.equal(copy(PHOTOS), 1 - PHOTOS)
    assert copy.fingerprint() == teacher.fingerprint()
    module(NEGATIVE + "# changed\n")
    with pytest.raises(DistillError, match="is other code on this node"):
        pickle.loads(content)


def test_what_a_run_names_is_imported_for_those_who_typed_it(module):
    module("open('imported', 'w')\n" + NEGATIVE)
    with pytest.raises(DistillError, match="never typed on this machine"):
        CallTeacher("mine:draw", typed=False)
    assert not Path("imported").exists()
    CallTeacher("mine:draw")
    assert torch.equal(CallTeacher("mine:draw", typed=False)(PHOTOS), 1 - PHOTOS)


# The whole way


def test_changed_code_is_another_set(here, module, capsys):
    module(NEGATIVE)
    words = ["style=custom", "teacher=python", "teacher.call=mine:draw", "photos=photos", *SMALL]
    assert run(prepare, *words) == 0
    module("def draw(photos):\n    return photos\n")
    assert run(prepare, *words) == 1
    assert "made with other settings (teacher " in capsys.readouterr().err


def test_commands_end_in_one_line(here, module, capsys):
    module("def draw(photos):\n    return photos[:, :2]\n")
    words = ["style=custom", "teacher=python", "photos=photos", *SMALL]
    for more, said in (
        ([], "teacher.call: missing"),
        (["teacher.call=mine"], "want package.module:name"),
        (["teacher.call=mine:draw"], "want (1, 3, 64, 64) float32"),
    ):
        assert run(prepare, *words, *more) == 1
        lines = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error")]
        assert len(lines) == 1
        assert said in lines[0]
