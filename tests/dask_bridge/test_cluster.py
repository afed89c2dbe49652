"""The bridge on real processes: the same bits everywhere, workers that die, clusters that are not as they should be."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.client import FutureCancelledError

import convgrad
from convgrad._base.errors import ArgumentError
from convgrad._base.version import __version__
from dask_bridge import clusters, made_chunks
from dask_bridge.clusters import filter_gradient, images, until

DTYPES = ("float32", "half", "bfloat16")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two processes of one thread, whose kernels would take four threads if they were asked."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="1GiB",
            dashboard_address=":0",  # no port that somebody else may have
            env={"CONVGRAD_NUM_THREADS": "4"},
        ) as cluster,
        Client(cluster) as found,
    ):
        yield found


@pytest.fixture(scope="module", autouse=True)
def strangers(folder: Path) -> Iterator[Strangers]:
    """Another cluster, of commands: a "good" worker, one "lacking" convgrad, as the scheduler does, an "older" one.

    It is started before all tests, and comes up meanwhile.
    """
    lacking, older = folder / "lacking.py", folder / "older.py"
    lacking.write_text(clusters.LACKING)
    older.write_text(clusters.OLDER)
    said = folder / "scheduler.json"
    words = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(said))
    with ExitStack() as running:
        command = clusters.command("scheduler", *words, preload=lacking)
        scheduler = running.enter_context(command)
        until(lambda: said.is_file() and said.stat().st_size)
        for name, preload in (("good", None), ("lacking", lacking), ("older", older)):
            place = ("--scheduler-file", str(said))
            running.enter_context(clusters.worker(*place, name=name, preload=preload))
        yield Strangers(said, scheduler)


class Strangers(NamedTuple):
    said: Path
    """The file in which the scheduler says its address."""
    scheduler: subprocess.Popen[str]

    def client(self) -> Client:
        return Client(scheduler_file=str(self.said), set_as_default=False)


def cached(directory: Path) -> dict[str, int]:
    """Return the files of kernels below a folder, with the time each was written."""
    files = (each for each in directory.rglob("*") if each.is_file())
    return {each.name: each.stat().st_mtime_ns for each in files}


@pytest.mark.long
def test_the_second_worker_finds_what_the_first_has_compiled(client: Client, folder: Path) -> None:
    first, second = sorted(client.scheduler_info()["workers"])
    client.run(clusters.keep_kernels_in, str(folder / "cache"))
    x = images((4, 9, 9, 8), (2, -1, -1, -1), seed=7)
    result = convgrad.conv2d(x, np.ones((3, 3, 8, 8), np.float32), 1, "SAME")
    expected = client.compute(result, workers=[first], allow_other_workers=False).result()
    compiled, _ = client.run(clusters.counted, workers=[first])[first]
    files = cached(folder / "cache")
    assert compiled >= 1 and len(files) >= compiled
    other = convgrad.conv2d(x + 0, np.ones((3, 3, 8, 8), np.float32), 1, "SAME")
    again = client.compute(other, workers=[second], allow_other_workers=False).result()
    assert client.run(clusters.counted, workers=[second])[second] == (0, compiled)
    assert cached(folder / "cache") == files
    assert again.tobytes() == expected.tobytes()
    client.run(clusters.keep_kernels_in, None)


def test_same_bits_on_every_scheduler(client: Client) -> None:
    gradients = [filter_gradient(each) for each in DTYPES]
    expected = [each.tobytes() for each in dask.compute(*gradients, scheduler="sync")]
    for scheduler in ("threads", "processes", client):
        found = dask.compute(*gradients, scheduler=scheduler)
        assert [each.tobytes() for each in found] == expected, scheduler
    assert len(set(expected)) == 3
    for each, whole in zip(DTYPES, gradients, strict=True):
        assert whole.dtype == clusters.row(each)


def test_the_gradient_is_right(client: Client) -> None:
    x, g = images((24, 14, 14, 8), (4, 5, -1, -1)), images((24, 14, 14, 16), (4, 5, -1, -1))
    found = convgrad.conv2d_backprop_filter(x, (3, 3, 8, 16), g, 1, "SAME").compute()
    images_of_all, of_outputs = (each.compute(scheduler="sync") for each in (x, g))
    whole = convgrad.conv2d_backprop_filter(images_of_all, (3, 3, 8, 16), of_outputs, 1, "SAME")
    np.testing.assert_allclose(found, whole, rtol=0, atol=2e-3)


def test_a_filter_of_numpy_goes_with_chunks(client: Client) -> None:
    x = images((6, 12, 10, 4), (3, 4, -1, 2))
    f = np.random.default_rng(3).standard_normal((3, 3, 4, 2)).astype(np.float32)
    lazy = convgrad.depthwise_conv2d(x, f, 1, "SAME")
    found, on_threads, whole = lazy.compute(), lazy.compute(scheduler="threads"), x.compute()
    assert found.tobytes() == on_threads.tobytes()
    np.testing.assert_allclose(
        found, convgrad.depthwise_conv2d(whole, f, 1, "SAME"), rtol=0, atol=1e-5
    )


@pytest.mark.long
def test_a_killed_worker_changes_no_bit(client: Client) -> None:
    scheduler = client.cluster.scheduler
    slow = [filter_gradient(each, wait=0.03) for each in DTYPES]
    expected = dask.compute(*slow, scheduler="threads")
    futures = client.compute(slow)
    victim = until(lambda: clusters.worker_holding(scheduler, "part-convgrad", 2))
    assert not any(each.done() for each in futures)
    os.kill(victim.pid, signal.SIGKILL)
    for future, whole in zip(futures, expected, strict=True):
        assert future.result(timeout=60).tobytes() == whole.tobytes()
    assert victim.address not in scheduler.workers
    client.wait_for_workers(2)


def test_kernels_use_the_threads_of_their_worker(client: Client) -> None:
    client.run(clusters.watch_threads)
    x = images((8, 9, 9, 4), (2, -1, -1, -1))
    f = np.ones((3, 3, 4, 4), np.float32)
    for lazy in (convgrad.conv2d(x, f, 1, "SAME"), filter_gradient()):
        lazy.compute()
    seen = [each for some in client.run(clusters.seen_threads).values() for each in some]
    assert seen == [1] * (4 + 18), "a worker has one thread, whatever CONVGRAD_NUM_THREADS says"


@pytest.mark.parametrize("where", ["sync", "threads", "cluster"])
@pytest.mark.parametrize(
    ("other", "got"),
    [
        (made_chunks.another_shape, r"got \[2, 7, 8, 4\] of float32"),
        (made_chunks.another_dtype, r"got \[2, 8, 8, 4\] of float64"),
    ],
)
def test_a_chunk_that_is_not_what_was_declared(
    client: Client, where: str, other: Any, got: str
) -> None:
    x = images((4, 8, 8, 4), (2, -1, -1, -1))
    lying = x.map_blocks(other, dtype=x.dtype, chunks=x.chunks, meta=np.empty((0,) * 4, x.dtype))
    result = convgrad.conv2d(lying, np.ones((3, 3, 4, 4), np.float32), 1, "SAME")
    rule = r"^conv2d: a chunk must have the shape \[2, 8, 8, 4\] and the dtype float32"
    with pytest.raises(ArgumentError, match=rule + ".*" + got):
        result.compute(scheduler=client if where == "cluster" else where)


def on(client: Client, name: str, result: da.Array) -> Any:
    """Compute something on the worker of a name, and nowhere else."""
    until(
        lambda: any(
            name == each["name"] for each in client.scheduler_info(n_workers=-1)["workers"].values()
        )
    )
    future = client.compute(result, workers=[name], allow_other_workers=False)
    return future.result(timeout=60)


LACKS = (
    rf"convgrad: a worker of Dask on .* cannot compute: it cannot import convgrad {__version__} "
    rf"\(No module named 'convgrad'\); install convgrad {__version__} there, with its extra `dask`"
)


def test_a_worker_without_convgrad_says_so(client: Client, folder: Path) -> None:
    address = client.scheduler.address
    lacking = clusters.worker(address, name="lacking", preload=folder / "lacking.py")
    with lacking, pytest.raises(RuntimeError, match=LACKS):
        on(client, "lacking", filter_gradient(seed=3))


@pytest.mark.long
def test_a_scheduler_needs_no_convgrad(strangers: Strangers) -> None:
    """Tasks pass through it, to workers with and without."""
    expected = filter_gradient(seed=4).compute(scheduler="sync")
    with strangers.client() as client:
        assert client.run_on_scheduler(made_chunks.importable) is False
        assert on(client, "good", filter_gradient(seed=4)).tobytes() == expected.tobytes()
        with pytest.raises(RuntimeError, match=LACKS):
            on(client, "lacking", filter_gradient(seed=5))
        older = rf"it has convgrad 0\.0\.1, the graph was made with {__version__}; install convgrad"
        with pytest.raises(RuntimeError, match=older):
            on(client, "older", filter_gradient(seed=6))


def test_a_lost_scheduler_is_an_error_at_once(strangers: Strangers) -> None:
    """Dask's own error; a call of ours waits for nothing else."""
    with strangers.client() as client:
        slow = filter_gradient(wait=0.5)
        threading.Timer(1.0, strangers.scheduler.kill).start()
        start = time.monotonic()
        with pytest.raises(FutureCancelledError, match="lost the connection to the scheduler"):
            slow.compute(scheduler=client, workers=["good"], allow_other_workers=False)
        assert time.monotonic() - start < 10
