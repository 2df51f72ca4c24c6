"""In which order training reads the pairs of shards: shard by shard, and mixed all the same."""

from collections.abc import Sequence

import numpy as np

from distill.data.augment import rng_for
from distill.data.sampler import Indices, MixedStreams, Share, counts

WINDOW = 64  # shards: 32,000 pairs of 500 a shard
BLOCK = 8192  # positions in which every folder has its share


class WindowedPasses:
    """Place → pair of an endless stream in which every pass holds each pair once.

    `starts` (S,) and `sizes` (S,) say which numbers the pairs of each shard have: from its start
    on, so many.
    """

    def __init__(self, starts: Indices, sizes: Indices, *seed: object) -> None:
        self.starts, self.sizes, self.seed = starts, sizes, seed
        self.count = int(sizes.sum())
        self._pass, self._shards, self._ends = -1, starts[:0], starts[:0]
        self._window, self._mixed = (-1, -1), starts[:0]

    def at(self, place: int) -> int:
        """The number of the pair at this place of the stream."""
        number, offset = divmod(place, self.count)
        if number != self._pass:
            self._shards = rng_for(*self.seed, "shards", number).permutation(len(self.sizes))
            ends = np.cumsum(self.sizes[self._shards])
            self._ends = np.append(ends[WINDOW - 1 :: WINDOW], ends[-1:])
            self._pass = number
        window = int(np.searchsorted(self._ends, offset, side="right"))
        if (number, window) != self._window:
            shards = self._shards[window * WINDOW : (window + 1) * WINDOW]
            pairs = [np.arange(self.starts[s], self.starts[s] + self.sizes[s]) for s in shards]
            rng = rng_for(*self.seed, "window", number, window)
            self._mixed = rng.permutation(np.concatenate(pairs))
            self._window = (number, window)
        return int(self._mixed[offset - (self._ends[window - 1] if window else 0)])


class ShardOrder:
    """Position → number of the pair that comes there.

    With `shares`, whose members are the shards of a folder, by their place in `sizes`, every BLOCK
    positions (every pass, of fewer pairs) hold each folder's share, mixed, and each folder's pairs
    come in an endless stream of their own.
    """

    def __init__(self, sizes: Indices, seed: object, shares: Sequence[Share] | None = None) -> None:
        starts = np.cumsum(sizes) - sizes
        self.block = min(BLOCK, int(sizes.sum()))
        whole = shares or [Share(np.arange(len(sizes)), 1.0)]
        self._mixed = MixedStreams(counts(whole, self.block), seed, "folders")
        self._streams = [
            WindowedPasses(starts[each.members], sizes[each.members], seed, "folder", n)
            for n, each in enumerate(whole)
        ]

    def __call__(self, position: int) -> int:
        """Which pair comes at this position."""
        folder, place = self._mixed.place(position)
        return self._streams[folder].at(place)
