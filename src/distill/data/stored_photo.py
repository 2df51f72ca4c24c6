"""A photo at an address: what reading it needs of a path, with what its listing says of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from distill.core.errors import DistillError, reason_of
from distill.data.decode import BadPhoto
from distill.data.shards.address import Address

PAUSES = (1.0, 5.0)  # seconds before a photo is asked for again; stores' own libraries try, too


@dataclass(frozen=True, slots=True)
class StoredPhoto:
    """The file `key` below an address, by its listing: bytes (-1: not known) and a stamp.

    The stamp, an ETag or a time, changes when the file does. universal_pathlib's UPath would do
    the same, but cannot be used in a process that was forked after it was read, asks the store for
    what the listing knows, and takes ten times as long to make.
    """

    folder: Address
    key: str
    size: int
    stamp: str

    def __str__(self) -> str:
        return f"{self.folder}/{self.key}"

    def absolute(self) -> StoredPhoto:
        """Itself: it is the same wherever a process works."""
        return self

    def read(self) -> bytes:
        """The whole file. Raises BadPhoto where it is gone.

        A DistillError where the store does not give it, after some more tries: that is no fault of
        the photo, which must not be listed as one that cannot be used.
        """
        for pause in (*PAUSES, None):
            try:
                return self._read()
            except FileNotFoundError:
                raise BadPhoto("no longer there") from None
            except DistillError as error:
                why = error.__cause__ or error
                if pause is None or isinstance(why, PermissionError):
                    raise DistillError(
                        f"{self}: cannot be read ({reason_of(why, 200)}); run it again to "
                        "resume, drop=FILE leaves a photo out"
                    ) from error
                time.sleep(pause)
        raise AssertionError

    def _read(self) -> bytes:
        content = self.folder.read(self.key)
        if len(content) != self.size >= 0 and len(content) != (now := self.folder.size(self.key)):
            raise DistillError(f"{len(content)} of {now} bytes came")
        return content
