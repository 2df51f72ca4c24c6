"""Remote shards on this machine's disk, as many as fit into a limit, the least recently used go."""

import os
import threading
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from distill.core.errors import DistillError
from distill.core.files import atomic_write, cache_folder, sha256
from distill.data.address import Address
from distill_scale.packed.shard_index import broken, shard_path

SLOTS = 64  # lock files: of two shards in one slot, one process at a time fetches one
WAITING = 64  # shards; what was wanted before the last of them is no longer


class NodeCache:
    """Copies of whole shards, named by their content, for all processes of a machine.

    Nobody waits for a copy: a shard that is wanted is fetched in the background, and meanwhile its
    pairs are read where they are. Complete copies never take more than `limit` bytes; what each
    process is fetching comes on top. A copy that is removed while it is read stays readable.
    """

    def __init__(self, root: Address, limit: int, folder: Path | None = None) -> None:
        self.root, self.limit = root, limit
        self.folder = folder or cache_folder() / "shards"
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._queue: deque[tuple[str, str]] = deque(maxlen=WAITING)
        self._ready = threading.Condition()
        self._thread: threading.Thread | None = None
        self._off = False

    def __reduce__(self) -> tuple[Any, ...]:  # a thread does not go to another process
        return type(self), (self.root, self.limit, self.folder)

    def copy(self, content: str) -> Path | None:
        """The copy of the shard with this SHA-256, if it is there; it counts as used now."""
        path = self._path(content)
        try:
            os.utime(path)
        except OSError:
            return None
        return path

    def want(self, shard: str, content: str) -> None:
        """Have a shard fetched, sooner or later, by a thread of this process."""
        if self._process != os.getpid():  # a thread does not live on in a forked process
            self._begin()
        with self._ready:
            if self._off or (shard, content) in self._queue:
                return
            self._queue.append((shard, content))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
            self._ready.notify()

    def _work(self) -> None:
        while not self._off:
            with self._ready:
                while not self._queue:
                    self._ready.wait()
                shard, content = self._queue.popleft()
            try:
                self.fetch(shard, content)
            except (DistillError, OSError) as error:
                self._off = True
                print(f"cache of shards: off, pairs are read one by one: {error}")

    def fetch(self, shard: str, content: str) -> bool:
        """Fetch a shard now; False where it is there, too large, or another process is at it.

        Raises DistillError where it cannot be read or is another than the catalogue says, OSError
        where it cannot be written.
        """
        path, size = self._path(content), self.root.size(shard_path(shard))
        if path.is_file() or size is None or size > self.limit:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        slot = FileLock(self.folder / f".fetch-{int(content[:8], 16) % SLOTS}.lock")
        try:
            with slot.acquire(blocking=False):
                # Room is held until the copy has its name, so that two never take the same.
                with ExitStack() as room, atomic_write(path) as temporary:
                    self.root.copy_to(shard_path(shard), temporary)
                    if sha256(temporary) != content:
                        where = f"{self.root}/{shard_path(shard)}"
                        raise broken(where, "not the shard of the catalogue")
                    room.enter_context(FileLock(self.folder / ".room.lock"))
                    self._make_room(size)
                return True
        except Timeout:
            return False

    def _make_room(self, size: int) -> None:
        """Remove copies, the least recently used first, until so many bytes are free."""
        copies = []
        for path in self.folder.glob("*.tar"):
            with suppress(FileNotFoundError):
                copies.append((path.stat(), path))
        used = sum(status.st_size for status, _ in copies)
        for status, path in sorted(copies, key=lambda each: each[0].st_mtime_ns):
            if used + size <= self.limit:
                return
            path.unlink(missing_ok=True)
            used -= status.st_size

    def _path(self, content: str) -> Path:
        return self.folder / f"{content}.tar"
