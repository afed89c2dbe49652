"""`convgrad run` through Dask on this machine: mistakes in one line, and no half result whatever fails."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import convgrad
from cli.conftest import heed_interrupts
from cli.dask_files import FORWARD, GD, F, X, hidden, opened, save, stack, store, zarr
from convgrad._apps.cli import chunking, outputs, parts, schedulers, stores

pytestmark = pytest.mark.usefixtures("without_compiler")


@pytest.fixture
def command(convgrad_command):
    save()
    return convgrad_command


@pytest.mark.parametrize(("words", "missing"), [
    ("--input x.npy -o y.zarr", "dask"), ("--input x.npy --scheduler tcp://a:1", "dask and distributed"),
])  # fmt: skip
def test_without_the_extra(command, monkeypatch, words, missing):
    monkeypatch.setattr(schedulers, "find_spec", lambda name: None)
    ending = command(*FORWARD, *words.split())
    assert ending.status == 2 and ending.err.count("\n") == 1
    assert "needs dask" in ending.err and "pip install dask" in ending.err


def test_without_zarr(command, monkeypatch):
    monkeypatch.setattr(stores, "find_spec", lambda name: None)
    for words in (("--input", store("x.zarr", X)), ("--input", "x.npy", "-o", "y.zarr")):
        ending = command(*FORWARD, *words)
        assert ending.status == 2 and "pip install zarr" in ending.err


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A folder of things that cannot be read or must be kept."""
    folder = tmp_path_factory.mktemp("strange")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        np.save("f.npy", F)
        np.savez_compressed("small.npz", x=X)
        stack("rank", [X[0], X[:2]])
        stack("shape", [X[0], X[1], X[0, 1:]])
        stack("dtype", [X[0], X[1].astype(np.float64)])
        stack("flat", [X[0, 0]])
        stack("old", X[:1])
        Path(stack("bad", [X[0], X[1]]), "frame1.npy").write_bytes(b"no array")
        Path(stack("keep", X[:1]), "letter.txt").write_text("precious")
        store("x.zarr", X)
        store("bytes.zarr", np.zeros((2, 2, 2, 2), np.uint8), (2, 2, 2, 2))
        zarr.create_group("two.zarr")
        store("two.zarr/a", X[:1])
        store("two.zarr/b", X[:1])
        for name in ("empty", "none.zarr", "broken.zarr"):
            Path(name).mkdir()
        Path("broken.zarr", "zarr.json").write_text("{")
    return folder


