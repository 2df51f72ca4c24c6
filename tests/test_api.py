"""What `import distill` offers: light, whatever was imported before, its examples, its errors."""

import doctest
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import PIL.Image
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn

import distill
from distill.core import plugins
from distill.core.errors import DistillError
from distill.data.licence_terms import terms_of
from distill.metrics import complexity
from distill.models import zoo
from distill.models.checkpoint import load_student
from support.commands import run as typed

ROOT = Path(__file__).parents[1]
SMALL: dict[str, Any] = {"encoder": {"weights": "none"}, "loss": "l1", "decoder": "residual"}
SHORT = SMALL | {"trainer": {"max_steps": 2, "log_every": 1}, "data": {"workers": 0}}
SLOW = {
    *("DistillData", "DistillModule", "Run", "evaluate_student", "export_student", "label_photos"),
    *("lightning_parts", "train_student"),
}
PHOTO = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
FRESH = """
import torch
from torch.utils.data import DataLoader, TensorDataset

import distill
import numpy

stylize = distill.load("toon", size=64, device="cpu")
assert stylize(numpy.zeros((40, 48, 3), numpy.uint8)).shape == (40, 48, 3)
photos = torch.rand(4, 3, 64, 64)
pairs = DataLoader(TensorDataset(photos, 1 - photos), batch_size=2)
few = {"encoder": {"weights": "none"}, "loss": "l1", "trainer": {"max_steps": 3}}
run = distill.train_student(pairs, val=pairs, run="own", **few)
files = distill.export_student(run, exporter={"size": 64})
assert distill.load(files["onnx"])(numpy.zeros((64, 64, 3))).shape == (64, 64, 3)
print(sorted(distill.students()), files["onnx"])
"""
EVERYTHING_FIRST = """
import pkgutil
from importlib import import_module

import distill

for module in pkgutil.walk_packages(distill.__path__, "distill."):
    if not module.name.endswith("__main__"):
        try:
            import_module(module.name)
        except (ImportError, distill.DistillError):  # an extra that is not installed
            pass
for name in distill.__all__:
    assert getattr(distill, name).__module__.startswith("distill."), name
    assert getattr(distill, name).__name__ == name
"""


def fresh(code: str, folder: Path) -> str:
    """What Python says that runs this and nothing else."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_is_light(tmp_path):
    code = (
        "import json, sys, time; begun = time.process_time(); import distill; "
        "took = time.process_time() - begun; heavy = {'torch', 'numpy', 'hydra'}; "
        "distill.students(); print(json.dumps([took, sorted(heavy & {*sys.modules})]))"
    )
    took, loaded = json.loads(fresh(code.replace("distill.students(); ", ""), tmp_path))
    assert not loaded
    assert took < 0.1
    _, loaded = json.loads(fresh(code, tmp_path))
    assert "torch" not in loaded


def test_inference_with_a_shipped_student_needs_no_torch(tmp_path):
    code = (
        "import distill, numpy, sys; distill.load('toon', device='cpu')(numpy.zeros((32, 32, 3)))"
    )
    assert fresh(f"{code}; print('torch' in sys.modules)", tmp_path) == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        pytest.param("", id="alone"),
        pytest.param(EVERYTHING_FIRST, id="after all modules", marks=pytest.mark.campaign),
    ],
)
def test_a_fresh_interpreter_loads_stylizes_trains_on_its_loader_and_exports(tmp_path, before):
    said = fresh(before + FRESH, tmp_path)
    assert said.endswith(f"{list(zoo.shipped())} runs/own/export/student.onnx\n")


def test_every_name_is_there_and_no_other():
    assert {*distill.__all__} <= {*dir(distill)}
    assert all(getattr(distill, name).__doc__ for name in distill.__all__)
    assert (ROOT / "src/distill/py.typed").is_file()
    with pytest.raises(AttributeError, match=r"'distill' has no attribute 'lode'"):
        _ = distill.lode


class Ending(doctest.OutputChecker):
    """An example shows a value; what a call prints on its way to it is left out."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return got.endswith(want)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with photos/ of eight persons, pairs/ of them and runs/mine, of two steps."""
    folder = tmp_path_factory.mktemp("api")
    rng = np.random.default_rng(0)
    (folder / "photos").mkdir()
    for person in range(8):
        for number in (1, 2):
            pixels = rng.integers(0, 255, (6, 7, 3), dtype=np.uint8)
            picture = PIL.Image.fromarray(pixels).resize((90, 80))
            picture.save(folder / f"photos/Person_{person}_{number:04d}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        distill.label_photos("photos", out="pairs", style={"resolution": 64}, label={"workers": 0})
        distill.train_student("pairs", run="mine", **SHORT)
    return folder


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in distill.__all__],
)
def test_the_example_of(name, request, monkeypatch, tmp_path):
    monkeypatch.chdir(request.getfixturevalue("trained") if name in SLOW else tmp_path)
    known = {"distill": distill, "numpy": np, "PIL": PIL, "torch": torch, "pl": pl, "Path": Path}
    found = doctest.DocTestFinder(recurse=False).find(getattr(distill, name), name, globs=known)
    assert found[0].examples
    runner = doctest.DocTestRunner(Ending(), verbose=False)
    said: list[str] = []
    assert not runner.run(found[0], out=said.append).failed, "".join(said)


