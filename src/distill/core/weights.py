"""Find, download and verify weights files; the only module that touches the network."""

import math
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from distill.core.errors import DistillError
from distill.core.files import atomic_write, cache_folder, git_blob_id, home_path, sha256
from distill.core.progress import bar

CHUNK = 1 << 20  # bytes read at a time
TIMEOUT = 20  # seconds without a byte before a download is given up
AGAIN = 300  # seconds until a host that did not answer is asked for another file
_silent = dict[str, float]()  # when such hosts did not answer


@dataclass(frozen=True)
class WeightsFile:
    """A weights file as published: its name, address and hash.

    `sha256` may be a prefix of 8 or more digits, as torchvision puts into its file names;
    `git_blob` is the id that a git repository gives the content: SHA-1 of `blob SIZE\\0` + content.
    """

    name: str
    url: str | None = None
    sha256: str | None = None
    git_blob: str | None = None

    @property
    def verifiable(self) -> bool:
        """Whether a hash of it is known."""
        return bool(self.sha256 or self.git_blob)


def matches(path: Path, file: WeightsFile) -> bool:
    """Whether the file has every hash that is known of it."""
    if file.sha256 and not sha256(path).startswith(file.sha256.lower()):
        return False
    return not file.git_blob or git_blob_id(path) == file.git_blob.lower()


def supplied(name: str) -> Path | None:
    """The file of that name in the folders of `$DISTILL_WEIGHTS` (separated as in PATH), if any."""
    folders = os.environ.get("DISTILL_WEIGHTS", "").split(os.pathsep)
    paths = (home_path(folder) / name for folder in folders if folder)
    return next((path for path in paths if path.is_file()), None)


def find(file: WeightsFile, explicit: str | None = None, key: str | None = None) -> Path:
    """Path of a weights file: `explicit`, then `$DISTILL_WEIGHTS`, then the cache, then a download.

    An explicit path is the user's own choice, so its hash is not checked. `key` names the setting
    that takes such a path. A published file of which no hash is known is never downloaded, and
    where it is available a line says that it was not checked. Raises DistillError (which names
    file, URL, hash and ways to supply the file) when nothing is found or a hash is wrong.
    """
    if explicit:
        path = home_path(explicit)
        if not path.is_file():
            raise DistillError(f"{key or 'weights'}={explicit}: no such file")
        return path
    local = supplied(file.name) or cache_folder() / file.name
    if not local.is_file():
        return _download(file, key)
    if not matches(local, file):
        raise DistillError(_help(file, f"{local} has another hash", key))
    if file.url and not file.verifiable:
        print(f"{local}: used unchecked, no expected hash is known; its hash is {sha256(local)}")
    return local


def find_or_none(*files: WeightsFile, download: bool = False) -> Path | None:
    """The first of several files that is available (or, with `download`, can be fetched).

    A file available with a wrong hash is an error; that nothing can be fetched is not.
    """
    for file in files:
        if supplied(file.name) or (cache_folder() / file.name).is_file():
            return find(file)
        if download and file.url:
            with suppress(DistillError):
                return find(file)
    return None


def _download(file: WeightsFile, key: str | None) -> Path:
    import http.client  # with urllib, 30 ms of every command that downloads nothing
    import urllib.parse

    if not file.url:
        raise DistillError(_help(file, "not found, and no public address is known", key))
    if not file.verifiable:
        reason = "not found, and not downloaded, since nothing could check it"
        raise DistillError(_help(file, reason, key))
    target = cache_folder() / file.name
    print(f"{file.name}: not in {cache_folder()} or DISTILL_WEIGHTS, fetched from {file.url}")
    try:
        host = urllib.parse.urlsplit(file.url).netloc
        if time.monotonic() - _silent.get(host, -math.inf) < AGAIN:
            raise OSError(f"{host} did not answer just now")
        with atomic_write(target, resume=True) as temporary:
            _fetch(file.url, temporary)
            if not matches(temporary, file):
                temporary.unlink()
                raise DistillError(_help(file, "the download has another hash", key))
    # ValueError is an address of no known kind, HTTPException a reply that breaks off in a chunk.
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DistillError(_help(file, f"cannot be downloaded ({error})", key)) from error
    return target


def _fetch(url: str, target: Path) -> None:
    """Go on with what `target` has already, where the server can; else from the start."""
    import http.client
    import urllib.request

    have = target.stat().st_size if target.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        reply = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if not have or error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        with error:  # all of it is there, or more than all: its hash tells
            return
    except urllib.error.URLError:
        if host := urllib.parse.urlsplit(url).netloc:
            _silent[host] = time.monotonic()
        raise
    goes_on = getattr(reply, "status", None) == http.client.PARTIAL_CONTENT
    with reply, target.open("ab" if goes_on else "wb") as out:
        size = int(reply.headers.get("Content-Length") or 0)
        size += out.tell() if size else 0
        name = url.rsplit("/", 1)[-1]
        with bar(size or None, "B", name, bytes_=True) as progress:
            progress.update(out.tell())
            while chunk := reply.read(CHUNK):
                out.write(chunk)
                progress.update(len(chunk))
    if size and target.stat().st_size != size:
        raise OSError(f"cut short: {target.stat().st_size} of {size} bytes")


def _help(file: WeightsFile, what: str, key: str | None) -> str:
    ways = f"put {file.name} into a folder named by DISTILL_WEIGHTS or into {cache_folder()}"
    if key:
        ways += f", or pass {key}=FILE (its hash is then not checked)"
    digest = f"sha256 {file.sha256}" if file.sha256 else f"git blob {file.git_blob}"
    expected = digest if file.verifiable else "no hash known"
    return f"weights file {file.name}: {what}; URL {file.url or 'none'}; {expected}; {ways}"
