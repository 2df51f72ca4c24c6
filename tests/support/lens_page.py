"""A small page that is built already, settings for it, and a server over it in a thread."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

from distill_lens.server import Server, bind
from distill_lens.settings import Lens

BUILT = {"index.html": b"<!doctype html>", "page/ort-0a1b.wasm": b"\0asm", "page/b.mjs": b"0"}
PARTS = ("ort-wasm-simd-threaded", "ort-wasm-simd-threaded.asyncify")  # of the runtime
ELEMENT = {f"element/{name}.js": name.encode() for name in ("index", "worker")}
ELEMENT |= {f"element/runtime/ort.{name}.min.mjs": name.encode() for name in ("wasm", "webgpu")}
ELEMENT |= {f"page/{part}-a_-1Zz90.mjs": part.encode() for part in PARTS}
ELEMENT |= {f"page/{part}-DcHrbrbl.wasm": part.encode() for part in PARTS}
ELEMENT |= {f"page/{part}-DcHrbrbl.wasm.gz": b"packed" for part in PARTS}


def settings(**changed) -> Lens:
    """Of one student, served on this machine at any free port."""
    chosen = {"students": ["hayao"], "sketches": [], "run": None, "runs": "runs", "output": "lens"}
    served = {"serve": False, "host": "127.0.0.1", "port": 0, "names": [], "https": False}
    served |= {"frames": [], "embed": False, "static": None}
    return Lens(**{**chosen, **served, "open": False, "rate": 8.0, "line": 2.0, **changed})


@contextmanager
def serving(
    folder: Path, context: ssl.SSLContext | None = None, addresses: tuple[str, ...] = (), **changed
) -> Iterator[Server]:
    """A server over a folder that runs until the end of the block."""
    server = bind(folder, settings(**changed), context, addresses)
    with running(server):
        yield server


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[str]:
    """The address of a server that runs in a thread until the end of the block."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def say(server: Server, words: bytes) -> bytes:
    """All that comes back for these bytes, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as link:
        link.sendall(words)
        return b"".join(iter(lambda: link.recv(65536), b""))
