import threading
import time
from collections.abc import Iterator

import pytest
import torch

from distill.metrics.features import parallel_map


@pytest.fixture(autouse=True)
def _three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_results_come_in_order_from_threads_that_work_alone():
    barrier, threads = threading.Barrier(3, timeout=10), set()

    def work(number: int) -> int:
        barrier.wait()  # three at a time, or never
        threads.add((threading.current_thread().name, torch.get_num_threads()))
        time.sleep(0.02 * (2 - number % 3))  # the first of them is the last to be ready
        return number**2

    assert list(parallel_map(work, range(9))) == [number**2 for number in range(9)]
    assert len(threads) == 3
    assert {count for _, count in threads} == {1}
    assert torch.get_num_threads() == 3


def test_few_items_wait():
    made, most, done = 0, 0, 0

    def items() -> Iterator[int]:
        nonlocal made, most
        for number in range(50):
            made += 1
            most = max(most, made - done)
            yield number

    for _ in parallel_map(lambda number: number, items()):
        done += 1
    assert made == done == 50
    assert most <= 2 * 3 + 2


def test_no_items_no_results():
    assert list(parallel_map(abs, [])) == []
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("where", ["work", "items"])
def test_a_failure_is_the_callers_and_gives_the_threads_back(where):
    def items() -> Iterator[int]:
        yield 1
        if where == "items":
            raise KeyError("in vain")
        yield 0

    with pytest.raises(ZeroDivisionError if where == "work" else KeyError):
        list(parallel_map(lambda number: 1 // number, items()))
    assert torch.get_num_threads() == 3