@pytest.mark.parametrize(("words", "reason"), [
    ("--input none*.npy", "no file is called like 'none*.npy'"),
    ("--input empty", "the folder empty holds no .npy files"),
    ("--input *.np?", "a stack is made of .npy files"),
    ("--input rank", "rank/frame1.npy has the shape [2, 11, 10, 6], rank/frame0.npy [11, 10, 6]"),
    ("--input shape", "shape/frame2.npy has the shape [10, 10, 6], shape/frame0.npy [11, 10, 6]"),
    ("--input dtype", "dtype/frame1.npy holds float64, dtype/frame0.npy float32"),
    ("--input flat", "flat/frame0.npy has the shape [10, 6]; a file of a stack is an image of 3 dimensions"),
    ("--input bad", "bad/frame1.npy is not an array NumPy saved"),
    ("--input no.zarr", "cannot read no.zarr: no such store"),
    ("--input none.zarr", "none.zarr is not a Zarr store"),
    ("--input broken.zarr", "broken.zarr cannot be read as a Zarr store"),
    ("--input two.zarr", "two.zarr holds 2 arrays; name one as two.zarr:NAME (a, b)"),
    ("--input two.zarr:c", "two.zarr has no array 'c'; it has a, b"),
    ("--input x.zarr:c", "x.zarr is one array and has none called 'c'"),
    ("--input bytes.zarr", "bytes.zarr holds uint8; it must be one of half"),
    ("--input x.zarr --dtype half", "x.zarr holds float32, but --dtype says half"),
    ("--input x.zarr --slice-bytes 1M", "--chunks says how much is held at a time"),
    ("--input x.zarr --chunks 1,2,3", "must be 4 sizes"),
    ("--input x.zarr --chunks 0,2,3,4", "each from 1 up or -1"),
    ("--input x.zarr --threads 2 --scheduler tcp://127.0.0.1:1", "the workers of --scheduler have their own"),
    ("--input x.zarr --scheduler somewhere", "must be an address such as tcp://host:8786"),
    ("--input x.zarr --scheduler no.json", "cannot read no.json: No such file"),
    ("--input x.zarr --scheduler x.zarr/zarr.json", "is not the file of a scheduler"),
    ("--input x.zarr --scheduler tcp://", "cannot reach the scheduler at tcp://: ValueError"),
    ("--input x.zarr -o y.npz", "an .npz file is written from front to back"),
    ("--input x.zarr -o y.txt", "must end in .npy, .npz or .zarr"),
    ("--input x.zarr -o none/y.zarr", "folder none does not exist"),
    ("--input x.zarr -o x.zarr", "the output x.zarr exists; --force replaces it"),
    ("--input x.zarr -o old/", "the output old exists; --force replaces it"),
    ("--input x.zarr -o keep/ --force", "the output keep exists and is not a folder of .npy files and nothing else"),
    ("--input x.zarr -o keep --force", "must end in"),
    ("--input x.zarr -o keep/{:02d}.npy --force", "it is kept, --force or not"),
    ("--input x.zarr -o {:02d}.npy", "must name a folder of its own"),
    ("--input x.zarr -o out/{:02d}{}.npy", "must have one number and end in .npy"),
    ("--input x.zarr -o out/{:x}.npy", "must have one number and end in .npy"),
    ("--input x.zarr -o out/{}.txt", "must have one number and end in .npy"),
    ("--input small.npz -o y.zarr", "a compressed array cannot be read in parts"),
    ("--random 9999999,64,64,9 --filter-sizes 3,3,9,1 --chunks 1,8,8,9", "--input has 639,999,936 chunks"),
])  # fmt: skip
def test_mistakes_are_one_line(convgrad_command, strange, monkeypatch, words, reason):
    monkeypatch.chdir(strange)
    before = sorted(map(str, strange.rglob("*")))
    ours = () if "--filter-sizes" in words else ("--filter", "f.npy")
    ending = convgrad_command("run", "depthwise_conv2d", *ours, *words.split())
    assert ending.status == 2 and ending.out == ""
    assert reason in ending.err and ending.err.count("\n") == 1, ending.err
    assert sorted(map(str, strange.rglob("*"))) == before


def test_a_filter_gradient_has_no_images(command):
    np.save("gd.npy", GD)
    words = "conv2d_backprop_filter --input x.npy --out-backprop gd.npy --filter-sizes 3,3,6,4 --strides 2 -o out/"
    ending = command("run", *words.split())
    assert ending.status == 2 and "a filter gradient has no images" in ending.err


PLACES = {
    "y.npy": outputs.FilePlace,
    "y.zarr": outputs.StorePlace,
    "out/": outputs.FilesPlace,
}


@pytest.mark.parametrize(("error", "status", "reason"), [
    (OSError(errno.ENOSPC, "full"), 2, "the disk is full: nothing was written"),
    (PermissionError(errno.EACCES, "Permission denied", "y"), 2, "cannot write to y: Permission denied; workers must"),
    (RuntimeError("codec"), 2, "a task cannot write its block: RuntimeError: codec"),
    (KeyboardInterrupt(), 130, "interrupted"),
])  # fmt: skip
@pytest.mark.parametrize("name", PLACES)
def test_a_task_that_fails_leaves_nothing(
    command, folder, monkeypatch, name, error, status, reason
):
    """The third block cannot be written; the old result stays as it is, and no other is there."""
    words = ("run", "depthwise_conv2d", "--filter", "f.npy", "--input", "x.npy")
    words = (*words, "--chunks", "1,-1,-1,-1", "-o", name)
    real, done = PLACES[name].write, []

    def failing(self, region, block):
        done.append(region)
        if len(done) == 3:
            raise error
        real(self, region, block)

    for old in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(PLACES[name], "write", failing)
            ending = command(*words, "--force")
        assert ending.status == status and reason in ending.err, ending.err
        assert ending.err.count("\n") == 1 and len(done) >= 3 and not hidden(folder)
        if old:
            assert np.array_equal(opened(name), convgrad.depthwise_conv2d(X, F, 1, "SAME"))
        else:
            assert not (folder / name).exists()
            assert command(*words).status == 0
            np.save("x.npy", X + 1)
            done.clear()