@pytest.mark.slow
def test_settings_are_those_of_the_command(trained, monkeypatch, tmp_path):
    from distill.train import __main__ as train

    monkeypatch.chdir(tmp_path)
    words = ["data.root=" + str(trained / "pairs"), "encoder.weights=none", "loss=l1"]
    words += ["decoder=residual", "trainer.max_steps=2", "trainer.log_every=1", "data.workers=0"]
    assert typed(train, *words, "run=typed") == 0
    by_words, _ = load_student(distill.Run(Path("runs/typed")).checkpoint("last"))
    run = distill.train_student(trained / "pairs", run="called", **SHORT)
    by_keywords, _ = load_student(run.checkpoint("last"))
    for name, value in by_words.state_dict().items():
        assert torch.equal(value, by_keywords.state_dict()[name]), name
    assert replace(run.settings(), run="typed") == distill.Run(Path("runs/typed")).settings()


def inverted(photo: Tensor) -> Tensor:
    return 1 - photo


class Inverted(distill.Teacher):
    def __init__(self) -> None:
        super().__init__()
        self.freeze()

    def forward(self, photo: Tensor) -> Tensor:
        return 1 - photo


class Wide(Inverted):
    def forward(self, photo: Tensor) -> Tensor:
        return 2 - photo


@pytest.mark.slow
@pytest.mark.parametrize("teacher", [inverted, Inverted()], ids=["function", "Teacher"])
def test_photos_are_labelled_by_a_teacher_of_one_s_own(trained, monkeypatch, tmp_path, teacher):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, inverted.__module__, sys.modules[__name__])
    small = {"style": {"resolution": 64}, "label": {"workers": 0}}
    root = distill.label_photos(trained / "photos", teacher, "pairs", **small)
    assert root == Path("pairs")
    assert json.loads((root / "dataset.json").read_text())["recipe"]["style"] == "inverted"
    for photo in (root / "train/photo").iterdir():
        stylized = np.asarray(PIL.Image.open(root / "train/stylized" / photo.name))
        assert (stylized == 255 - np.asarray(PIL.Image.open(photo))).all()


@pytest.mark.parametrize("name", ["evening", "ink", "poster", "swirl"])
def test_a_student_of_the_package_draws_as_its_file(name):
    photo = torch.rand(1, 3, 256, 256, generator=torch.Generator().manual_seed(2))
    session = onnxruntime.InferenceSession(zoo.static(name))
    with torch.inference_mode():
        output = distill.student_network(name)(photo).numpy()
    (expected,) = session.run(None, {session.get_inputs()[0].name: photo.numpy()})
    np.testing.assert_allclose(output, expected, atol=1e-4)


def test_a_new_student_of_a_size_is_named_by_it():
    new = distill.student_network("small", encoder={"weights": "none"})
    macs = complexity.module_macs(new.student, 256) or 0
    assert round(macs / 1e6, 1) == 62.5  # docs/students.md


@pytest.mark.slow
def test_a_student_of_a_plain_loop_is_exported_from_memory_and_from_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    student = distill.student_network(**SMALL)
    assert student.training
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(2):
        loss = (student(PHOTO) - 0.25).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    student.save("own.safetensors")
    files = distill.export_student(student, out="memory", exporter={"size": 64})
    assert student.training  # it goes on training as it did
    by_file = distill.export_student("own.safetensors", out="file", exporter={"size": 64})
    assert files["onnx"].read_bytes() == by_file["onnx"].read_bytes()
    expected = student.eval()(PHOTO[:1]).detach().numpy()
    session = onnxruntime.InferenceSession(files["onnx"])
    np.testing.assert_allclose(
        session.run(None, {"photo": PHOTO[:1].numpy()})[0], expected, atol=1e-5
    )
    stylize = distill.load("own.safetensors", device="cpu")
    assert stylize(np.zeros((48, 64, 3))).shape == (48, 64, 3)


