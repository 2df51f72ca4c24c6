import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

from distill.core.errors import DistillError
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.export import subject
from distill.models.checkpoint import load_network, load_student
from distill.models.teachers.trained_run import CheckpointTeacher
from distill.prepare import __main__ as prepare
from distill.stylize import __main__ as stylize
from distill_benchmark import __main__ as benchmark
from support.commands import go, run
from support.gan_runs import RESNET, SIDE, STUDENT, UNET, built, settings, write

NODES = {"unet": UNET, "resnet": RESNET, "student": STUDENT}
PHOTOS = torch.rand(2, 3, 80, 72, generator=torch.Generator().manual_seed(3))
TIMED = ["sizes=[64]", "threads=[1]", "rounds=2"]
SQUARE = PHOTOS[..., :SIDE, :SIDE]


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("channels", [3, 4])
def test_gives_what_the_trained_generator_gives(tmp_path, name, channels):
    network = built(NODES[name], channels=channels)
    path = write(tmp_path / "r", settings("pix2pix", NODES[name], channels), generator=network)
    teacher = CheckpointTeacher(str(path))
    with torch.inference_mode():
        torch.testing.assert_close(teacher(SQUARE), network(SQUARE), rtol=0, atol=0)
    assert teacher.transparent == (channels == 4)
    assert not teacher.train().training
    assert not any(p.requires_grad for p in teacher.parameters())


def test_both_directions_of_a_cyclegan(tmp_path):
    there, back = built(RESNET, seed=1), built(RESNET, seed=2)
    said = settings("cyclegan", RESNET)
    path = write(tmp_path / "r", said, a_to_b=there, b_to_a=back, judge_a=back)
    with torch.inference_mode():
        for direction, network in (("AtoB", there), ("BtoA", back)):
            teacher = CheckpointTeacher(str(path), direction=direction)
            torch.testing.assert_close(teacher(SQUARE), network(SQUARE), rtol=0, atol=0)
    assert not torch.equal(there(SQUARE), back(SQUARE))


def test_a_margin_is_filled_up_by_the_sides_and_cut_again(tmp_path):
    network = built(RESNET)
    path = write(tmp_path / "r", settings("pix2pix", RESNET), generator=network)
    plain, wide = (CheckpointTeacher(str(path), margin=margin) for margin in (0, 16))
    sides = [*[0] * 16, *range(SIDE), *[SIDE - 1] * 16]
    with torch.inference_mode():
        wanted = network(SQUARE[..., sides, :][..., sides])[..., 16:-16, 16:-16]
        torch.testing.assert_close(wide(SQUARE), wanted, rtol=0, atol=1e-6)
    assert not torch.equal(wide(SQUARE), plain(SQUARE))
    assert wide.settings() != plain.settings()  # labels are made again


def test_sizes(tmp_path):
    path = write(tmp_path / "u", settings("pix2pix", UNET), generator=built(UNET))
    teacher = CheckpointTeacher(str(path))
    assert teacher.fixed == (SIDE, SIDE)
    with pytest.raises(DistillError, match="takes pictures of 64×64 only, got 80×72") as error:
        teacher(PHOTOS)
    assert "set style.resolution=64" in str(error.value)
    for name, multiple in (("resnet", 4), ("student", 32)):
        said = settings("pix2pix", NODES[name])
        path = write(tmp_path / name, said, generator=built(NODES[name]))
        teacher = CheckpointTeacher(str(path))
        assert (teacher.fixed, teacher.multiple) == (None, multiple)
        assert teacher(PHOTOS[..., :45, :39]).shape == (2, 3, 45, 39)


def test_the_fingerprint_follows_the_weights_and_not_the_path(tmp_path):
    said = settings("pix2pix", RESNET)
    first, second = (
        write(tmp_path / name, said, generator=built(RESNET, seed=seed))
        for name, seed in (("a", 1), ("b", 2))
    )
    known = CheckpointTeacher(str(first)).fingerprint()
    assert CheckpointTeacher(str(second)).fingerprint() != known
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.move(first / "checkpoints" / "last.ckpt", tmp_path / "elsewhere" / "mine.ckpt")
    assert CheckpointTeacher(str(moved)).fingerprint() == known


def test_best_before_last(tmp_path):
    path = write(tmp_path / "r", settings("pix2pix", RESNET), generator=built(RESNET))
    assert CheckpointTeacher(str(path)).path.name == "last.ckpt"
    shutil.copy(path / "checkpoints/last.ckpt", path / "checkpoints/best.ckpt")
    assert CheckpointTeacher(str(path)).path.name == "best.ckpt"
    assert CheckpointTeacher(str(path), checkpoint="last").path.name == "last.ckpt"


