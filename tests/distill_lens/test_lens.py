"""distill.lens without a browser: the folder, the server, the certificate, and what goes wrong."""

import hashlib
import json
import re
import socket
import ssl
import subprocess
import sys
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image

from distill.api import student_network
from distill.core.errors import DistillError
from distill.core.onnx_files import ABOUT, note
from distill.export.onnx import OnnxExporter
from distill.models import zoo
from distill_lens import __main__ as lens
from distill_lens import https, webpage
from distill_lens.lens_folder import _open
from distill_lens.server import POLICY, Server, _start_lines, bind
from support.commands import run
from support.lens_page import BUILT, ELEMENT, say, serving, settings
from support.onnx_networks import negative

LANGUAGES = Path(__file__).parents[2] / "web" / "src" / "languages"


def manifest(folder: Path = Path("lens")) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def test_the_folder_holds_page_students_and_what_the_page_must_know(page, capsys):
    negative(channels=4).save("cat.onnx")
    words = ["serve=false", "students=[hayao]", "sketches=[cat.onnx]", "rate=4", "line=3"]
    assert run(lens, *words) == 0
    written = manifest()
    hayao, cat = written["students"]
    assert (written["rate"], written["line"]) == (4, 3)
    assert (hayao["kind"], hayao["side"], hayao["fixed"]) == ("photo", 256, None)
    assert (cat["kind"], cat["channels"], cat["side"], cat["thumbnail"]) == ("sketch", 4, 64, None)
    assert (cat["input"], cat["output"]) == ("x", "y")
    card = json.loads((zoo.FOLDER / "hayao.json").read_text())
    assert card["teacher"]["licence"] in hayao["licence"]
    assert hayao["licence"].startswith("commercial use not allowed")
    for student in written["students"]:
        assert student["bytes"] == (Path("lens") / student["file"]).stat().st_size
    assert Image.open(f"lens/{hayao['thumbnail']}").size == (160, 120)
    assert Image.open(f"lens/{written['example']}").size == (1280, 595)
    assert Image.open(f"lens/{written['example_tall']}").size == (960, 1280)
    assert {name: (Path("lens") / name).read_bytes() for name in BUILT} == BUILT
    assert "with hayao, cat" in capsys.readouterr().out


def test_the_page_gets_a_student_of_any_size_that_gives_as_before(page):
    assert run(lens, "serve=false", "students=[hayao]") == 0
    (hayao,) = manifest()["students"]
    free = onnxruntime.InferenceSession(f"lens/{hayao['file']}")
    fixed = onnxruntime.InferenceSession(zoo.find("hayao"))
    photo = np.random.default_rng(0).random((1, 3, 256, 256), dtype=np.float32)
    same = [session.run(None, {"photo": photo})[0] for session in (free, fixed)]
    assert np.abs(same[0] - same[1]).max() < 1e-5  # sizes that are known are planned otherwise
    assert free.run(None, {"photo": photo[..., :96, :160]})[0].shape == (1, 3, 96, 160)


@pytest.mark.slow
def test_all_students_of_the_package_are_on_the_page_with_terms_in_every_language(page):
    assert run(lens, "serve=false") == 0
    *photo, sketch = manifest()["students"]
    names = [each["name"] for each in photo]
    assert sorted(names) == sorted(zoo.shipped())
    assert (sketch["name"], sketch["kind"], sketch["side"]) == ("faces", "sketch", 256)
    free = [each["commercial"] for each in photo]
    assert free == sorted(free, key=["yes", "unknown", "no"].index)
    alike = [name for name, each in zip(names, free, strict=True) if each == free[0]]
    assert alike[0] == "neon"
    assert free[names.index("hayao")] == "no"
    known = {"MIT", "CC0", "CC BY 4.0", "CC BY-NC-SA 4.0", "Apache-2.0", "Unsplash", "AnimeGANv2"}
    lines = {each["licence"] for each in manifest()["students"]}
    parts = {part for line in lines for part in re.split(r" \(|[:;,] |\)", line)} - known - {""}
    assert len(parts) > 8
    files = {*LANGUAGES.glob("*.ts")} - {LANGUAGES / "en.ts"}
    assert len(files) == 6
    for file in files:
        assert [part for part in parts if f'"{part}": "' not in file.read_text()] == []


