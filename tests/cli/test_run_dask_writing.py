"""`convgrad run` through Dask on this machine: results of every form, and what they may replace."""

from __future__ import annotations

import time
from itertools import accumulate, pairwise

import ml_dtypes
import numpy as np
import pytest

import convgrad
from cli.dask_files import (
    DENSE,
    FORWARD,
    GD,
    GENERATOR,
    F,
    X,
    hidden,
    numbers,
    opened,
    save,
    store,
    wanted,
    zarr,
)
from convgrad._apps.cli import outputs, sink, stores
from convgrad._apps.cli.dask_run import _Steps
from convgrad._base import dtypes

pytestmark = pytest.mark.usefixtures("without_compiler")


@pytest.fixture
def command(convgrad_command):
    save()
    return convgrad_command


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


def test_an_empty_batch(command):
    ending = command(
        *("run", "conv2d", "--random", "0,6,6,3", "--filter-sizes", "3,3,3,4", "--json"),
        *("-o", "y.zarr"),
    )
    assert ending.status == 0, ending.err
    assert ending.document["min"] is None and opened("y.zarr").shape == (0, 6, 6, 4)


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
            outputs.write_block(place, region, array[tuple(slice(*each) for each in region)])
    assert np.array_equal(np.load("y.npy"), array)


def test_short_runs_are_put_together():
    assert outputs._long_runs(((8,), (9,), (9,), (2, 2)), dtypes.FLOAT)[3] == (4,)
    assert outputs._long_runs(((8,), (9,), (1, 1), (99, 99)), dtypes.FLOAT)[2] == (1, 1)
    assert outputs._long_runs(((8,), (5, 4), (256, 256), (3,)), dtypes.FLOAT)[2] == (256, 256)


def test_the_bar_goes_forward_to_its_end():
    seen = []
    steps = _Steps(100, lambda done, text: seen.append((done, text)))
    for done in (1, 2, 40, 30, 99, 100):
        steps.take(done)
        time.sleep(0.03 if done < 30 else 0.11)
    assert sum(done for done, _ in seen) == 100 and min(done for done, _ in seen) > 0
    assert seen[-1][1] == "100 of 100 tasks" and len(seen) < 6


def test_a_store_may_be_replaced_by_the_result(command):
    store("x.zarr", X)
    assert command(*FORWARD, "--input", "x.zarr", "-o", "x.zarr", "--force").status == 0
    assert np.array_equal(opened("x.zarr"), wanted())


@pytest.mark.parametrize("format", [2, 3])
def test_an_array_is_replaced_by_an_array(command, format):
    store("y.zarr", X, zarr_format=format)
    assert command(*FORWARD, "--input", "x.npy", "-o", "y.zarr", "--force").status == 0
    assert zarr.open("y.zarr").shape == (7, 6, 5, 12)


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


@pytest.mark.parametrize("name", ["y.zarr", "out/"])
def test_a_result_that_appears_meanwhile_is_kept(command, folder, monkeypatch, name):
    real = outputs.write_block

    def appearing(*words):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "letter").write_text("precious")
        real(*words)

    monkeypatch.setattr(outputs, "write_block", appearing)
    ending = command(*FORWARD, "--input", "x.npy", "-o", name)
    assert ending.status == 2 and "appeared while it was computed; it is kept" in ending.err
    assert [each.name for each in (folder / name).iterdir()] == ["letter"] and not hidden(folder)


def test_one_that_is_being_written_is_not_removed(folder):
    from convgrad._apps.cli import folders

    with folders.complete(folder / "y.zarr", force=False) as first:
        with folders.complete(folder / "y.zarr", force=False) as second:
            assert first.is_dir() and second.is_dir()
        (folder / "y.zarr").rmdir()
    assert (folder / "y.zarr").is_dir() and not hidden(folder)
