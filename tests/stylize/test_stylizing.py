"""distill.stylize with a tiny untrained student in the place of those that are shipped."""

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image, JpegImagePlugin
from torch import nn

from distill.config import compose
from distill.config.settings.commands import ShippedStudent, Stylize
from distill.core import onnx_files, sessions
from distill.core.errors import DistillError
from distill.core.images import to_tensor
from distill.export.onnx import OnnxExporter
from distill.models import zoo
from distill.models.students.decoders.fastdepth import FastDepth
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.decoders.residual import Residual
from distill.models.teachers.teacher import at_any_size
from distill.stylize import __main__ as stylize
from distill.stylize import jobs, render, stylizing
from distill.stylize.onnx_student import OnnxStudent
from support.commands import run
from support.stylize_setup import (
    Negative,
    Reshaped,
    close,
    files,
    picture,
    pixels,
    put,
    shapes_run,
    student,
)

DECODERS = [NNConv, FastDepth, Residual]


# What comes out


USE = {"hayao": "no", "hayao-small": "no", "whitebox": "no"}


def test_the_students_are_listed_those_for_commercial_use_first(capsys):
    assert run(stylize, "--list") == 0
    head, *rows = (line.split("  ") for line in capsys.readouterr().out.splitlines())
    assert head[0].strip() == "commercial use"
    found = {words[1]: words for words in ([w.strip() for w in row if w] for row in rows)}
    assert found.keys() == zoo.shipped().keys()
    for name, (use, _, size, _, card) in found.items():
        assert float(size) == pytest.approx(zoo.find(name).stat().st_size / 1e6, rel=0.1)
        assert Path(card).is_file()
        assert use == USE.get(name, "yes")
    assert [row[0].strip() for row in rows] == sorted(
        (use for use, *_ in found.values()), reverse=True
    )


def test_photo_and_style_are_enough(shipped_students, capsys):
    put("photo.png")
    assert run(stylize, "photo.png") == 0
    assert capsys.readouterr().out == "written: 'stylized/photo-hayao.png'\n"
    assert files() == ["photo.png", "stylized/photo-hayao.png"]
    assert close(pixels("stylized/photo-hayao.png"), 255 - pixels("photo.png"))
    assert run(stylize, "photo.png", "style=toon") == 0
    assert "stylized/photo-toon.png" in files()


@pytest.mark.parametrize("size", [(1, 1), (20, 30), (32, 32), (97, 33), (64, 3), (1500, 40)])
def test_every_size_comes_out_as_it_went_in(shipped_students, size):
    put("photo.png", picture(*size))
    assert run(stylize, "photo.png") == 0
    stylised = pixels("stylized/photo-hayao.png")
    assert close(stylised, 255 - pixels("photo.png"), 2 if max(size) <= 1024 else 8)


