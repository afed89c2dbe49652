"""`convgrad run` through Dask on this machine: operands of every form, read no further than chunks need."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import convgrad
from cli.dask_files import (
    DENSE,
    FORWARD,
    GD,
    MIXING,
    F,
    G,
    X,
    opened,
    save,
    stack,
    store,
    wanted,
    zarr,
)
from convgrad._apps.cli import chunking, parts, schedulers, sink, sources, stores
from convgrad._base import dtypes

pytestmark = pytest.mark.usefixtures("without_compiler")

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


@pytest.fixture
def command(convgrad_command):
    save()
    return convgrad_command


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


def test_random_data_are_those_of_a_plain_run(command):
    words = ("run", "depthwise_conv2d", "--random", "5,6,6,3", "--filter-sizes", "3,3,3,1")
    assert command(*words, "-o", "plain.npy").status == 0
    assert command(*words, "-o", "y.zarr", "--chunks", "2,4,4,3", "--threads", 1).status == 0
    np.testing.assert_allclose(opened("y.zarr"), np.load("plain.npy"), rtol=1e-5, atol=1e-5)


def test_a_store_of_filters_needs_no_dask(command, monkeypatch):
    monkeypatch.setattr(schedulers, "find_spec", lambda name: None)
    store("f.zarr", F, F.shape)
    words = ("run", "depthwise_conv2d", "--strides", 2, "--input", "x.npy", "--filter", "f.zarr")
    assert command(*words, "-o", "y.npy").status == 0
    assert np.array_equal(np.load("y.npy"), wanted())


@pytest.mark.skipif(sys.platform != "linux", reason="kilobytes are bytes elsewhere")
def test_chunks_are_all_that_is_held(folder):
    """One image of 822 MB, which takes no room on disk, and its result of 205 MB: chunks have 15 MB."""
    np.lib.format.open_memmap("x.npy", "w+", np.float32, (1, 896, 896, 256))
    words = "--random 1,896,896,256 --filter-sizes 3,3,256,1 --strides 2 --chunks 1,16,-1,-1"
    words = ("run", "depthwise_conv2d", "--input", "x.npy", *words.split(), "-o", "y.npy")
    # Read by the child itself: what the system tells of a child begins with what its parent holds.
    script = (
        "import re, sys; from pathlib import Path; from convgrad._apps.cli.main import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, check=True)
    assert int(done.stdout.split()[-1]) < 400 << 10, done.stdout
    assert np.load("y.npy", mmap_mode="r").shape == (1, 448, 448, 256)


def test_only_rows_that_are_wanted_are_mapped(folder):
    """Of a file far larger than memory, whose images are too."""
    shape = (4, 1 << 17, 1 << 13, 16)
    with (folder / "x.npy").open("wb") as stream:
        stream.write(sink.npy_header(shape, np.dtype(np.float32)))
        stream.truncate(stream.tell() + 4 * int(np.prod(shape)))
    with sources.ExitStack() as files:
        source = sources.read("x.npy", None, files)
        part = source.part(((2, 4), (5, 7), (100, 104), (0, 16)))
    found = part.read()
    assert found.shape == (2, 2, 4, 16) and not found.any()


def test_what_was_read_does_not_need_the_file_any_more(folder):
    """A map of a file that is cut off kills the process that looks at it."""
    np.save("x.npy", X)
    held = parts.FileArray(str(folder / "x.npy"), 128, X.shape, "float32", "<f4", False)
    found = parts.FilePart(held, tuple((0, size) for size in X.shape)).read()
    os.truncate("x.npy", 0)
    assert np.array_equal(found, X)


def test_chunks_follow_a_store():
    """Beside a store, files are cut where it is, and where they would be too large."""
    beside = stores.Stored("s", "s", (10, 8, 8, 1), dtypes.FLOAT, (4, 8, 4, 1))
    free = sources.Random((10, 2048, 2048, 2), dtypes.FLOAT, 0, 0)  # 32 MB each
    found = chunking.choose_chunks({"input": beside, "out_backprop": free}, None, 1)
    assert found["input"] == ((4, 4, 2), (8,), (4, 4), (1,))
    assert found["out_backprop"][0] == (2, 2, 2, 2, 2)
    alone = chunking.choose_chunks({"input": free, "out_backprop": free}, None, 1)
    assert alone["input"] == alone["out_backprop"] == ((2,) * 5, (2048,), (2048,), (2,))


def test_an_image_larger_than_a_chunk_is_cut_along_its_rows():
    large = sources.Random((1, 100_000, 100_000, 1), dtypes.FLOAT, 0, 0)
    small = sources.Random((1, 50_000, 50_000, 1), dtypes.FLOAT, 0, 0)
    found = chunking.choose_chunks({"input": large, "out_backprop": small}, None, 1)
    rows = max(found["input"][1]) - 1  # rounded up
    assert rows * 100_000 * 4 <= chunking.CHUNK_BYTES
    assert (
        len(found["input"][1]) == len(found["out_backprop"][1])
        and sum(found["input"][1]) == 100_000
    )
    assert found["input"][0::2] == ((1,), (100_000,))
