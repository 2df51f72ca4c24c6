"""What the page computes itself, run by Node: what is steadied, resampled, coloured, chosen."""

import base64
import json
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest
import torch
from PIL import Image

from distill.core.onnx_files import free_size, split_at_summary
from distill.core.sessions import open_session
from distill.data.faces import Box, Face
from distill.export.onnx import OnnxExporter
from distill.models.students.global_statistics import thumbnail_of
from distill.models.students.student import Student
from distill.stylize import parts, portraits, render, stickers
from distill_lens import webpage
from support.statistics_students import statistics_student
from support.still_smoother import StillSmoother

TSC = webpage.SOURCES / "node_modules" / ".bin" / "tsc"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a script that may import the page's modules; gives what it prints, as JSON."""
    if shutil.which("node") is None or not TSC.is_file():
        pytest.skip("no Node.js, or no TypeScript: npm ci in web/")
    folder = tmp_path_factory.mktemp("compiled")
    source = webpage.SOURCES / "src"
    sources = [
        source / f"{name}.ts"
        for name in (
            "steady",
            "auto_size",
            "colours",
            "fit",
            "onnx_file",
            "seamless",
            "stickers",
            "face_oval",
        )
    ]
    (folder / "package.json").write_text('{"type": "module"}')
    flags = [
        "--outDir",
        folder,
        "--rootDir",
        webpage.SOURCES / "src",
        "--ignoreConfig",
        "--noCheck",
    ]
    target = ["--target", "es2022", "--module", "esnext"]
    subprocess.run([TSC, *sources, *flags, *target], check=True, capture_output=True)
    for path in folder.glob("*.js"):  # Vite finds modules by their stem, Node does not
        path.write_text(re.sub(r'(from "\./\w+)"', r'\1.js"', path.read_text()))

    def script(text, **given):
        (folder / "given.json").write_text(json.dumps(given))
        reading = (
            'import fs from "node:fs"; const given = JSON.parse(fs.readFileSync("given.json"));'
        )
        (folder / "script.js").write_text(reading + text)
        done = subprocess.run(["node", "script.js"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return script


STEADY = """
import { Smoother } from "./steady.js";
const smoother = new Smoother(), results = [];
for (const { input, output } of given.frames) {
  const mixed = Float32Array.from(output);
  smoother.apply(Float32Array.from(input), mixed, given.width, given.height, given.strength);
  results.push([...mixed]);
}
console.log(JSON.stringify(results));
"""


@pytest.mark.parametrize(("height", "width"), [(32, 48), (37, 29)])
def test_the_steadied_output_is_that_of_python(run, height, width):
    """A scene whose light flickers, and of which one corner begins to move.

    By whole levels a block: Pillow, which takes the means there, rounds them.
    """
    rng = np.random.default_rng(0)
    blocks = (-(-height // 8), -(-width // 8), 3)

    def enlarged(values):
        return values.repeat(8, 0).repeat(8, 1)[:height, :width]

    scene = enlarged(rng.integers(60, 150, blocks))
    in_python, frames, expected = StillSmoother(0.8), [], []
    for number in range(5):
        picture = (scene + enlarged(rng.integers(-1, 2, blocks))).astype(np.uint8)
        picture[:8, :8] += 15 * number
        stylised = rng.integers(0, 256, scene.shape).astype(np.uint8)
        expected.append(in_python(picture, stylised))
        planes = [each.transpose(2, 0, 1).ravel() / 255 for each in (picture, stylised)]
        frames.append({"input": planes[0].tolist(), "output": planes[1].tolist()})
    found = run(STEADY, frames=frames, width=width, height=height, strength=0.8)
    for mine, theirs in zip(found, expected, strict=True):
        mine = 255 * np.array(mine).reshape(3, height, width).transpose(1, 2, 0)
        assert np.abs(mine - theirs).max() <= 0.51  # theirs is rounded
    still, moving = np.s_[20:, 16:], np.s_[:4, :4]
    last = 255 * np.array(found[-1]).reshape(3, height, width).transpose(1, 2, 0)
    own = 255 * np.array(frames[-1]["output"]).reshape(3, height, width).transpose(1, 2, 0)
    assert np.abs(last - own)[moving].max() < 0.5  # what moves is not mixed
    assert np.abs(last - own)[still].mean() > 20


def test_a_new_size_or_a_new_scene_begins_anew(run):
    script = """
    import { Smoother } from "./steady.js";
    const smoother = new Smoother(), results = [];
    const go = (side, value, forget) => {
      if (forget) smoother.forget();
      const mixed = new Float32Array(3 * side * side).fill(value);
      smoother.apply(new Float32Array(3 * side * side).fill(0.5), mixed, side, side, 0.5);
      results.push(mixed[0]);
    };
    go(16, 0); go(16, 1); go(24, 1); go(24, 0, true); go(24, 1);
    console.log(JSON.stringify(results));
    """
    assert run(script) == [0, 0.5, 1, 0, 0.5]


RESAMPLE = """
import { BICUBIC, BILINEAR, BOX, LANCZOS, resample } from "./resample.js";
const made = resample(Uint8ClampedArray.from(given.bytes), given.from, 4, given.to,
  { BICUBIC, BILINEAR, BOX, LANCZOS }[given.filter]);
console.log(JSON.stringify([...made]));
"""


@pytest.mark.parametrize("name", ["BOX", "BILINEAR", "BICUBIC", "LANCZOS"])
@pytest.mark.parametrize("to", [(17, 40), (90, 31), (45, 7)])
def test_pictures_are_resampled_as_pillow_does(run, name, to):
    rng = np.random.default_rng(1)
    bytes_ = rng.integers(0, 256, (37, 53, 4)).astype(np.uint8)
    bytes_[..., 3] = 255
    size = {"from": {"width": 53, "height": 37}, "to": {"width": to[0], "height": to[1]}}
    found = run(RESAMPLE, bytes=bytes_.ravel().tolist(), filter=name, **size)
    # Which side comes first is Pillow's choice at shapes like these; at equal scales this is it.
    wide = Image.fromarray(bytes_[..., :3]).resize((to[0], 37), Image.Resampling[name])
    rgb = np.asarray(wide.resize(to, Image.Resampling[name])).astype(int)
    off = np.abs(np.reshape(found, (to[1], to[0], 4))[..., :3] - rgb)
    assert off.max() <= 1  # Pillow's weights are rounded, and its halves go up
    assert off.mean() < 0.1


RECOLOUR = """
import { PlaneColours } from "./colours.js";
const large = Float32Array.from(given.large.values), small = Float32Array.from(given.small.values);
const colours = new PlaneColours(given.large, given.small);
colours.apply(large.map((value) => 1 - value), small); // of the frame before nothing is left
colours.apply(large, small);
console.log(JSON.stringify([...large]));
"""


@pytest.mark.parametrize("rims", [((6, 8), (12, 16)), ((0, 0), (0, 0)), ((6, 0), (0, 0))])
def test_wide_colours_are_those_of_stylize(run, rims):
    """Of what lies inside the rims; rims, finer detail and opacity stay as they are."""
    rng = np.random.default_rng(2)
    wide = rng.random((3, 5, 6))
    shades = [wide, 0.6 * wide + 0.3]  # of the large output and of the small one

    def planes(height, width, rim, shade):
        values = np.stack(
            [
                np.asarray(Image.fromarray(p.astype(np.float32)).resize((width, height), 2))
                for p in shade
            ]
        )
        values = (values * 200 + rng.normal(0, 8, values.shape)).clip(0, 255).round()
        inner = Image.fromarray(values.transpose(1, 2, 0).astype(np.uint8))
        edges = ((0, 0), (rim[0], rim[0]), (rim[1], rim[1]))
        values = np.pad(values / 255, edges, constant_values=0.5).astype(np.float32)
        size = {"height": values.shape[1], "width": values.shape[2]}
        values = np.concatenate([values, rng.random((1, *values.shape[1:]), np.float32)])
        rims = {"height": rim[0], "width": rim[1]}
        return values, inner, {"values": values.ravel().tolist(), "rim": rims, **size}

    large, large_picture, given_large = planes(180, 240, rims[0], shades[0])
    _, small_picture, given_small = planes(72, 96, rims[1], shades[1])
    found = np.reshape(run(RECOLOUR, large=given_large, small=given_small), large.shape)
    expected = np.asarray(render.recolour(large_picture, small_picture)).transpose(2, 0, 1)
    (top, left), (height, width) = rims[0], large.shape[1:]
    inside = (slice(3), slice(top, height - top), slice(left, width - left))
    mine = (255 * found[inside]).clip(0, 255)
    assert np.abs(mine - expected).max() < 2  # theirs is rounded twice, and the large one's mean is
    assert np.abs(255 * large[inside] - expected).mean() > 10
    outside = np.ones(large.shape, bool)
    outside[inside] = False
    assert (found[outside] == large[outside]).all()


COLOURS_SIZE = """
import { coloursSize } from "./fit.js";
const student = { fixed: given.fixed ?? null, colours_at: given.at ?? null };
console.log(JSON.stringify(coloursSize(given.size, student)));
"""


def test_colours_come_from_the_size_that_was_learnt_at(run):
    def size(width, height, **student):
        found = run(COLOURS_SIZE, size={"width": width, "height": height}, **student)
        return found and (found["width"], found["height"])

    assert size(512, 384, at=256) == (256, 192)
    assert size(384, 512, at=256) == (192, 256)
    assert size(640, 32, at=256) == (256, 32)
    assert size(256, 192, at=256) is None
    assert size(512, 384) is None
    assert size(512, 512, at=256, fixed=[512, 512]) is None


AUTO = """
import { AutoSize } from "./auto_size.js";
const screen = () => given.screen ?? 512;
let time = 0;
const now = () => time;
const auto = new AutoSize(given.sizes, given.side, given.at ?? null, screen, () => null, now);
const sides = [];
const more = given.at ?? Infinity;
for (let frame = 0; frame < given.frames; frame++) {
  const pixels = auto.side ** 2 + (auto.side > more ? more ** 2 : 0);
  const run = given.ms * pixels / 256 ** 2 * (given.jumps?.[frame] ?? 1);
  const part = given.part ?? 0;
  time += Math.max(run + part, 1000 / 30); // a camera's frames
  auto.take({ prepare: 0, run: run + part, finish: 0, part }, false);
  sides.push(auto.side);
}
console.log(JSON.stringify(sides));
"""
SLOWER = """
import { AutoSize } from "./auto_size.js";
let time = 0;
const auto = new AutoSize(given.sizes, 256, null, () => 512, () => null, () => time);
const sides = [];
for (let frame = 0; frame < given.frames; frame++) {
  const run = auto.side <= 256 ? 20 : 60;
  time += Math.max(run, 1000 / 30);
  auto.take({ prepare: 0, run, finish: 0, part: 0 }, false);
  sides.push(auto.side);
}
console.log(JSON.stringify(sides));
"""
SIZES = [128, 192, 256, 320, 384, 512]
# Milliseconds at 256, and what fits: 45 ms a frame, 0.95 of it by what a larger size may take.
FITTING = [
    (27, 320),  # 42.2
    (28, 256),  # 320 would take 43.8
    (5, 512),  # 20 there
    (10, 512),  # 40
    (15, 384),  # 33.8; 60 at 512
    (60, 192),  # 33.8
    (100, 128),  # 25; 56 at 192
    (500, 128),  # the least there is
]


@pytest.mark.parametrize(("ms", "side"), FITTING)
def test_the_largest_size_that_keeps_up_is_chosen_and_kept(run, ms, side):
    sides = run(AUTO, sizes=SIZES, side=256, ms=ms, frames=200)
    assert sides[40:] == [side] * 160


def test_frames_are_no_larger_than_the_screen_shows_them(run):
    given = {"sizes": SIZES, "side": 256, "ms": 5, "frames": 200}
    assert run(AUTO, screen=300, **given)[-1] == 320
    assert run(AUTO, screen=160, **given)[-1] == 192


def test_what_finding_a_part_takes_does_not_grow_with_the_picture(run):
    given = {"sizes": SIZES, "side": 256, "frames": 200}
    assert run(AUTO, ms=10, part=2, **given)[-1] == 512  # 42; 48 if all of it grew
    assert run(AUTO, ms=10, part=13, **given)[-1] == 384  # 35.5; 51.8 if all of it grew
    assert run(AUTO, ms=10, part=25, **given)[-1] == 320  # 40.6; 47.5 at 384
    assert run(AUTO, ms=10, part=50, **given)[-1] == 128  # the least there is


def test_what_also_draws_for_its_colours_is_judged_by_both(run):
    given = {"sizes": SIZES, "side": 256, "frames": 200}
    assert run(AUTO, ms=10, **given)[-1] == 512  # 40
    assert run(AUTO, ms=14, at=256, **given)[-1] == 320  # 35.9; 45.5 at 384
    assert run(AUTO, ms=8, at=256, **given)[-1] == 512  # 40
    sides = run(AUTO, ms=10, at=256, **given)
    assert sides[40:] == [384] * 160  # 32.5; 50 at 512


def test_one_slow_frame_changes_nothing(run):
    jumps = [10 if frame % 50 == 20 else 1 for frame in range(200)]
    sides = run(AUTO, sizes=SIZES, side=256, ms=29, frames=200, jumps=jumps)
    assert sides == [256] * 200


def test_a_machine_that_was_busy_gets_its_size_back_one_step_in_ten_seconds(run):
    jumps = [1] * 60 + [9] * 360 + [1] * 1500  # twelve seconds of other load
    sides = run(AUTO, sizes=SIZES, side=256, ms=10, frames=len(jumps), jumps=jumps)
    assert sides[50] == 512
    assert sides[400] == 128  # 22.5; 50.6 at 192
    steps = [frame for frame in range(420, len(jumps)) if sides[frame] != sides[frame - 1]]
    assert [sides[frame] for frame in steps] == sorted(sides[frame] for frame in steps)
    assert all(b - a >= 290 for a, b in zip(steps[1:], steps[2:], strict=False))  # frames of a 30th
    assert sides[-1] == 512


def test_a_size_that_stays_too_slow_is_tried_less_and_less(run):
    """Where 320 takes longer than sizes beside it let expect."""
    sides = run(SLOWER, sizes=SIZES, frames=6000)
    tries = [frame for frame in range(1, 6000) if sides[frame] == 320 != sides[frame - 1]]
    gaps = [b - a for a, b in zip(tries, tries[1:], strict=False)]
    assert len(tries) >= 4
    assert all(b > 1.8 * a for a, b in zip(gaps, gaps[1:], strict=False))
    assert sides.count(256) > 5500


SHOWN = """
import { AutoSize } from "./auto_size.js";
const still = (side) => (given.any ? side : null);
const auto = new AutoSize(given.sizes, 256, null, () => given.screen, still), sides = [];
for (const { still, drawn } of given.shown) {
  auto.begin(still);
  for (let i = 0; i < drawn; i++) {
    sides.push(auto.side);
    auto.take({ prepare: 0, run: given.ms * auto.side ** 2 / 256 ** 2, finish: 0, part: 0 }, still);
  }
}
console.log(JSON.stringify(sides));
"""
PICTURE, FRAMES = {"still": True, "drawn": 4}, {"still": False, "drawn": 30}


def test_pictures_fill_the_screen_after_a_draft_and_frames_keep_20_a_second(run):
    sizes = [*SIZES, 640, 768, 1024]

    def sides(ms, *shown, screen=1536, any_size=True):
        return run(SHOWN, sizes=sizes, screen=screen, ms=ms, any=any_size, shown=shown)

    found = sides(5, PICTURE, FRAMES, PICTURE, FRAMES)
    assert found[:4] == [256, 1536, 1536, 1536]
    # No frame is as large as a picture: 640 takes 31 ms, and 768 all of the 45 allowed.
    assert found[4:34] == [256] * 11 + [640] * 19
    assert found[34:38] == [256, 1536, 1536, 1536]
    assert found[38:] == [640] * 30  # as before the picture
    # However long it takes: 5.4 s. What is slow also gets a smaller draft.
    assert sides(150, PICTURE) == [256, 1536, 1536, 1536]
    assert sides(150, FRAMES, PICTURE)[-4:] == [128, 1536, 1536, 1536]
    assert sides(5, PICTURE, screen=320)[1:] == [320] * 3  # a small photo
    assert sides(5, PICTURE, screen=416)[1:] == [416] * 3
    # What is right at some sizes alone gets the first that fills the screen.
    assert sides(5, PICTURE, screen=416, any_size=False)[1:] == [512] * 3
    assert sides(150, PICTURE, any_size=False)[1:] == [1024] * 3


SPLIT = """
import { splitAtSummary } from "./onnx_file.js";
const bytes = Uint8Array.from(Buffer.from(given.file, "base64")).buffer;
const parts = splitAtSummary(bytes);
const text = (buffer) => Buffer.from(buffer).toString("base64");
console.log(JSON.stringify(
  parts && { thumbnail: parts.thumbnail, teller: text(parts.teller), drawn: text(parts.drawn) }));
"""


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_student_that_is_told_the_whole_picture_is_taken_apart(run, dynamic):
    student = statistics_student()
    model = OnnxExporter(dynamic=dynamic).export(student)
    file = free_size(model).SerializeToString()
    found = run(SPLIT, file=base64.b64encode(file).decode())
    teller, drawn = (
        onnx.load_from_string(base64.b64decode(found[part])) for part in ("teller", "drawn")
    )
    for part in (teller, drawn):
        onnx.checker.check_model(part, full_check=True)
    assert not any(node.name == "thumbnail" for node in teller.graph.node)
    # As small as what Python makes of the same file.
    for mine, theirs in zip((teller, drawn), split_at_summary(model), strict=True):
        kept = {tensor.name for tensor in mine.graph.initializer}
        assert kept <= {tensor.name for tensor in theirs.graph.initializer}
    photo, part = torch.rand(1, 3, 320, 288), torch.rand(1, 3, 64, 96)
    with torch.inference_mode():
        thumbnail = thumbnail_of(photo)
        told = student.summary(thumbnail)
        expected = student.stylize(part, told)
    given = {found["thumbnail"]: thumbnail.numpy()}
    (summary,) = open_session(teller, threads=1).run(None, given)
    np.testing.assert_allclose(summary, told, atol=1e-4)
    given = {"photo": part.numpy(), "summary": summary}
    (output,) = open_session(drawn, threads=1).run(None, given)
    np.testing.assert_allclose(output, expected, atol=1e-4)


def test_any_other_student_is_left_whole(run):
    whole = statistics_student()
    untold = OnnxExporter().export(Student(whole.encoder, whole.decoder))
    file = base64.b64encode(untold.SerializeToString()).decode()
    assert run(SPLIT, file=file) is None


SEAMLESS = """
import { seamless } from "./seamless.js";
const [made, around] = [given.made, given.around].map((bytes) => Uint8ClampedArray.from(bytes));
seamless(made, given.side, around);
console.log(JSON.stringify([...made]));
"""


@pytest.mark.parametrize("side", [1, 2, 3, 4, 33, 64])
def test_poisson_blending_is_that_of_stylize(run, side):
    """Of pictures without any smoothness, so that every wave is there."""
    made, around = np.random.default_rng(side).integers(0, 256, (2, side, side, 4)).astype(np.uint8)
    found = run(SEAMLESS, side=side, made=made.ravel().tolist(), around=around.ravel().tolist())
    found = np.array(found).reshape(made.shape)
    if side > 2:  # else there is nothing inside
        wanted = np.asarray(portraits.seamless(*map(Image.fromarray, (made, around)))).astype(int)
        assert np.abs(found - wanted).max() <= 1
        assert (found == wanted).mean() > 0.999
    else:
        assert (found[..., :3] == around[..., :3]).all()


COARSE = """
import { seamless } from "./seamless.js";
const of = (side, colour) => Uint8ClampedArray.from({ length: 4 * side ** 2 }, (_, i) => {
  const [x, y] = [(i >> 2) % side, Math.floor((i >> 2) / side)].map((at) => (at + 0.5) / side);
  return colour(x, y);
});
const made = of(256, () => 100), around = (x, y) => 120 + 60 * x * y - 40 * (x ** 2 - y ** 2);
seamless(made, 256, of(64, around), of(64, () => 100), 64);
const off = of(256, around).map((value, i) => (i % 4 < 3 ? Math.abs(value - made[i]) : 0));
console.log(JSON.stringify(off.reduce((most, each) => Math.max(most, each))));
"""


def test_of_what_moves_the_colours_around_are_found_at_fewer_pixels(run):
    """They are harmonic here, and so the answer, but for bytes and half a coarse pixel."""
    assert run(COARSE) <= 2


WORN = """
import { dress, follow, wearers } from "./stickers.js";
let faces = [], first = true;
const put = [], frames = [];
const nothing = () => {};
const context = new Proxy({ canvas: { width: 600, height: 400 } }, {
  get: (own, name) => own[name] ?? (name === "setTransform" ? (...to) => put.push(to) : nothing),
  set: () => true,
});
for (const marks of given.frames) {
  const found = wearers(marks, 1.5);
  faces = first ? found : follow(faces, found, 1.5);
  first = false;
  frames.push(faces.map(({ marks, opacity }) => [...Object.values(marks).flat(), opacity]));
}
const one = [{ picture: null, anchors: given.anchors }];
dress(context, one, wearers(given.frames[0].slice(0, 1), 1.5));
console.log(JSON.stringify({ frames, put }));
"""


ANCHORS = """
import { squareAnchors } from "./stickers.js";
console.log(JSON.stringify(squareAnchors(given)));
"""


def test_a_drawing_of_which_nothing_is_said_lies_as_in_stylize(run, tmp_path, monkeypatch):
    monkeypatch.setattr(stickers.render, "stylise", lambda photo, _model: photo)
    Image.new("RGBA", (301, 257)).save(tmp_path / "sketch.png")
    wanted = stickers.network_sticker(str(tmp_path / "sketch.png"), None).anchors
    found = run(ANCHORS, width=301, height=257)
    assert found.keys() == wanted.keys()
    for name, at in wanted.items():
        assert np.allclose(found[name], [at.real, at.imag], rtol=0, atol=1e-9)


def test_stickers_are_put_and_followed_as_stylize_does(run):
    """Faces that move, turn away, are lost and come back, of a picture of 600 × 400."""
    rng = np.random.default_rng(0)
    face = np.array([200 + 150j, 260 + 140j, 235 + 180j, 240 + 210j, 170 + 160j, 300 + 140j])
    moved = [face, face + 2, face + 1 + 3j, face * np.exp(0.1j), face + 25 * np.eye(6)[2]]
    moved = [marks + rng.normal(0, 0.5, 6) for marks in moved]
    other = face + 250 + 100j
    frames = [[moved[0]], [moved[1], other], [], [moved[2]], [moved[3], other], [moved[4]]]
    named = [[dict(zip(stickers.MARKS, marks, strict=True)) for marks in each] for each in frames]
    share = lambda at: [at.real / 600, at.imag / 400]  # noqa: E731
    given = [[{n: share(at) for n, at in marks.items()} for marks in each] for each in named]
    anchors = {"left_eye": [90, 20], "right_eye": [12, 26], "mouth": [50, 100]}
    made = run(WORN, frames=given, anchors=anchors)
    last = None
    for each, shown in zip(named, made["frames"], strict=True):
        found = [stickers.Followed(marks, stickers.facing(marks)) for marks in each]
        last = stickers.follow(last, found)
        want = [[*(v for at in f.marks.values() for v in share(at)), f.opacity] for f in last]
        assert np.allclose(shown, want, atol=1e-9)
    (a, b, c, d, e, f) = made["put"][0]
    # Least squares by an independent solver: x' = p x - q y + s, y' = q x + p y + t.
    rows, there = [], []
    for name, (x, y) in anchors.items():
        rows += [[x, -y, 1, 0], [y, x, 0, 1]]
        there += [named[0][0][name].real, named[0][0][name].imag]
    p, q, s, t = np.linalg.lstsq(np.array(rows), np.array(there), rcond=None)[0]
    assert np.allclose([a, b, c, d, e, f], [p, q, -q, p, s, t])


OVALS = """
import { ovalOf, paint } from "./face_oval.js";
const mask = new Float32Array(256 * 256);
paint(given.faces.map((places) => ovalOf({ score: 1, places })), given.size, mask);
console.log(JSON.stringify([...mask]));
"""


def test_the_ovals_of_faces_are_those_of_parts(run):
    """Two level faces and one that leans, in a picture of 400 × 320, over one another."""
    boxes = [Box(40, 60, 80, 80), Box(90, 200, 130, 130), Box(150, 260, 40, 40)]
    spots = np.array([-20 - 15j, 20 - 12j, 1 + 2j, 25j, -40 + 0j, 40 + 2j])
    points = [spots + 100 + 80j, spots * np.exp(0.5j) + 265 + 155j, 0.4 * spots + 280 + 170j]
    faces = [
        Face(box, tuple((p.real, p.imag) for p in each))
        for box, each in zip(boxes, points, strict=True)
    ]
    places = [
        [b.left, b.top, b.left + b.width, b.top + b.height, *(v for p in f.points for v in p)]
        for b, f in zip(boxes, faces, strict=True)
    ]
    drawn = np.array(run(OVALS, faces=places, size={"width": 400, "height": 320}))
    expected = parts.face_mask(faces, (400, 320))
    assert expected.max() == 1
    assert np.allclose(drawn.reshape(256, 256), expected, atol=1e-6)
