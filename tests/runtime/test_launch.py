"""Every item is run exactly once, on whatever thread."""

from __future__ import annotations

import ctypes
import random
import sys
import threading
import time

import numpy as np
import pytest

from convgrad._runtime import code, parfor, pool
from convgrad._runtime import parking as parking_module
from convgrad._runtime.parking import Parking
from convgrad._runtime.program import Launch
from convgrad._runtime.state import State, address_of
from runtime.kernels import loader


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


@pytest.mark.parametrize("jobs", [25_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_random_jobs(make_counting, jobs):
    stress(make_counting(most=48), jobs, jobs)


def test_sixty_four_threads_on_few_processors(make_counting, fresh_pool):
    counting = make_counting(most=256)
    for job in range(300):
        counting.run(items=200, grain=1 + job % 3, threads=64, pauses=job % 7 * 100)
    assert pool._pool.workers == 63


def test_work_is_shared(counting):
    """Of a long job, somebody else's workspace was used: more than one thread took part."""
    lent = np.zeros(64, np.int64)
    state = lending(lent)
    state["CONTROL"] = pool.ensure(2).control
    end = time.monotonic() + 30  # other tests may hold both processors for a while
    while time.monotonic() < end:
        lent[0] = lent[16] = -1
        counting.run(items=64, grain=1, scratch_bytes=8, threads=2, pauses=50_000, state=state)
        if lent[0] >= 0 and lent[16] >= 0:
            return
    raise AssertionError("jobs of several milliseconds for 30 s, and the worker never helped")


def lending(memory) -> State:
    """Return a runtime block whose programs get this memory, whatever they ask for."""
    take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda nbytes: memory.ctypes.data)
    give = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(lambda address, nbytes: None)
    state = State()
    state["TAKE"], state["GIVE"] = address_of(take), address_of(give)
    state.kept = take, give, memory
    return state


def relink(monkeypatch) -> None:
    """Compile the loop anew, as the patched modules say."""
    monkeypatch.setattr(code, "_code", None)
    code.ensure(loader)


@pytest.mark.parametrize(("items", "grain"), [(1, 1), (5, 5), (3, 100)])
def test_a_small_problem_is_one_call_and_touches_no_pool(counting, monkeypatch, items, grain):
    monkeypatch.setattr(pool, "_pool", None)
    counting.run(items, grain, threads=8)
    assert (counting.calls, counting.longest) == (1, items)
    counting.run(64, 1, threads=1)
    assert (counting.calls, counting.longest) == (1, 64)
    assert pool._pool is None


def test_no_items_is_no_call(counting):
    counting.run(0, 1, threads=4)
    assert counting.calls == 0


@pytest.mark.parametrize(
    ("count", "longest", "calls"), [(2, 8, 8), (8, 8, 8), (16, 4, 16), (32, 2, 32), (64, 2, 32)]
)
def test_claims_shrink_where_there_are_more_threads(counting, count, longest, calls):
    """Down to `least` items; as `Launch.claim` says, which simulations go by."""
    counting.run(items=64, grain=8, least=2, threads=count)
    assert (counting.longest, counting.calls) == (longest, calls)
    assert Launch(0, (), (), 64, 8, 0, least=2).claim(count) == longest


def test_chunks_hold_grain_items(counting):
    counting.run(20, 6, threads=2)
    assert (counting.calls, counting.longest) == (4, 6)


def test_more_items_than_the_word_can_count(make_counting):
    items = 3 * parfor.MAX_CHUNKS + 5
    counting = make_counting(most=items)
    counting.run(items, 1, threads=3)
    assert counting.longest == 4


def test_more_threads_than_the_word_can_count(counting, fresh_pool, monkeypatch):
    monkeypatch.setattr(pool.Pool, "grow", lambda self, workers: None)
    counting.run(2000, 1, threads=1000)
    word = pool._pool.words[parking_module.CONTROL["WORD"]]
    assert word >> parfor.GENERATION_SHIFT == 1  # seats did not spill into the generation
    assert word >> parfor.SEAT_SHIFT & parfor.MAX_SEATS == 255


def test_without_a_pool_the_caller_does_it_all(counting):
    counting.run(100, 1, threads=8, state=State())
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


@pytest.mark.parametrize("way", [Parking.FUTEX, Parking.PTHREAD])
def test_both_ways_to_park(make_counting, fresh_pool, monkeypatch, way):
    if way is Parking.FUTEX and sys.platform != "linux":
        pytest.skip("Linux only")
    monkeypatch.setattr(parking_module, "choose_way", lambda: way)
    relink(monkeypatch)
    counting = make_counting(most=48)
    stress(counting, 3, 3_000, most_threads=5)
    own = pool._pool
    assert_soon(lambda: own.words[parking_module.CONTROL["PARKED"]] == own.workers == 4)
    own.stop(5)
    assert not any(member.is_alive() for member in own._members)
    counting.run(48, 1, threads=4)  # nobody is left to help


@pytest.mark.parametrize("way", [Parking.FUTEX, Parking.PTHREAD])
def test_a_caller_that_waits_long_sleeps_and_is_woken(make_counting, fresh_pool, monkeypatch, way):
    if way is Parking.FUTEX and sys.platform != "linux":
        pytest.skip("Linux only")
    monkeypatch.setattr(parking_module, "choose_way", lambda: way)
    relink(monkeypatch)
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
        if pool._pool is not None and pool._pool.words[sleeps]:
            slept.append(True)
        time.sleep(0.0001)
    assert slept
    assert done.wait(10), "the caller was not woken"


def test_idle_workers_sleep(counting):
    counting.run(48, 1, threads=4, pauses=1000)
    own = pool._pool
    assert_soon(lambda: own.words[parking_module.CONTROL["PARKED"]] == own.workers)
    begin = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - begin < 0.1


def assert_soon(condition, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