@pytest.mark.parametrize(
    ("style", "faceless"), [("cats", True), ("Faces256", False), (None, False)]
)
def test_the_page_is_told_which_sketches_are_of_no_faces(page, style, faceless):
    network = negative(channels=4)
    if style:
        note(network.model, ABOUT, json.dumps({"style": style}))
    network.save("sketch.onnx")
    assert run(lens, "serve=false", "students=[]", "sketches=[sketch.onnx]") == 0
    assert manifest()["students"][0]["faceless"] is faceless


def test_a_static_build_says_where_it_goes(page, capsys):
    assert run(lens, "static=site", "students=[hayao]") == 0
    assert manifest(Path("site"))["students"][0]["name"] == "hayao"
    assert "python -m http.server" in Path("site/README.txt").read_text()
    assert Path("site/.nojekyll").read_text() == ""
    assert "Cross-Origin-Embedder-Policy: require-corp" in Path("site/_headers").read_text()
    assert "open:" not in capsys.readouterr().out  # nothing is served
    assert run(lens, "static=site", "students=[toon]") == 0  # an earlier one is replaced
    assert not Path("lens").exists()


def test_a_network_of_one_size_stays_one(page):
    negative(reshaped=True).save("stiff.onnx")
    assert run(lens, "serve=false", "students=stiff.onnx") == 0
    (stiff,) = manifest()["students"]
    assert (stiff["fixed"], stiff["side"]) == ([64, 64], 64)


def test_names_become_addresses(page):
    negative().save("my nice, [old] cat!.onnx")
    assert run(lens, "serve=false", "students=my nice, [old] cat!.onnx") == 0
    (cat,) = manifest()["students"]
    assert cat["name"] == "my nice, [old] cat!"
    digest = hashlib.sha256((Path("lens") / cat["file"]).read_bytes()).hexdigest()
    assert cat["file"] == f"students/my-nice-old-cat-{digest[:8]}.onnx"


def test_names_that_make_one_address_get_two(page):
    for name in ("猫", "犬", "a b", "A,b"):
        negative().save(f"{name}.onnx")
    words = ["serve=false", 'students=["猫.onnx","犬.onnx","a b.onnx","A,b.onnx"]']
    assert run(lens, *words) == 0
    files = {each["name"]: each["file"] for each in manifest()["students"]}
    assert files["猫"].startswith("students/student-")
    assert files["犬"].startswith("students/student-2-")
    assert files["A,b"].startswith("students/A-b-2-")
    assert all((Path("lens") / file).is_file() for file in files.values())


@pytest.fixture
def with_element(page):
    """A built page that carries the element."""
    for name, content in ELEMENT.items():
        (page / name).parent.mkdir(parents=True, exist_ok=True)
        (page / name).write_bytes(content)
    return page


def test_the_element_is_put_beside_the_page_where_it_is_asked_for(with_element, capsys):
    negative().save("my cat.onnx")
    negative().save("sketch.onnx")
    words = ["serve=false", "students=[my cat.onnx]", "sketches=[sketch.onnx]"]
    assert run(lens, *words, "embed=true") == 0
    names = {path.relative_to("lens/embed").as_posix() for path in Path("lens/embed").rglob("*")}
    modules = {"runtime/ort.wasm.min.mjs", "runtime/ort.webgpu.min.mjs"}
    parts = {f"runtime/ort-wasm-simd-threaded{each}" for each in ("", ".asyncify")}
    files = {part + end for part in parts for end in (".mjs", ".wasm", ".wasm.gz")}
    wanted = {"distill-lens.js", "worker.js", "my-cat.onnx", "runtime", *modules, *files}
    assert names == wanted
    assert Path("lens/embed/distill-lens.js").read_bytes() == ELEMENT["element/index.js"]
    gpu = Path("lens/embed/runtime/ort-wasm-simd-threaded.asyncify.wasm").read_bytes()
    assert gpu == b"ort-wasm-simd-threaded.asyncify"
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == 'embed: <script type="module" src="embed/distill-lens.js"></script>'
    assert run(lens, *words) == 0  # an earlier lens is replaced whole
    assert not Path("lens/embed").exists()
    assert not Path("lens/element").exists()


