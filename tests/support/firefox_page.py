"""Firefox for tests of the page, led by WebDriver BiDi: no driver program between."""

import itertools
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.chromium_page import PATIENCE

LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
PREFERENCES = {
    "media.navigator.streams.fake": True,  # a made camera
    "media.navigator.permission.disabled": True,
    "browser.download.folderList": 2,
    "browser.download.alwaysOpenPanel": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "app.update.enabled": False,
    "app.normandy.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
}


def firefox() -> str:
    """The browser that is installed, else a reason to skip; nothing is downloaded."""
    path = shutil.which(os.environ.get("FIREFOX") or "firefox-esr") or shutil.which("firefox")
    if path is None:
        pytest.skip("no Firefox: install Debian's package firefox-esr, or name one in FIREFOX")
    return path


class FirefoxPage:
    """One tab."""

    def __init__(self, socket: Any, downloads: Path) -> None:
        self._socket, self._count, self.downloads = socket, itertools.count(), downloads
        self.send("session.new", capabilities={})
        (first, *_) = self.send("browsingContext.getTree")["contexts"]
        self.context = first["context"]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command's result. Fails with what Firefox says where it does."""
        number = next(self._count)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            reply = json.loads(self._socket.recv())
            if reply.get("id") != number:
                continue  # an event
            assert reply["type"] == "success", f"{method}: {reply.get('message')}"
            return reply["result"]

    def open(self, address: str) -> None:
        self.send("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """A JavaScript expression's value, awaited; by way of JSON."""
        result = self._evaluate(f"(async () => JSON.stringify(await ({expression})))()")
        assert result["type"] == "success", result.get("exceptionDetails", {}).get("text")
        text = result["result"].get("value")
        return None if text is None else json.loads(text)

    def wait(self, condition: str) -> None:
        """Until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            said = self.evaluate("document.getElementById('message')?.textContent")
            assert time.monotonic() < end, f"{condition}; the page says: {said!r}"
            time.sleep(0.1)

    def click(self, name: str) -> None:
        self.evaluate(f"document.getElementById({json.dumps(name)}).click()")

    def set_file(self, name: str, path: Path) -> None:
        """Choose a file in an input, as a user would."""
        element = self._evaluate(f"document.getElementById({json.dumps(name)})")["result"]
        reference = {"sharedId": element["sharedId"]}
        self.send("input.setFiles", context=self.context, element=reference, files=[str(path)])

    def downloaded(self) -> Path:
        """The file that comes, once it is whole; it is then taken away from the folder's list."""
        end = time.monotonic() + PATIENCE
        while True:
            whole = [each for each in self.downloads.iterdir() if each.suffix != ".part"]
            if (
                len(whole) == 1
                and len(list(self.downloads.iterdir())) == 1
                and whole[0].stat().st_size
            ):
                taken = self.downloads.with_name(f"taken-{whole[0].name}")
                return whole[0].rename(taken)
            assert time.monotonic() < end, "nothing was downloaded"
            time.sleep(0.1)

    def _evaluate(self, expression: str) -> dict[str, Any]:
        return self.send(
            "script.evaluate",
            expression=expression,
            target={"context": self.context},
            awaitPromise=True,
            userActivation=True,
        )


@contextmanager
def opened(folder: Path) -> Iterator[FirefoxPage]:
    """Firefox without a window, with a fresh profile in a folder; ended at the end."""
    websocket = pytest.importorskip(
        "websocket", reason="no websocket-client: pip install 'distill[browser]'"
    )
    profile, downloads = folder / "profile", folder / "downloads"
    profile.mkdir()
    downloads.mkdir()
    preferences = {**PREFERENCES, "browser.download.dir": str(downloads)}
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in preferences.items()]
    (profile / "user.js").write_text("".join(lines))
    command = [firefox(), "--headless", "--no-remote", "--profile", str(profile)]
    log = folder / "firefox.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "--remote-debugging-port", "0"],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(folder), "MOZ_CRASHREPORTER_DISABLE": "1"},
        )
    try:
        end = time.monotonic() + PATIENCE
        while not (found := LISTENING.search(log.read_text())):
            assert process.poll() is None, f"Firefox ended: {log.read_text()[-300:]}"
            assert time.monotonic() < end, f"Firefox does not listen: {log.read_text()[-300:]}"
            time.sleep(0.2)
        socket = websocket.create_connection(
            f"{found[1]}/session", timeout=2 * PATIENCE, suppress_origin=True
        )
        yield FirefoxPage(socket, downloads)
        socket.close()
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
