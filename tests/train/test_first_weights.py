"""init=…, with students that have no run behind them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from distill.config import compose
from distill.config.settings.training import Train
from distill.core import onnx_files
from distill.core.errors import DistillError
from distill.core.images import to_tensor
from distill.core.sessions import open_session, picture_call
from distill.core.state_dicts import load_state, tensors_in_graph
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.models import checkpoint, zoo
from distill.models.network_file import description, untrained_network, write_network
from distill.models.students.student import Student
from distill.runs.run_folder import Run
from distill.stylize.onnx_student import OnnxStudent
from distill.train.__main__ import implied
from distill.train.student_training import check, new_student
from support.refusals import refusal
from support.students_on_file import settings_of_student


def started(*words: str) -> Student:
    return new_student(compose.load("train", ["photos=x", "encoder.weights=none", *words], Train))


@pytest.fixture(scope="module")
def photo():
    return to_tensor(centre_square(read_photo(demo_photos()[0].path), 256))[None]


def shape(name, **typed):
    return zoo.overrides_for_init({"init": f"zoo:{name}", **typed})


def test_a_run_s_folder_stands_for_its_best_checkpoint(tmp_path):
    run = Run(tmp_path / "it's, mine")
    run.folder.mkdir()
    with pytest.raises(DistillError, match=r"last\.ckpt: no such checkpoint"):
        implied({"init": str(run.folder)})
    run.best.parent.mkdir()
    run.best.write_bytes(b"")
    assert compose.load("train", implied({"init": str(run.folder)}), Train).init == str(run.best)


FEW = {"hayao": pytest.mark.slow, "toon": pytest.mark.slow}  # with a head and without


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=FEW.get(n, pytest.mark.campaign)) for n in zoo.shipped()],
)
def test_a_student_of_the_package_draws_as_its_file_does(name, photo):
    made = started(f"init=zoo:{name}", *shape(name))
    assert sum(isinstance(m, torch.nn.BatchNorm2d) for m in made.modules()) > 30
    wanted = OnnxStudent(onnx_files.load_model(zoo.find(name)), name, 1)(photo.numpy())
    with torch.inference_mode():
        np.testing.assert_allclose(made.eval()(photo).numpy(), wanted, atol=1e-3)


@pytest.mark.campaign
def test_an_exported_file_is_as_good(photo, tmp_path):
    """As ONNX, or with its weights as they are there in a safetensors file."""
    (tmp_path / "mine.onnx").write_bytes(zoo.find("hayao").read_bytes())
    trained = compose.load("train", ["style=hayao", *shape("hayao")], Train)
    said = replace(description(trained), folded=True)
    folded = untrained_network(said)
    load_state(folded, tensors_in_graph(zoo.find("hayao")), tmp_path)
    write_network(folded, said, tmp_path / "mine.safetensors")
    kinds = [f"{tmp_path}/mine.onnx", f"{tmp_path}/mine.safetensors", "zoo:hayao"]
    with torch.inference_mode():
        one, two, three = (
            started(f"init={which}", *shape("hayao")).eval()(photo) for which in kinds
        )
    assert torch.equal(one, three)
    assert torch.equal(two, three)


@pytest.mark.parametrize(
    ("init", "more", "said"),
    [
        ("zoo:hayo", [], "init=zoo:hayo: no such student here; did you mean hayao?"),
        ("zoo:hayao", ["decoder=nnconv"], "a student with decoder=detail, and this"),
        (
            "zoo:swirl",
            ["student=strokes_wide", "decoder.build.quarter=32"],
            "init=zoo:swirl: another network than this run's",
        ),
        (
            "zoo:toon",
            ["decoder.build.context=0"],
            "init=zoo:toon: has 2 wide blocks and this run's student 0; add ",
        ),
        ("nowhere.onnx", [], "nowhere.onnx"),
    ],
)
def test_refused_in_one_line(init, more, said):
    assert said in refusal(started, f"init={init}", *more)


@pytest.mark.slow
def test_a_student_without_a_head_begins_with_the_paint_of_one_that_has(photo):
    layered = started("init=zoo:toon", *shape("toon")).eval()
    picture = started("init=zoo:toon", "head=picture", *shape("toon", head="picture")).eval()
    logits = []
    layered.head.register_forward_pre_hook(lambda head, inputs: logits.append(inputs[0]))
    with torch.inference_mode():
        layered(photo)
        torch.testing.assert_close(picture(photo), logits[0][:, :3].sigmoid(), atol=1e-5, rtol=0)


@pytest.mark.slow
def test_wider_depthwise_kernels_begin_with_zeros_around_and_narrower_ones_with_the_middle(photo):
    three, five, seven = (
        started("init=zoo:whitebox", f"decoder.build.kernel={side}").eval() for side in (3, 5, 7)
    )
    with torch.inference_mode():
        torch.testing.assert_close(seven(photo), five(photo), atol=1e-5, rtol=0)
    name = "decoder.at2.0.added.0.weight"
    assert torch.equal(three.state_dict()[name], five.state_dict()[name][..., 1:4, 1:4])


def test_it_does_not_say_what_it_learnt_from():
    with pytest.raises(DistillError, match=r"^zoo:toon: a network alone"):
        checkpoint.lineage(settings_of_student(init="zoo:toon"))


def test_averages_that_were_never_measured_are_not_kept():
    with pytest.raises(DistillError, match="batchnorm=kept: a student that was never trained"):
        check(compose.load("train", ["photos=x", "batchnorm=kept"], Train))


def test_masks_whose_pixels_weigh_nothing_are_refused():
    with pytest.raises(DistillError, match=r"loss\.masks=DIR: counts for nothing; weigh its"):
        check(compose.load("train", ["photos=x", "loss.masks=DIR"], Train))


def test_the_weights_that_the_paper_released(photo, assets):
    made = started(f"init={assets / 'peer/paprika.pth'}", "decoder=nnconv")
    wanted = open_session(onnx_files.load_model(assets / "peer/paprika.onnx"), 1)
    with torch.inference_mode():
        output = made.eval()(photo).numpy()
    np.testing.assert_allclose(output, picture_call(wanted)(photo.numpy()) / 255, atol=2e-3)
    with pytest.raises(DistillError, match="another network than this run's"):
        started(f"init={assets / 'peer/paprika.pth'}", "decoder=fastdepth")


def test_other_pth_files_are_refused(tmp_path):
    torch.save({"other.weight": torch.ones(1)}, tmp_path / "a.pth")
    with pytest.raises(
        DistillError, match=r"a\.pth: damaged, or not a file of the paper's weights"
    ):
        started(f"init={tmp_path / 'a.pth'}")


def test_a_network_of_another_recipe_takes_no_shape_from_the_package():
    """Else the line was of `decoder`, which nobody typed."""
    assert shape("evening", recipe="pix2pix") == []
    assert shape("evening", recipe="picture")