@pytest.mark.parametrize(("damage", "reason"), [
    (lambda: Path("x.zarr/c/1/1/1/0").write_bytes(b"no chunk"), "x.zarr is damaged"),
    (lambda: Path("x.zarr").rename("gone"), "there is no store; workers must see the same file system"),
])  # fmt: skip
def test_a_store_that_goes_away_is_not_read_as_zeros(command, folder, monkeypatch, damage, reason):
    """Zarr answers with zeros for what it does not find."""
    store("x.zarr", X)
    real = chunking.choose_chunks

    def damaged(*words):
        damage()
        return real(*words)

    monkeypatch.setattr(chunking, "choose_chunks", damaged)
    ending = command(*FORWARD, "--input", "x.zarr", "-o", "y.zarr")
    assert ending.status == 2 and reason in ending.err and ending.err.count("\n") == 1, ending.err
    assert not (folder / "y.zarr").exists() and not hidden(folder)


def test_a_file_that_goes_away(command, folder, monkeypatch):
    stack("frames", X)
    real = chunking.choose_chunks
    monkeypatch.setattr(
        chunking,
        "choose_chunks",
        lambda *words: (Path("frames/frame3.npy").unlink(), real(*words))[1],
    )
    ending = command(*FORWARD, "--input", "frames", "-o", "y.npy")
    assert ending.status == 2 and ending.err.count("\n") == 1
    assert "frames/frame3.npy: No such file" in ending.err and "same file system" in ending.err
    assert not (folder / "y.npy").exists() and not hidden(folder)


def test_a_part_of_nothing():
    file = parts.FileArray("none", 0, (1, 2, 2, 1), "float32", "<f4", False)
    with pytest.raises(parts.Refusal, match=r"a task cannot read none: .*same file system"):
        parts.FilePart(file, ((0, 1), (0, 2), (0, 2), (0, 1))).read()


def test_what_is_said_of_errors_of_tasks():
    distributed = pytest.importorskip("distributed")
    killed = distributed.KilledWorker("block", None, 3)
    missing = ModuleNotFoundError("No module named 'convgrad._apps.cli'")
    assert "perhaps for lack of memory; choose smaller chunks" in str(schedulers._refusal(killed))
    assert "with its extra `dask`" in str(schedulers._refusal(missing))
    assert str(schedulers._refusal(ValueError("x"))) == "a task failed: ValueError: x"
    assert schedulers._refusal(memory := MemoryError()) is memory


def begin_endless(folder, name):
    """Start a run that takes minutes, and wait until some blocks are written."""
    run = "run conv2d --random 800,64,64,4 --filter-sizes 3,3,4,4 --chunks 8,-1,-1,-1 -o"
    process = subprocess.Popen(
        [sys.executable, "-m", "convgrad", *run.split(), name],
        cwd=folder,
        env={**os.environ, "CONVGRAD_KERNELS": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    for _ in range(3000):
        if len(list(folder.glob(".*.convgrad-partial/*"))) > 3:
            return process
        if any(each.stat().st_blocks > 64 for each in folder.glob(".y.npy.*")):
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    raise AssertionError(f"nothing was written in a minute: {process.communicate()}")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("name", "number", "status", "word"), [
    ("out/", signal.SIGINT, 130, b"interrupted"), ("y.npy", signal.SIGTERM, 143, b"terminated"),
])  # fmt: skip
def test_interrupted_half_way(tmp_path, name, number, status, word):
    process = begin_endless(tmp_path, name)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == status and errors == b"convgrad run: %s\n" % word
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_killed_half_way(folder, command):
    process = begin_endless(folder, "out/")
    process.kill()
    process.communicate()
    (left,) = hidden(folder)  # nothing under the final name
    assert left.startswith(".out.") and left.endswith(".convgrad-partial")
    assert not (folder / "out").exists()
    assert command(*FORWARD, "--input", "x.npy", "-o", "out/").status == 0
    assert not hidden(folder) and len(list((folder / "out").iterdir())) == 7


def test_an_old_result_that_stepped_aside_comes_back(command, folder):
    """A run that was killed between two renames; the next one finds both states."""
    aside = folder / ".out.01234567.convgrad-old"
    for target in (folder / "out", None):
        aside.mkdir()
        np.save(aside / "0.npy", X[0])
        if target is None:
            shutil.rmtree(folder / "out")
            ending = command(*FORWARD, "--input", "x.npy", "-o", "out/")
            assert ending.status == 2 and "appeared while it was computed" in ending.err
            assert np.array_equal(np.load("out/0.npy"), X[0])
        else:
            assert command(*FORWARD, "--input", "x.npy", "-o", "out/", "--force").status == 0
        assert not aside.exists()