def message(path: Path | None, **how: str) -> str:
    with pytest.raises(DistillError) as error:
        CheckpointTeacher(None if path is None else str(path), **how)
    return str(error.value)


def test_what_goes_wrong_is_one_line(tmp_path):
    assert message(None).startswith("teacher.path: missing; name the folder of a trained run")
    assert "no such run or checkpoint" in message(tmp_path / "gone")
    assert "no best.ckpt or last.ckpt" in message(tmp_path)
    (tmp_path / "x.ckpt").write_bytes(b"PK\x03\x04 cut short")
    assert "damaged, or not a checkpoint of distill.train" in message(tmp_path / "x.ckpt")
    torch.save({"state_dict": {}}, tmp_path / "foreign.ckpt")
    assert "not a checkpoint of distill.train (KeyError)" in message(tmp_path / "foreign.ckpt")
    path = write(tmp_path / "r", settings("pix2pix", RESNET), generator=built(RESNET))
    assert "trains one network, which goes one way" in message(path, direction="BtoA")
    odd = write(
        tmp_path / "o",
        replace(settings("pix2pix", RESNET), recipe="stylegan"),
        generator=built(RESNET),
    )
    assert "recipe=stylegan: unknown" in message(odd)
    other = write(
        tmp_path / "w", settings("pix2pix", RESNET | {"blocks": 3}), generator=built(RESNET)
    )
    assert "damaged, or not a checkpoint" in message(other)


@pytest.mark.parametrize("place", ["generator", "inside", "encoder", "list"])
def test_no_class_but_a_network_of_ours_is_built_from_a_file(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil.py").write_text("open('owned', 'w')")
    evil = {"_target_": "evil.Thing"}
    node = {
        "generator": evil,
        "inside": STUDENT | {"decoder": {"_target_": "os.system", "command": "touch owned"}},
        "encoder": STUDENT | {"encoder": evil},
        "list": STUDENT | {"decoder": STUDENT["decoder"] | {"width": {"_target_": "os.getcwd"}}},
    }[place]
    path = write(tmp_path / "r", settings("pix2pix", STUDENT), generator=built(STUDENT))
    saved = torch.load(path / "checkpoints/last.ckpt", weights_only=True)
    saved["distill"]["generator"]["build"] = node
    torch.save(saved, path / "checkpoints/last.ckpt")
    assert "refused; only classes of distill" in message(path)
    assert not (tmp_path / "owned").exists()


def test_load_network_reads_every_recipe_and_load_student_its_own(tmp_path):
    path = write(tmp_path / "r", settings("pix2pix", UNET), generator=built(UNET))
    network, said = load_network(path / "checkpoints/last.ckpt")
    assert said.recipe == "pix2pix"
    assert type(network).__name__ == "UNet"
    with pytest.raises(DistillError, match="a run of recipe=pix2pix, expected a student"):
        load_student(path / "checkpoints/last.ckpt")


@pytest.mark.parametrize("name", NODES)
def test_the_graph_of_a_run_gives_the_same(tmp_path, name):
    network = built(NODES[name])
    path = write(tmp_path / "r", settings("pix2pix", NODES[name]), generator=network)
    model = subject.inference_graph(path / "checkpoints/last.ckpt")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (output,) = session.run(None, {"photo": SQUARE[:1].numpy()})
    with torch.inference_mode():
        np.testing.assert_allclose(output, network(SQUARE[:1]).numpy(), atol=1e-4)


# The whole way: a teacher's run, pairs, a student, its export and evaluation


def teach(folder: Path, channels: int = 3) -> str:
    side = 64
    said = settings("cyclegan" if channels == 3 else "pix2pix", RESNET, channels, side)
    parts = ("a_to_b", "b_to_a") if channels == 3 else ("generator",)
    nets = {part: built(RESNET, side, channels, seed) for seed, part in enumerate(parts)}
    return str(write(folder, said, **nets))


@pytest.mark.slow
def test_a_student_of_a_cyclegan_outlives_its_teacher(here, capsys):
    path = teach(here / "runs/cyclegan x")
    words = ["teacher=checkpoint", f"teacher.path={path}", "style=custom", "style.name=mine"]
    assert run(prepare, *words, "photos=photos", "style.resolution=64", "label.workers=0",
               "data.val_fraction=0.4", "crop=0.9") == 0  # fmt: skip
    labelled = next((here / "data/pairs/mine-photos-64-crop90/train/photo").iterdir())
    photo, output = (
        torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1)[None].float() / 255
        for file in (labelled, labelled.parents[1] / "stylized" / labelled.name)
    )
    expected = CheckpointTeacher(path)(photo)
    torch.testing.assert_close(output, expected, rtol=0, atol=0.5 / 255 + 1e-6)
    assert go(*reversed(words), "trainer.max_steps=1") == 0  # the words' order is all the same
    assert run(benchmark, "run=mine-residual", *TIMED) == 0  # beside its own teacher, not hayao's
    rows = json.loads((here / "runs/benchmarks/speed.json").read_text())["rows"]
    assert [row["name"] for row in rows] == ["teacher mine", "mine-residual"]
    assert rows[0]["bytes"] == 4 * sum(p.numel() for p in CheckpointTeacher(path).parameters())
    shutil.rmtree(path)
    capsys.readouterr()
    assert run(benchmark, "run=mine-residual", *TIMED) == 0
    assert "no teacher: teacher.path=" in capsys.readouterr().out
    assert run(export, "exporter.size=64", "run=mine-residual") == 0
    assert "no figures of the teacher: teacher.path=" in capsys.readouterr().out
    assert run(eval_fid, "run=mine-residual", "features=none") == 0
    assert "taken as it is, its photos are not checked" in capsys.readouterr().out
    results = json.loads((here / "runs/mine-residual/eval/results.json").read_text())
    assert "PSNR (dB), student to teacher" in results["similarity"]
    picture = next((here / "photos").iterdir())
    assert run(stylize, str(picture), "run=mine-residual", "compare=true", "-o", "out.png") == 0
    assert "compare=true: without the teacher, teacher.path=" in capsys.readouterr().err


