"""Every item is run exactly once, whoever runs it."""

from __future__ import annotations

import ctypes
import random
import sys
import threading
import time

import pytest

from convgrad._errors import AllocationError
from convgrad._runtime import parfor, scratch, threads
from convgrad._runtime import parking as parking_module
from convgrad._runtime.parking import Parking


def stress(counting, seed: int, jobs: int, most_threads: int = 8) -> None:
    source = random.Random(seed)
    for job in range(jobs):
        counting.run(
            items=source.randint(0, 48),
            grain=source.randint(1, 9),
            scratch_bytes=source.choice((0, 8, 1000)),
            threads=source.randint(1, most_threads),
            pauses=source.choice((0, 0, 0, 100)),
        )
        if job % 2000 == 0:
            time.sleep(0.001)  # lets the workers park


def test_a_hundred_thousand_random_jobs(make_counting):
    stress(make_counting(most=48), 1, 100_000)


def test_sixty_four_threads_on_few_processors(make_counting, fresh_pool):
    counting = make_counting(most=256)
    for job in range(300):
        counting.run(items=200, grain=1 + job % 3, threads=64, pauses=job % 7 * 100)
    assert threads._pool.workers == 63


def test_work_is_shared(counting):
    """Of a long job, somebody else's workspace was used: more than one thread took part."""
    workspace = scratch.workspace(4 * 128)
    words = (ctypes.c_int64 * 64).from_address(workspace.address)
    for _ in range(200):
        words[0] = words[16] = -1
        counting.run(items=64, grain=1, scratch_bytes=8, threads=2, pauses=50_000)
        if words[0] >= 0 and words[16] >= 0:
            return
    raise AssertionError("200 jobs of several milliseconds, and the worker never helped")


@pytest.mark.parametrize(("items", "grain"), [(1, 1), (5, 5), (3, 100)])
def test_a_small_problem_is_one_call_and_touches_no_pool(counting, monkeypatch, items, grain):
    monkeypatch.setattr(threads, "_pool", None)
    counting.run(items, grain, threads=8)
    assert (counting.calls, counting.longest) == (1, items)
    counting.run(64, 1, threads=1)
    assert (counting.calls, counting.longest) == (1, 64)
    assert threads._pool is None


def test_no_items_is_no_call(counting):
    counting.run(0, 1, threads=4)
    assert counting.calls == 0


def test_chunks_hold_grain_items(counting):
    counting.run(20, 6, threads=2)
    assert (counting.calls, counting.longest) == (4, 6)


def test_more_items_than_the_word_can_count(make_counting):
    items = 3 * parfor.MAX_CHUNKS + 5
    counting = make_counting(most=items)
    counting.run(items, 1, threads=3)
    assert counting.longest == 4


def test_more_threads_than_the_word_can_count(counting, fresh_pool, monkeypatch):
    monkeypatch.setattr(threads.Pool, "grow", lambda self, workers: None)
    counting.run(2000, 1, threads=1000)
    word = threads._pool.words[parking_module.CONTROL["WORD"]]
    assert word >> parfor.GENERATION_SHIFT == 1  # seats did not spill into the generation
    assert word >> parfor.SEAT_SHIFT & parfor.MAX_SEATS == 255


def test_without_a_loader_the_caller_does_it_all(counting, monkeypatch):
    monkeypatch.setattr(threads, "_pool", None)
    monkeypatch.setattr(threads, "_loader", None)
    counting.run(100, 1, threads=8)
    assert counting.calls == 1


def test_many_callers_at_once(make_counting):
    errors: list[BaseException] = []

    def caller(seed: int) -> None:
        try:
            stress(make_counting(most=48), seed, 2_000)
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=caller, args=(seed,)) for seed in range(8)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(30)
        assert not thread.is_alive()
    assert not errors


def test_a_second_caller_never_waits_for_the_first(make_counting):
    first, second = make_counting(), make_counting()
    first.run(8, 1, threads=2)
    slow = threading.Thread(target=first.run, args=(64, 1, 64, 2, 4_000_000))
    slow.start()
    time.sleep(0.01)
    second.run(64, 1, threads=2)
    assert slow.is_alive()
    assert second.calls == 1  # on its own thread, in one call
    slow.join()


