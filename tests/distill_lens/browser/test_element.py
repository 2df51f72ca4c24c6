"""<distill-lens> on pages that are not ours: what it draws, says, obeys and leaves behind."""

import base64
import gzip
import io
import itertools
import json
import shutil
import subprocess
import tarfile
import time
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from PIL import Image

from distill.config.compose import load
from distill.core.onnx_files import free_size, load_model
from distill.core.sessions import open_session, picture_call
from distill.export.onnx import OnnxExporter
from distill.models import zoo
from distill.models.students.global_statistics import thumbnail_of
from distill_lens import lens_folder, webpage
from distill_lens.server import bind
from distill_lens.settings import Lens
from support.chromium_page import PATIENCE, clip_frame
from support.lens_page import running
from support.onnx_networks import negative
from support.statistics_students import statistics_student

ROOT = Path(__file__).parents[3]
SHADE = 2  # of 255
# What a page notes: the element's events, cameras, workers, widths of what networks drew,
# without their rims and before it is enlarged, addresses of blobs.
SPY = """
window.told = []; window.tracks = []; window.blobs = new Set();
window.workers = 0; window.asked = 0; window.widths = [];
for (const type of ["ready", "drawn", "error"]) {
  const note = ({ target, detail }) => told.push([target.id, type, detail]);
  document.addEventListener(type, (event) => "detail" in event && note(event), true);
}
const open = navigator.mediaDevices?.getUserMedia.bind(navigator.mediaDevices);
if (open) navigator.mediaDevices.getUserMedia = async (wanted) => {
  asked += 1;
  const stream = await open(wanted);
  tracks.push(...stream.getTracks());
  return stream;
};
window.Worker = class extends Worker {
  constructor(...given) {
    super(...given);
    workers += 1;
    const note = ({ data: { reply } }) => reply?.drawn && widths.push(reply.drawn.width);
    this.addEventListener("message", note);
  }
  terminate() { workers -= 1; super.terminate(); }
};
const { createObjectURL, revokeObjectURL } = URL;
URL.createObjectURL = (blob) => { const url = createObjectURL(blob); blobs.add(url); return url; };
URL.revokeObjectURL = (url) => { blobs.delete(url); revokeObjectURL(url); };
"""
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<script type="module" src="{module}"></script></head>
<body><main><h1>A page</h1>{body}</main></body></html>"""


class Static(SimpleHTTPRequestHandler):
    """A host that knows nothing of us, and lets other sites read it."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """What embed=true builds, with a network whose answers are known, and damaged files."""
    if shutil.which("npm") is None and not (webpage.PAGE / "element").is_dir():
        pytest.skip("no element: it is not built, and npm is not here")
    place = tmp_path_factory.mktemp("site")
    negative().save(str(place / "negative.onnx"))
    words = [
        f"students=[{place / 'negative.onnx'},hayao,toon]",
        "embed=true",
        f"output={place / 'site'}",
    ]
    settings = load("lens", words, Lens)
    built = lens_folder.build(webpage.find(), lens_folder.choose_students(settings), settings)
    negative(reshaped=True).save(str(built / "stiff.onnx"))
    shutil.copy(zoo.find("hayao"), built / "exported.onnx")  # which names 256 × 256
    onnx.save(OnnxExporter(dynamic=True).export(statistics_student()), built / "told.onnx")
    (built / "broken.onnx").write_bytes(b"no network")
    (built / "broken.png").write_bytes(b"no picture")
    clip_frame(0).crop((100, 50, 356, 306)).save(built / "square.png")
    clip_frame(5).crop((100, 50, 228, 114)).save(built / "wide.png")
    clip_frame(0).crop((80, 0, 560, 480)).save(built / "large.png")
    shutil.copy(ROOT / "docs" / "embed.html", built)
    return built


@pytest.fixture(scope="session")
def strict(site):
    """Our own server: its policy allows no inline script or style, and isolates the page."""
    with running(bind(site, load("lens", ["port=0"], Lens))) as address:
        yield address


@pytest.fixture(scope="session")
def plain(site):
    host = partial(Static, directory=str(site))
    with running(ThreadingHTTPServer(("127.0.0.1", 0), host)) as address:
        yield address


@dataclass
class Tab:
    page: Any
    noise: list[str] = field(default_factory=list)

    def wait(self, condition: str) -> None:
        """Until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"{condition}: {self.page.evaluate('told.slice(-9)')}"
            self.page.wait_for_timeout(50)

    def drawn(self, name: str = "a", more: int = 1) -> None:
        """Until the element has drawn again, so many times from now on."""
        count = f"told.filter(([id, type]) => id === '{name}' && type === 'drawn').length"
        before = self.page.evaluate(count)
        self.wait(f"{count} >= {before + more}")

    def draws(self, script: str) -> None:
        """Run that, see `inner`, and wait until the element `a` has drawn again."""
        count = "told.filter(([id, type]) => id === 'a' && type === 'drawn').length"
        before = self.page.evaluate(count)
        self.inner(script)
        self.wait(f"{count} > {before}")

    def once(self, name: str = "a", kind: str = "drawn") -> Any:
        """What the first such event told."""
        found = f"told.find(([id, type]) => id === '{name}' && type === '{kind}')"
        self.wait(f"{found} !== undefined")
        return self.page.evaluate(f"{found}[2]")

    def canvas(self, which: str = "stylised", name: str = "a", mode: str = "RGB") -> np.ndarray:
        """A canvas of the element's own tree, (H, W, 3), or of another mode."""
        inner = f"document.getElementById('{name}').shadowRoot.getElementById('{which}')"
        return _pixels(self.page.evaluate(f"{inner}.toDataURL()"), mode)

    def inner(self, script: str, name: str = "a") -> Any:
        """A JavaScript expression of `root`, the element's tree, and `lens`, itself."""
        lens = f"document.getElementById('{name}')"
        return self.page.evaluate(f"(async (lens, root) => {script})({lens}, {lens}.shadowRoot)")