def test_a_page_that_was_built_without_the_element_is_told(page, capsys):
    assert run(lens, "serve=false", "students=[hayao]", "embed=true") == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0].startswith("error: embed=true: this page was built without the element; ")
    assert not Path("lens").exists()


WRONG = {
    "students=hayoa": "students=hayoa: no such student in this package (there are: ",
    "students=none.onnx": "none.onnx: no such file",
    "students=[cut.onnx]": "cut.onnx: not a readable ONNX file",
    "students=[hayao,hayao]": "two are called 'hayao'",
    "students=[]": "students=[]: no student for the page",
    "output=full": "full: holds something other than a lens",
    "output=a_file/lens": "a_file: ",
    "output=a_file": "a_file: holds something other than a lens",
    "port=70000": "port=70000: ",
    "rate=0": "rate=0",
    "frames=[my.site.example]": "'my.site.example' is no site: want https://my.site.example",
    "frames=['https://a.example; script-src *']": "; script-src *' is no site: want https://",
    "run=nowhere": "nowhere",
}


@pytest.mark.parametrize("word", WRONG)
def test_what_cannot_be_ends_in_one_line_before_a_page_is_built(page, word, monkeypatch, capsys):
    monkeypatch.setattr(webpage, "find", lambda: pytest.fail("the page was built first"))
    Path("full").mkdir()
    Path("full/thesis.txt").write_text("dear")
    Path("a_file").write_text("dear")
    Path("cut.onnx").write_bytes(zoo.find("hayao").read_bytes()[:5000])
    assert run(lens, "serve=false", word) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert WRONG[word] in said[0]
    assert Path("full/thesis.txt").read_text() == Path("a_file").read_text() == "dear"
    assert not list(Path().glob(".*"))


@pytest.fixture
def served(page, tmp_path):
    """A running server over a small folder, and a function that asks it."""
    (page / "secret").symlink_to(__file__)
    with serving(page) as server:

        def ask(path: str, method: str = "GET", **headers: str):
            connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            return reply, reply.read()

        yield ask


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/page/ort-0a1b.wasm", "application/wasm"),
        ("/page/b.mjs", "text/javascript; charset=utf-8"),
    ],
)
def test_every_reply_carries_its_kind_and_the_headers(served, path, kind):
    reply, content = served(path)
    assert (reply.status, reply.headers["Content-Type"]) == (200, kind)
    assert content == BUILT[path[1:] or "index.html"]
    assert reply.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert reply.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in reply.headers["Cache-Control"] or path == "/"


def test_the_policy_of_header_and_page_are_one_and_allow_no_other_host():
    text = (Path(__file__).parents[2] / "web" / "index.html").read_text()
    assert f'content="{POLICY}"' in text
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules["script-src"].split()) == {"'self'", "'wasm-unsafe-eval'"}
    assert set(" ".join(rules.values()).split()) <= {
        *("'none'", "'self'", "'wasm-unsafe-eval'", "blob:"),
    }


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GARBAGE", b"400"),
        (b"\x16\x03\x01\x02\0\x01\0", b"400"),  # a browser that was told https
        (b"GET /%00 HTTP/1.1\r\nHost: localhost", b"404"),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost", b"404"),
        (b"GET /" + b"a" * 70000 + b" HTTP/1.1", b"414"),
    ],
)
def test_requests_that_make_no_sense_are_answered(page, request_line, status, capfd):
    with serving(page) as server:
        assert status in say(server, request_line + b"\r\nConnection: close\r\n\r\n")
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "path",
    ["/page/", "/none", "/../secret", "/secret", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"],
)
def test_nothing_but_files_of_the_folder(served, path):
    reply, _ = served(path)
    assert (reply.status, reply.headers["Cache-Control"]) == (404, "no-cache")


