"""Result arrays and the pool behind the large ones."""

from __future__ import annotations

import gc
import os
import random
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from convgrad._base import config
from convgrad._base.errors import AllocationError
from convgrad._runtime import blocks, results
from convgrad._runtime.results import new_result, pool_stats, trim

MB = 1 << 20
BYTE = np.dtype(np.uint8)
pooled = pytest.mark.skipif(not blocks.CAN_MAP, reason="no private mappings here")


@pytest.fixture(autouse=True)
def clean_pool():
    gc.collect()
    trim()
    yield
    gc.collect()
    trim()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "shape", [(), (0,), (3, 0, 2), (1,), (7, 5), (1, 14, 14, 64), (MB // 8,), (MB,), (3, MB + 1)]
)
def test_every_result_is_aligned_contiguous_and_writable(shape, dtype):
    kept = [new_result(shape, np.dtype(dtype)) for _ in range(5)]
    for value, array in enumerate(kept):
        assert type(array) is np.ndarray
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
        assert array.ctypes.data % results.ALIGNMENT == 0
        array[...] = value
    for value, array in enumerate(kept):  # no two share memory
        assert (array == value).all()


@pooled
def test_a_large_result_starts_on_a_huge_page_and_a_small_one_is_numpys():
    large = new_result((MB,), BYTE)
    assert large.ctypes.data % blocks.HUGE_PAGE == 0
    assert pool_stats().lent_blocks == 1
    small = new_result((MB - 1,), BYTE)
    assert pool_stats().lent_blocks == 1
    assert small.ctypes.data % 64 == 0


@pooled
def test_a_dead_results_block_is_used_again():
    first = new_result((5 * MB,), BYTE)
    address = first.ctypes.data
    del first
    assert pool_stats() == blocks.PoolStats(1, 6 * MB, 0, 0)
    again = new_result((5 * MB + 100,), BYTE)
    assert again.ctypes.data == address
    assert pool_stats() == blocks.PoolStats(0, 0, 1, 6 * MB)


@pooled
def test_a_block_a_quarter_too_large_is_used_and_a_larger_one_is_not():
    del (keep := [new_result((10 * MB,), BYTE)])[:]
    fits = new_result((8 * MB,), BYTE)
    assert pool_stats().idle_blocks == 0 and pool_stats().lent_bytes == 10 * MB
    del fits
    other = new_result((6 * MB,), BYTE)
    assert pool_stats().idle_bytes == 10 * MB and pool_stats().lent_bytes == 6 * MB
    del other, keep


@pooled
@pytest.mark.parametrize(
    "derive",
    [
        lambda a: a[3:4],
        lambda a: a.reshape(2, -1)[1].T,
        lambda a: a.view(np.uint8)[::7],
        lambda a: memoryview(a)[1:2],
        lambda a: np.asarray(memoryview(a)),
        lambda a: np.broadcast_to(a[:1], (9,)),
    ],
)
def test_a_view_keeps_the_block(derive):
    array = new_result((MB,), np.dtype(np.float32))
    array[:] = 7
    view = derive(array)
    before = np.array(view)
    del array
    gc.collect()
    assert pool_stats().lent_blocks == 1
    other = new_result((MB,), np.dtype(np.float32))
    other[:] = 9
    assert (np.asarray(view) == before).all()
    del view
    assert pool_stats().idle_blocks == 1


@pooled
def test_idle_bytes_stay_under_the_bound_and_the_oldest_goes_first():
    with config.scope(pool_bytes=10 * MB):
        kept = [new_result((4 * MB,), BYTE) for _ in range(4)]
        addresses = [array.ctypes.data for array in kept]
        while kept:
            del kept[0]
            assert pool_stats().idle_bytes <= 10 * MB
        assert pool_stats().idle_bytes == 8 * MB
        kept = [new_result((4 * MB,), BYTE) for _ in range(2)]
        assert [array.ctypes.data for array in kept] == addresses[:1:-1]
        huge = new_result((11 * MB,), BYTE)
        del huge, kept
        assert pool_stats().idle_bytes == 8 * MB  # the block above the bound was not kept


@pooled
def test_the_pool_can_be_switched_off():
    with config.scope(pool_bytes=0):
        array = new_result((4 * MB,), BYTE)
        assert pool_stats().lent_blocks == 0
        assert array.ctypes.data % 64 == 0
        del array
        assert pool_stats().idle_blocks == 0


@pooled
def test_trim_frees_all_idle_blocks_and_no_others():
    kept = new_result((4 * MB,), BYTE)
    kept[:] = 3
    del (dying := [new_result((2 * MB,), BYTE), new_result((6 * MB,), BYTE)])[:]
    assert trim() == 8 * MB
    assert trim() == 0
    assert pool_stats() == blocks.PoolStats(0, 0, 1, 4 * MB)
    assert (kept == 3).all() and not dying


def test_size_classes_waste_little():
    for nbytes in [
        MB,
        MB + 1,
        2 * MB,
        2 * MB + 1,
        31 * MB,
        33 * MB + 5,
        38_535_168,
        10**9,
        10**12 + 7,
    ]:
        capacity = blocks.capacity_for(nbytes)
        assert capacity % blocks.HUGE_PAGE == 0
        assert 0 <= capacity - nbytes < max(blocks.HUGE_PAGE, nbytes / 8)
        assert blocks.capacity_for(capacity) == capacity


@pytest.mark.parametrize("pool_bytes", [0, 64 * MB])
@pytest.mark.parametrize("elements", [2**47, 2**60, 2**70], ids=["2**50", "2**63", "2**73"])
def test_no_memory_names_the_bytes(pool_bytes, elements):
    with (
        config.scope(pool_bytes=pool_bytes),
        pytest.raises(AllocationError, match=f"{8 * elements:,} bytes.*float64"),
    ):
        new_result((elements,), np.dtype(np.float64))


@pooled
def test_idle_blocks_are_freed_before_memory_is_refused(monkeypatch):
    del (dying := [new_result((4 * MB,), BYTE)])[:]
    real = blocks.HugeBlock

    def refuse_while_idle(capacity):
        if pool_stats().idle_blocks:
            raise OSError(12, "Cannot allocate memory")
        return real(capacity)

    monkeypatch.setattr(blocks, "HugeBlock", refuse_while_idle)
    assert new_result((32 * MB,), BYTE).nbytes == 32 * MB and not dying


@pooled
def test_a_result_in_a_cycle_comes_back_through_the_collector():
    class Node:
        pass

    node = Node()
    node.itself = node
    node.array = new_result((4 * MB,), BYTE)
    del node
    gc.collect()
    assert pool_stats().idle_blocks == 1


@pooled
def test_eight_threads_never_share_a_block():
    errors: list[object] = []

    def hammer(seed: int) -> None:
        source = random.Random(seed)
        live: list[np.ndarray] = []
        for step in range(400):
            array = new_result((source.randint(MB, 5 * MB),), BYTE)
            array[:: 1 << 18] = seed
            live.append(array)
            if len(live) > 3 or source.random() < 0.5:
                array = live.pop(source.randrange(len(live)))
                if not (array[:: 1 << 18] == seed).all():
                    errors.append((seed, step))

    workers = [threading.Thread(target=hammer, args=(seed,)) for seed in range(8)]
    with config.scope(pool_bytes=40 * MB):
        results._pool.bound = 40 * MB
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not errors
    stats = pool_stats()
    assert stats.lent_blocks == 0
    assert stats.idle_bytes <= 256 * MB


@pooled
def test_memory_does_not_grow():
    def resident() -> int:
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("no /proc here")
    with config.scope(pool_bytes=16 * MB):
        for _ in range(20):
            new_result((6 * MB,), BYTE)[:] = 1
        before = resident()
        for size in range(200):
            new_result((6 * MB + size * 40_000,), BYTE)[:] = 1
        assert resident() - before < 40 * MB


@pooled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reuses_its_own_copy():
    kept = new_result((4 * MB,), BYTE)
    kept[:] = 1
    del (dying := [new_result((2 * MB,), BYTE)])[:]
    idle = pool_stats()
    child = os.fork()
    if child == 0:
        ok = pool_stats() == idle and not dying
        fresh = new_result((2 * MB,), BYTE)
        fresh[:] = 2
        ok &= pool_stats().idle_blocks == 0 and bool((kept == 1).all())
        kept[:] = 3
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool_stats() == idle
    assert (kept == 1).all()