def test_a_finalizer_may_launch_in_the_middle_of_a_launch(make_counting, monkeypatch):
    outer, inner = make_counting(), make_counting()
    from convgrad._runtime import launch as launch_module

    real = launch_module.workspace

    def interrupted(nbytes: int) -> scratch.Workspace:
        found = real(nbytes)
        monkeypatch.setattr(launch_module, "workspace", real)
        inner.run(50, 1, scratch_bytes=nbytes * 10, threads=2)  # replaces the thread's workspace
        return found

    monkeypatch.setattr(launch_module, "workspace", interrupted)
    outer.run(50, 1, scratch_bytes=1000, threads=2, pauses=100)


@pytest.mark.parametrize("way", [Parking.FUTEX, Parking.PTHREAD])
def test_both_ways_to_park(make_counting, fresh_pool, monkeypatch, way):
    if way is Parking.FUTEX and sys.platform != "linux":
        pytest.skip("Linux only")
    monkeypatch.setattr(parking_module, "choose", lambda: way)
    monkeypatch.setattr(threads, "_code", None)
    counting = make_counting(most=48)
    stress(counting, 3, 3_000, most_threads=5)
    pool = threads._pool
    assert_soon(lambda: pool.words[parking_module.CONTROL["PARKED"]] == pool.workers == 4)
    pool.stop(5)
    assert not any(member.is_alive() for member in pool._members)
    counting.run(48, 1, threads=4)  # nobody is left to help


@pytest.mark.parametrize("way", [Parking.FUTEX, Parking.PTHREAD])
def test_a_caller_that_waits_long_sleeps_and_is_woken(make_counting, fresh_pool, monkeypatch, way):
    if way is Parking.FUTEX and sys.platform != "linux":
        pytest.skip("Linux only")
    monkeypatch.setattr(parking_module, "choose", lambda: way)
    monkeypatch.setattr(threads, "_code", None)
    for name in ("PATIENCE", "ROUND", "ROUNDS"):  # in the shipped loop it takes 0.1 ms of waiting
        monkeypatch.setattr(parfor, name, 0)
    counting = make_counting(most=48)
    sleeps = parking_module.CONTROL["CALLER_SLEEPS"]
    slept, done = [], threading.Event()

    def call() -> None:
        while not slept:
            counting.run(2, threads=2, pauses=1_000_000)
        stress(counting, 4, 3_000, most_threads=3)
        done.set()

    caller = threading.Thread(target=call, daemon=True)  # a lost wake-up must not hang the exit
    caller.start()
    deadline = time.monotonic() + 10
    while not slept and time.monotonic() < deadline:
        if threads._pool is not None and threads._pool.words[sleeps]:
            slept.append(True)
        time.sleep(0.0001)
    assert slept
    assert done.wait(10), "the caller was not woken"


def test_idle_workers_sleep(counting):
    counting.run(48, 1, threads=4, pauses=1000)
    pool = threads._pool
    assert_soon(lambda: pool.words[parking_module.CONTROL["PARKED"]] == pool.workers)
    begin = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - begin < 0.1


def test_workspaces_are_aligned_reused_and_bounded(monkeypatch):
    scratch.release()
    first = scratch.workspace(100)
    assert first.address % 64 == 0 and first.capacity >= 100
    assert scratch.workspace(50) is first
    larger = scratch.workspace(first.capacity + 1)
    assert larger is not first and larger.address % 64 == 0
    assert scratch.workspace(1) is larger
    monkeypatch.setattr(scratch, "KEPT", 1 << 20)
    above = scratch.workspace((1 << 20) + 1)
    assert above is not larger and scratch.workspace(1) is larger
    seen = []
    other = threading.Thread(target=lambda: seen.append(scratch.workspace(1)))
    other.start()
    other.join()
    assert seen[0] is not larger
    with pytest.raises(AllocationError, match=f"workspace of {2**60:,} bytes"):
        scratch.workspace(2**60)


def assert_soon(condition, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
