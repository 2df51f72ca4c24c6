"""What a loading process raises reaches the main one as it was."""

import errno

import pytest
import torch
from torch.utils.data import Dataset

from distill.core.errors import DistillError
from distill.data.worker_loader import ErrorForwardingLoader


class Raising(Dataset):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        if index == 3:
            raise self.error
        return index


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.parametrize(
    "error", [DistillError("a: b; c"), FileNotFoundError(errno.ENOENT, "No such file", "name")]
)
def test_a_user_s_error_and_the_system_s_are_what_they_were(error, workers, batch):
    found: list = []
    with pytest.raises(type(error)) as caught:
        found.extend(ErrorForwardingLoader(Raising(error), batch, workers))
    assert torch.stack(list(map(torch.as_tensor, found))).flatten().tolist() == (
        [0, 1] if batch else [0, 1, 2]
    )
    assert caught.value.args == error.args
    if isinstance(error, OSError):
        assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, "name")


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError("of a library")])
@pytest.mark.campaign
def test_a_bug_keeps_the_traceback_of_its_process(error):
    with pytest.raises(type(error), match="in __getitem__"):
        list(ErrorForwardingLoader(Raising(error), 2, 1))


def test_batches_are_torch_s_own():
    loader = ErrorForwardingLoader(Raising(DistillError("never")), 3, 1, sampler=[0, 1, 2, 4, 5])
    first, last = loader
    assert torch.equal(first, torch.tensor([0, 1, 2]))
    assert torch.equal(last, torch.tensor([4, 5]))
    assert len(loader) == 2