@pytest.mark.parametrize("asked", [32, 64, 300])
def test_size_is_that_of_the_network_s_input(shipped_students, asked, monkeypatch):
    seen = shapes_run(monkeypatch)
    put("photo.png", picture(120, 60))
    assert run(stylize, "photo.png", f"size={asked}") == 0
    up = [-(-side // 32) * 32 for side in (asked // 2, asked)]
    assert seen == [(1, 3, *up)]
    assert pixels("stylized/photo-hayao.png").shape == (60, 120, 3)


def test_large_pictures_are_stylised_at_1024(shipped_students, monkeypatch):
    seen = shapes_run(monkeypatch)
    put("photo.jpg", picture(2000, 1000), quality=95)
    assert run(stylize, "photo.jpg") == 0
    assert seen == [(1, 3, 512, 1024)]
    assert pixels("stylized/photo-hayao.jpg").shape == (1000, 2000, 3)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("opset", [9, 11, 17])
@pytest.mark.campaign
def test_a_file_of_one_size_gives_at_another_what_pytorch_gives(decoder, opset):
    network = student(decoder)
    model = OnnxExporter(opset=opset, size=64).export(network)
    model = onnx.shape_inference.infer_shapes(model)  # as other tools leave a file
    assert model.graph.value_info
    assert not onnx_files.free_size(model).graph.value_info
    before = model.SerializeToString()
    exported = OnnxStudent(model, "student")
    assert exported.fixed is None
    assert exported.channels == 3
    for height, width in ((64, 64), (32, 160), (224, 96)):
        photo = torch.rand(1, 3, height, width)
        with torch.inference_mode():
            expected = network(photo)
        assert np.abs(exported(photo.numpy()) - expected.numpy()).max() <= 1e-4
    assert model.SerializeToString() == before


@pytest.mark.parametrize("size", [(128, 96), (70, 41), (31, 1)])
def test_a_picture_is_what_the_network_gives(size):
    """Its last row and column fill it up at the lower right, as in an exported file."""
    network, photo = student(), picture(*size)
    stylised = render.stylise_rgb(
        photo, OnnxStudent(OnnxExporter(size=64).export(network), "student")
    )
    with torch.inference_mode():
        expected = at_any_size(network, to_tensor(photo)[None])[0]
    assert close(np.asarray(stylised).astype(int), (expected * 255).permute(1, 2, 0).numpy(), 1)


def test_a_graph_with_its_size_written_into_it_runs_at_that_size(shipped_students):
    onnx.save(OnnxExporter(size=64).export(Reshaped()), "baked.onnx")
    network = OnnxStudent(onnx_files.load_model(Path("baked.onnx")), "baked")
    assert network.fixed == (64, 64)
    photo = Image.new("RGB", (200, 90), (10, 120, 250))
    stylised = np.asarray(render.stylise_rgb(photo, network)).astype(int)
    assert close(stylised, 255 - np.asarray(photo).astype(int), 1)
    for width, height in ((64, 64), (20, 30), (300, 1)):
        assert render.stylise_rgb(picture(width, height), network).size == (width, height)


def test_such_a_graph_takes_no_other_size(shipped_students, capsys):
    onnx.save(OnnxExporter(size=64).export(Reshaped()), "baked.onnx")
    put("photo.png")
    assert run(stylize, "photo.png", "model=baked.onnx", "size=64") == 0
    assert run(stylize, "photo.png", "model=baked.onnx", "size=128") == 1
    assert "size=128: this network takes 64×64 only" in capsys.readouterr().err


# Kinds of pictures


def test_transparency_is_kept(shipped_students):
    photo = picture(40, 30, "RGBA")
    alpha = np.zeros((30, 40), np.uint8)
    alpha[:, 10:20], alpha[:, 20:] = 128, 255
    photo.putalpha(Image.fromarray(alpha))
    put("photo.png", photo)
    put("photo.webp", photo, lossless=True)
    assert run(stylize, "photo.png", "photo.webp") == 0
    stylised = pixels("stylized/photo-hayao.png", "RGBA")
    assert (stylised[..., 3] == alpha).all()
    assert close(stylised[:, 10:, :3], 255 - np.asarray(photo).astype(int)[:, 10:, :3])
    assert (pixels("stylized/photo-hayao.webp", "RGBA")[..., 3] == alpha).all()


def test_what_cannot_be_seen_does_not_bleed_in(shipped_students):
    alpha = Image.fromarray(np.repeat(np.array([[0, 255]], np.uint8), 32, 1).repeat(40, 0))
    for name in ("black", "red"):
        photo = Image.composite(picture(64, 40), Image.new("RGB", (64, 40), name), alpha)
        photo.putalpha(alpha)
        put(f"{name}.png", photo)
    assert run(stylize, "black.png", "red.png", "style=toon") == 0
    black, red = (pixels(f"stylized/{name}-toon.png", "RGBA") for name in ("black", "red"))
    assert (black == red).all()


def test_jpeg_keeps_the_colour_of_every_pixel(shipped_students):
    put("a.jpg")
    assert run(stylize, "a.jpg") == 0
    with Image.open("stylized/a-hayao.jpg") as stylised:
        assert JpegImagePlugin.get_sampling(stylised) == 0  # 4:4:4


def test_jpeg_has_white_for_what_is_see_through(shipped_students):
    put("photo.png", Image.new("RGBA", (40, 30), (9, 9, 9, 0)))
    assert run(stylize, "photo.png", "-o", "out.jpg") == 0
    assert (pixels("out.jpg") >= 254).all()


def test_a_student_that_gives_transparency(shipped_students):
    onnx.save(OnnxExporter(size=32).export(Negative(4)), "clear.onnx")
    put("a.jpg")
    put("b.png", Image.new("RGBA", (20, 20), (90, 90, 90, 128)))
    assert run(stylize, "a.jpg", "b.png", "model=clear.onnx") == 0
    assert files("stylized") == ["a-clear.png", "b-clear.png"]
    assert close(pixels("stylized/a-clear.png", "RGBA")[..., 3], np.full((40, 48), 128), 1)
    assert close(pixels("stylized/b-clear.png", "RGBA")[..., 3], np.full((20, 20), 64), 1)


def test_turned_as_its_exif_says_and_only_once(shipped_students):
    exif = Image.Exif()
    exif[0x0112] = 6  # stored lying on its left side
    put("photo.png", picture(60, 40), exif=exif)
    assert run(stylize, "photo.png") == 0
    with Image.open("stylized/photo-hayao.png") as stylised:
        assert stylised.size == (40, 60)
        assert not stylised.getexif()
        expected = 255 - np.rot90(pixels("photo.png"), -1)
        assert close(np.asarray(stylised).astype(int), expected)


@pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.png", "a.webp", "a.bmp", "a.gif"])
def test_the_kind_of_the_output_is_the_picture_s(shipped_students, name):
    put(name)
    assert run(stylize, name) == 0
    suffix = Path(name).suffix.lower()
    kept = suffix if suffix in jobs.SUFFIXES else ".png"
    assert files("stylized") == [f"a-hayao{kept}"]
    kinds = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".webp": "WEBP"}
    with Image.open(f"stylized/a-hayao{kept}") as stylised:
        assert stylised.format == kinds[kept]


def test_compare_is_photo_and_output(shipped_students):
    put("photo.png")
    assert run(stylize, "photo.png", "compare=true") == 0
    both = pixels("stylized/photo-hayao-compare.png")
    photo = pixels("photo.png")
    assert close(both, np.concatenate([photo, 255 - photo], 1))


# Which pictures, and where to


def test_a_folder_s_structure_is_kept(shipped_students):
    for name in ("in/a.jpg", "in/sub/a.jpg", "in/sub/deep/b.png", "in/notes.txt", "in/.hid/c.png"):
        put(name) if not name.endswith("txt") else Path(name).write_text("no picture")
    assert run(stylize, "in", "-o", "out") == 0
    assert files("out") == ["a-hayao.jpg", "sub/a-hayao.jpg", "sub/deep/b-hayao.png"]


def test_several_folders_each_have_their_own(shipped_students):
    put("one/a.jpg")
    put("two/a.jpg")
    assert run(stylize, "one", "two", "--output=out") == 0
    assert files("out") == ["one/a-hayao.jpg", "two/a-hayao.jpg"]


def test_outputs_of_an_earlier_run_are_replaced_and_no_inputs(shipped_students):
    put("a.png")
    assert run(stylize, ".") == 0
    Path("stylized/a-hayao.png").write_bytes(b"old")
    shutil.rmtree("zoo")
    onnx.save(OnnxExporter(size=32).export(Negative()), "hayao.onnx")
    for typed in (".", "**/*.png"):
        assert run(stylize, typed, "model=hayao.onnx") == 0
        assert files("stylized") == ["a-hayao.png"]
        assert close(pixels("stylized/a-hayao.png"), 255 - pixels("a.png"))


def test_patterns_are_expanded_and_keep_what_they_match(shipped_students):
    for name in ("in/a.jpg", "in/x/b.jpg", "in/x/c.png", "[odd].jpg"):
        put(name)
    assert run(stylize, "in/**/*.jpg", "[odd].jpg") == 0
    assert files("stylized") == ["[odd]-hayao.jpg", "a-hayao.jpg", "x/b-hayao.jpg"]


@pytest.mark.parametrize(
    "name", ["it's {1}, ${HOME} [a].png", "a=b.png", "back\\slash.png", "日本 naïve.png", "-o.png"]
)
def test_a_picture_may_have_any_name(shipped_students, name):
    put(name)
    assert run(stylize, "style=hayao", "--", name) == 0
    assert files("stylized") == [f"{name[:-4]}-hayao.png"]
    if not name.startswith("-"):
        assert run(stylize, name, "-o", "out") == 0


def test_a_name_that_is_too_long_to_add_to(shipped_students):
    put("n" * 250 + ".png")
    assert run(stylize, "n" * 250 + ".png") == 0
    assert files("stylized") == ["n" * jobs.LONGEST + "-hayao.png"]


def test_a_null_byte_is_in_no_name(tmp_path):
    """Python's file functions raise ValueError of one, not OSError."""
    with pytest.raises(DistillError, match=r"^'a\\x00b\.png': no file's name holds a null byte"):
        jobs.find([str(tmp_path), "a\0b.png"], None)


def test_one_picture_may_have_a_file_s_name(shipped_students):
    put("a.png")
    assert run(stylize, "a.png", "-o", "deep/out.webp") == 0
    assert run(stylize, "a.png", "-o", "album.png/") == 0
    assert run(stylize, "a.png", "output=other") == 0
    assert files("deep") == ["out.webp"]
    assert files("album.png") == files("other") == ["a-hayao.png"]


REFUSED = {
    ("a.png", "in", "-o", "x.png"): "-o x.png: is one file, name a folder",
    ("in", "-o", "x.png"): "-o x.png: is one file, name a folder",
    ("a.png", "-o", "x.gif"): "-o x.gif: a picture is .jpeg, .jpg, .png, .webp; a folder's name",
    ("a.png", "-o", "a.png"): "a.png: is itself an input and is not written over",
    ("a.png", "-o", "link.png"): "link.png: is itself an input and is not written over",
    ("b.png", "b-hayao.png", "-o", "."): "b-hayao.png: is itself an input",
    ("a.png", "-o"): "-o: say where to",
    ("empty",): "empty: no pictures in it (jpg, png, webp",
    (): "no picture named: python -m distill.stylize photo.jpg",
    (
        "a.png",
        "style=hayo",
    ): "style=hayo: no such student in this package (there are: hayao, toon); "
    "did you mean style=hayao? take one of your own",
    ("a.png", "style=paprika"): "style=paprika: no student of it in this package; train one first: "
    "python -m distill.train style=paprika photos=DIR run=paprika, then run=paprika here",
    ("a.png", "style=../toon"): "style=../toon: no such student in this package",
    ("a.png", "style=toon", "model=m.onnx"): "style=toon and model=m.onnx: name one student only",
    ("a.png", "model=m.onnx"): "m.onnx: no such file",
    ("a.png", "model=a.png"): "a.png: not a readable ONNX file",
    ("a.png", "model=bad.ckpt"): "bad.ckpt: damaged, or not a checkpoint",
    ("a.png", "run=none"): "runs/none: no such run",
    ("a.png", "size=31"): "size=31: input should be greater than or equal to 32",
    ("a.png", "inputs=[a.png]"): "inputs: no such setting; allowed: style",
    ("a.png", "sytle=toon"): "sytle: no such setting; did you mean style?",
}


@pytest.mark.parametrize("typed", REFUSED)
@pytest.mark.campaign
def test_refused_in_one_line_before_any_work(shipped_students, typed, capsys):
    for name in ("a.png", "a.bmp", "b.png", "b-hayao.png", "in/a.png"):
        put(name)
    Path("empty").mkdir()
    Path("bad.ckpt").write_bytes(b"no checkpoint")
    os.link("a.png", "link.png")
    before = {name: Path(name).read_bytes() for name in files()}
    assert run(stylize, *typed) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"error: {REFUSED[typed]}")
    assert len(said.err.splitlines()) == 1
    assert {name: Path(name).read_bytes() for name in files()} == before


