"""A Ray cluster of several raylets on this machine, which ends whatever happens."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

# Ray takes 127.0.0.1 for the machine's other address, and then waits for a raylet there.
PLACE = {"node_ip_address": "127.0.0.2", "object_store_memory": 80 * 2**20}


class RayCluster:
    """A head without room for workers, at `address`, and nodes."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        # By default its processes end with this one, even when it is killed.
        self.cluster = Cluster()
        self.cluster.add_node(num_cpus=0, include_dashboard=False, **PLACE)
        self.address = self.cluster.address

    def add(self, num_cpus: int = 1, num_gpus: int = 0) -> None:
        """One more node; Ray takes our word for its GPUs."""
        self.cluster.add_node(num_cpus=num_cpus, num_gpus=num_gpus, **PLACE)

    def kill(self, node) -> None:
        """As when its power fails: nobody is told."""
        self.cluster.remove_node(node, allow_graceful=False)


@contextmanager
def own_ray() -> Iterator[None]:
    """Ray's files in a folder of their own, without keys, and nothing of it left at the end."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # the names of its sockets are long
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("PYTHONPATH", os.pathsep.join(_import_places()))
        sigterm = signal.getsignal(signal.SIGTERM)  # a node that starts in here sets its own
        try:
            yield
        finally:
            ray.shutdown()
            signal.signal(signal.SIGTERM, sigterm)
            shutil.rmtree(folder, ignore_errors=True)


def _import_places() -> list[str]:
    """Where workers find what tests import: the package as it is tried here, and tests/."""
    import distill
    import support

    places = [os.path.dirname(os.path.dirname(each.__file__)) for each in (distill, support)]
    return [*places, *filter(None, [os.environ.get("PYTHONPATH")])]


@contextmanager
def ray_cluster(nodes: int) -> Iterator[RayCluster]:
    """A head and so many nodes."""
    with own_ray():
        made = RayCluster()
        try:
            for _ in range(nodes):
                made.add()
            yield made
        finally:
            import ray

            with suppress(Exception):
                ray.shutdown()
            made.cluster.shutdown()