def test_a_folder_is_read_only(served):
    assert served("/", "HEAD")[1] == b""
    assert served("/index.html", "PUT")[0].status == 501
    assert served("/", "POST")[0].status == 501


def test_a_taken_port_and_an_unknown_host_are_named(page):
    first = bind(page, settings())
    with pytest.raises(DistillError, match=f"port={first.server_port}: address already in use"):
        bind(page, settings(port=first.server_port))
    first.server_close()
    with pytest.raises(DistillError, match=r"host=203\.0\.113\.1 port=0: .*; choose another"):
        bind(page, settings(host="203.0.113.1"))


def test_the_address_that_is_told_is_one_that_answers():
    told = lambda host: _start_lines(settings(host=host), 80, [])[0]  # noqa: E731
    assert "http://localhost:80/ " in told("127.0.0.1")
    assert "http://localhost:80/ " in told("0.0.0.0")
    assert "http://192.168.1.7:80/ " in told("192.168.1.7")
    assert "http://[fd00::7]:80/ " in told("fd00::7")


def test_the_new_addresses_work_too(page):
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with serving(page, host="::1") as server:
        link = HTTPConnection("::1", server.server_port, timeout=10)
        link.request("GET", "/")
        assert link.getresponse().status == 200


def test_https_proves_itself_by_a_certificate_of_its_own(page):
    pytest.importorskip("cryptography", reason="the extra `lens` is not installed")
    with serving(page, https.context(["localhost", "127.0.0.1"])) as server:
        pem = ssl.get_server_certificate(("127.0.0.1", server.server_port))
        trusting = ssl.create_default_context(cadata=pem)
        trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT  # it is no authority, and says so
        link = HTTPSConnection("127.0.0.1", server.server_port, context=trusting, timeout=10)
        link.request("GET", "/")
        assert link.getresponse().read() == BUILT["index.html"]
        plain = HTTPSConnection("127.0.0.1", server.server_port, timeout=10)
        with pytest.raises(ssl.SSLCertVerificationError):
            plain.request("GET", "/")


def test_a_silent_visitor_keeps_nobody_waiting(page):
    pytest.importorskip("cryptography", reason="the extra `lens` is not installed")
    trusting = ssl._create_unverified_context()
    with serving(page, https.context(["127.0.0.1"])) as server:
        silent = HTTPConnection("127.0.0.1", server.server_port)
        silent.connect()  # and no handshake
        link = HTTPSConnection("127.0.0.1", server.server_port, context=trusting, timeout=10)
        link.request("GET", "/")
        assert link.getresponse().status == 200
        silent.close()


def test_the_address_for_phones_comes_as_a_qr_code(page, monkeypatch):
    for package in ("segno", "ifaddr", "cryptography"):
        pytest.importorskip(package, reason="the extra `lens` is not installed")
    monkeypatch.setattr(https, "addresses", lambda *_: ["192.168.1.7"])
    said = _start_lines(settings(https=True, host="0.0.0.0"), 8765, ["192.168.1.7"])
    assert "open:  https://localhost:8765/" in said[0]
    assert "https://192.168.1.7:8765/" in said[1]
    rows = [line for line in said[-1].splitlines() if set(line) & set("█▀▄")]
    assert len(rows) > 10
    assert len({len(line) for line in rows}) == 1


