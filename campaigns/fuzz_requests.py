"""The reader of requests: the server of distill.lens on a free port, and raw bytes for it."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from fuzz_engine import Reader
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from mutations import Step, damage, damaged

from distill.config import compose
from distill_lens import server
from distill_lens.settings import Lens

SECRET = b"not to be served"
WAIT = 5.0  # seconds for the whole of an answer
METHODS = ("GET", "HEAD", "POST", "PUT", "OPTIONS", "get", "", "GET\0", "A" * 300, "CONNECT")
PATHS = (
    *("/", "/index.html", "/page/", "/page", "/page/app.js", "/students/../index.html", "/nothing"),
    *("/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//../secret.txt", "/.\\secret"),
    *("/link.txt", "/%00", "/%", "/%zz", "*", "http://localhost/", "", "/?x=1", "/#x", "/é"),
    *("/" + "a" * 70_000, "/" + "a/" * 4000, "/index.html/", "/manifest.json", "/C:/", "/~"),
)
HEADERS = (
    *(
        "Host: localhost",
        "Host: evil.example",
        "Host:",
        "Connection: close",
        "Expect: 100-continue",
    ),
    *("Connection: keep-alive", "Content-Length: 5", "Content-Length: -1", "Content-Length: x"),
    *("Transfer-Encoding: chunked", "Range: bytes=0-3", "Range: bytes=9-1", "X: " + "y" * 70_000),
    *("If-Modified-Since: now", "If-Modified-Since: Mon, 99 Foo 2026 99:99:99 GMT", "no colon"),
    *("If-None-Match: *", "Accept-Encoding: gzip, br;q=0", "Accept-Encoding: gzip;q=x", ": x", " "),
    *("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 -9999999999", "Upgrade: websocket"),
)


class Requests(Reader):
    """Each gets an answer or a closed connection; no thread dies, no other file is sent."""

    name = "requests"

    def begin(self) -> None:
        Path("secret.txt").write_bytes(SECRET)
        Path("served/page").mkdir(parents=True)
        Path("served/index.html").write_text("<!doctype html>")
        Path("served/manifest.json").write_text("{}")
        Path("served/page/app.js").write_text("0;" * 9000)
        Path("served/link.txt").symlink_to("../secret.txt")
        settings = compose.load("lens", ["port=0", "open=false"], Lens)
        self._server = server.bind(Path("served"), settings)
        self.errors: list[str] = []
        told = self._server.handle_error

        def handle_error(request: object, address: object) -> None:
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                told(request, address)
            if said.getvalue():
                self.errors.append(said.getvalue())

        self._server.handle_error = handle_error  # type: ignore[method-assign]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def cases(self) -> SearchStrategy:
        line = st.tuples(
            st.sampled_from(METHODS),
            st.one_of(st.sampled_from(PATHS), st.text(max_size=20).map("/".__add__)),
            st.sampled_from(("HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/9.9", "HTTP/x", "", "HTTP")),
        )
        headers = st.lists(st.sampled_from(HEADERS), max_size=4)
        request = st.tuples(line, headers, st.binary(max_size=8))
        harm = st.one_of(st.just([]), damage())
        return st.tuples(st.lists(request, min_size=1, max_size=3), harm)

    def put(self, case: tuple[list, list[Step]], folder: Path) -> None:
        (folder / "request.bin").write_bytes(_bytes(*case))

    def read(self, case: tuple[list, list[Step]], folder: Path) -> None:
        content = _bytes(*case)
        address = ("127.0.0.1", self._server.server_address[1])
        with socket.create_connection(address, timeout=WAIT) as sent:
            with contextlib.suppress(OSError):  # the server may hang up in the middle
                sent.sendall(content)
                sent.shutdown(socket.SHUT_WR)
            answer = b"".join(_pieces(sent))
        assert SECRET not in answer, "a file outside of the folder was served"
        if self.errors:
            raise RuntimeError(f"in the server: {self.errors.pop()}")


def _bytes(requests: list, harm: list[Step]) -> bytes:
    parts = []
    for (method, path, version), headers, body in requests:
        lines = [f"{method} {path} {version}", *headers, "", ""]
        parts.append("\r\n".join(lines).encode("utf-8", "surrogatepass") + body)
    return damaged(b"".join(parts), harm)


def _pieces(sent: socket.socket) -> Iterator[bytes]:
    """What comes back, to the end; a connection that is reset has none."""
    with contextlib.suppress(ConnectionError):
        while piece := sent.recv(1 << 16):
            yield piece


READERS = (Requests,)
