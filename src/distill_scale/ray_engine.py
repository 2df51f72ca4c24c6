"""engine=ray: leases go to actors of a Ray cluster, one each; a node that dies loses its leases.

Ray restarts nothing: with restarts an actor whose node went away for good is waited for without
end. What was lost is leased again from here, to whichever worker is there.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from distill import __version__
from distill.config.settings.base import PathText, Positive
from distill.core.engine import Engine, Lease, Part, Result
from distill.core.errors import DistillError, counted, extra_package, reason_of

LOOK = 1.0  # seconds between two looks at the nodes
REACH = 10.0  # seconds for a cluster's head to answer
LONG = 60.0  # seconds for which a worker may start before a word is said
LOSSES = 5  # of one lease, or of workers that were to start: then it is no accident


class LeaseWorker:
    """The actor: a worker in a process of its own."""

    def __init__(self, version: str, worker: Callable[[Any], Any]) -> None:
        if version != __version__:
            raise DistillError(f"distill {__version__} on a node, {version} here; install the same")
        self.worker = worker

    def ready(self) -> None:
        """Nothing; a call that returns shows that the worker has started."""

    def carry_out(self, lease: Any) -> Any:
        return _call(self.worker, lease)


class RayEngine(Engine):
    """The cluster at `address`, from `with` on. Raises DistillError where it cannot be had.

    `cpus` and `gpus` are those of a worker, None: 1 GPU if the cluster has any; `wait` is how many
    seconds to wait for nodes where no worker is left.
    """

    no_folder = (
        "labels into shards; add data=shards, and python -m distill.shards to=pairs makes a folder "
        "of them"
    )

    def __init__(
        self,
        address: PathText | None = None,
        cpus: Positive = 1,
        gpus: Annotated[float, Field(ge=0)] | None = None,
        wait: Annotated[float, Field(ge=0)] = 600,
    ) -> None:
        self.address, self.cpus, self.gpus, self.wait = address, cpus, gpus, wait
        self.ray = extra_package("ray", "engine=ray", "pip install 'distill[ray]'")

    def __enter__(self) -> RayEngine:
        # A cluster that starts here asks nobody whether it may report its use.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = self.address
        start: dict[str, Any] = {} if address else {"include_dashboard": False}
        self.sigterm = signal.getsignal(signal.SIGTERM)
        try:
            _reach(address or "")
            self.ray.init(
                address=address or "local",
                logging_level=logging.ERROR,
                log_to_driver=False,
                **start,
            )
        except Exception as error:  # of many kinds, down to those of its own start scripts
            self.__exit__()
            where = f"engine.address={address}" if address else "engine=ray"
            raise DistillError(
                f"{where}: no Ray cluster there ({reason_of(error, 200)}); start one with ray "
                "start --head, on this machine or one that it reaches"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self.ray.shutdown()
        # Ray sets a handler of its own, by which a process ends with its cluster, and keeps it.
        signal.signal(signal.SIGTERM, self.sigterm or signal.SIG_DFL)

    def device(self, asked: str) -> str:
        if asked != "auto":
            return asked
        there = any(node["Resources"].get("GPU") for node in self._nodes())
        return "cuda" if there and self.gpus != 0 else "cpu"

    def map(self, fn: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        # Ray's own retries are enough for a function that leaves nothing behind.
        task: Any = self.ray.remote(_call).options(
            num_cpus=1, max_retries=LOSSES, scheduling_strategy="SPREAD"
        )
        called, left, running = self.ray.put(fn), iter(parts), deque[Any]()
        patience = Patience(self.wait, "")
        while True:
            room = self.room(1, 0)
            ahead = islice(left, max(2 * room - len(running), not running))
            running += [task.remote(called, part) for part in ahead]
            if not running:
                return
            done, _ = self.ray.wait([running[0]], timeout=LOOK)
            if done:
                patience = Patience(self.wait, "")
                result, lost = self.result(running.popleft())
                if lost:
                    raise DistillError(f"engine=ray: {lost}; run it again to resume")
                yield result
            elif not room:
                patience.check(room)

    def result(self, ref: Any) -> tuple[Any, str]:
        """What a call gave, and why that was lost, if it was; what it raised is raised here."""
        try:
            result = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError:
            raise  # an error of ours, with its traceback
        except self.ray.exceptions.RayError as error:
            return None, reason_of(error, 300)
        if isinstance(result, Exception):
            raise result
        return result, ""

    def run(
        self, worker: Callable[[Lease], Result], leases: Sequence[Lease], device: str
    ) -> Iterator[tuple[Lease, Result]]:
        crew = Crew(self, worker, device, len(leases))
        try:
            yield from crew.work(leases)
        finally:
            crew.dismiss()

    def room(self, cpus: float, gpus: float) -> int:
        """For how many workers the nodes have room, whatever else they do at present."""
        wanted = {kind: each for kind, each in (("CPU", cpus), ("GPU", gpus)) if each}
        return sum(
            min(int(node["Resources"].get(kind, 0) / each) for kind, each in wanted.items())
            for node in self._nodes()
        )

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"]]


class Patience:
    """Says that there is no worker, and then waits so many seconds for one."""

    def __init__(self, wait: float, done: str) -> None:
        self.wait, self.done = wait, done
        self._since: float | None = None  # the first look at which nothing was done
        self._reported: float | None = None

    def check(self, room: int) -> None:
        """To be called while nothing is done; `room` is for how many workers there is any.

        Raises DistillError when it has been long enough.
        """
        now, most = time.monotonic(), self.wait
        self._since = self._since or now
        none = "no node has room for a worker" if not room else "no worker could start"
        if self._reported is None:
            if not room or now - self._since > LONG:  # one that starts takes a while
                print(f"engine=ray: {none}; waits {most:.0f} seconds for nodes", flush=True)
                self._reported = now
        elif now - self._reported > most:
            raise DistillError(
                f"engine=ray: {none} for {now - self._since:.0f} seconds{self.done}; add nodes "
                "with ray start --address=HOST:PORT, run it again to resume"
            )


class Crew:
    """The actors of one run: those that start, by what tells that they have, and the busy ones.

    A lease is given to an actor that has started, never to one that may not: so none is lost with a
    node that goes away before.
    """

    def __init__(
        self, engine: RayEngine, worker: Callable[[Any], Any], device: str, count: int
    ) -> None:
        self.engine, self.ray, self.count = engine, engine.ray, count
        self.cpus, gpus = engine.cpus, engine.gpus
        self.gpus = gpus if gpus is not None else float(device == "cuda")
        self._worker = self.ray.put(worker)
        self._actor = self.ray.remote(LeaseWorker).options(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        self.waiting = deque(range(count))
        self.starting: dict[Any, Any] = {}
        self.busy: dict[Any, tuple[Any, int]] = {}
        self.lost: Counter[int] = Counter()
        self.failed = self.done = self.room = 0
        self._looked = -LOOK

    def work(self, leases: Sequence[Lease]) -> Iterator[tuple[Lease, Any]]:
        """Each lease and what was made of it. Raises DistillError."""
        patience = self._patience()
        while self.waiting or self.busy:
            self._hire()
            refs = [*self.starting, *self.busy]
            if not refs:
                time.sleep(LOOK)
            for ref in self.ray.wait(refs, timeout=LOOK)[0] if refs else []:
                if ref in self.starting:
                    self._started(ref, leases)
                    continue
                actor, number = self.busy.pop(ref)
                result, lost = self.engine.result(ref)
                if lost:
                    self._lose(actor, number, lost)
                    continue
                self.done += 1
                self._employ(actor, leases)
                yield leases[number], result
            if self.busy:
                patience = self._patience()
            elif self.waiting:
                patience.check(self.room)

    def dismiss(self) -> None:
        """End every actor; what one of them has begun is published whole or not at all."""
        for actor in [*self.starting.values(), *(actor for actor, _ in self.busy.values())]:
            self._kill(actor)

    def _patience(self) -> Patience:
        return Patience(self.engine.wait, f", done: {self.done} of {counted(self.count, 'shard')}")

    def _hire(self) -> None:
        """As many actors as there are leases and room for; those beyond it could never start."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        self.room = self.engine.room(self.cpus, self.gpus)
        wanted = min(self.room, len(self.waiting) + len(self.busy))
        while len(self.starting) + len(self.busy) < wanted:
            actor = self._actor.remote(__version__, self._worker)
            self.starting[actor.ready.remote()] = actor
        while self.starting and len(self.starting) + len(self.busy) > wanted:
            self._kill(self.starting.popitem()[1])

    def _started(self, ref: Any, leases: Sequence[Any]) -> None:
        actor = self.starting.pop(ref)
        try:
            self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            self._kill(actor)
            self.failed += bool(getattr(error, "actor_init_failed", False))
            if self.failed < LOSSES:
                return  # its node may be gone
            reason = str(error).strip().splitlines()[-1]
            raise DistillError(f"engine=ray: a worker does not start ({reason})") from error
        self._employ(actor, leases)

    def _employ(self, actor: Any, leases: Sequence[Any]) -> None:
        """Give the actor a lease, or let it go where none is waiting."""
        if self.waiting:
            number = self.waiting.popleft()
            self.busy[actor.carry_out.remote(leases[number])] = (actor, number)
        else:
            self._kill(actor)

    def _lose(self, actor: Any, number: int, why: str) -> None:
        self._kill(actor)  # it may be there still, out of reach
        self.waiting.appendleft(number)
        self.lost[number] += 1
        if self.lost[number] == LOSSES:
            raise DistillError(
                f"engine=ray: {LOSSES} workers were lost over one shard, the last: {why}; where "
                "memory was short, give each more cores (engine.cpus=N), so that fewer share it"
            )
        print("engine=ray: a worker was lost; its shard is made again", flush=True)

    def _kill(self, actor: Any) -> None:
        with suppress(self.ray.exceptions.RayError):
            self.ray.kill(actor, no_restart=True)


def _reach(address: str) -> None:
    """Raises OSError where nothing answers at HOST:PORT: Ray would try it for many minutes."""
    host, _, port = address.rpartition(":")
    if "://" in address or not port.isdigit():
        return
    socket.create_connection((host.strip("[]"), int(port)), timeout=REACH).close()


def _call(fn: Callable[[Part], Result], part: Part) -> Result | DistillError | OSError:
    try:
        return fn(part)
    except (DistillError, OSError) as error:  # raised, Ray would wrap it into its traceback
        return error
