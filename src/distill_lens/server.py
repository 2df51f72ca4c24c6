"""The server of distill.lens: one folder, read only, with the headers that WASM threads need."""

from __future__ import annotations

import io
import os
import re
import socket
import ssl
import sys
import webbrowser
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from os import environ
from pathlib import Path
from socketserver import TCPServer
from time import monotonic
from typing import Any
from urllib.parse import quote

from distill.core.errors import DistillError
from distill.core.files import real_path
from distill_lens import https
from distill_lens.settings import Lens
from distill_lens.webpage import SUFFIX

LOCAL = {"localhost", "127.0.0.1", "::1"}
_HOST = re.compile(r"(?:\[([0-9a-f.:]+)\]|([^\s:@/?#\\\[\]]+))(?::\d*)?", re.IGNORECASE)
# The page's own <meta> says the same, for hosts that send no such header; browsers take
# frame-ancestors from a header only.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "img-src 'self' blob:; media-src 'self' blob:; connect-src 'self'; worker-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    # Both together make the page cross-origin isolated: without it WASM gets one thread.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
    ".wasm": "application/wasm",  # else browsers refuse to compile it while it comes
    ".gz": "application/gzip",
}


class _Awaited(io.RawIOBase):
    """Bytes of a connection until a deadline, however small the pieces they come in."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.deadline = 0.0

    def wait(self, seconds: float) -> None:
        """From now on, so many seconds."""
        self.deadline = monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises TimeoutError at the deadline."""
        seconds = self.deadline - monotonic()
        if seconds <= 0:
            raise TimeoutError
        self.connection.settimeout(seconds)
        return self.connection.recv_into(buffer)


