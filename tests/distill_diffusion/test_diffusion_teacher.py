import hashlib
import io
import json
import pickle
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from distill.core.errors import DistillError
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill.stylize import __main__ as stylize
from distill_benchmark import __main__ as benchmark
from distill_diffusion import pipeline_files
from distill_diffusion.diffusion_teacher import DiffusionTeacher
from support import tiny_pipelines as tiny
from support.commands import SMALL, go, run
from support.refusals import refusal

PHOTOS = (torch.rand(3, 3, 32, 40, generator=torch.Generator().manual_seed(3)) * 255).round() / 255
HOW: dict[str, Any] = {"prompt": "ink", "strength": 0.6, "steps": 4}


@pytest.mark.parametrize("missing", ["diffusers", "transformers"])
def test_without_a_library_one_line_says_how_it_is_had(tmp_path, monkeypatch, missing):
    place = "distill_diffusion.diffusion_teacher.find_spec"
    monkeypatch.setattr(place, lambda name: None if name == missing else name)
    with pytest.raises(DistillError) as error:
        DiffusionTeacher(str(tmp_path), prompt="ink")
    assert str(error.value) == (
        f"teacher=diffusion: needs the {missing} library; pip install 'distill[diffusion]'"
    )


def test_a_library_that_lacks_one_of_its_own_is_one_line():
    """The library imports its parts when they are asked for, and raises an error of its own."""

    @pipeline_files.library("teacher.pipeline=x")
    def load() -> None:
        lacking = ImportError("No module named 'no_such_package'")
        raise RuntimeError("Failed to import a part") from lacking

    with pytest.raises(DistillError) as error:
        load()
    assert str(error.value).endswith(
        "(No module named 'no_such_package'); pip install 'distill[diffusion]'"
    )


@pytest.fixture(scope="module")
def diffusers():
    for name in ("transformers", "peft", "accelerate"):
        pytest.importorskip(name, reason=f"teacher=diffusion needs {name}")
    return pytest.importorskip("diffusers", reason="teacher=diffusion needs diffusers")


@pytest.fixture(scope="module")
def files(diffusers, tmp_path_factory):
    """The folders, and the LoRA's file, by kind."""
    root = tmp_path_factory.mktemp("pipelines")
    return {
        "sd": tiny.save_stable_diffusion(root / "sd"),
        "p2p": tiny.save_stable_diffusion(root / "p2p", "StableDiffusionInstructPix2PixPipeline"),
        "sdxl": tiny.save_stable_diffusion_xl(root / "sdxl"),
        "kontext": tiny.save_kontext(root / "kontext"),
        "controlnet": tiny.save_controlnet(root / "controlnet"),
        "lora": tiny.save_lora(root / "lora"),
    }


def drawn(*args: Any, photos: torch.Tensor = PHOTOS, **how: Any) -> torch.Tensor:
    with torch.inference_mode():
        return DiffusionTeacher(*args, **how)(photos)


def seed_of(photo: torch.Tensor, seed: int = 0) -> int:
    pixels = (photo * 255).round().byte().numpy()
    digest = hashlib.sha256(f"{seed} {pixels.shape} ".encode() + pixels.tobytes()).digest()
    return int.from_bytes(digest[:8], "big") // 2


def as_image(photo: torch.Tensor) -> Image.Image:
    return Image.fromarray((photo * 255).round().byte().permute(1, 2, 0).numpy())


def by_hand(pipe: Any, photo: torch.Tensor, **how: Any) -> torch.Tensor:
    """What the library itself draws of one photo."""
    generator = torch.Generator().manual_seed(seed_of(photo))
    found = pipe(image=as_image(photo), generator=generator, output_type="np", **how).images
    return torch.from_numpy(found).permute(0, 3, 1, 2)


