"""Clusters at length: arrays larger than memory, workers that pause or are killed again and again, whole rounds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import convgrad
from dask_bridge import clusters
from dask_bridge.clusters import filter_gradient, images, until

pytestmark = pytest.mark.dask_long

LIMIT = 600 << 20
"""Bytes of a worker; about 150 MB are there before anything is computed."""


@contextmanager
def started(workers: int, threads: int = 1, limit: int = LIMIT, **more: Any) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            memory_limit=limit,
            dashboard_address=":0",
            **more,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client() -> Iterator[Client]:
    with started(2) as found:
        yield found


def pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


def total(array: da.Array) -> da.Array:
    """Return a sum over a result, so that nothing comes home; exact, for results are small integers."""
    return array.sum(dtype=np.float64)


def whole_numbers(block: Any) -> Any:
    return np.rint(block)


@pytest.mark.parametrize(
    "chunks",
    [(16, -1, -1, -1), (32, 28, 28, -1), (128, 28, -1, 32)],
    ids=["images", "tiles with halos", "rows and channels"],
)
def test_arrays_larger_than_memory_stay_below_the_limit(client: Client, chunks: Any) -> None:
    """Images of 3.3 GB, 5.5 times what a worker may have, and as much again in results."""
    shape = (1024, 56, 56, 256)
    f = np.ones((3, 3, 256, 1), np.float32)
    x = images(shape, chunks).map_blocks(whole_numbers, meta=np.empty((0,) * 4, np.float32))
    assert x.nbytes > 5 * LIMIT
    before = pids(client)
    with clusters.memory_watched(before) as seen:
        # Every window of 3x3 ones adds each number once per window it is in.
        found = total(convgrad.depthwise_conv2d(x, f, 1, "SAME")).compute()
    assert max(seen) < LIMIT
    assert pids(client) == before, "no worker was ended for its memory"
    weights = np.full(56, 3.0)
    weights[[0, -1]] = 2
    expected = da.einsum("nhwc,h,w->", x.astype(np.float64), weights, weights).compute()
    assert found == expected


def test_a_gradient_of_more_than_memory(client: Client) -> None:
    """Two images of 1.6 GB each, in tiles; the same bits as on threads."""
    lazy = filter_gradient(chunks=(8, 56, 56, -1), shapes=((64, 112, 112, 512), (1, 1, 512, 8)))
    before = pids(client)
    with clusters.memory_watched(before) as seen:
        found = lazy.compute()
    assert max(seen) < LIMIT and pids(client) == before
    assert found.tobytes() == lazy.compute(scheduler="threads").tobytes()


def test_a_paused_worker_leaves_the_work_to_others(client: Client) -> None:
    scheduler = client.cluster.scheduler
    expected = filter_gradient(wait=0.02).compute(scheduler="sync")
    paused, running = sorted(scheduler.workers)
    client.run(clusters.take_memory, 0.87, LIMIT, workers=[paused])
    until(lambda: scheduler.workers[paused].status.name == "paused")
    found = client.compute(filter_gradient(wait=0.02)).result(timeout=60)
    assert found.tobytes() == expected.tobytes()
    assert scheduler.workers[paused].status.name == "paused"
    client.run(clusters.drop_memory, workers=[paused])
    until(lambda: scheduler.workers[paused].status.name == "running")
    assert set(scheduler.workers) == {paused, running}


def test_a_worker_that_pauses_in_the_middle_goes_on_later(client: Client) -> None:
    """Both pause: nothing is computed, nothing fails, and when there is memory again it ends with the same bits."""
    scheduler = client.cluster.scheduler
    slow = filter_gradient(wait=0.1)
    expected = slow.compute(scheduler="threads")
    future = client.compute(slow)
    until(lambda: clusters.worker_holding(scheduler, "part-convgrad", 1))
    client.run(clusters.take_memory, 0.87, LIMIT)
    until(lambda: all(each.status.name == "paused" for each in scheduler.workers.values()))
    time.sleep(1)
    assert not future.done()
    client.run(clusters.drop_memory)
    assert future.result(timeout=60).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "half", "bfloat16"])
def test_same_bits_for_one_two_and_three_processes(dtype: str) -> None:
    expected = filter_gradient(dtype).compute(scheduler="threads").tobytes()
    with started(1) as client:
        for workers in (1, 2, 3):
            client.cluster.scale(workers)
            until(lambda workers=workers: len(client.cluster.scheduler.workers) == workers)
            assert filter_gradient(dtype).compute().tobytes() == expected, workers


def test_worker_after_worker_is_killed(client: Client) -> None:
    scheduler = client.cluster.scheduler
    slow = filter_gradient(wait=0.1, chunks=(2, 5, 5, -1), seed=11)
    expected = slow.compute(scheduler="threads")
    with dask.config.set({"distributed.scheduler.allowed-failures": 10}):
        future = client.compute(slow)
        for _ in range(3):
            victim = until(lambda: clusters.worker_holding(scheduler, "part-convgrad", 2))
            assert not future.done()
            os.kill(victim.pid, signal.SIGKILL)
            until(lambda victim=victim: victim.address not in scheduler.workers)
        assert future.result(timeout=120).tobytes() == expected.tobytes()


def test_kernels_share_the_threads_of_a_worker() -> None:
    """A worker of two threads: a task alone has both, two at a time have one each."""
    with started(1, threads=2, limit=2 << 30, env={"CONVGRAD_NUM_THREADS": "4"}) as client:
        client.run(clusters.watch_threads, 0.05)
        one = images((1, 8, 8, 4), -1)
        f = np.ones((3, 3, 4, 4), np.float32)
        convgrad.conv2d(one, f, 1, "SAME").compute()
        (seen,) = client.run(clusters.seen_threads).values()
        assert seen == [2]
        many = images((16, 8, 8, 4), (1, -1, -1, -1))
        convgrad.conv2d(many, f, 1, "SAME").compute()
        (seen,) = client.run(clusters.seen_threads).values()
        # The first of them was alone, and perhaps the last.
        assert len(seen) == 1 + 16 and set(seen) == {1, 2} and seen.count(1) >= 12


def test_a_round_with_persisted_intermediates(client: Client) -> None:
    """Forward, loss and both gradients of two layers, kept on the workers between calls; as on NumPy's arrays."""
    rng = np.random.default_rng(5)
    chunks = (4, 9, -1, -1)
    x = images((16, 18, 18, 8), chunks).map_blocks(whole_numbers).persist()
    depthwise = rng.integers(-2, 3, (3, 3, 8, 1)).astype(np.float32)
    dense = rng.integers(-2, 3, (3, 3, 8, 16)).astype(np.float32)

    def step(x: Any, keep: Any) -> Any:
        hidden = keep(convgrad.depthwise_conv2d(x, depthwise, 1, "SAME"))
        g = keep(convgrad.conv2d(hidden, dense, 2, "SAME"))
        of_dense = convgrad.conv2d_backprop_filter(hidden, dense.shape, g, 2, "SAME")
        back = keep(convgrad.conv2d_backprop_input(hidden.shape, dense, g, 2, "SAME"))
        of_depthwise = convgrad.depthwise_conv2d_backprop_filter(
            x, depthwise.shape, back, 1, "SAME"
        )
        of_x = convgrad.depthwise_conv2d_backprop_input(x.shape, depthwise, back, 1, "SAME")
        return g, of_dense, of_depthwise, of_x

    found = dask.compute(*step(x, lambda each: each.persist()))
    lazily = dask.compute(*step(x, lambda each: each))
    expected = step(x.compute(), lambda each: each)
    for kept, lazy, whole in zip(found, lazily, expected, strict=True):
        assert kept.tobytes() == lazy.tobytes()
        # Integers, but of up to 1e8: float32 has them to seven digits.
        np.testing.assert_allclose(kept, whole, rtol=1e-5, atol=1e-5 * np.abs(whole).max())
