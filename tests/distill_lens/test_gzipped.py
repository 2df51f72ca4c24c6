"""The page's files in two forms: which are made, and which goes out."""

import gzip
import os
from http.client import HTTPConnection, HTTPResponse

import numpy as np
import pytest

from distill_lens import webpage
from distill_lens.server import accepted
from support.lens_page import serving

LONG = b"\0asm" * 5000


@pytest.fixture
def packed(page):
    """The page with one file that shrinks, and its compressed form."""
    (page / "page" / "ort-0a1b.wasm").write_bytes(LONG)
    webpage.compress(page)
    return page


def ask(server, path="/page/ort-0a1b.wasm", method="GET", **headers) -> tuple[HTTPResponse, bytes]:
    link = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    link.putrequest(method, path, skip_accept_encoding=True)
    for name, value in named.items():
        link.putheader(name, value)
    link.endheaders()
    reply = link.getresponse()
    return reply, reply.read()


def test_what_shrinks_gets_a_second_form_and_nothing_else_does(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    contents = {"deep/long.wasm": LONG, "noise.jpg": noise, "short.svg": b"<svg/>"}
    (tmp_path / "deep").mkdir()
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    webpage.compress(tmp_path)
    webpage.compress(tmp_path)  # and no .gz.gz
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert names == {*contents, "deep/long.wasm.gz"}
    assert gzip.decompress((tmp_path / "deep/long.wasm.gz").read_bytes()) == LONG


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        ("gzip, deflate, br", True),
        ("GZip", True),
        ("br;q=1.0, gzip;q=0.8", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*", True),
        ("*;q=0", False),
        ("identity, gzip;q=0.5", False),
        ("identity;q=0.5, gzip", True),
        ("x-gzip", True),
        ("br", False),
        ("gzipped", False),
        ("gzip;q=1.0.0", False),
        ("", False),
    ],
)
def test_who_takes_gzip(header, taken):
    assert accepted(header) is taken


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("encoding", ["gzip", "gzip;q=0", None])
def test_both_forms_say_what_they_are(packed, encoding, method):
    taken = {} if encoding is None else {"Accept_Encoding": encoding}
    with serving(packed) as server:
        reply, body = ask(server, method=method, **taken)
    compressed = encoding == "gzip"
    there = (packed / "page" / f"ort-0a1b.wasm{'.gz' if compressed else ''}").read_bytes()
    assert reply.status == 200
    assert body == (b"" if method == "HEAD" else there)
    assert reply.headers["Content-Encoding"] == ("gzip" if compressed else None)
    assert reply.headers["Content-Length"] == str(len(there))
    assert reply.headers["Content-Type"] == "application/wasm"
    assert reply.headers["Vary"] == "Accept-Encoding"
    assert "immutable" in reply.headers["Cache-Control"]


def test_a_file_of_one_form_is_sent_as_it_is(packed):
    with serving(packed) as server:
        reply, body = ask(server, "/page/b.mjs", Accept_Encoding="gzip")
        assert body == b"0"
        assert reply.headers["Content-Encoding"] is None
        reply, body = ask(server, "/page/ort-0a1b.wasm.gz", Accept_Encoding="gzip")
    assert gzip.decompress(body) == LONG
    assert reply.headers["Content-Encoding"] is None
    assert reply.headers["Content-Type"] == "application/gzip"


def test_the_first_page_has_two_forms_too(packed):
    (packed / "index.html").write_bytes(LONG)
    webpage.compress(packed)
    with serving(packed) as server:
        for path in ("/", "/index.html?x=1"):
            reply, body = ask(server, path, Accept_Encoding="gzip")
            assert gzip.decompress(body) == LONG
            assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
            assert reply.headers["Cache-Control"] == "no-cache"
        assert ask(server, "/index.html/", Accept_Encoding="gzip")[0].status == 404


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_neither_form_is_sent_to_who_has_it(packed, encoding):
    with serving(packed) as server:
        since = ask(server, Accept_Encoding=encoding)[0].headers["Last-Modified"]
        reply, body = ask(server, Accept_Encoding=encoding, If_Modified_Since=since)
    assert (reply.status, body) == (304, b"")
    assert reply.headers["Vary"] == "Accept-Encoding"
    assert reply.headers["Content-Encoding"] is None


def test_the_form_of_another_file_is_not_sent(packed, tmp_path):
    file = packed / "page" / "ort-0a1b.wasm"
    file.write_bytes(b"changed")
    with serving(packed) as server:
        assert ask(server, Accept_Encoding="gzip")[1] == b"changed"
        file.write_bytes(LONG)
        form = file.with_name(f"{file.name}.gz")
        os.replace(form, tmp_path / "outside.gz")
        form.symlink_to(tmp_path / "outside.gz")
        assert ask(server, Accept_Encoding="gzip")[1] == LONG
        form.unlink()
        form.write_bytes(b"cut")
        assert ask(server, Accept_Encoding="gzip")[1] == LONG