@pytest.mark.campaign
def test_draws_what_the_library_draws_after_a_picture(diffusers, files):
    pipe = diffusers.StableDiffusionImg2ImgPipeline.from_pretrained(files["sd"])
    how = {"prompt": "ink", "negative_prompt": "pen", "strength": 0.6, "guidance_scale": 3.0}
    expected = by_hand(pipe, PHOTOS[0], num_inference_steps=4, **how)
    found = drawn(files["sd"], negative_prompt="pen", guidance=3.0, **HOW)
    torch.testing.assert_close(found[:1], expected)
    assert found.std() > 0.01


@pytest.mark.campaign
def test_instruct_pix2pix(diffusers, files):
    pipe = diffusers.StableDiffusionInstructPix2PixPipeline.from_pretrained(files["p2p"])
    how = {"prompt": "ink", "guidance_scale": 3.0, "image_guidance_scale": 1.2}
    expected = by_hand(pipe, PHOTOS[0], num_inference_steps=3, **how)
    found = drawn(files["p2p"], prompt="ink", guidance=3.0, image_guidance=1.2, steps=3)
    torch.testing.assert_close(found[:1], expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_sdxl_turbo(diffusers, files):
    pipe = diffusers.StableDiffusionXLImg2ImgPipeline.from_pretrained(files["sdxl"])
    how = {"prompt": "ink", "strength": 0.5, "num_inference_steps": 2, "guidance_scale": 0.0}
    found = drawn(files["sdxl"], prompt="ink", strength=0.5, steps=2, guidance=0.0)
    torch.testing.assert_close(found[:1], by_hand(pipe, PHOTOS[0], **how), rtol=0, atol=1e-5)


def test_kontext_draws_one_picture_at_a_time(diffusers, files):
    """To it several pictures would be references of one."""
    pipe = diffusers.FluxKontextPipeline.from_pretrained(files["kontext"])
    own = {"width": 40, "height": 32, "max_area": 40 * 32, "_auto_resize": False}
    how = {"prompt": "ink", "guidance_scale": 2.0, "max_sequence_length": 8}
    made = [by_hand(pipe, each, num_inference_steps=2, **how, **own) for each in PHOTOS]
    expected = torch.nn.functional.interpolate(
        torch.cat(made), (32, 40), mode="bicubic", antialias=True
    )
    more = {"max_sequence_length": 8}
    found = drawn(files["kontext"], prompt="ink", guidance=2.0, steps=2, side=40, more=more)
    torch.testing.assert_close(found, expected.clamp(0, 1), rtol=0, atol=1e-5)
    assert "teacher.strength: FluxKontextPipeline does not take it" in message(
        files["kontext"], **HOW
    )


@pytest.mark.slow
def test_a_controlnet_sees_the_photo_or_its_edges(diffusers, files):
    net = diffusers.ControlNetModel.from_pretrained(files["controlnet"])
    kind = diffusers.StableDiffusionControlNetImg2ImgPipeline
    pipe = kind.from_pretrained(files["sd"], controlnet=net)
    how = {"prompt": "ink", "strength": 0.6, "num_inference_steps": 4}
    scale = {"controlnet_conditioning_scale": 0.7}
    expected = by_hand(pipe, PHOTOS[0], control_image=as_image(PHOTOS[0]), **how, **scale)
    words = HOW | {"controlnet": files["controlnet"], "controlnet_scale": 0.7}
    found = drawn(files["sd"], **words)
    torch.testing.assert_close(found[:1], expected, rtol=0, atol=1e-5)
    assert not torch.allclose(found, drawn(files["sd"], **HOW), atol=1e-4)
    assert not torch.allclose(found, drawn(files["sd"], control="edges", **words), atol=1e-4)


@pytest.mark.slow
def test_lora_weights_count_by_their_scale(files):
    plain = drawn(files["sd"], **HOW)
    with_lora = drawn(files["sd"], lora=files["lora"], **HOW)
    by_folder = drawn(files["sd"], lora=str(Path(files["lora"]).parent), **HOW)
    none = drawn(files["sd"], lora=files["lora"], lora_scale=0.0, **HOW)
    torch.testing.assert_close(none, plain)
    torch.testing.assert_close(by_folder, with_lora)
    assert not torch.allclose(with_lora, plain, atol=1e-4)


def test_lora_weights_of_another_network_are_refused(files, tmp_path):
    from safetensors.torch import save_file

    for name, key in (("foreign", "foo"), ("other", "unet.no.such.layer.lora_A.weight")):
        save_file({key: torch.zeros(2, 2)}, tmp_path / f"{name}.safetensors")
        said = message(files["sd"], lora=str(tmp_path / f"{name}.safetensors"), **HOW)
        assert said.startswith(f"teacher.lora={tmp_path}/{name}.safetensors: ")


@pytest.mark.parametrize("kind", ["sd", "p2p"])
@pytest.mark.campaign
def test_a_picture_is_the_same_whatever_the_batch(files, kind):
    how = HOW if kind == "sd" else {"prompt": "ink", "steps": 3}
    teacher = DiffusionTeacher(files[kind], **how)
    with torch.inference_mode():
        together = teacher(PHOTOS)
        for order in ([0], [2, 0], [1, 1, 2]):
            torch.testing.assert_close(teacher(PHOTOS[order]), together[order], rtol=0, atol=1e-5)
    other = drawn(files[kind], seed=1, **how)
    assert not torch.allclose(other, together, atol=1e-3)


def test_sizes(files):
    teacher = DiffusionTeacher(files["sd"], **HOW)
    with torch.inference_mode():
        assert teacher(PHOTOS[..., :27, :38]).shape == (3, 3, 27, 38)
        sided = DiffusionTeacher(files["sd"], side=64, **HOW)
        assert sided._size(32, 40) == (64, 48)
        large = sided(PHOTOS)
    assert large.shape == PHOTOS.shape
    assert not torch.allclose(large, teacher(PHOTOS), atol=1e-3)
    assert 0 <= large.min() < large.max() <= 1


def test_bfloat16_draws_nearly_the_same(files):
    fine, rough = drawn(files["sd"], **HOW), drawn(files["sd"], dtype="bfloat16", **HOW)
    assert rough.dtype == torch.float32
    assert 0 < (fine - rough).abs().mean() < 0.02


def test_the_fingerprint_follows_files_and_settings_and_not_the_path(files, tmp_path):
    known = DiffusionTeacher(files["sd"], **HOW).fingerprint()
    changes: list[dict[str, Any]] = [
        {"prompt": "pen"}, {"negative_prompt": "pen"}, {"strength": 0.5}, {"guidance": 2.0},
        {"steps": 5}, {"seed": 1}, {"side": 64}, {"lora": files["lora"]}, {"dtype": "bfloat16"},
        {"lora": files["lora"], "lora_scale": 0.5}, {"more": {"eta": 0.5}},
        {"controlnet": files["controlnet"]},
        {"controlnet": files["controlnet"], "control": "edges"},
        {"controlnet": files["controlnet"], "controlnet_scale": 0.5},
    ]  # fmt: skip
    others = [DiffusionTeacher(files["sd"], **HOW | each).fingerprint() for each in changes]
    assert len({known, *others}) == 1 + len(others)
    moved = shutil.copytree(files["sd"], tmp_path / "moved")
    assert DiffusionTeacher(str(moved), **HOW).fingerprint() == known
    (moved / "README.md").write_text("other weights")
    assert DiffusionTeacher(str(moved), **HOW).fingerprint() != known


def test_a_copy_for_another_process_reads_the_files_anew(files):
    teacher = DiffusionTeacher(files["sd"], **HOW)
    with torch.inference_mode():
        expected = teacher(PHOTOS)
    content = pickle.dumps(teacher)
    assert len(content) < 20_000
    with torch.inference_mode():
        assert torch.equal(pickle.loads(content)(PHOTOS), expected)


message = partial(refusal, drawn)


def test_what_is_missing_or_not_taken_is_one_line(files, tmp_path):
    sd = files["sd"]
    assert "teacher.pipeline: missing; name a folder" in message(None)
    assert "teacher.pipeline=./gone: no such folder" in message("./gone", **HOW)
    assert "its model_index.json cannot be read" in message(str(tmp_path), **HOW)
    assert "teacher.prompt: missing; StableDiffusionImg2ImgPipeline needs a text prompt" in message(
        sd
    )
    said = message(sd, image_guidance=1.5, **HOW)
    assert "teacher.image_guidance: StableDiffusionImg2ImgPipeline does not take it" in said
    assert "teacher.strength, teacher.steps, teacher.guidance" in said
    assert "teacher.strength: StableDiffusionInstructPix2" in message(files["p2p"], **HOW)
    assert "teacher.more.etha: Stable" in message(sd, more={"etha": 1}, **HOW)
    assert "teacher.more.image: it is set for each" in message(sd, more={"image": 1}, **HOW)
    assert "teacher.more.strength: say teacher.str" in message(sd, more={"strength": 1}, **HOW)
    assert "teacher.strength=1.5: want more than 0" in message(sd, prompt="ink", strength=1.5)
    assert "teacher.steps=2: of these" in message(sd, prompt="ink", strength=0.3, steps=2)
    assert "teacher.controlnet_scale: without" in message(sd, controlnet_scale=1.0, **HOW)
    assert "teacher.controlnet=./gone: no such" in message(sd, controlnet="./gone", **HOW)
    assert "teacher.lora=./gone: no such" in message(sd, lora="./gone", **HOW)
    assert "there are: none; name the file" in message(sd, lora=str(tmp_path), **HOW)
    assert "is for a GPU, and photos are stylized on the CPU" in message(sd, offload="model", **HOW)
    assert "teacher.revision=v1: " in message(sd, revision="v1", **HOW)
    assert "is no image to image together with a ControlNet" in message(
        files["p2p"], prompt="ink", controlnet=files["controlnet"]
    )


def test_a_name_on_the_hub_that_is_not_there(diffusers, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for how in ({"pipeline": "nobody/nothing"}, {"pipeline": "nobody/nothing", "revision": "v1"}):
        assert message(**how, **HOW).startswith(
            "teacher.pipeline=nobody/nothing: no such folder here, and the hub gives nothing of "
        )


def test_a_commit_on_the_hub_is_the_identity(files, monkeypatch, tmp_path):
    """The library says where it has put the files: in a folder named after the commit."""
    import diffusers

    place = tmp_path / "models--some--ink" / "snapshots" / "0a1b2c"
    shutil.copytree(files["sd"], place)
    asked = []

    def download(name: str, **how: Any) -> str:
        asked.append((name, how["revision"], how["local_files_only"]))
        return str(place)

    monkeypatch.setattr(diffusers.DiffusionPipeline, "download", download)
    teacher = DiffusionTeacher("some/ink", revision="v1", **HOW)
    assert asked == [("some/ink", "v1", False)]
    assert "some/ink 0a1b2c" in teacher.settings()
    # A run's word alone fetches nothing.
    DiffusionTeacher("some/ink", typed=False, **HOW)
    assert asked[1] == ("some/ink", None, True)
    with pytest.raises(DistillError, match="never typed on this machine"):
        DiffusionTeacher("some/other", typed=False, **HOW)
    assert len(asked) == 2


def test_damaged_and_foreign_files(files, tmp_path):
    folder = shutil.copytree(files["sd"], tmp_path / "bad")
    (weights,) = (folder / "unet").glob("*.safetensors")
    weights.write_bytes(b"cut short")
    assert "bad: cannot be loaded (" in message(str(folder), **HOW)
    index = json.loads((folder / "model_index.json").read_text())
    for change, said in (
        ({"unet": ["evil", "Net"]}, "its unet is made by code of its own (evil)"),
        ({"_class_name": "NoSuchPipeline"}, "is a NoSuchPipeline, which diffusers "),
        ({"_class_name": ["pipeline", "Own"]}, "is a ['pipeline', 'Own'], which diffusers "),
        ({"_class_name": "DDPMPipeline"}, "is a DDPMPipeline, which is no image to image"),
    ):
        (folder / "model_index.json").write_text(json.dumps(index | change))
        assert said in message(str(folder), **HOW)


def test_a_blackened_picture_is_no_label(files, monkeypatch):
    import diffusers

    class Answer:
        images = np.zeros((3, 32, 40, 3), np.float32)
        nsfw_content_detected = (False, True, False)

    kind = diffusers.StableDiffusionImg2ImgPipeline

    def call(self, prompt=None, image=None, strength=0.8, num_inference_steps=50, **how):
        return Answer()

    monkeypatch.setattr(kind, "__call__", call)
    assert "teacher.safety_checker=false leaves the checker out" in message(files["sd"], **HOW)
    Answer.nsfw_content_detected = None
    Answer.images = np.full((3, 32, 40, 3), np.nan, np.float32)
    assert "teacher.dtype=float32): gave values that are not finite" in message(files["sd"], **HOW)


# The whole way


@pytest.mark.slow
def test_a_student_of_a_pipeline(here, files, capsys):
    words = ["style=custom", "style.name=ink", "teacher=diffusion", "teacher.prompt=ink, pen"]
    words += [f"teacher.pipeline={files['sd']}", "teacher.strength=0.5", "teacher.steps=2"]
    words += ["teacher.more={eta: 0.5}"]
    for path in sorted((here / "photos").iterdir())[8:]:
        path.unlink()
    assert run(prepare, *words, "photos=photos", *SMALL, "label.batch_size=3") == 0
    root = here / "data/pairs/ink-photos-64-crop90"
    made = {path: path.read_bytes() for path in root.glob("*/stylized/*.png")}
    assert len(made) == 8
    # Others are drawn again, in other batches, as they were.
    for path in list(made)[::3]:
        path.unlink()
    assert run(prepare, *words, "photos=photos", *SMALL, "label.batch_size=1") == 0
    for path, before in made.items():
        then, now = Image.open(io.BytesIO(before)), Image.open(path)
        assert np.abs(np.asarray(then, int) - np.asarray(now, int)).max() <= 1
    capsys.readouterr()
    assert run(prepare, *words, "photos=photos", *SMALL, "teacher.seed=1") == 1
    assert "made with other settings (teacher " in capsys.readouterr().err
    assert go(*words, "trainer.max_steps=1") == 0
    assert run(export, "exporter.size=64", "run=ink-residual") == 0
    assert "no figures of the teacher: ink takes too long" in capsys.readouterr().out
    assert run(benchmark, "run=ink-residual", "sizes=[64]", "threads=[1]", "rounds=2") == 0
    assert "no teacher: ink takes too long to be timed" in capsys.readouterr().out
    assert run(eval_fid, "run=ink-residual", "features=none", "bootstrap=0") == 0
    picture = next((here / "photos").iterdir())
    capsys.readouterr()
    assert run(stylize, str(picture), "run=ink-residual", "compare=true", "-o", "out.png") == 0
    assert "without the teacher" not in capsys.readouterr().err


@pytest.mark.slow
def test_commands_end_in_one_line(here, files, capsys):
    words = ["style=custom", "teacher=diffusion", "photos=photos", *SMALL]
    for more, said in (
        ([], "teacher.pipeline: missing"),
        (["teacher.pipeline=gone"], "teacher.pipeline=gone: no such folder, and a name on the hub"),
        ([f"teacher.pipeline={files['sd']}"], "teacher.prompt: missing"),
        (
            [f"teacher.pipeline={files['sd']}", "teacher.prompt=a", "teacher.more={etha: 1}"],
            "teacher.more.etha: StableDiffusionImg2ImgPipeline does not take it",
        ),
        (["teacher.steps=few"], "teacher.steps='few': input should be a valid integer"),
        (["teacher.dtype=float8"], "teacher.dtype='float8': input should be 'float32', 'float16'"),
    ):
        assert run(prepare, *words, *more) == 1
        lines = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error")]
        assert len(lines) == 1
        assert said in lines[0]