def _pixels(url: str, mode: str = "RGB") -> np.ndarray:
    content = io.BytesIO(base64.b64decode(url.partition(",")[2]))
    return np.asarray(Image.open(content).convert(mode)).astype(float)


@pytest.fixture
def tab(browser, strict, site):
    """A page with this body, on our server; at the end nothing may have gone wrong unsaid."""
    contexts, tabs, count = [], [], itertools.count()

    def open_page(
        body: str = "", url: str = "", module: str = "embed/distill-lens.js", **options
    ) -> Tab:
        context = browser.new_context(permissions=["camera"], **options)
        contexts.append(context)
        at = Tab(context.new_page())
        tabs.append(at)
        at.page.on("console", lambda m: at.noise.append(f"{m.type}: {m.text}"))
        at.page.on("pageerror", lambda error: at.noise.append(str(error)))
        at.page.add_init_script(SPY)
        name = f"page{next(count)}.html"
        if body:
            (site / name).write_text(PAGE.format(module=module, body=body))
        at.page.goto((url or strict) + (name if body else "embed.html"))
        return at

    yield open_page
    for at in tabs:
        assert [line for line in at.noise if "404" not in line] == []
    for context in contexts:
        context.close()


LENS_ROOT = "document.getElementById('a').shadowRoot"
SAVED = """lens.save().then((blob) => new Promise((done) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.readAsDataURL(blob);
}))"""
LENS = '<distill-lens id="a" src="{src}" picture="{picture}" {more}></distill-lens>'


def lens(src: str = "embed/negative.onnx", picture: str = "square.png", more: str = "") -> str:
    return LENS.format(src=src, picture=picture, more=more)


def stylised(photo: np.ndarray, path: Path) -> np.ndarray:
    """The file's own output in ONNX Runtime, which is also that of distill.stylize."""
    session = open_session(free_size(load_model(path)), 1)
    planes = (photo / 255).transpose(2, 0, 1)[None].astype(np.float32)
    return 255 * picture_call(session)(planes)[0].transpose(1, 2, 0)