class Handler(SimpleHTTPRequestHandler):
    """GET and HEAD on the files of one folder; no listings, no links out of it.

    A file goes out compressed where the folder has that form of it and the request takes it.
    """

    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds without a request, or in which 64 KiB of a reply must be taken
    request_timeout = 10  # seconds for a TLS handshake, or from a request's first byte to its last
    extensions_map = {"": "application/octet-stream", **TYPES}  # noqa: RUF012
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s: %(explain)s\n"
    server: Server

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(self.request_timeout)
            self.request.do_handshake()
        super().setup()
        self.rfile.close()
        self.awaited = _Awaited(self.connection)
        self.rfile = io.BufferedReader(self.awaited)
        self.form: dict[str, str] = {}  # headers of a file that there is in two forms

    def handle_one_request(self) -> None:
        self.awaited.wait(self.timeout)
        try:
            self.rfile.peek(1)  # type: ignore[attr-defined] # it is a BufferedReader
        except TimeoutError:
            self.close_connection = True
            return
        self.awaited.wait(self.request_timeout)
        super().handle_one_request()

    def parse_request(self) -> bool:
        valid = super().parse_request()
        self.connection.settimeout(self.timeout)
        if not valid:
            return False
        code, reason = self._refusal()
        if reason:
            self.send_error(code, explain=reason)
        return not reason

    def handle_expect_100(self) -> bool:
        return True  # no body is wanted: the refusal is the answer

    def _refusal(self) -> tuple[int, str]:
        """Status and reason where a request is not answered."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or any(each.strip() != "0" for each in lengths):
            # What is left unread would be taken for the next request.
            return HTTPStatus.BAD_REQUEST, "requests to this server have no body"
        hosts = self.headers.get_all("Host", [])
        if len(hosts) > 1 or (not hosts and self.request_version >= "HTTP/1.1"):
            return HTTPStatus.BAD_REQUEST, "a request names one host"
        match = _HOST.fullmatch(hosts[0].strip()) if hosts else None
        host = plain_host(match[1] or match[2]) if match else None  # without its port
        address, *_ = self.connection.getsockname()  # they change: not all are known at start
        if not hosts or host in {*self.server.hosts, plain_host(address)}:
            return HTTPStatus.OK, ""
        remedy = f"; distill.lens names=[{host}] adds it" if host else ""
        return HTTPStatus.MISDIRECTED_REQUEST, f"this page was not offered by that name{remedy}"

    def send_head(self) -> Any:
        self.form = {}
        try:
            target = self.translate_path(self.path)
            path, root = real_path(Path(target)), real_path(Path(self.directory))
            file = path / "index.html" if path.is_dir() else path
            inside = file.is_file() and file.is_relative_to(root)
        except (OSError, ValueError):  # a name too long, or with a NUL in it
            inside = False
        if not inside or (file == path and target.endswith("/")):
            self.send_error(404)
            return None
        if packed := form_of(file):
            self.form["Vary"] = "Accept-Encoding"
            if accepted(",".join(self.headers.get_all("Accept-Encoding", []))):
                self.form["Content-Encoding"] = "gzip"
                self.path = f"/{quote(packed.relative_to(root).as_posix())}"
        return super().send_head()

    def guess_type(self, path: Any) -> str:
        """Of the file itself, in whatever form it goes out."""
        encoded = "Content-Encoding" in self.form
        return super().guess_type(str(path).removesuffix(SUFFIX) if encoded else path)

    def send_response(self, code: int, message: str | None = None) -> None:
        if code == HTTPStatus.NOT_MODIFIED:  # nothing is sent that could be encoded
            self.form.pop("Content-Encoding", None)
        super().send_response(code, message)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.path = ""  # none at all where a request made no sense; and no error is to be kept
        self.form = {}
        super().send_error(code, message, explain)

    def version_string(self) -> str:
        return "distill"  # and not which Python

    def end_headers(self) -> None:
        for name, value in self.form.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", self.server.policy)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        # What the build names by its content lies in page/ and never changes.
        hashed = self.path.startswith("/page/")
        self.send_header("Cache-Control", "max-age=31536000, immutable" if hashed else "no-cache")
        super().end_headers()

    def log_message(self, *_args: object) -> None:
        """Quiet: the terminal shows the address."""


class Server(ThreadingHTTPServer):
    """A thread for every connection; encrypted with `context`. Answers to `hosts` only.

    `policy` is what browsers may do with its pages, and who may frame them.
    """

    daemon_threads = True

    def __init__(
        self, folder: Path, settings: Lens, context: ssl.SSLContext | None, addresses: Iterable[str]
    ) -> None:
        if ":" in settings.host:
            self.address_family = socket.AF_INET6
        # A page of any name that is made to lead to this machine (DNS rebinding) could read it, so
        # nothing is answered but what was offered: by names of its own, as printed, by the user's.
        offered = {*LOCAL, settings.host, *addresses, *added_names(settings.names)} - https.ANY
        self.hosts = {plain_host(each) for each in offered}
        self.policy = f"{POLICY}; frame-ancestors " + (" ".join(settings.frames) or "'none'")
        super().__init__((settings.host, settings.port), partial(Handler, directory=str(folder)))
        if context:  # the handshake is left to the thread: a slow one must not keep others waiting
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer would ask the name server who we are
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: Any, client_address: object) -> None:
        """A browser that leaves in mid-reply, or that trusts no certificate yet, is no error."""
        if not isinstance(sys.exc_info()[1], ssl.SSLError | ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def serve(folder: Path, settings: Lens) -> None:
    """Serve until Ctrl-C. Raises DistillError where the address or the port cannot be had."""
    addresses = [] if settings.host in LOCAL else https.addresses(settings.host, settings.https)
    certified = ["localhost", "127.0.0.1", *addresses, *added_names(settings.names)]
    context = https.context(certified) if settings.https else None
    with bind(folder, settings, context, addresses) as server:
        for line in _start_lines(settings, server.server_port, addresses):
            print(line, flush=True)
        # On Linux without a display, `webbrowser` would start one in the terminal.
        display = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
        if settings.open and (sys.platform != "linux" or display):
            webbrowser.open(_url(settings.https, _here(settings.host), server.server_port))
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nstopped")


def bind(
    folder: Path,
    settings: Lens,
    context: ssl.SSLContext | None = None,
    addresses: Iterable[str] = (),
) -> Server:
    """A server on its port, which answers to these addresses too. Raises DistillError."""
    try:
        return Server(folder, settings, context, addresses)
    except OSError as error:
        where = f"host={settings.host} port={settings.port}"
        reason = (error.strerror or str(error)).lower()
        raise DistillError(f"{where}: {reason}; choose another, or port=0") from error


def _start_lines(settings: Lens, port: int, addresses: list[str]) -> list[str]:
    lines = [f"open:  {_url(settings.https, _here(settings.host), port)}   (Ctrl-C ends it)"]
    urls = [_url(settings.https, address, port) for address in addresses]
    lines += [f"other devices:  {url}" for url in urls]
    if urls and settings.https:
        lines.append("The browser warns of the certificate, which is this machine's own: go on.")
        lines.append(https.qr_code(urls[0]))
    elif settings.host not in LOCAL:
        lines.append("Other devices give no camera to http pages; https=true helps.")
    return lines


def _here(host: str) -> str:
    """Where this machine itself finds the page: one address alone is not localhost."""
    return "localhost" if host in LOCAL | https.ANY else host


def _url(secure: bool, host: str, port: int) -> str:
    place = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{place}:{port}/"


def added_names(names: str | list[str]) -> list[str]:
    """The user's own, say of a tunnel."""
    return [names] if isinstance(names, str) else names


def plain_host(host: str) -> str:
    """A name in small letters, an address in its shortest form: equal where they are the same."""
    try:
        address = ip_address(host.partition("%")[0])  # of a link-local one the interface
    except ValueError:
        return host.lower().removesuffix(".")
    return str(getattr(address, "ipv4_mapped", None) or address)


def form_of(path: Path) -> Path | None:
    """The compressed form of a file. None where there is none, or one of another file."""
    packed = path.with_name(path.name + SUFFIX)
    try:
        with packed.open("rb") as stream:
            stream.seek(-4, os.SEEK_END)  # RFC 1952: the original's size modulo 2³²
            size = int.from_bytes(stream.read(4), "little")
        same = size == path.stat().st_size % 2**32
    except OSError:
        return None
    return packed if same and not packed.is_symlink() else None


def accepted(header: str) -> bool:
    """Whether this Accept-Encoding takes gzip, and wants it no less than the plain file.

    RFC 9110, 12.5.3: a coding with q=0 is refused, `*` stands for those that are not named.
    """
    weights: dict[str, float] = {}
    for item in header.lower().split(","):
        coding, *parameters = (part.strip() for part in item.split(";"))
        qualities = (re.fullmatch(r"q\s*=\s*([\d.]+)", part) for part in parameters)
        try:
            weights[coding] = next((float(quality[1]) for quality in qualities if quality), 1.0)
        except ValueError:
            weights[coding] = 0.0
    gzip_weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip_weight > 0 and gzip_weight >= weights.get("identity", 0.0)