@pytest.mark.parametrize("package", ["cryptography", "ifaddr", "segno"])
def test_a_missing_extra_is_one_line(page, package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    words = ["students=[hayao]", "https=true", "host=0.0.0.0", "port=0", "open=false"]
    monkeypatch.setattr(Server, "serve_forever", lambda _: None)
    assert run(lens, *words) == 1
    said = capsys.readouterr().err
    assert said == f"error: https=true: needs {package}; pip install 'distill[lens]'\n"


def test_ctrl_c_is_the_way_to_end_it(page, monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupted)
    assert run(lens, "students=[hayao]", "port=0", "open=false") == 0
    said = capsys.readouterr().out
    assert "open:  http://localhost:" in said
    assert said.endswith("stopped\n")


@pytest.mark.slow
def test_without_page_and_npm_a_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webpage, "PAGE", tmp_path / "page")
    monkeypatch.setattr(webpage.shutil, "which", lambda _: None)
    assert run(lens, "serve=false") == 1
    assert capsys.readouterr().err == (
        "error: the page is not built yet, and npm is not here to build it: "
        "install Node.js 20 or later (npm comes with it), or install distill from a wheel\n"
    )
    monkeypatch.setattr(webpage, "SOURCES", tmp_path)
    assert run(lens, "serve=false") == 1
    assert "came without its page" in capsys.readouterr().err


def test_an_old_page_is_served_where_no_new_one_can_be_built(page, monkeypatch, capsys):
    monkeypatch.setattr(webpage, "SOURCES", Path(__file__).parents[2] / "web")
    monkeypatch.setattr(webpage.shutil, "which", lambda _: None)
    assert webpage.find() == page
    assert capsys.readouterr().err.startswith("warning: the page is older than")


def test_the_page_is_built_when_its_sources_change_and_only_then(page, tmp_path, monkeypatch):
    sources = tmp_path / "web"
    (sources / "node_modules").mkdir(parents=True)
    for name in ("package.json", "package-lock.json", "main.ts"):
        (sources / name).write_text("{}")
    calls = []

    def npm(command, **_):
        calls.append(command[2] if command[1] == "run" else command[1])
        if command[1] == "run":
            out = Path(command[command.index("--outDir") + 1])
            out.mkdir()
            (out / "index.html").write_text(str(len(calls)))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(webpage, "SOURCES", sources)
    monkeypatch.setattr(webpage.shutil, "which", lambda _: "npm")
    monkeypatch.setattr(webpage.subprocess, "run", npm)
    assert webpage.find() == page
    (sources / "node_modules" / ".package-lock.json").write_text("{}")
    assert webpage.find() == page
    assert calls == ["ci", "build", "build:element"]
    (sources / "main.ts").write_text("changed")
    webpage.find()
    assert calls == ["ci", *2 * ["build", "build:element"]]
    assert (page / "index.html").read_text() == "4"
    assert (page / "element" / "index.html").read_text() == "5"
    assert not list(page.parent.glob(".page*"))


def test_what_npm_complains_of_is_told_and_the_old_page_stays(page, tmp_path, monkeypatch):
    sources = tmp_path / "web"
    sources.mkdir()
    for name in ("package.json", "package-lock.json"):
        (sources / name).write_text("{}")
    failed = subprocess.CompletedProcess([], 1, "", "npm error code ENOTFOUND\nnpm error more")
    monkeypatch.setattr(webpage, "SOURCES", sources)
    monkeypatch.setattr(webpage.shutil, "which", lambda _: "npm")
    monkeypatch.setattr(webpage.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(DistillError, match=r"npm ci in .*: npm error code ENOTFOUND; "):
        webpage.find()
    assert (page / "index.html").read_bytes() == BUILT["index.html"]


def test_the_lock_file_pins_one_runtime_and_names_no_address():
    web = Path(__file__).parents[2] / "web"
    lock = json.loads((web / "package-lock.json").read_text())
    wanted = json.loads((web / "package.json").read_text())["dependencies"]["onnxruntime-web"]
    assert lock["packages"]["node_modules/onnxruntime-web"]["version"] == wanted
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    assert all("integrity" in entry for name, entry in lock["packages"].items() if name)


def test_a_student_of_two_inputs_is_none_of_the_page(tmp_path):
    exporter, student = OnnxExporter(profile="strict"), student_network("comic").student
    onnx.save(exporter.export(student), tmp_path / "s.onnx")
    onnx.save(exporter.export_summary(student), tmp_path / "s_summary.onnx")
    with pytest.raises(DistillError, match=r"s\.onnx: has a second input, and the page gives"):
        _open(str(tmp_path / "s.onnx"), "photo", settings())