def test_a_file_as_it_was_exported_takes_any_size(tab, site):
    at = tab(lens("exported.onnx", "wide.png", 'size="128"'))
    at.once()
    photo = np.asarray(Image.open(site / "wide.png")).astype(float)
    assert np.abs(at.canvas() - stylised(photo, zoo.find("hayao"))).max() <= SHADE


def test_a_student_is_told_the_whole_picture(tab, site):
    at = tab(lens("told.onnx"))
    at.once()
    photo = np.asarray(Image.open(site / "square.png")).astype(np.float32) / 255
    whole = torch.from_numpy(photo).permute(2, 0, 1)[None]
    student = statistics_student()
    with torch.inference_mode():
        told = student.summary(thumbnail_of(whole))
        output = student.stylize(whole, told)
    expected = 255 * output[0].permute(1, 2, 0).numpy()
    assert np.abs(at.canvas() - expected).max() <= SHADE


def test_a_network_of_one_size_keeps_it(tab):
    at = tab(lens("stiff.onnx", more='size="256"'))
    at.once()
    assert at.page.evaluate("widths") == [64]
    assert at.canvas().shape == (256, 256, 3)  # enlarged to the photo's pixels


def test_two_on_a_page_do_not_know_of_each_other(tab, site):
    other = (
        '<distill-lens id="b" src="embed/hayao.onnx" picture="wide.png" size="128"></distill-lens>'
    )
    at = tab(lens() + other)
    at.once("a")
    at.once("b")
    photo = np.asarray(Image.open(site / "wide.png")).astype(float)
    assert np.abs(at.canvas(name="b") - stylised(photo, zoo.find("hayao"))).max() <= SHADE
    assert at.canvas("photo").shape == (256, 256, 3)
    at.page.evaluate("document.getElementById('b').remove()")
    at.wait("workers === 1")
    at.draws("lens.mirror = true")


def test_attributes_change_what_is_shown(tab, site):
    at = tab(lens(more='size="256"'))
    at.once()
    photo = np.asarray(Image.open(site / "square.png")).astype(float)
    assert np.abs(at.canvas() - (255 - photo)).max() <= 1
    opacity = "getComputedStyle(root.getElementById('stylised')).opacity"
    assert at.inner(f"{{ lens.strength = 0.25; return {opacity}; }}") == "0.25"
    assert at.inner(f"{{ lens.setAttribute('strength', 'much'); return {opacity}; }}") == "1"
    assert not at.page.is_visible("#divider")
    at.inner("lens.compare = true")
    assert at.page.is_visible("#divider")
    at.draws("lens.mirror = true")
    assert np.abs(at.canvas() - (255 - photo[:, ::-1])).max() <= 1
    at.draws("{ lens.size = 100; }")
    assert at.page.evaluate("widths.at(-1)") == 96
    at.draws("{ lens.mirror = false; }")
    at.draws("{ lens.size = 256; }")
    at.draws("{ lens.src = 'embed/hayao.onnx'; }")
    assert np.abs(at.canvas() - stylised(photo, zoo.find("hayao"))).max() <= SHADE
    at.draws("{ lens.picture = 'wide.png'; }")
    assert at.canvas("photo").shape == (64, 128, 3)
    width, height = at.inner(
        "(({ width, height }) => [width, height])"
        "(root.getElementById('viewer').getBoundingClientRect())"
    )
    assert width / height == pytest.approx(2, abs=0.02)
    assert at.inner("[lens.src.split('/').pop(), lens.size, lens.steady]") == [
        "hayao.onnx",
        256,
        0.8,
    ]