def test_channels_4_of_an_rgb_teacher_is_refused(here, capsys):
    words = ["style=custom", "teacher=checkpoint", f"teacher.path={teach(here / 'runs/p')}"]
    assert go(*words, "channels=4") == 1
    assert "channels=4: the teacher's output is RGB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "teacher.path: missing; name the folder"),
        (["teacher.path=gone"], "teacher.path=gone: no such run or checkpoint"),
        (["teacher.path=p", "style.weights=x.pt"], "style.weights=x.pt: this teacher takes none"),
        (["teacher.path=runs/p", "style.resolution=96"], "set style.resolution=64"),
    ],
)
def test_commands_end_in_one_line(here, capsys, words, said):
    write(here / "runs/p", settings("pix2pix", UNET), generator=built(UNET))
    command = ["style=custom", "teacher=checkpoint", "photos=photos", "label.workers=0", *words]
    assert run(prepare, *command) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.slow
def test_a_run_as_a_student_of_other_commands(here, capsys):
    write(here / "runs/u", settings("pix2pix", UNET), generator=built(UNET))
    picture = next((here / "photos").iterdir())
    assert run(stylize, str(picture), "run=u", "compare=true", "-o", "out.png") == 0
    assert "compare=true: recipe=pix2pix has no teacher" in capsys.readouterr().err
    assert Image.open("out.png").size[0] >= 2 * Image.open(picture).size[0]
    assert run(benchmark, "run=u", *TIMED) == 0
    assert "recipe=pix2pix learns from pictures alone" in capsys.readouterr().out


@pytest.mark.slow
def test_stylize_in_both_directions(here, capsys):
    there, back = built(RESNET, seed=1), built(RESNET, seed=2)
    write(here / "runs/c", settings("cyclegan", RESNET), a_to_b=there, b_to_a=back)
    picture = str(next((here / "photos").iterdir()))
    assert run(stylize, picture, "run=c", "-o", "out") == 0
    assert run(stylize, picture, "run=c", "direction=BtoA", "-o", "out") == 0
    names = sorted(path.stem.removeprefix(Path(picture).stem) for path in Path("out").iterdir())
    assert names == ["-c", "-c-BtoA"]
    file = "model=runs/c/checkpoints/last.ckpt"
    assert run(stylize, picture, file, "direction=BtoA", "-o", "out") == 0
    first, second = (
        next(Path("out").glob(f"*-{name}-BtoA.*")).read_bytes() for name in ("c", "last")
    )
    assert first == second
    capsys.readouterr()
    assert run(stylize, picture, "style=toon", "direction=BtoA") == 1
    assert "toon.onnx has one direction; leave it out" in capsys.readouterr().err
    assert run(stylize, picture, "run=c", "direction=XtoA") == 1
    assert "'AtoB' or 'BtoA'" in capsys.readouterr().err