# What goes wrong on the way


def test_a_single_picture_that_is_not_there_is_one_line(shipped_students, capsys):
    assert run(stylize, "nothing.png") == 1
    said = capsys.readouterr()
    assert said.err == "error: 'nothing.png': cannot be read (No such file or directory)\n"
    assert said.out == ""


def test_pictures_of_other_kinds_are_read_or_counted_at_the_end(shipped_students, capsys):
    put("in/a.jpg")
    for name in ("b.jfif", "b.png", "b.bmp", "c.tif"):
        picture(64, 64).save(f"in/{name}", {"jfif": "JPEG", "tif": "TIFF"}.get(name[2:], name[2:]))
    for name in ("in/c.gif", "in/d.GIF", "in/e.txt"):
        Path(name).write_bytes(b"")
    assert run(stylize, "in", "-o", "out") == 0
    assert capsys.readouterr().out == "written: 5 pictures, in 'out'; 2 files left out: .gif\n"
    png = ["b-bmp-hayao.png", "b-hayao.png", "b-jfif-hayao.png", "c-hayao.png"]
    assert files("out") == ["a-hayao.jpg", *png]


def test_no_two_pictures_get_one_name(shipped_students, capsys):
    names = ("in/IMG_1.JPG", "in/IMG_1.jpg", "in/IMG_1.png", "in/img_1.Jpg", "in/IMG_1.bmp")
    for name in names:
        put(name)
    put("other/IMG_1.jpg")
    assert run(stylize, *names, "other/IMG_1.jpg", "-o", "out") == 0
    assert files("out") == [
        *("IMG_1-bmp-hayao.png", "IMG_1-hayao-2.jpg", "IMG_1-hayao-4.jpg", "IMG_1-hayao.jpg"),
        *("IMG_1-hayao.png", "img_1-hayao-3.jpg"),
    ]
    assert run(stylize, "in", "-o", "folder") == 0
    assert len(files("folder")) == len(names)
    assert capsys.readouterr().err == ""