@pytest.mark.slow
def test_modules_go_into_a_trainer_of_one_s_own_whose_checkpoints_load(
    trained, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    module, data = distill.lightning_parts(trained / "pairs", **SHORT)
    how: dict[str, Any] = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False}
    with pytest.raises(DistillError, match=r"no end: pl.Trainer\(max_steps=N\)"):
        pl.Trainer(max_epochs=1, **how).fit(module, data)
    trainer = pl.Trainer(max_steps=3, **how)
    trainer.fit(module, data)
    assert trainer.global_step == 3
    trainer.save_checkpoint("own.ckpt")
    student, said = load_student(Path("own.ckpt"))
    assert said.data.root == str(trained / "pairs")
    for name, value in student.state_dict().items():
        assert torch.equal(value, module.student.state_dict()[name]), name
    exported = distill.export_student(module, out="exported", exporter={"size": 64})
    session = onnxruntime.InferenceSession(exported["onnx"])
    expected = student(PHOTO[:1]).detach().numpy()
    (output,) = session.run(None, {"photo": PHOTO[:1].numpy()})
    np.testing.assert_allclose(output, expected, atol=1e-5)
    # By epochs, with a loader of one's own: the schedule's length is that of all of them.
    batches = [(PHOTO, 1 - PHOTO)] * 3
    trainer = pl.Trainer(max_epochs=2, **how)
    module, _ = distill.lightning_parts(trained / "pairs", **SHORT | {"lr": 0.5})
    trainer.fit(module, distill.LoaderData(batches, batches[:1]))
    assert trainer.global_step == 6
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.5 * 0.01)  # cosine's end
    with pytest.raises(DistillError, match=r"length: pl.Trainer\(max_steps=N\)"):
        pl.Trainer(max_epochs=-1, **how).fit(module, distill.LoaderData(batches, batches[:1]))


class Levels(nn.Module):
    """Any network: one convolution, and what it may give instead of a picture."""

    def __init__(self, spoil: Callable[[Tensor], Any] = torch.sigmoid) -> None:
        super().__init__()
        self.layer, self.spoil = nn.Conv2d(3, 3, 1), spoil

    def forward(self, photo: Tensor) -> Any:
        return self.spoil(self.layer(photo))


@pytest.mark.parametrize(("student", "kind"), [(None, "NoneType"), (Levels, "Levels"), (abs, "bu")])
def test_what_is_no_network_is_not_exported(student, kind, tmp_path):
    with pytest.raises(DistillError, match=rf"^student: {kind}.*, want an nn.Module, a run or"):
        distill.export_student(student, out=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrapped",
    [
        torch.nn.DataParallel,
        lambda network: torch.jit.trace(network, torch.rand(1, 3, 64, 64)),
        lambda network: torch.compile(network, backend="eager"),
    ],
)
def test_parallel_traced_and_compiled_networks_are_exported(wrapped, tmp_path):
    distill.export_student(wrapped(Levels()), exporter={"size": 64}, out=tmp_path)
    assert (tmp_path / "student.onnx").is_file()


