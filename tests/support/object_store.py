"""An object store of its own for tests: Amazon's interface, served by moto on this machine."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import fsspec
import pytest
import requests

BUCKET = "pictures"


_SERVE = """
import sys, moto.server
server = moto.server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


class ObjectStore:
    """A server at `url` with one bucket; `stop` breaks every connection to it.

    It is a process of its own: one that is forked off would keep an open socket of it.
    """

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", _SERVE]
        self._server = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )
        assert self._server.stdout
        self.url = f"http://127.0.0.1:{int(self._server.stdout.readline())}"
        requests.put(f"{self.url}/{BUCKET}", timeout=10).raise_for_status()

    def stop(self) -> None:
        self._server.kill()
        self._server.communicate()


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """The store, named in the environment as a user names one; skips where it cannot be had."""
    for package in ("moto", "flask", "flask_cors", "s3fs"):
        pytest.importorskip(package, reason="needs the extra stores")
    store = ObjectStore()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", store.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "a-key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.delenv("AWS_PROFILE", raising=False)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        try:
            yield store
        finally:
            store.stop()
            fsspec.get_filesystem_class("s3").clear_instance_cache()