def test_a_part_alone_is_drawn_by_a_student_that_is_told(tab, site):
    """People, and then the background, at half strength; the rest stays the photo."""
    at = tab(lens("told.onnx", "large.png", 'size="256" parts="people"'))
    at.wait(f"{LENS_ROOT}.querySelector('.blended') !== null")
    at.inner("{ lens.strength = 0.5; }")
    corner, face = (6, 6), (200, 200)
    opacity = at.canvas(mode="RGBA")[..., 3]
    assert (opacity[corner], opacity[face]) == (0, 255)
    photo, drawn, saved = at.canvas("photo"), at.canvas(), _pixels(at.inner(SAVED))
    assert np.abs(saved[corner] - photo[corner]).max() <= 1
    assert np.abs(saved[face] - (drawn[face] + photo[face]) / 2).max() <= 2
    at.draws("{ lens.parts = 'background'; }")
    opacity = at.canvas(mode="RGBA")[..., 3]
    assert (opacity[corner], opacity[face]) == (255, 0)
    assert at.inner("{ lens.setAttribute('parts', 'hands'); return lens.parts; }") == "everything"


def test_the_machine_chooses_the_size_where_it_may(tab):
    at = tab(lens(picture="large.png", more='size="auto"'))
    at.wait("widths.includes(480)")  # all that the picture has
    assert at.page.evaluate("widths[0]") == 256  # a draft
    at.draws("{ lens.picture = 'square.png'; }")
    at.draws("{ lens.mirror = true; }")
    assert at.page.evaluate("widths.slice(-2)") == [256, 256]  # which has no more pixels


def test_what_was_set_before_the_module_came_counts(tab):
    at = tab(lens(), module="late.js")
    at.page.evaluate("Object.assign(document.getElementById('a'), { compare: true, size: 128 })")
    at.page.evaluate("import('./embed/distill-lens.js').then(() => 0)")
    at.once()
    assert at.page.evaluate("widths") == [128]
    assert at.page.is_visible("#divider")


WRONG = {
    "src=none.onnx": "none.onnx did not arrive: the server answers 404",
    "src=broken.onnx": "broken.onnx: no ONNX network, or one that ONNX Runtime for browsers "
    "cannot run",
    "picture=none.png": "none.png did not arrive: the server answers 404",
    "picture=broken.png": "broken.png: no picture this browser can read. Try a JPEG, PNG or "
    "WebP file.",
}
ERRORS = "told.filter(([, type]) => type === 'error')"


def test_what_does_not_come_is_said_and_leaves_the_one_before_at_work(tab):
    at = tab(lens())
    at.once()
    for count, (word, why) in enumerate(WRONG.items(), 1):
        name, _, value = word.partition("=")
        at.inner(f"{{ lens.{name} = '{value}'; }}")
        at.wait(f"{ERRORS}.length === {count}")
        said = at.page.evaluate(f"{ERRORS}.at(-1)[2]")
        assert said.endswith(why)
        assert name == "picture" or at.page.inner_text("#message") == said
    at.draws("{ lens.size = 128; }")
    assert at.page.evaluate("widths") == [256, 128]


def test_files_are_opened_and_the_stylised_picture_is_saved(tab, site):
    at = tab('<distill-lens id="a" src="embed/negative.onnx" compare></distill-lens>')
    at.once(kind="ready")
    said = "lens.save().then(() => '', (error) => error.message)"
    assert at.inner(said) == "nothing is drawn yet"
    fetched = "fetch('square.png').then((reply) => reply.blob())"
    at.inner(f"{fetched}.then((blob) => lens.open(blob))")
    at.once()
    url = at.inner(SAVED)
    assert url.startswith("data:image/png;")
    photo = np.asarray(Image.open(site / "square.png")).astype(float)
    picture = _pixels(url)
    assert np.abs(picture - (255 - photo)).max() <= 1  # without the photo that is compared
    why = at.inner("lens.open('broken.png').then(() => '', (error) => error.message)")
    assert why == WRONG["picture=broken.png"]
    at.draws("lens.open('embed/hayao.onnx')")  # a network, by its name
    assert np.abs(at.canvas() - stylised(photo, zoo.find("hayao"))).max() <= SHADE