@pytest.mark.slow
def test_any_module_is_exported_and_checked_against_a_budget(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = Levels()
    files = distill.export_student(network, budget={"parameters": 12}, out="levels")
    report = json.loads((tmp_path / "levels/report.json").read_text())
    figures = {row["name"]: row["value"] for row in report["student"]}
    assert (figures["parameters"], figures["MACs"]) == (12, 9 * 256 * 256)
    assert report["decoder"] == "Levels"
    session = onnxruntime.InferenceSession(files["onnx"])
    photo = torch.rand(1, 3, 256, 256)
    (output,) = session.run(None, {"photo": photo.numpy()})
    np.testing.assert_allclose(output, network(photo).detach().numpy(), atol=1e-6)
    with pytest.raises(DistillError, match="over the limit: parameters; no file written"):
        distill.export_student(network, budget={"parameters": 11}, out="levels")
    assert not files["onnx"].exists()


@pytest.mark.slow
def test_a_network_in_memory_keeps_the_terms_that_it_is_under(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = {"size": 64}
    whitebox = distill.student_network("whitebox")
    shipped = distill.export_student(whitebox, exporter=small, out="shipped")
    assert terms_of(shipped["onnx"]).chain == terms_of(zoo.find("whitebox")).chain
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    folded = distill.student_network("toon")  # and again by its file
    for student in (folded, "again/student.safetensors"):
        words = {"formats": "safetensors", "out": "again", "exporter": small}
        file = distill.export_student(student, **words)["safetensors"]
        np.testing.assert_array_equal(
            distill.load(file, device="cpu")(pixels), distill.load("toon", device="cpu")(pixels)
        )
    own = distill.export_student(Levels(), out="own")
    assert [each.commercial for each in terms_of(own["onnx"]).chain] == ["unknown"]
    new = distill.student_network(**SMALL)
    assert new.description.terms is not None


def test_a_package_is_named_as_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv(plugins.NAMED, "")
    node = {"_target_": "support.own_parts.Half"}
    keys = {"decoder.build._target_": node["_target_"], "decoder.name": "half", **SMALL}
    distill.student_network(**keys).save(tmp_path / "own.safetensors")
    for call in (distill.load, distill.student_network):
        with pytest.raises(DistillError, match=r"if you trust support, add plugins=\[support\]"):
            call(tmp_path / "own.safetensors")
    assert distill.student_network(tmp_path / "own.safetensors", plugins="support")
    monkeypatch.setenv(plugins.NAMED, "")
    assert distill.load(tmp_path / "own.safetensors", plugins=["support"], device="cpu")
    with pytest.raises(DistillError, match="plugins=gone: there is no such package"):
        distill.load("toon", plugins="gone")


def refused(line: str, call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    return pytest.param(line, call, args, settings, id=line[:30])


@pytest.mark.parametrize(
    ("line", "call", "args", "settings"),
    [
        refused("papriko: no such file or run, and no student of this", distill.load, "papriko"),
        refused("repo=mine: USER/NAME on the Hub", distill.load, "hub:mine"),
        refused("None: want the name of a student, a file or a run", distill.load, None),
        refused("sice: no such setting; did you mean size", distill.load, "toon", sice=3),
        refused("data.root=gone: no such folder", distill.train_student, "gone", style="own"),
        refused("val: missing", distill.train_student, [(PHOTO, PHOTO)]),
        refused("data.root=gone", distill.lightning_parts, "gone", style="own", **SMALL),
        refused("lr: is for a new student", distill.student_network, "toon", lr=1),
        refused("photos=gone: no such folder", distill.label_photos, "gone"),
        refused("teacher: a int; want a style", distill.label_photos, "gone", 5),
        refused("teacher Wide: gave values from", distill.label_photos, "gone", Wide()),
        refused("out: missing", distill.export_student, Levels()),
        refused("runs/gone: no such run", distill.export_student, "runs/gone"),
        refused("formats=onyx: no such", distill.export_student, Levels(), "onyx", out="out"),
        refused(
            "formats=safetensors: of distill's own",
            distill.export_student,
            Levels(),
            ["safetensors"],
            out="out",
        ),
        refused("Levels: gave values", distill.export_student, Levels(lambda x: x + 9), out="out"),
        refused(
            "Levels: gave values that are not finite",
            distill.export_student,
            Levels(lambda x: x * torch.nan),
            out="o",
        ),
        refused(
            r"Levels: gave (1, 2, 256", distill.export_student, Levels(lambda x: x[:, :2]), out="o"
        ),
        refused("Levels: gave a tuple", distill.export_student, Levels(lambda x: (x,)), out="out"),
        refused("runs/gone: no such run", distill.evaluate_student, "runs/gone"),
        refused("a= or b=gone: no such folder", distill.evaluate_student, "gone", "gone too"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    line, call, args, settings, tmp_path, monkeypatch, no_downloads
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DistillError) as error:
        call(*args, **settings)
    assert str(error.value).startswith(line)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_pushed_student_is_loaded_by_its_place(tmp_path, monkeypatch):
    from distill_hub import __main__ as hub

    monkeypatch.chdir(tmp_path)
    distill.student_network("toon").save("toon.safetensors")
    assert typed(hub, "push", "model=toon.safetensors", "repo=./place") == 0
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    there, here = distill.load("hub:./place"), distill.load("toon.safetensors")
    np.testing.assert_array_equal(there(pixels), here(pixels))
