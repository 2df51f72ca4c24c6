"""The server of distill.lens: one folder, read only, with the headers that WASM threads need."""

from __future__ import annotations

import socket
import ssl
import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from os import environ
from pathlib import Path
from socketserver import TCPServer
from typing import Any

from distill.config.settings.commands import Lens
from distill.core.errors import DistillError
from distill.core.files import real_path
from distill.live import https

# The page's own <meta> says the same, for hosts that send no such header; browsers take
# frame-ancestors from a header only.
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "img-src 'self' blob:; media-src 'self' blob:; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    # Both together make the page cross-origin isolated: without it WASM gets one thread.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
    ".wasm": "application/wasm",  # else browsers refuse to compile it while it comes
}
LOCAL = {"localhost", "127.0.0.1", "::1"}


class Handler(SimpleHTTPRequestHandler):
    """GET and HEAD on the files of one folder; no listings, no links out of it."""

    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that an idle connection may stay
    extensions_map = {"": "application/octet-stream", **TYPES}  # noqa: RUF012

    def send_head(self) -> Any:
        try:
            path = real_path(Path(self.translate_path(self.path)))
            file = path / "index.html" if path.is_dir() else path
            allowed = file.is_file() and file.is_relative_to(real_path(Path(self.directory)))
        except (OSError, ValueError):  # a name too long, or with a NUL in it
            allowed = False
        if allowed:
            return super().send_head()
        self.send_error(404)
        return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.path = ""  # none at all where a request made no sense; and no error is to be kept
        super().send_error(code, message, explain)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        # What the build names by its content lies in page/ and never changes.
        named = self.path.startswith("/page/")
        self.send_header("Cache-Control", "max-age=31536000, immutable" if named else "no-cache")
        super().end_headers()

    def log_message(self, *_args: object) -> None:
        """Quiet: the terminal shows the address."""


class Server(ThreadingHTTPServer):
    """A thread for every connection; encrypted with `context`."""

    daemon_threads = True

    def __init__(self, folder: Path, host: str, port: int, context: ssl.SSLContext | None) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), partial(Handler, directory=str(folder)))
        if context:  # the handshake is left to the thread: a slow one must not keep others waiting
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer would ask the name server who we are
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves in mid-reply, or that trusts no certificate yet, is no error."""
        if not isinstance(sys.exc_info()[1], ssl.SSLError | ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def serve(folder: Path, settings: Lens) -> None:
    """Serve until Ctrl-C. Raises DistillError where the address or the port cannot be had."""
    addresses = [] if settings.host in LOCAL else https.addresses(settings.host, settings.https)
    context = https.context(["localhost", "127.0.0.1", *addresses]) if settings.https else None
    with bind(folder, settings, context) as server:
        for line in _start_lines(settings, server.server_port, addresses):
            print(line, flush=True)
        # On Linux without a display, `webbrowser` would start one in the terminal.
        display = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
        if settings.open and (sys.platform != "linux" or display):
            webbrowser.open(_url(settings, _here(settings), server.server_port))
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nstopped")


def bind(folder: Path, settings: Lens, context: ssl.SSLContext | None = None) -> Server:
    """A server on its port. Raises DistillError with the reason."""
    try:
        return Server(folder, settings.host, settings.port, context)
    except OSError as error:
        where = f"host={settings.host} port={settings.port}"
        reason = (error.strerror or str(error)).lower()
        raise DistillError(f"{where}: {reason}; choose another, or port=0") from error


def _start_lines(settings: Lens, port: int, addresses: list[str]) -> list[str]:
    lines = [f"open:  {_url(settings, _here(settings), port)}   (Ctrl-C ends it)"]
    urls = [_url(settings, address, port) for address in addresses]
    lines += [f"other devices:  {url}" for url in urls]
    if urls and settings.https:
        lines.append("The browser warns of the certificate, which was made just now: go on.")
        lines.append(https.qr_code(urls[0]))
    elif settings.host not in LOCAL:
        lines.append("Other devices give no camera to http pages; https=true helps.")
    return lines


def _here(settings: Lens) -> str:
    """Where this machine itself finds the page: one address alone is not localhost."""
    return "localhost" if settings.host in LOCAL | https.ANY else settings.host


def _url(settings: Lens, host: str, port: int) -> str:
    place = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.https else 'http'}://{place}:{port}/"