LIVE = "tracks.at(-1)?.readyState === 'live'"
OFF = "tracks.length > 0 && tracks.every((track) => track.readyState === 'ended')"


@pytest.mark.campaign
def test_the_camera_starts_by_its_button_and_nothing_is_left_of_it(tab):
    at = tab(lens(more="camera"))
    at.once()
    assert at.page.inner_text("button") == "Camera"
    assert at.page.evaluate("asked") == 0  # though it was allowed before
    at.page.focus("button")
    at.page.keyboard.press("Enter")
    at.drawn(more=4)
    assert at.page.evaluate(LIVE)
    assert at.page.inner_text("button") == "Stop"
    at.page.click("button")
    at.wait(OFF)
    at.wait("document.getElementById('a').shadowRoot.getElementById('photo').width === 256")
    at.inner("lens.start()")
    at.drawn(more=3)
    at.inner("{ lens.style.display = 'none'; }")  # out of sight
    at.wait(OFF)
    at.inner("{ lens.style.display = ''; }")
    at.wait(LIVE)
    at.page.evaluate("window.kept = document.getElementById('a'); document.body.append(kept)")
    at.drawn(more=2)
    assert at.page.evaluate(f"{LIVE} && workers === 1")  # moved, not made again
    at.page.evaluate("kept.remove()")
    at.wait(OFF)
    assert at.page.evaluate("[workers, blobs.size]") == [0, 0]
    count = at.page.evaluate("told.length")
    at.page.wait_for_timeout(500)
    assert at.page.evaluate("told.length") == count
    assert at.page.evaluate("kept.start().then(() => '', (error) => error.message)")
    at.page.evaluate("document.querySelector('main').append(kept)")
    at.wait(f"told.length > {count}")
    assert at.page.evaluate("workers") == 1


def test_a_camera_that_is_refused_is_told(browser, tab):
    at = tab(lens(more="camera"))
    at.page.context.clear_permissions()
    at.once()
    why = at.inner("lens.start().then(() => '', (error) => error.message)")
    assert why.startswith("The camera was refused.")
    assert at.page.inner_text("#message") == why == at.once(kind="error")
    assert at.page.inner_text("button") == "Camera"


def test_it_is_used_by_keyboard(tab):
    at = tab(lens(more="camera compare"))
    at.once()
    reached = []
    for _ in range(2):
        at.page.keyboard.press("Tab")
        reached.append(at.inner("root.activeElement.id"))
    assert reached == ["divider", "camera"]
    divider = at.page.locator("#divider")
    for key, value in {
        "ArrowRight": "52",
        "Shift+ArrowLeft": "42",
        "Home": "0",
        "End": "100",
    }.items():
        divider.press(key)
        assert divider.get_attribute("aria-valuenow") == value


@pytest.mark.campaign
def test_the_example_page_works_from_any_host(tab, plain):
    at = tab(url=plain)
    at.once("lens")
    at.page.fill("#strength", "0.5")
    assert at.inner("lens.strength", "lens") == 0.5
    at.page.select_option("#style", "toon")
    at.wait("told.filter(([id, type]) => id === 'lens' && type === 'ready').length === 2")
    with at.page.expect_download() as found:
        at.page.click("#save")
    assert Image.open(found.value.path()).size == (1280, 595)
    assert at.page.inner_text("#ms").endswith(" ms")


def test_a_module_from_another_site_brings_its_worker(tab, plain, site):
    far = plain.replace("127.0.0.1", "localhost") + "embed/"
    at = tab(lens(far + "negative.onnx"), url=plain, module=far + "distill-lens.js")
    at.once()
    photo = np.asarray(Image.open(site / "square.png")).astype(float)
    assert np.abs(at.canvas() - (255 - photo)).max() <= 1
    assert at.page.evaluate("blobs.size") == 1
    at.page.evaluate("document.getElementById('a').remove()")
    at.wait("workers === 0 && blobs.size === 0")