def test_a_name_that_no_terminal_can_show_is_written_escaped(shipped_students, monkeypatch):
    """What a file system holds need not be text, or the terminal's letters fewer."""
    put("Bücher/a.png")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert run(stylize, "Bücher", "-o", "Ausgänge") == 0
    stream.flush()
    assert stream.buffer.getvalue() == b"written: 'Ausg\\xe4nge/a-hayao.png'\n"


def test_bad_files_are_skipped_and_counted(shipped_students, capsys):
    put("in/a.png")
    put("in/z.jpg")
    Path("in/b.jpg").write_bytes(b"no picture")
    Path("in/c.png").write_bytes(Path("in/a.png").read_bytes()[:60])
    assert run(stylize, "in", "nothing.png", "*.none", "-o", "out") == 1
    said = capsys.readouterr()
    skipped = [line for line in said.err.replace("\r", "\n").splitlines() if "skipped '" in line]
    named = [line.split("skipped ")[1].split(": ")[0] for line in skipped]
    assert named == ["'in/b.jpg'", "'in/c.png'", "'nothing.png'", "'*.none'"]
    assert said.err.endswith("error: 4 of 6 pictures skipped\n")
    assert said.out == "written: 2 pictures, in 'out'\n"
    assert files("out") == ["a-hayao.png", "z-hayao.jpg"]


