"""`convgrad run` through Dask on this machine: stores and stacks in and out, results whole or absent."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import accumulate, pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import convgrad
from cli.conftest import heed_interrupts
from convgrad import _config, _dtypes
from convgrad._cli import chunking, outputs, parts, schedulers, sink, sources, stacks, stores
from convgrad._cli.dask_run import _Steps

zarr = pytest.importorskip("zarr")

GENERATOR = np.random.default_rng(0)


def numbers(*shape):
    """Return whole numbers: their sums are exact in any order, so that chunks do not change a bit."""
    return GENERATOR.integers(-4, 5, shape).astype(np.float32)


X, G, GD = numbers(7, 11, 10, 6), numbers(7, 6, 5, 12), numbers(7, 6, 5, 4)
F, DENSE, MIXING = numbers(3, 3, 6, 2), numbers(3, 3, 6, 4), numbers(1, 1, 12, 5)
CALLS = {
    "depthwise_conv2d": ("--input x.zarr --filter f.npy", lambda x, g, gd: (x, F)),
    "conv2d": ("--input x.zarr --filter d.npy", lambda x, g, gd: (x, DENSE)),
    "depthwise_conv2d_backprop_input": (
        "--input-sizes SIZES --filter f.npy --out-backprop g.zarr",
        lambda x, g, gd: (x.shape, F, g),
    ),
    "conv2d_backprop_filter": (
        "--input x.zarr --filter-sizes 3,3,6,4 --out-backprop gd.zarr",
        lambda x, g, gd: (x, DENSE.shape, gd),
    ),
    "conv2d_transpose": (
        "--input gd.zarr --filter d.npy --output-shape SIZES",
        lambda x, g, gd: (gd, DENSE, x.shape),
    ),
    "separable_conv2d": (
        "--input x.zarr --filter f.npy --pointwise-filter p.npy",
        lambda x, g, gd: (x, F, MIXING),
    ),
}
FORWARD = ("run", "depthwise_conv2d", "--filter", "f.npy", "--strides", 2)


@pytest.fixture(autouse=True)
def _without_compiler():
    """The reference computes: nothing here is about kernels, and each new shape of a block would be compiled."""
    with _config.scope(kernels=False):
        yield


@pytest.fixture
def command(convgrad_command):
    for name, array in (("x", X), ("f", F), ("d", DENSE), ("p", MIXING)):
        np.save(f"{name}.npy", array)
    return convgrad_command


def store(name, array, chunks=(3, 4, 5, 6), **how):
    made = zarr.create_array(name, shape=array.shape, chunks=chunks, dtype=array.dtype, **how)
    made[...] = array
    return name


def stack(folder, arrays, names="frame{}.npy"):
    Path(folder).mkdir()
    for number, array in enumerate(arrays):
        np.save(Path(folder) / names.format(number), array)
    return folder


def wanted(dtype=np.float32):
    return convgrad.depthwise_conv2d(X.astype(dtype), F.astype(dtype), 2, "SAME")


def opened(name):
    """Read a result, of whatever kind."""
    if name.rstrip("/").endswith(".zarr"):
        return zarr.open_array(name, mode="r")[...]
    if name.endswith((".npy", ".npz")) and "{" not in name:
        found = np.load(name)
        return found if isinstance(found, np.ndarray) else found[sink.MEMBER]
    folder = Path(name) if name.endswith("/") else Path(name).parent
    return np.stack([np.load(path) for path in sorted(folder.iterdir(), key=stacks.natural)])


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", CALLS)
def test_equal_to_the_call_on_arrays(command, op, layout):
    x, g, gd = (a.transpose(0, 3, 1, 2) if layout == "NCHW" else a for a in (X, G, GD))
    for name, array in (("x.zarr", x), ("g.zarr", g), ("gd.zarr", gd)):
        store(name, array, (3, 4, 5, 6) if layout == "NHWC" else (3, 6, 4, 5))
    words, arguments = CALLS[op]
    words = words.replace("SIZES", ",".join(map(str, x.shape))).split()
    rest = ("--strides", 2, "--data-format", layout, "--json", "-o", "y.npy")
    ending = command("run", op, *words, *rest)
    assert ending.status == 0, ending.err
    want = getattr(convgrad, op)(
        *arguments(x, g, gd), strides=2, padding="SAME", data_format=layout
    )
    found = np.load("y.npy")
    assert found.dtype == want.dtype and np.array_equal(found, want)
    told = ending.document
    assert (told["min"], told["max"]) == (want.min(), want.max())
    assert told["mean"] == pytest.approx(want.astype(np.float64).mean())
    assert told["result_shape"] == list(want.shape) and told["scheduler"] == "threads"
    assert told["tasks"] > told["blocks"] >= 1 and told["bytes_moved"] > 0


SOURCES = {
    "zarr 3": lambda: store("x.zarr", X),
    "zarr 2": lambda: store("x.zarr", X, zarr_format=2),
    "shards": lambda: store("x.zarr", X, (1, 4, 5, 6), shards=(2, 8, 10, 6)),
    "another byte order": lambda: store("x.zarr", X.astype(">f4"), zarr_format=2),
    "the array of a group": lambda: (zarr.create_group("x.zarr"), store("x.zarr/a", X))[0] and "x.zarr",
    "an array in groups": lambda: (
        zarr.create_group("x.zarr"), store("x.zarr/b", X[:1]), zarr.create_group("x.zarr/raw"), store("x.zarr/raw/0", X)
    ) and "x.zarr:raw/0",
    "another name": lambda: store("folder", X),
    "folder of images": lambda: stack("frames", X),
    "pattern": lambda: f"{stack('frames', X)}/frame*.npy",
    "batches": lambda: stack("frames", [X[:3], X[3:3], X[3:4], X[4:]]),
    "Fortran images": lambda: stack("frames", map(np.asfortranarray, X)),
    "Fortran batches": lambda: stack("frames", [np.asfortranarray(X[:3]), X[3:].astype(">f4")]),
}  # fmt: skip


@pytest.mark.parametrize("chunks", [(), ("--chunks", "2,5,-1,4")], ids=["own", "given"])
@pytest.mark.parametrize("kind", SOURCES)
def test_every_form_of_operand(command, kind, chunks):
    ending = command(*FORWARD, "--input", SOURCES[kind](), *chunks, "-o", "y.npy")
    assert ending.status == 0, ending.err
    assert np.array_equal(np.load("y.npy"), wanted())


@pytest.mark.parametrize("name", ["x.npy", "fortran.npy", "x.npz:x"])
def test_files_are_read_in_chunks_too(command, name):
    np.save("fortran.npy", np.asfortranarray(X))
    np.savez("x.npz", x=X, other=F)
    ending = command(*FORWARD, "--input", name, "--chunks", "3,4,5,2", "-o", "y.npy")
    assert ending.status == 0, ending.err
    assert np.array_equal(np.load("y.npy"), wanted())


def test_names_are_read_as_people_count(command):
    """Names in the order of the alphabet would put frame10 behind frame1."""
    stack("frames", np.concatenate([X, X[::-1]]))
    ending = command(*FORWARD, "--input", "frames", "-o", "y.npy")
    assert ending.status == 0, ending.err
    assert np.array_equal(np.load("y.npy"), np.concatenate([wanted(), wanted()[::-1]]))


OUTPUTS = ["y.npy", "y.zarr/", "out/", "out/{}.npy", "out/image{:04d}_.npy"]


@pytest.mark.parametrize("chunks", ["2,-1,-1,-1", "4,6,5,3", "-1,-1,-1,-1"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_every_form_of_output(command, folder, name, chunks):
    words = (*FORWARD, "--input", "x.npy")
    ending = command(*words, f"--chunks={chunks}", "-o", name, "--json")
    assert ending.status == 0, ending.err
    assert np.array_equal(opened(name), wanted()) and not hidden(folder)
    told = ending.document
    assert (told["checksum"] is None) == (told["blocks"] > 1) == (chunks[0] != "-")
    if told["blocks"] == 1:
        plain = command(*words, "--json").document
        assert told["checksum"] == plain["checksum"] and told["chunk_checksum"] is None
    else:
        again = command(*words, f"--chunks={chunks}", "-o", name, "--json", "--force")
        assert again.document["chunk_checksum"] == told["chunk_checksum"]
        (folder / "x.npy").unlink()
        np.save("x.npy", X + (np.arange(7) == 3)[:, None, None, None])
        other = command(*words, f"--chunks={chunks}", "-o", name, "--json", "--force")
        assert other.document["chunk_checksum"] != told["chunk_checksum"]


@pytest.mark.parametrize("name", ["df.npy", "df.npz", "df.zarr"])
def test_a_filter_gradient_has_the_checksum_of_its_bytes(command, name):
    np.save("gd.npy", GD)
    store("x.zarr", X)
    op, rest = "conv2d_backprop_filter", ("--filter-sizes", "3,3,6,4", "--strides", 2, "--json")
    words = ("run", op, "--out-backprop", "gd.npy", *rest)
    ending = command(*words, "--input", "x.zarr", "-o", name)
    assert ending.status == 0, ending.err
    assert ending.document["checksum"] == command(*words, "--input", "x.npy").document["checksum"]
    assert np.array_equal(
        opened(name), convgrad.conv2d_backprop_filter(X, DENSE.shape, GD, 2, "SAME")
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_dtypes_come_back_from_a_store(command, dtype):
    """Zarr has no bfloat16: the attribute of the store says what its 2-byte integers are."""
    np.save("x.npy", X.astype(dtype))
    np.save("f.npy", F.astype(dtype))
    one = np.zeros((1, 1, 12, 1), dtype)
    one[...] = 1
    np.save("one.npy", one)
    bits = ("--dtype", "bfloat16") if dtype is ml_dtypes.bfloat16 else ()
    ending = command(*FORWARD, "--input", "x.npy", "-o", "y.zarr", "--chunks", "4,6,5,3", *bits)
    assert ending.status == 0, ending.err
    stored = opened("y.zarr")
    if bits:
        assert stored.dtype == np.uint16
        stored = stored.view(dtype)
    assert stored.dtype == dtype and np.array_equal(stored, wanted(dtype))
    words = ("run", "depthwise_conv2d", "--input", "y.zarr", "--filter", "one.npy", *bits)
    ending = command(*words, "-o", "z.npy", "--json")
    assert ending.status == 0, ending.err
    assert np.array_equal(np.load("z.npy").view(dtype), wanted(dtype))
    if bits:
        del zarr.open_array("y.zarr").attrs[stores.ATTRIBUTE]
        assert command(*words, "-o", "z2.npy").status == 0  # --dtype says it as well
        ending = command(*words[:-2], "-o", "z3.npy")
        assert ending.status == 2 and "add --dtype bfloat16" in ending.err


def test_whole_numbers(command):
    store("x.zarr", X.astype(np.int32))
    np.save("d.npy", DENSE.astype(np.int32))
    ending = command("run", "conv2d", "--input", "x.zarr", "--filter", "d.npy", "-o", "y.zarr")
    assert ending.status == 0, ending.err
    want = convgrad.conv2d(X.astype(np.int32), DENSE.astype(np.int32), 1, "SAME")
    assert np.array_equal(opened("y.zarr"), want) and opened("y.zarr").dtype == np.int32


def test_random_data_are_those_of_a_plain_run(command):
    words = ("run", "depthwise_conv2d", "--random", "5,6,6,3", "--filter-sizes", "3,3,3,1")
    assert command(*words, "-o", "plain.npy").status == 0
    assert command(*words, "-o", "y.zarr", "--chunks", "2,4,4,3", "--threads", 1).status == 0
    np.testing.assert_allclose(opened("y.zarr"), np.load("plain.npy"), rtol=1e-5, atol=1e-5)


def test_an_empty_batch(command):
    ending = command(
        *("run", "conv2d", "--random", "0,6,6,3", "--filter-sizes", "3,3,3,4", "--json"),
        *("-o", "y.zarr"),
    )
    assert ending.status == 0, ending.err
    assert ending.document["min"] is None and opened("y.zarr").shape == (0, 6, 6, 4)


def test_a_store_of_filters_needs_no_dask(command, monkeypatch):
    monkeypatch.setattr(schedulers, "find_spec", lambda name: None)
    store("f.zarr", F, F.shape)
    words = ("run", "depthwise_conv2d", "--strides", 2, "--input", "x.npy", "--filter", "f.zarr")
    assert command(*words, "-o", "y.npy").status == 0
    assert np.array_equal(np.load("y.npy"), wanted())


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
    ("--input none.zarr", "none.zarr is no Zarr store"),
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
    real = chunking.choose

    def damaged(*words):
        damage()
        return real(*words)

    monkeypatch.setattr(chunking, "choose", damaged)
    ending = command(*FORWARD, "--input", "x.zarr", "-o", "y.zarr")
    assert ending.status == 2 and reason in ending.err and ending.err.count("\n") == 1, ending.err
    assert not (folder / "y.zarr").exists() and not hidden(folder)


def test_a_file_that_goes_away(command, folder, monkeypatch):
    stack("frames", X)
    real = chunking.choose
    monkeypatch.setattr(
        chunking, "choose", lambda *words: (Path("frames/frame3.npy").unlink(), real(*words))[1]
    )
    ending = command(*FORWARD, "--input", "frames", "-o", "y.npy")
    assert ending.status == 2 and ending.err.count("\n") == 1
    assert "frames/frame3.npy: No such file" in ending.err and "same file system" in ending.err
    assert not (folder / "y.npy").exists() and not hidden(folder)


@pytest.mark.parametrize("name", ["y.zarr", "out/"])
def test_a_result_that_appears_meanwhile_is_kept(command, folder, monkeypatch, name):
    real = outputs.written

    def appearing(*words):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "letter").write_text("precious")
        real(*words)

    monkeypatch.setattr(outputs, "written", appearing)
    ending = command(*FORWARD, "--input", "x.npy", "-o", name)
    assert ending.status == 2 and "appeared while it was computed; it is kept" in ending.err
    assert [each.name for each in (folder / name).iterdir()] == ["letter"] and not hidden(folder)


def test_a_store_may_be_replaced_by_the_result(command):
    store("x.zarr", X)
    assert command(*FORWARD, "--input", "x.zarr", "-o", "x.zarr", "--force").status == 0
    assert np.array_equal(opened("x.zarr"), wanted())


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


@pytest.mark.skipif(sys.platform != "linux", reason="kilobytes are bytes elsewhere")
def test_chunks_are_all_that_is_held(folder):
    """One image of 822 MB, which takes no room on disk, and its result of 205 MB: chunks have 15 MB."""
    np.lib.format.open_memmap("x.npy", "w+", np.float32, (1, 896, 896, 256))
    words = "--random 1,896,896,256 --filter-sizes 3,3,256,1 --strides 2 --chunks 1,16,-1,-1"
    words = ("run", "depthwise_conv2d", "--input", "x.npy", *words.split(), "-o", "y.npy")
    # Read by the child itself: what the system tells of a child begins with what its parent holds.
    script = (
        "import re, sys; from pathlib import Path; from convgrad._cli.main import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, check=True)
    assert int(done.stdout.split()[-1]) < 400 << 10, done.stdout
    assert np.load("y.npy", mmap_mode="r").shape == (1, 448, 448, 256)


def test_one_that_is_being_written_is_not_removed(folder):
    from convgrad._cli import folders

    with folders.complete(folder / "y.zarr", force=False) as first:
        with folders.complete(folder / "y.zarr", force=False) as second:
            assert first.is_dir() and second.is_dir()
        (folder / "y.zarr").rmdir()
    assert (folder / "y.zarr").is_dir() and not hidden(folder)


def test_blocks_write_whole_chunks():
    for _ in range(300):
        sizes = tuple(map(int, GENERATOR.integers(0, 9, GENERATOR.integers(1, 7))))
        chunk, blocks = outputs.regular(sizes)
        assert sum(blocks) == sum(sizes) and chunk >= 1
        ends = list(accumulate(blocks))
        assert all(end % chunk == 0 for end in ends[:-1])
        assert max(blocks) <= max(sizes)


@pytest.mark.parametrize("shape", [(5, 4, 3, 2), (2, 1, 6, 1)])
def test_blocks_of_a_file_are_put_together(folder, shape):
    array = numbers(*shape)
    with sink.placed(folder / "y.npy", shape, array.dtype, force=False) as (path, start):
        place = outputs.FilePlace(str(path), start, shape)
        cuts = [[0, *sorted(set(GENERATOR.integers(0, n + 1, 2).tolist())), n] for n in shape]
        blocks = np.array(np.meshgrid(*(range(len(cut) - 1) for cut in cuts))).reshape(4, -1).T
        for at in GENERATOR.permutation(blocks):
            region = tuple(list(pairwise(cut))[n] for cut, n in zip(cuts, at, strict=True))
            outputs.written(place, region, array[tuple(slice(*each) for each in region)])
    assert np.array_equal(np.load("y.npy"), array)


def test_short_runs_are_put_together():
    assert outputs._long_runs(((8,), (9,), (9,), (2, 2)), _dtypes.FLOAT)[3] == (4,)
    assert outputs._long_runs(((8,), (9,), (1, 1), (99, 99)), _dtypes.FLOAT)[2] == (1, 1)
    assert outputs._long_runs(((8,), (5, 4), (256, 256), (3,)), _dtypes.FLOAT)[2] == (256, 256)


def test_only_rows_that_are_wanted_are_mapped(folder):
    """Of a file far larger than memory, whose images are too."""
    shape = (4, 1 << 17, 1 << 13, 16)
    with (folder / "x.npy").open("wb") as stream:
        stream.write(sink.header(shape, np.dtype(np.float32)))
        stream.truncate(stream.tell() + 4 * int(np.prod(shape)))
    with sources.ExitStack() as files:
        source = sources.read("x.npy", None, files)
        part = source.part(((2, 4), (5, 7), (100, 104), (0, 16)))
    found = part.read()
    assert found.shape == (2, 2, 4, 16) and not found.any()


def test_chunks_follow_a_store():
    """Beside a store, files are cut where it is, and where they would be too large."""
    beside = stores.Stored("s", "s", (10, 8, 8, 1), _dtypes.FLOAT, (4, 8, 4, 1))
    free = sources.Random((10, 2048, 2048, 2), _dtypes.FLOAT, 0, 0)  # 32 MB each
    found = chunking.choose({"input": beside, "out_backprop": free}, None, 1)
    assert found["input"] == ((4, 4, 2), (8,), (4, 4), (1,))
    assert found["out_backprop"][0] == (2, 2, 2, 2, 2)
    alone = chunking.choose({"input": free, "out_backprop": free}, None, 1)
    assert alone["input"] == alone["out_backprop"] == ((2,) * 5, (2048,), (2048,), (2,))


def test_the_bar_goes_forward_to_its_end():
    seen = []
    steps = _Steps(100, lambda done, text: seen.append((done, text)))
    for done in (1, 2, 40, 30, 99, 100):
        steps.take(done)
        time.sleep(0.03 if done < 30 else 0.11)
    assert sum(done for done, _ in seen) == 100 and min(done for done, _ in seen) > 0
    assert seen[-1][1] == "100 of 100 tasks" and len(seen) < 6


def test_names_with_braces_and_brackets_are_names(command, folder):
    np.savez("x[1].npz", a=X)
    words = (
        "run",
        "depthwise_conv2d",
        "--filter",
        "f.npy",
        "--strides",
        2,
        "--input",
        "x[1].npz:a",
    )
    assert command(*words, "-o", "{y}.npy").status == 0
    assert np.array_equal(np.load("{y}.npy"), wanted())


def test_what_is_said_of_errors_of_tasks():
    distributed = pytest.importorskip("distributed")
    killed = distributed.KilledWorker("block", None, 3)
    missing = ModuleNotFoundError("No module named 'convgrad._cli'")
    assert "perhaps for lack of memory; choose smaller chunks" in str(schedulers._refusal(killed))
    assert "with its extra `dask`" in str(schedulers._refusal(missing))
    assert str(schedulers._refusal(ValueError("x"))) == "a task failed: ValueError: x"
    assert schedulers._refusal(memory := MemoryError()) is memory


def test_a_part_of_nothing():
    file = parts.FileArray("none", 0, (1, 2, 2, 1), "float32", "<f4", False)
    with pytest.raises(parts.Refusal, match=r"a task cannot read none: .*same file system"):
        parts.FilePart(file, ((0, 1), (0, 2), (0, 2), (0, 1))).read()


def test_a_group_is_not_replaced_by_an_array(command):
    """It may hold arrays that nobody named."""
    group = zarr.create_group("grp.zarr")
    for name in ("raw", "precious"):
        made = group.create_array(name, shape=X.shape, chunks=(3, 4, 5, 6), dtype=X.dtype)
        made[...] = X
    ending = command(*FORWARD, "--input", "x.npy", "-o", "grp.zarr", "--force")
    assert ending.status == 2 and "is not one array of Zarr; it is kept" in ending.err
    ending = command(*FORWARD, "--input", "grp.zarr:raw", "-o", "grp.zarr", "--force")
    assert ending.status == 2
    assert np.array_equal(zarr.open("grp.zarr")["precious"][...], X)


@pytest.mark.parametrize("format", [2, 3])
def test_an_array_is_replaced_by_an_array(command, format):
    store("y.zarr", X, zarr_format=format)
    assert command(*FORWARD, "--input", "x.npy", "-o", "y.zarr", "--force").status == 0
    assert zarr.open("y.zarr").shape == (7, 6, 5, 12)


def test_operands_are_not_replaced_with_the_folder_they_are_in(command, folder):
    for each in ("st", "out"):
        (folder / each).mkdir()
    for number, image in enumerate(X):
        np.save(f"st/{number}.npy", image)
    np.save("out/f.npy", F)
    before = sorted(folder.rglob("*.npy"))
    for words in (
        ("--filter", "out/f.npy", "--input", "st", "-o", "out/"),
        ("--filter", "f.npy", "--input", "st/[0-3].npy", "-o", "st/"),
        ("--filter", "f.npy", "--input", "st", "-o", "st/y.npy"),
    ):
        ending = command("run", "depthwise_conv2d", *words, "--force")
        assert ending.status == 2 and "must not be " in ending.err
    assert sorted(folder.rglob("*.npy")) == before


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


def test_an_image_larger_than_a_chunk_is_cut_along_its_rows():
    large = sources.Random((1, 100_000, 100_000, 1), _dtypes.FLOAT, 0, 0)
    small = sources.Random((1, 50_000, 50_000, 1), _dtypes.FLOAT, 0, 0)
    found = chunking.choose({"input": large, "out_backprop": small}, None, 1)
    rows = max(found["input"][1]) - 1  # rounded up
    assert rows * 100_000 * 4 <= chunking.CHUNK_BYTES
    assert (
        len(found["input"][1]) == len(found["out_backprop"][1])
        and sum(found["input"][1]) == 100_000
    )
    assert found["input"][0::2] == ((1,), (100_000,))


def test_what_was_read_does_not_need_the_file_any_more(folder):
    """A map of a file that is cut off kills the process that looks at it."""
    np.save("x.npy", X)
    held = parts.FileArray(str(folder / "x.npy"), 128, X.shape, "float32", "<f4", False)
    found = parts.FilePart(held, tuple((0, size) for size in X.shape)).read()
    os.truncate("x.npy", 0)
    assert np.array_equal(found, X)
