"""What workers of a cluster carry out; they load this file, and not all that its tests do."""

import os
import time

from distill.core.errors import DistillError


class Visible:
    """A worker that says which GPUs it may use."""

    def __call__(self, lease):
        time.sleep(0.5)
        return os.environ["CUDA_VISIBLE_DEVICES"]


def twice(number, by=2):
    return by * number


class Halves:
    """A worker that some leases are too much for."""

    def __call__(self, lease):
        if lease == "full":
            raise DistillError("no room; make some")
        if lease == "closed":
            raise PermissionError(13, "Permission denied", "/there")
        if lease == "dies":
            os._exit(1)
        return len(lease) / 2


class Absent:
    """A worker that nodes cannot make."""

    def __reduce__(self):
        return (_missing, ())


def _missing():
    raise ModuleNotFoundError("No module named 'absent'")


def out_of_reach(_part):
    raise DistillError("s3://photos/1.png: cannot be read; run it again to resume")