def test_an_output_that_its_kind_cannot_hold_is_skipped(shipped_students, capsys):
    put("wide.webp", picture(16_000, 2))
    assert run(stylize, "wide.webp", "compare=true") == 1  # WebP ends at 16383
    assert "cannot be written as .webp" in capsys.readouterr().err
    assert not Path("stylized").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_write_leaves_nothing(shipped_students, monkeypatch, error):
    put("a.png")
    put("out/a-hayao.png")
    before = Path("out/a-hayao.png").read_bytes()
    write = Path.write_bytes

    def half(self, data):
        write(self, bytes(data)[:20])
        raise error

    monkeypatch.setattr(Path, "write_bytes", half)
    status = run(stylize, "a.png", "-o", "out")
    assert status == (130 if isinstance(error, KeyboardInterrupt) else 1)
    assert files("out") == ["a-hayao.png"]
    assert Path("out/a-hayao.png").read_bytes() == before


@pytest.mark.campaign
def test_ctrl_c_is_130_and_leaves_whole_pictures(shipped_students):
    put("in/0.jpg", picture(300, 200))
    for i in range(1, 3000):  # more than any machine stylises before it is told to stop
        os.link("in/0.jpg", f"in/{i}.jpg")
    command = [sys.executable, "-m", "distill.stylize", "in", "model=zoo/toon.onnx", "-o", "out"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (Path("out").is_dir() and files("out")) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in said
    done = files("out")
    assert 0 < len(done) < 3000
    for name in done:
        assert pixels(f"out/{name}").shape == (200, 300, 3)


# Students


def shape(name, *sides):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, *sides])