@pytest.fixture(scope="session")
def package(site, tmp_path_factory):
    """What `make element` makes."""
    folder = tmp_path_factory.mktemp("npm") / "distill-lens"
    npm("run", "build:element", "--", "--outDir", str(folder), cwd=webpage.SOURCES)
    return folder


def test_its_code_is_small(package):
    code = {name: (package / name).read_bytes() for name in ("index.js", "worker.js")}
    assert sum(len(gzip.compress(each, 9)) for each in code.values()) <= 31_000
    assert not any(b"Bilder" in each for each in code.values())  # English alone


def npm(*words: str, cwd: Path) -> str:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    done = subprocess.run(["npm", *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_carries_code_types_and_words_and_no_runtime(package):
    import distill

    (packed,) = json.loads(npm("pack", "--dry-run", "--json", cwd=package))
    names = {each["path"] for each in packed["files"]}
    types = {f"{name}.d.ts" for name in ("index", "react", "preact", "svelte", "vue")}
    parts = {f"parts/{name}.{end}" for name in ("people", "faces") for end in ("onnx", "LICENSE")}
    named = {"LICENSE", "README.md", "index.js", "package.json", "worker.js", "parts/parts.js"}
    assert names == types | parts | named
    about = json.loads((package / "package.json").read_text())
    ours = json.loads((webpage.SOURCES / "package.json").read_text())
    assert (about["name"], about["version"]) == ("distill-lens", distill.__version__)
    assert about["peerDependencies"] == {
        "onnxruntime-web": f"~{ours['dependencies']['onnxruntime-web']}"
    }


CONSUMER = """
import { DistillLens, type DistillLensEvents } from "distill-lens";

const lens: DistillLens = document.createElement("distill-lens");
lens.src = "student.onnx";
lens.size = "auto";
lens.addEventListener("drawn", ({ detail }) => detail.toFixed(0));
lens.addEventListener("click", () => lens.start().then(() => lens.stop()));
const line: DistillLensEvents["error"]["detail"] = "a line";
const blob: Promise<Blob> = lens.open(new File([], line)).then(() => lens.save());
// @ts-expect-error: no such size
lens.size = "large";
// @ts-expect-error: a number
lens.addEventListener("drawn", ({ detail }) => detail.trim());
export { blob };
"""


def test_its_types_are_right_for_who_uses_them(package, tmp_path):
    tsc = webpage.SOURCES / "node_modules" / "typescript" / "bin" / "tsc"
    if not tsc.is_file():
        pytest.skip("no TypeScript: npm ci in web/")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "distill-lens").symlink_to(package)
    (tmp_path / "consumer.ts").write_text(CONSUMER)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "esnext"]
    options += ["--moduleResolution", "bundler", "--lib", "es2022,dom"]
    command = ["node", str(tsc), *options, "consumer.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


JSX = """import type {} from "distill-lens/NAME";
export const page = () => (
  <distill-lens src="student.onnx" size="auto" compare
    onDRAWN={({ detail }) => detail.toFixed(0)} />
);
// @ts-expect-error: no such size
export const wrong = () => <distill-lens size="large" />;
"""
SVELTE = """<script lang="ts">
  import type {} from "distill-lens/svelte";
</script>
<distill-lens src="student.onnx" size="SIZE" compare
  ondrawn={({ detail }) => detail.toFixed(0)}></distill-lens>
"""
SAID = {"compilerOptions": {"strict": True, "module": "esnext", "moduleResolution": "bundler"}}


@pytest.fixture
def modules(package, tmp_path):
    """A project that has the package, and all that the page's own has installed."""
    installed = webpage.SOURCES / "node_modules"
    if not (installed / "typescript").is_dir():
        pytest.skip("no TypeScript: npm ci in web/")
    made = tmp_path / "node_modules"
    made.mkdir()
    for each in installed.iterdir():
        (made / each.name).symlink_to(each)
    shutil.copytree(package, made / "distill-lens")
    return made


def test_a_page_of_each_framework_compiles(modules):
    pages = {f"{name}.tsx": name for name in ("react", "preact", "vue")}
    for page, framework in pages.items():
        drawn = "Drawn" if framework == "vue" else "drawn"
        source = JSX.replace("NAME", framework).replace("DRAWN", drawn)
        (modules.parent / page).write_text(f"/** @jsxImportSource {framework} */\n{source}")
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "esnext"]
    options += ["--moduleResolution", "bundler", "--lib", "es2022,dom", "--skipLibCheck"]
    command = ["node", "node_modules/typescript/bin/tsc", *options, "--jsx", "react-jsx", *pages]
    done = subprocess.run(command, cwd=modules.parent, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_page_of_svelte_compiles(modules):
    """By Svelte's compiler, its template's types by svelte-check."""
    (modules.parent / "tsconfig.json").write_text(json.dumps(SAID))
    for size in ("auto", "large"):
        (modules.parent / f"{size}.svelte").write_text(SVELTE.replace("SIZE", size))
    check = ["node", "node_modules/svelte-check/bin/svelte-check", "--output", "machine"]
    done = subprocess.run(check, cwd=modules.parent, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'ERROR "large.svelte"' in done.stdout
    assert " 1 ERRORS" in done.stdout
    script = "import { compile } from 'svelte/compiler'; import { readFileSync } from 'node:fs';"
    script += "console.log(compile(readFileSync('auto.svelte', 'utf8'), {}).js.code)"
    command = ["node", "--input-type=module", "-e", script]
    made = subprocess.run(command, cwd=modules.parent, capture_output=True, text=True)
    assert "<distill-lens" in made.stdout, made.stderr


def test_a_server_that_renders_pages_imports_it_in_vain(package):
    if shutil.which("node") is None:
        pytest.skip("no node")
    address = json.dumps((package / "index.js").as_uri())
    script = f"import({address}).then((m) => console.log(typeof m.DistillLens))"
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("function\n", 0), done.stderr


def test_a_page_of_vite_draws_with_the_packed_package(package, site, tmp_path, browser):
    """As npm packs it, bundled, from any host; a part alone too."""
    vite = webpage.SOURCES / "node_modules" / "vite" / "bin" / "vite.js"
    if not vite.is_file():
        pytest.skip("no vite: npm ci in web/")
    (packed,) = json.loads(npm("pack", "--json", "--pack-destination", str(tmp_path), cwd=package))
    with tarfile.open(tmp_path / packed["filename"]) as file:
        file.extractall(tmp_path / "node_modules", filter="data")
    (tmp_path / "node_modules" / "package").rename(tmp_path / "node_modules" / "distill-lens")
    ort = tmp_path / "public" / "ort"
    shutil.copytree(tmp_path / "node_modules" / "distill-lens" / "parts", ort)
    for name in ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"):
        shutil.copy(webpage.SOURCES / "node_modules" / "onnxruntime-web" / "dist" / name, ort)
    for name in ("embed/negative.onnx", "large.png"):
        shutil.copy(site / name, tmp_path / "public")
    (tmp_path / "main.js").write_text('import "distill-lens";')
    body = lens("negative.onnx", "large.png", 'runtime="ort/" parts="faces"')
    (tmp_path / "index.html").write_text(PAGE.format(module="./main.js", body=body))
    done = subprocess.run(
        ["node", str(vite), "build", "--base", "./"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names = [path.name for path in (tmp_path / "dist" / "assets").iterdir()]
    assert [name.partition("-")[0] for name in sorted(names)] == ["index", "worker"]
    host = partial(Static, directory=str(tmp_path / "dist"))
    with running(ThreadingHTTPServer(("127.0.0.1", 0), host)) as address:
        at = Tab(browser.new_page())
        at.page.add_init_script(SPY)
        at.page.goto(f"{address}index.html")
        at.once()
        at.wait(f"{LENS_ROOT}.querySelector('.blended') !== null")
        assert at.page.evaluate("told.filter(([, type]) => type === 'error')") == []
        at.page.close()
