"""Steps that overlap, proved by the order of what happens and not by the clock."""

import threading

import pytest

from distill_video.stylised_video import Pipeline

PATIENCE = 20  # seconds after which a test that waits for another thread gives up


def test_everything_comes_through_in_order():
    with Pipeline(range(100), [lambda x: x + 1, str]) as items:
        assert list(items) == [str(i) for i in range(1, 101)]


def test_without_steps_the_source_still_runs_ahead():
    with Pipeline(range(5), []) as items:
        assert list(items) == list(range(5))


def test_all_stages_work_at_the_same_time():
    """Each of the four waits until all four are at work: one after the other would never end."""
    together = threading.Barrier(4)

    def source():
        for i in range(8):
            if i == 3:
                together.wait(PATIENCE)
            yield i

    def step(number):
        def work(i):
            if i == 2 - number:
                together.wait(PATIENCE)
            return i

        return work

    with Pipeline(source(), [step(0), step(1)]) as items:
        for i in items:
            if i == 0:
                together.wait(PATIENCE)
    assert i == 7
    assert not together.broken


def test_memory_is_bounded():
    """While the first item is looked at, the source gets as far as `depth` and no further."""
    made, depth = [], 7
    full = threading.Event()

    def source():
        for i in range(1000):
            made.append(i)
            if len(made) == depth:
                full.set()
            yield i

    with Pipeline(source(), [lambda x: x] * 2, depth) as items:
        assert next(items) == 0
        assert full.wait(PATIENCE)
        threading.Event().wait(0.1)
        assert len(made) == depth


def collect(pipeline, got):
    with pipeline as items:
        for item in items:
            got.append(item)  # one by one: what came before an error counts


@pytest.mark.parametrize("where", ["source", "first", "second"])
def test_an_error_arrives_after_what_was_before_it(where):
    def fail(i, here):
        if i == 5 and here == where:
            raise ZeroDivisionError(where)
        return i

    source = (fail(i, "source") for i in range(1000))
    got = []
    steps = [lambda i: fail(i, "first"), lambda i: fail(i, "second")]
    with pytest.raises(ZeroDivisionError, match=where):
        collect(Pipeline(source, steps), got)
    assert got == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_no_thread_is_left_when_the_caller_stops(error):
    before = threading.active_count()

    def stop():
        with Pipeline(iter(int, 1), [str, str]) as items:  # an endless source
            assert next(items) == "0"
            assert threading.active_count() == before + 3
            raise error

    with pytest.raises(error):
        stop()
    assert threading.active_count() == before


def test_busy_is_work_and_not_waiting():
    """The first step waits for a slow source: it has hardly worked."""
    tick = threading.Event()

    def source():
        for i in range(5):
            tick.wait(0.05)
            yield i

    pipeline = Pipeline(source(), [lambda i: i])
    with pipeline as items:
        list(items)
    assert pipeline.busy[0] >= 0.25
    assert pipeline.busy[1] < 0.05