def one_node(kind, inputs, **attributes):
    """A graph of one operator over pictures of 64×64."""
    node = helper.make_node(kind, inputs, ["y"], **attributes)
    ends = [shape(name, 64, 64) for name in inputs], [shape("y", 64, 64)]
    graph = helper.make_graph([node], "g", *ends)
    opset = helper.make_opsetid("", 13)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def test_networks_that_make_no_picture():
    with pytest.raises(DistillError, match="inputs: 2, want one"):
        OnnxStudent(one_node("Add", ["a", "b"]), "two")
    with pytest.raises(DistillError, match="no network from one RGB picture"):
        OnnxStudent(one_node("GlobalAveragePool", ["x"]), "mean")
    with pytest.raises(DistillError, match="no network from one RGB picture"):
        OnnxStudent(one_node("NoSuchOperator", ["x"]), "foreign")
    with pytest.raises(DistillError, match="inputs: 0"):
        OnnxStudent(onnx.ModelProto(), "empty")


def test_a_network_of_another_range_is_refused():
    wide = nn.Conv2d(3, 3, 1)
    nn.init.constant_(wide.weight, 85.0)  # as the paper's own files: black to white is 0 to 255
    nn.init.zeros_(wide.bias)
    with pytest.raises(DistillError, match="gives values from 0 to 255"):
        OnnxStudent(OnnxExporter(size=32).export(wide), "wide")


def test_the_paper_s_own_student_runs_at_any_size(assets):
    model = onnx_files.load_model(assets / "peer" / "paprika.onnx")
    free = onnx_files.free_size(model).graph
    assert [d.dim_param for d in free.input[0].type.tensor_type.shape.dim[2:]] == [
        "height", "width",
    ]  # fmt: skip
    with pytest.raises(DistillError, match=r"want RGB in .*; say input_range="):
        OnnxStudent(model, "paprika")


def test_threads(monkeypatch):
    seen = []
    options = sessions.onnxruntime.SessionOptions

    def spy():
        seen.append(options())
        return seen[-1]

    monkeypatch.setattr(sessions.onnxruntime, "SessionOptions", spy)
    model = OnnxExporter(size=32).export(Negative())
    OnnxStudent(model, "n", 2)
    OnnxStudent(model, "n")
    assert [o.intra_op_num_threads for o in seen] == [2, torch.get_num_threads()]


@pytest.mark.slow
def test_several_styles_by_one_command(shipped_students):
    put("a.png")
    assert run(stylize, "-m", "a.png", "style=hayao,toon", "-o", "out") == 0
    assert files("out") == ["a-hayao.png", "a-toon.png"]


def test_several_values_by_one_command_have_an_output_each(shipped_students, capsys):
    put("a.png")
    many = ["-m", "a.png", "style=hayao", "strength=0.5,1"]
    assert run(stylize, *many, "overlay=null,[x/hat.png]", "-o", "out") == 1  # no such file
    assert files("out") == [f"a-hayao-strength={n}-overlay=null.png" for n in ("0.5", "1")]
    assert not close(pixels(f"out/{files('out')[0]}"), pixels(f"out/{files('out')[1]}"), 1)
    capsys.readouterr()
    assert run(stylize, *many, "-o", "b.png") == 1
    assert "-o b.png: is one file, and -m has several; name a folder" in capsys.readouterr().err
    assert run(stylize, *many[:3], "strength=0.5", "output=c.png,d.png") == 0
    assert files()[:3] == ["a.png", "c.png", "d.png"]
    models = [f"runs/{name}/export/student.onnx" for name in "ab"]
    for path in models:
        Path(path).parent.mkdir(parents=True)
        shutil.copy(zoo.find("toon"), path)
    assert run(stylize, "-m", "a.png", f"model={','.join(models)}", "-o", "exports") == 0
    assert files("exports") == ["a-student-a.png", "a-student-b.png"]


