"""`convgrad run --scheduler`: a real cluster of processes, and clear words where it lacks something or goes away."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import convgrad
from cli.conftest import heed_interrupts
from convgrad._apps.cli import dask_graph, parts, schedulers, sources, travel
from convgrad._base import dtypes

zarr = pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.usefixtures("without_compiler")

ENVIRONMENT = {**os.environ, "CONVGRAD_KERNELS": "0"}
X = np.random.default_rng(0).integers(-4, 5, (6, 9, 8, 3)).astype(np.float32)
F = np.random.default_rng(1).integers(-4, 5, (3, 3, 3, 2)).astype(np.float32)
WORDS = ("run", "depthwise_conv2d", "--input", "x.zarr", "--filter", "f.npy", "--json")
ENDLESS = "run conv2d --random 800,64,64,4 --filter-sizes 3,3,4,4 --chunks 8,-1,-1,-1 -o y.zarr"


def failing(error):
    raise error


@contextmanager
def cluster(workers, **how):
    """Workers that are processes, and their scheduler in this one."""
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", **how
    ) as made:
        yield made


@pytest.fixture(scope="module")
def address():
    with cluster(2) as made:
        yield made.scheduler_address


@pytest.fixture
def command(convgrad_command):
    zarr.create_array("x.zarr", shape=X.shape, chunks=(2, 5, 8, 3), dtype=X.dtype)[...] = X
    np.save("f.npy", F)
    return convgrad_command


def test_every_form_of_output(command, address, folder):
    want = convgrad.depthwise_conv2d(X, F, 1, "SAME")
    (folder / "scheduler.json").write_text(json.dumps({"address": address}))
    told = [
        command(*WORDS, "--scheduler", where, "-o", name)
        for where, name in ((address, "y.npy"), (address, "out/"), ("scheduler.json", "y.zarr"))
    ]
    assert [each.status for each in told] == [0, 0, 0], told
    assert np.array_equal(np.load("y.npy"), want)
    assert np.array_equal(zarr.open_array("y.zarr", mode="r")[...], want)
    images = [np.load(path) for path in sorted((folder / "out").iterdir())]
    assert np.array_equal(np.stack(images), want)
    assert told[0].document["scheduler"] == address
    assert told[0].document["max"] == want.max() and told[0].document["blocks"] > 1
    here = command(*WORDS, "-o", "z.npy").document
    assert here["chunk_checksum"] == told[0].document["chunk_checksum"]
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_filter_gradient_has_the_same_bits_as_here(convgrad_command, address):
    words = "--random 9,12,12,4 --filter-sizes 3,3,4,4 --chunks 2,5,-1,-1 --json"
    words = ("run", "conv2d_backprop_filter", *words.split())
    here, there = convgrad_command(*words), convgrad_command(*words, "--scheduler", address)
    assert there.status == 0, there.err
    assert here.document["checksum"] == there.document["checksum"] is not None


def test_a_scheduler_reads_our_graphs_without_the_package():
    """It unpacks all of a graph, and what it cannot unpack is an error that names neither."""
    made = sources.Random((4, 3, 3, 1), dtypes.FLOAT, 0, 0)
    array = dask_graph.array(made, ((2, 2), (3,), (3,), (1,)))
    graph = dict(dask_graph.behind(array, None).__dask_graph__())
    program = "import sys, pickle; sys.modules['convgrad'] = None; print(len(pickle.load(sys.stdin.buffer)))"
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(graph), capture_output=True
    )
    assert done.stdout.split() == [b"4"], done.stderr.decode()


def test_what_travels_is_plain():
    """Names of files that are not text arrive as they are, and nothing is made that is not on the list."""
    file = parts.FileArray(os.fsdecode(b'\xff\n"x'), 1, (1, 2, 2, 1), "half", "<f2", False)
    part = parts.FileParts((parts.FilePart(file, ((0, 1), (0, 2), (0, 2), (0, 1))),))
    assert travel.packed(part).isascii() and travel.unpacked(travel.packed(part)) == part
    with pytest.raises(KeyError):
        travel.unpacked('{"kind": "Popen", "args": ["true"]}')
    with pytest.raises(TypeError, match="Path is not one of the kinds"):
        travel.packed(parts.FilePart(Path(), ()))


def test_errors_come_back_as_they_are(address):
    """`MemoryError` among the bases of one was too much for what Dask sends errors with."""
    with distributed.Client(address, set_as_default=False) as client:
        for name in convgrad.errors.__all__:
            error = getattr(convgrad.errors, name)("conv2d: no memory.")
            assert (
                str(client.submit(failing, error, pure=False).exception()) == "conv2d: no memory."
            )


def test_files_that_workers_do_not_see(command, address, monkeypatch):
    from convgrad._apps.cli import dask_run

    monkeypatch.setattr(
        dask_run, "_paths", lambda images: [str(Path("x.zarr").absolute()), "/no/x"]
    )
    ending = command(*WORDS, "--scheduler", address, "-o", "y.npy")
    assert ending.status == 2 and ending.err.count("\n") == 1
    assert "does not see /no/x: workers must see the same file system" in ending.err


def test_a_task_that_fails_there_leaves_nothing(command, address, folder):
    """A chunk is damaged, which nobody knows before it is read."""
    (folder / "x.zarr" / "c" / "1" / "0" / "0" / "0").write_bytes(b"no chunk")
    ending = command(*WORDS, "--scheduler", address, "-o", "y.zarr")
    assert ending.status == 2 and "x.zarr is damaged" in ending.err
    assert ending.err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["f.npy", "x.zarr"]


def begin_endless(folder, address):
    """Start a run that takes a while, and wait until some blocks are written."""
    words = (sys.executable, "-m", "convgrad", *ENDLESS.split(), "--scheduler", address)
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        words, cwd=folder, env=ENVIRONMENT, stdout=pipe, stderr=pipe, preexec_fn=heed_interrupts
    )
    for _ in range(3000):
        if len(list(folder.glob(".y.zarr.*/c/*"))) > 2:
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    raise AssertionError(f"nothing was written in a minute: {process.communicate()}")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupted_half_way(tmp_path, address):
    process = begin_endless(tmp_path, address)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and errors == b"convgrad run: interrupted\n"
    assert list(tmp_path.iterdir()) == []
    with distributed.Client(address, set_as_default=False) as client:
        assert not any(client.processing().values())  # the workers are free for others
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_scheduler_that_is_lost(tmp_path):
    program = (
        "import distributed, time\n"
        "if __name__ == '__main__':\n"
        "    how = {'processes': False, 'protocol': 'tcp://', 'dashboard_address': ':0'}\n"
        "    made = distributed.LocalCluster(1, threads_per_worker=1, **how)\n"
        "    print(made.scheduler_address, flush=True)\n"
        "    time.sleep(600)\n"
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "cluster.py").write_text(program)
    words = [sys.executable, tmp_path / "cluster.py"]
    scheduler = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.PIPE)
    try:
        address = scheduler.stdout.readline().decode().strip()
        process = begin_endless(tmp_path / "work", address)
    finally:
        scheduler.kill()
        scheduler.stdout.close()  # its worker has it too, and ends some time later
        scheduler.wait()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    lost = f"convgrad run: the scheduler at {address} was lost; nothing was written\n"
    assert errors.decode() == lost
    assert list((tmp_path / "work").iterdir()) == []


def test_workers_without_the_package(command, address, folder):
    """One of the two cannot import it for a while."""
    modules = "__import__('sys').modules"
    with distributed.Client(address, set_as_default=False) as client:
        worker = min(client.scheduler_info()["workers"])

        def let(code):
            client.run(eval, code, workers=[worker])

        let(f"{modules}.update(kept={modules}.get('convgrad'), convgrad=None)")
        try:
            ending = command(*WORDS, "--scheduler", address, "-o", "y.npy")
        finally:
            let(f"{modules}.update(convgrad={modules}.pop('kept'))")
            let(f"{modules}['convgrad'] or {modules}.pop('convgrad')")
    assert ending.status == 2 and ending.err.count("\n") == 1
    assert f"the worker {worker} of {address} cannot import convgrad" in ending.err
    assert f"install convgrad {convgrad.__version__} there, with its extra `dask`" in ending.err
    assert not (folder / "y.npy").exists()


def test_workers_of_another_version(command, address, monkeypatch):
    monkeypatch.setattr(schedulers, "__version__", "99.0")
    ending = command(*WORDS, "--scheduler", address)
    assert ending.status == 2 and f"has convgrad {convgrad.__version__}, this is 99.0" in ending.err


def test_nobody_there(command, monkeypatch):
    monkeypatch.setattr(schedulers, "PATIENCE", 0.5)
    ending = command(*WORDS, "--scheduler", "tcp://127.0.0.1:9")
    assert ending.status == 2 and ending.err.count("\n") == 1
    assert "cannot reach the scheduler at tcp://127.0.0.1:9" in ending.err


def test_no_workers(command, monkeypatch):
    monkeypatch.setattr(schedulers, "PATIENCE", 0.5)
    with cluster(0) as made:
        ending = command(*WORDS, "--scheduler", made.scheduler_address)
    assert ending.status == 2 and f"{made.scheduler_address} has no workers" in ending.err