def test_what_is_shipped(shipped_students):
    assert list(zoo.shipped()) == ["hayao", "toon"]
    assert zoo.find("toon") == shipped_students / "zoo" / "toon.onnx"
    assert zoo.static("toon") == zoo.find("toon")
    beside = shipped_students / "zoo" / "toon-256.onnx"
    beside.write_bytes(zoo.find("toon").read_bytes())
    assert list(zoo.shipped()) == ["hayao", "toon"]
    assert zoo.static("toon") == beside


@pytest.mark.parametrize("name", zoo.shipped())
def test_every_shipped_student_runs(name):
    """Whatever the package ships: one size in its file, any size here, on the first try."""
    settings = Stylize(
        style=ShippedStudent(name=name), model=None, run=None, runs="", direction="AtoB",
        output=None, size=None, upscale="whole", face="off", faces="largest",
        detector="lbp", compare=False, threads=1,
    )  # fmt: skip
    network, called = stylizing.choose(settings)
    assert (called, network.fixed, network.channels) == (name, None, 3)
    photo = picture(200, 150)
    stylised = np.asarray(render.stylise_rgb(photo, network)).astype(int)
    assert stylised.shape == (150, 200, 3)
    assert np.abs(stylised - np.asarray(photo).astype(int)).mean() > 2  # not the photo


def test_links_that_lead_to_themselves_are_skipped_and_nothing_else(shipped_students, capsys):
    put("in/a.png")
    Path("in/loop.png").symlink_to("loop.png")
    Path("in/self").symlink_to("../in", target_is_directory=True)
    assert run(stylize, "in") == 1
    assert files("stylized") == ["a-hayao.png"]
    said = capsys.readouterr().err
    assert "skipped 'in/loop.png': cannot be read (Too many levels of symbolic links)" in said
    assert "Traceback" not in said
    assert run(stylize, "in/a.png", "-o", "in/loop.png") in (0, 1)  # a link may be written over


@pytest.mark.parametrize(
    ("shape", "of", "said"),
    [
        ((1, 3, 64, 64), "input", "inputs: 0, want one: the picture"),
        ((1, 3, 64, 64), "output", "not an ONNX file, or one without a network"),
        ((3, 64, 64), "", r"its input is float32 \(3, 64, 64\), want float32"),
    ],
)
def test_files_that_take_or_give_no_picture(shape, of, said, tmp_path):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    zero = numpy_helper.from_array(np.zeros(shape, np.float32), "zero")
    node = helper.make_node("Add", ["zero" if of == "input" else "x", "zero"], ["y"])
    model = helper.make_model(helper.make_graph([node], "g", value[:1], value[1:], [zero]))
    if of:
        del getattr(model.graph, of)[:]
    onnx.save(model, tmp_path / "other.onnx")
    convention = compose.load("stylize", [], Stylize)
    with pytest.raises(DistillError, match=said):
        stylizing.open_student(tmp_path / "other.onnx", convention=convention)


def test_a_file_whose_input_has_no_shape_is_tried(tmp_path):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("x", "y")]
    node = helper.make_node("Identity", ["x"], ["y"])
    model = helper.make_model(helper.make_graph([node], "g", value[:1], value[1:]))
    model.ir_version, model.opset_import[0].version = 8, 13
    onnx.save(model, tmp_path / "free.onnx")
    student = stylizing.open_student(
        tmp_path / "free.onnx", convention=compose.load("stylize", [], Stylize)
    )
    photo = np.random.default_rng(0).random((1, 3, 32, 32), np.float32)
    np.testing.assert_array_equal(student(photo), photo)
