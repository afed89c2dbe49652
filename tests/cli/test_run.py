"""`convgrad run`: results are those of the Python functions, files are whole or absent, mistakes are one line."""

from __future__ import annotations

import errno
import io
import mmap
import os
import weakref
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import convgrad
from convgrad._apps.cli import parts, sink, sources

SETTINGS = {"strides": 2, "padding": "SAME"}
X = np.random.default_rng(0).standard_normal((7, 9, 8, 6)).astype(np.float32)
F = np.random.default_rng(1).standard_normal((3, 3, 6, 2)).astype(np.float32)
G = np.random.default_rng(2).standard_normal((7, 5, 4, 12)).astype(np.float32)
OPERANDS = {
    "depthwise_conv2d": (X, F),
    "depthwise_conv2d_backprop_input": (X.shape, F, G),
    "depthwise_conv2d_backprop_filter": (X, F.shape, G),
}
OPTIONS = {
    "depthwise_conv2d": "--input x.npy --filter f.npy",
    "depthwise_conv2d_backprop_input": "--input-sizes 7,9,8,6 --filter f.npy --out-backprop g.npy",
    "depthwise_conv2d_backprop_filter": "--input x.npy --filter-sizes 3,3,6,2 --out-backprop g.npy",
}
IMAGE_BYTES = (9 * 8 * 6 + 5 * 4 * 12) * 4


@pytest.fixture
def command(convgrad_command):
    np.save("x.npy", X)
    np.save("f.npy", F)
    np.save("g.npy", G)
    return lambda op, *words: convgrad_command("run", op, *OPTIONS[op].split(), *words)


def direct(op, dtype=np.float32):
    operands = [each if isinstance(each, tuple) else each.astype(dtype) for each in OPERANDS[op]]
    return getattr(convgrad, op)(*operands, **SETTINGS)


def left_over(folder):
    return sorted(
        path.name for path in folder.iterdir() if path.name not in ("x.npy", "f.npy", "g.npy")
    )


def in_slices(call, x, images):
    """Return what plain calls give for slices of the batch: for another batch the planner may choose another sum."""
    return np.concatenate([call(x[at : at + images]) for at in range(0, len(x), images)])


@pytest.mark.parametrize("op", OPERANDS)
def test_one_slice_is_the_plain_call(command, folder, op):
    ending = command(op, "--strides", "1,2,2,1", "-o", "y.npy", "--json")
    assert ending.status == 0, ending.err
    expected = direct(op)
    found = np.load("y.npy")
    assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    assert ending.document["slices"] == 1
    assert ending.document["result_shape"] == list(expected.shape)
    assert ending.document["mean"] == pytest.approx(expected.astype(np.float64).mean())
    assert (ending.document["min"], ending.document["max"]) == (expected.min(), expected.max())
    assert left_over(folder) == ["y.npy"]


@pytest.mark.parametrize("op", OPERANDS)
@pytest.mark.parametrize("images", [1, 3])
def test_slices_make_up_the_whole(command, op, images):
    """7 images in slices of 1, and of 3 with a smaller last one."""
    ending = command(
        op, "--strides", 2, "-o", "y.npy", "--slice-bytes", images * IMAGE_BYTES, "--json"
    )
    assert ending.status == 0, ending.err
    assert ending.document["images_per_slice"] == images
    assert ending.document["slices"] == -(-7 // images)
    np.testing.assert_allclose(np.load("y.npy"), direct(op), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_a_sliced_filter_gradient_is_rounded_once(convgrad_command, dtype):
    """Slices rounded to the dtype before they are added would be off by several units, a second rounding by one."""
    np.save("x.npy", X.astype(dtype))
    np.save("g.npy", G.astype(dtype))
    row = {2: "half", 8: "float64"}[np.dtype(dtype).itemsize]
    words = ["--dtype", "bfloat16" if dtype is ml_dtypes.bfloat16 else row]
    op = "depthwise_conv2d_backprop_filter"
    ending = convgrad_command(
        "run", op, *OPTIONS[op].split(), "--strides", 2, *words, "--slice-bytes", 1, "-o", "y.npy"
    )
    assert ending.status == 0, ending.err
    found = np.load("y.npy").view(dtype)
    wide = convgrad.depthwise_conv2d_backprop_filter(
        X.astype(dtype).astype(np.float64), F.shape, G.astype(dtype).astype(np.float64), **SETTINGS
    )
    if dtype is np.float64:
        np.testing.assert_allclose(found, wide, rtol=1e-13, atol=1e-13)
    else:
        near = (
            np.abs(found.astype(np.float64) - wide)
            <= np.spacing(np.abs(wide).astype(dtype)).astype(float) * 0.501
        )
        assert near.all()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("images", [2, 7])
def test_a_transposed_convolution(convgrad_command, layout, images):
    x = np.moveaxis(G, 3, 1).copy() if layout == "NCHW" else G
    shape = (7, 6, 9, 8) if layout == "NCHW" else X.shape
    np.save("x.npy", x)
    np.save("f.npy", F.reshape(3, 3, 1, 12).repeat(6, 2))
    words = "--input x.npy --filter f.npy --strides 2 --json -o y.npy"
    ending = convgrad_command(
        *("run", "conv2d_transpose", *words.split()),
        *("--output-shape", ",".join(map(str, shape)), "--data-format", layout),
        *("--slice-bytes", images * IMAGE_BYTES),
    )
    assert ending.status == 0, ending.err
    assert ending.document["input_shape"] == list(x.shape)
    assert ending.document["output_shape"] == ending.document["result_shape"] == list(shape)
    assert ending.document["images_per_slice"] == images

    def alone(part):
        sizes = (len(part), *shape[1:])
        return convgrad.conv2d_transpose(part, np.load("f.npy"), sizes, 2, data_format=layout)

    assert np.array_equal(np.load("y.npy"), in_slices(alone, x, images))
    np.testing.assert_allclose(np.load("y.npy"), alone(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("images", [2, 7])
def test_a_separable_convolution(convgrad_command, images):
    mixing = np.random.default_rng(3).standard_normal((1, 1, 12, 5)).astype(np.float32)
    np.save("x.npy", X)
    np.savez("f.npz", d=F, p=mixing)
    words = "run separable_conv2d --input x.npy --filter f.npz:d --pointwise-filter f.npz:p --strides 2 --json -o y.npy"
    ending = convgrad_command(
        *words.split(), "--slice-bytes", images * (IMAGE_BYTES + 5 * 4 * 5 * 4)
    )
    assert ending.status == 0, ending.err
    assert ending.document["images_per_slice"] == images
    assert ending.document["pointwise_shape"] == [1, 1, 12, 5]
    assert ending.document["output_shape"] == [7, 5, 4, 5]
    assert ending.document["flops"] == 2 * 7 * 5 * 4 * (12 * 9 + 12 * 5)

    def alone(part):
        return convgrad.separable_conv2d(part, F, mixing, 2, "SAME")

    assert np.array_equal(np.load("y.npy"), in_slices(alone, X, images))
    np.testing.assert_allclose(np.load("y.npy"), alone(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("words", [
    "conv2d_transpose --random 2,5,4,12 --filter-sizes 3,3,6,12 --output-shape 9,8",
    "separable_conv2d --random 2,9,8,6 --filter-sizes 3,3,6,2 --pointwise-sizes 1,1,12,5",
])  # fmt: skip
def test_random_layers(convgrad_command, words):
    ending = convgrad_command("run", *words.split(), "--strides", "2", "--json")
    assert ending.status == 0, ending.err
    assert ending.document["max"] > 1 and ending.document["min"] < -1


@pytest.mark.parametrize(("words", "names"), [
    (
        "conv2d --random 8,9999999,9999999,3 --filter-sizes 3,3,3,8",
        "the result [1, 9999999, 9999999, 8] takes 3,199,999.4 GB, a random input",
    ),
    (
        "conv2d_backprop_input --random 1,9999999,9999999,3 --filter-sizes 3,3,3,8",
        "a random out-backprop [1, 9999999, 9999999, 8]",
    ),
    (
        "conv2d_backprop_filter --random 1,9,9,1 --filter-sizes 99999999,99999999,1,1",
        "the result [99999999, 99999999, 1, 1]",
    ),
    ("conv2d --random 1,9,9,1 --filter-sizes 99999999,99999999,1,1", "a random filter [99999999, 99999999, 1, 1]"),
    (
        "separable_conv2d --random 1,9,9,9 --filter-sizes 3,3,9,1 --pointwise-sizes 1,1,9,99999999999999",
        "a random pointwise-filter",
    ),
    (
        "conv2d_transpose --random 1,4999999,4999999,1 --strides 2 "
        "--filter-sizes 1,1,9,1 --output-shape 9999998,9999998",
        "the result [1, 9999998, 9999998, 9]",
    ),
])  # fmt: skip
def test_memory_is_asked_for_before_anything_is_planned(
    convgrad_command, monkeypatch, words, names
):
    """These were planned for ever, or until the planner's tables had filled the memory."""
    from convgrad._engine import planner

    monkeypatch.setattr(planner, "choose", None)
    ending = convgrad_command("run", *words.split())
    assert ending.status == 2 and ending.out == "" and ending.err.count("\n") == 1
    assert "there is no memory for 1 image at a time" in ending.err and names in ending.err


def test_all_of_the_settings_arrive(convgrad_command):
    np.save("x.npy", X.transpose(0, 3, 1, 2))
    np.save("f.npy", F)
    ending = convgrad_command(
        "run", "depthwise_conv2d", "--input", "x.npy", "--filter", "f.npy", "-o", "y.npy",
        "--strides", "1,1,2,1", "--padding", "0,0:0,0:1,2:0,3", "--data-format", "NCHW", "--dilations", "1,2",
        "--threads", 1,
    )  # fmt: skip
    assert ending.status == 0, ending.err
    expected = convgrad.depthwise_conv2d(
        X.transpose(0, 3, 1, 2), F, (2, 1), ((1, 2), (0, 3)), "NCHW", (1, 2)
    )
    np.testing.assert_array_equal(np.load("y.npy"), expected)


@pytest.mark.parametrize("slice_bytes", [1, 1 << 20])
@pytest.mark.parametrize("save", [
    lambda x: np.save("x.npy", np.asfortranarray(x)),
    lambda x: np.save("x.npy", x.astype(">f4")),
    lambda x: np.savez("x.npz", a=np.zeros(3), x=x),
    lambda x: np.savez("x.npz", np.asfortranarray(x)),
    lambda x: np.savez_compressed("x.npz", x),
    lambda x: np.savez_compressed("x.npz", np.asfortranarray(x)),
], ids=["fortran", "big-endian", "member", "fortran member", "compressed", "compressed fortran"])  # fmt: skip
def test_every_form_of_file(convgrad_command, folder, save, slice_bytes):
    save(X)
    np.save("f.npy", F)
    name = "x.npy" if (folder / "x.npy").exists() else "x.npz"
    if name == "x.npz" and len(np.load("x.npz").files) > 1:
        name = "x.npz:x"
    words = ("--input", name, "--filter", "f.npy", "--strides", 2, "-o", "y.npz")
    ending = convgrad_command("run", "depthwise_conv2d", *words, "--slice-bytes", slice_bytes)
    assert ending.status == 0, ending.err
    with np.load("y.npz") as archive:
        assert archive.files == [sink.MEMBER]
        np.testing.assert_allclose(
            archive[sink.MEMBER], direct("depthwise_conv2d"), rtol=1e-6, atol=1e-6
        )


def test_bfloat16_must_be_named(convgrad_command):
    np.save("x.npy", X.astype(ml_dtypes.bfloat16))
    np.save("f.npy", F.astype(ml_dtypes.bfloat16))
    words = ("run", "depthwise_conv2d", "--input", "x.npy", "--filter", "f.npy", "--strides", 2)
    ending = convgrad_command(*words)
    assert ending.status == 2 and "--dtype bfloat16" in ending.err
    ending = convgrad_command(*words, "--dtype", "bfloat16", "-o", "y.npy")
    assert ending.status == 0, ending.err
    expected = direct("depthwise_conv2d", ml_dtypes.bfloat16)
    np.testing.assert_array_equal(np.load("y.npy").view(ml_dtypes.bfloat16), expected)


def test_random_data_do_not_depend_on_slices(convgrad_command):
    words = (
        "run",
        "conv2d_backprop_input",
        "--random",
        "5,6,6,3",
        "--filter-sizes",
        "3,3,3,4",
        "--json",
    )
    ends = [
        convgrad_command(*words, "--seed", seed, "--slice-bytes", size, "-o", f"y{seed}{size}.npy")
        for seed, size in ((0, 1), (0, 1 << 20), (1, 1))
    ]
    assert [each.status for each in ends] == [0, 0, 0], ends
    sliced, whole, other = (np.load(f"y{name}.npy") for name in ("01", f"0{1 << 20}", "11"))
    np.testing.assert_allclose(sliced, whole, rtol=1e-5, atol=1e-5)
    assert not np.allclose(sliced, other)


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float64", "int32"])
def test_random_dtypes(convgrad_command, dtype):
    ending = convgrad_command(
        "run",
        "conv2d",
        "--random",
        "2,6,6,3",
        "--filter-sizes",
        "3,3,3,4",
        "--dtype",
        dtype,
        "--json",
    )
    assert ending.status == 0, ending.err
    assert ending.document["dtype"] == dtype and ending.document["max"] > ending.document["min"]


def test_an_empty_batch_has_a_result(convgrad_command):
    ending = convgrad_command(
        "run", "conv2d", "--random", "0,6,6,3", "--filter-sizes", "3,3,3,4", "--json", "-o", "y.npy"
    )
    assert ending.status == 0, ending.err
    assert ending.document["min"] is None
    assert np.load("y.npy").shape == (0, 6, 6, 4)


def _npy(array, pickled=False):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=pickled)
    return stream.getvalue()


BAD = {
    "missing": (None, "No such file"),
    "empty": (b"", "is empty"),
    "text": (b"hello, this is not an array at all", "not an array"),
    "half a header": (_npy(X)[:40], "not an array"),
    "truncated": (_npy(X)[:-1], "is truncated: it holds 12,095 of 12,096 bytes"),
    "objects": (_npy(np.array([[{}]]), pickled=True), "Python objects"),
    "complex": (_npy(X.astype(np.complex64)), "complex64"),
    "strings": (_npy(np.array([["a"]])), "it must be one of half"),
    "structured": (_npy(np.zeros(3, [("a", "f4")])), "it must be one of half"),
    "another dtype": (_npy(X.astype(np.float64)), "must have one dtype"),
    "another rank": (_npy(X[0]), "must be 4-dimensional"),
    "other channels": (_npy(X[..., :5]), "same depth"),
    "unknown version": (b"\x93NUMPY\x09\x00" + _npy(X)[8:], "unknown version"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_in_one_line(command, folder, kind):
    content, reason = BAD[kind]
    (folder / "x.npy").unlink()
    if content is not None:
        (folder / "x.npy").write_bytes(content)
    ending = command("depthwise_conv2d", "-o", "y.npy")
    assert ending.status == 2 and ending.out == ""
    assert reason in ending.err and ending.err.count("\n") == 1, ending.err
    assert left_over(folder) == []


@pytest.mark.parametrize("name", ["x.npy", "f.npy", "x.npz", "x.npz:a"])
def test_a_pipe_is_not_waited_for(convgrad_command, folder, name):
    np.save("x.npy", X)
    np.save("f.npy", F)
    path = folder / name.partition(":")[0]
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    words = ("--input", "x.npy", "--filter", name) if name == "f.npy" else ("--input", name)
    ending = convgrad_command("run", "depthwise_conv2d", "--filter", "f.npy", *words)
    assert ending.status == 2 and ending.err.count("\n") == 1
    assert f"cannot read {path.name}: it is a pipe, not a regular file" in ending.err


def test_other_things_that_are_no_files(convgrad_command, folder):
    (folder / "folder.npy").mkdir()
    (folder / "zero.npy").symlink_to("/dev/zero")
    for name, kind in (("folder.npy", "a folder"), ("zero.npy", "a device")):
        ending = convgrad_command("run", "conv2d", "--input", name, "--filter", "f.npy")
        assert ending.status == 2 and f"cannot read {name}: it is {kind}" in ending.err


def _damaged(compressed):
    stream = io.BytesIO()
    with zipfile.ZipFile(
        stream, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    ) as archive:
        archive.writestr("x.npy", _npy(X))
    content = bytearray(stream.getvalue())
    content[len(content) // 2] ^= 0xFF
    return bytes(content)


def _zipped(content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("x.npy", "z.npy")[: 1 if content else 2]:
            archive.writestr(name, content or _npy(X))
    return stream.getvalue()


@pytest.mark.parametrize(("content", "member", "reason"), [
    (_damaged(False), "", "is damaged"),
    (_damaged(True), "", "is damaged"),
    (_npy(X), "", "not an .npz file"),
    (_zipped(_npy(X)[:-1]), "", "is truncated"),
    (_zipped(_npy(np.array([[{}]]), pickled=True)), "", "Python objects"),
    (_zipped(None), "", "holds 2 arrays; name one as x.npz:NAME (x, z)"),
    (_zipped(None), ":y", "no array 'y'; it has x, z"),
])  # fmt: skip
def test_a_bad_archive_is_refused_in_one_line(convgrad_command, folder, content, member, reason):
    (folder / "x.npz").write_bytes(content)
    np.save("f.npy", F)
    ending = convgrad_command(
        "run", "depthwise_conv2d", "--input", "x.npz" + member, "--filter", "f.npy"
    )
    assert ending.status == 2 and reason in ending.err and ending.err.count("\n") == 1, ending.err


@pytest.mark.parametrize(("words", "reason"), [
    ("conv2d", "needs --input, --filter, or --random"),
    ("conv2d --input x.npy", "needs --filter"),
    ("conv2d --random 1,5,5,2", "--random needs --filter-sizes or --filter"),
    ("conv2d_backprop_filter --random 1,5,5,2", "--random needs --filter-sizes too"),
    ("conv2d --input x.npy --filter f.npy --out-backprop g.npy", "--out-backprop is not an operand of conv2d"),
    ("conv2d --input x.npy --filter f.npy --random 1,1,1,1", "--input has the shape [7, 9, 8, 6]"),
    ("conv2d_backprop_input --random 1,5,5,2 --input-sizes 1,5,5,3 --filter-sizes 3,3,2,2", "give one of them"),
    ("conv2d --input x.txt --filter f.npy", "must be a .npy file"),
    (
        "conv2d --input x.npy --filter f.npy --output-shape 9,9",
        "--output-shape is not an operand of conv2d; it takes --input, --filter",
    ),
    ("conv2d_transpose --input x.npy --filter f.npy", "conv2d_transpose needs --output-shape"),
    ("conv2d_transpose --random 1,5,5,2 --filter-sizes 3,3,2,2", "--random needs --output-shape too"),
    ("separable_conv2d --input x.npy --filter f.npy", "needs --pointwise-filter"),
    (
        "separable_conv2d --random 1,5,5,2 --filter-sizes 3,3,2,1",
        "--random needs --pointwise-sizes or --pointwise-filter too",
    ),
    (
        "separable_conv2d --random 1,5,5,2 --filter-sizes 3,3,2,1 --pointwise-sizes 3,3,2,1",
        "`pointwise_filter` must have rank 4 and shape [1, 1, C*M, O]",
    ),
    (
        "depthwise_conv2d --input x.npy --filter f.npy --random 7,9,8,6 --filter-sizes 3,3,6,1",
        "--filter has the shape [3, 3, 6, 2], --filter-sizes says [3, 3, 6, 1]",
    ),
    ("depthwise_conv2d --input x.npy --filter f.npy --dtype half", "holds float32, but --dtype says half"),
    ("depthwise_conv2d --input x.npy --filter f.npy --padding 1,1:1", "must be SAME, VALID or pairs"),
    ("depthwise_conv2d --input x.npy --filter f.npy --padding sane", "`padding` must be 'SAME'"),
    ("depthwise_conv2d --input x.npy --filter f.npy --strides 0", "`strides` must be larger than 0"),
    ("depthwise_conv2d --input x.npy --filter f.npy -o y.txt", "must end in .npy, .npz or .zarr"),
    ("depthwise_conv2d --input x.npy --filter f.npy -o none/y.npy", "folder none does not exist"),
    ("depthwise_conv2d --input x.npy --filter f.npy --slice-bytes 0", "whole number from 1 up"),
    ("depthwise_conv2d --random 2,5,5,3 --filter-sizes 3,3,3,1 --dtype int32", "must have one of the dtypes"),
    ("conv2d --random 1000000,4000,4000,9 --filter-sizes 1,1,9,9 -o y.npy", "the disk has"),
])  # fmt: skip
def test_mistakes_are_one_line(convgrad_command, folder, words, reason):
    np.save("x.npy", X)
    np.save("f.npy", F)
    ending = convgrad_command("run", *words.split())
    assert ending.status == 2 and ending.out == ""
    assert reason in ending.err and ending.err.count("\n") == 1, ending.err
    assert left_over(folder) == []


def test_an_existing_output_is_kept_unless_forced(command, folder):
    (folder / "y.npy").write_text("precious")
    # The input is unreadable: a refusal that names the output shows that it came before any work.
    (folder / "x.npy").write_bytes(b"")
    ending = command("depthwise_conv2d", "-o", "y.npy")
    assert ending.status == 2 and "--force" in ending.err
    assert (folder / "y.npy").read_text() == "precious"
    np.save("x.npy", X)
    assert command("depthwise_conv2d", "-o", "y.npy", "--force").status == 0
    assert np.load("y.npy").shape == (7, 9, 8, 12)
    assert left_over(folder) == ["y.npy"]


def test_an_output_that_appears_meanwhile_is_kept(folder):
    part = np.zeros((2, 3), np.float32)
    with (
        pytest.raises(sink.Refusal, match="appeared"),
        sink.written(folder / "y.npy", part.shape, part.dtype, force=False) as writer,
    ):
        writer.write(part)
        (folder / "y.npy").write_text("precious")
    assert (folder / "y.npy").read_text() == "precious"
    assert left_over(folder) == ["y.npy"]


def test_an_input_may_be_replaced_by_the_result(command):
    assert (
        command(
            "depthwise_conv2d", "--strides", 2, "-o", "x.npy", "--force", "--slice-bytes", 1
        ).status
        == 0
    )
    np.testing.assert_allclose(np.load("x.npy"), direct("depthwise_conv2d"), rtol=1e-6, atol=1e-6)


def test_a_link_is_followed(command, folder):
    (folder / "real").mkdir()
    (folder / "y.npy").symlink_to(folder / "real" / "z.npy")
    assert command("depthwise_conv2d", "-o", "y.npy").status == 0
    assert (folder / "y.npy").is_symlink() and np.load("real/z.npy").shape == (7, 9, 8, 12)


def test_an_output_that_leads_nowhere_is_named(folder, monkeypatch):
    """The working folder was removed: `[Errno 2]` said nothing."""
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    try:
        gone.rmdir()
    except OSError:
        pytest.skip("this system keeps a folder somebody works in")
    with pytest.raises(sink.Refusal, match=r"the output y\.npy leads nowhere: FileNotFoundError"):
        sink.check(Path("y.npy"), force=False)


@pytest.mark.parametrize("name", ["y.npy", "y.npz"])
def test_a_full_disk_leaves_nothing_behind(command, folder, monkeypatch, name):
    def full(self, part):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sink.Writer, "write", full)
    ending = command("depthwise_conv2d", "-o", name)
    assert ending.status == 2 and "the disk is full" in ending.err and ending.err.count("\n") == 1
    assert left_over(folder) == []


def test_ctrl_c_leaves_nothing_behind(command, folder, monkeypatch):
    def interrupted(self, part):
        raise KeyboardInterrupt

    monkeypatch.setattr(sink.Writer, "write", interrupted)
    ending = command("depthwise_conv2d", "-o", "y.npy")
    assert ending.status == 130 and "interrupted" in ending.err
    assert left_over(folder) == []


def test_abandoned_files_go_and_others_stay(folder):
    """A file of a dead writer goes; one that is being written, and one for another name, stay."""
    (folder / ".y.npy.dead.convgrad-partial").write_bytes(b"x")
    (folder / ".z.npy.dead.convgrad-partial").write_bytes(b"x")
    part = np.zeros(3, np.float32)
    with sink.written(folder / "y.npy", (3,), part.dtype, force=False) as first:
        alive = [name for name in left_over(folder) if name.startswith(".y")]
        assert len(alive) == 1 and "dead" not in alive[0]
        with sink.written(folder / "y.npy", (3,), part.dtype, force=True) as second:
            assert alive[0] in left_over(folder)
            second.write(part)
        (folder / "y.npy").unlink()
        first.write(part)
    assert left_over(folder) == [".z.npy.dead.convgrad-partial", "y.npy"]


def test_a_window_is_all_that_is_mapped(folder):
    """A file far larger than any address space limit costs a window; Fortran order is cut the other way."""
    shape = (1 << 16, 64, 64, 64)
    np.lib.format.open_memmap("x.npy", "w+", np.float32, (1, 1)).flush()
    with (folder / "x.npy").open("wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        stream.truncate(stream.tell() + 4 * int(np.prod(shape)))
    with sources.ExitStack() as files:
        source = sources.read("x.npy", None, files)
        window = source.images(60000, 60002)
        assert window.shape == (2, 64, 64, 64) and not window.any()
        assert len(window.base) < 4 * window.nbytes


@pytest.mark.parametrize("order", ["C", "F"])
def test_windows_go_before_the_next_come(command, monkeypatch, order):
    """At any time one slice of each operand is mapped, however many there are: a file may be larger than memory."""
    np.save("x.npy", np.asarray(X, order=order))
    alive, most = weakref.WeakSet(), []

    class Mapped(mmap.mmap):
        def __new__(cls, file, *words, **how):
            view = super().__new__(cls, file, *words, **how)
            if file >= 0:  # not memory that is asked for and given back
                alive.add(view)
                most.append(sum(len(each) for each in alive))
            return view

    monkeypatch.setattr(parts.mmap, "mmap", Mapped)
    assert (
        command(
            "depthwise_conv2d_backprop_filter", "--strides", 2, "--slice-bytes", IMAGE_BYTES
        ).status
        == 0
    )
    assert len(most) >= 2 * 7
    image, page = 9 * 8 * 6 * 4 + 5 * 4 * 12 * 4, mmap.ALLOCATIONGRANULARITY
    assert max(most) <= 2 * image + 2 * page


def test_a_file_that_shrinks_is_noticed(folder):
    np.save("x.npy", X)
    with sources.ExitStack() as files:
        source = sources.read("x.npy", None, files)
        os.truncate("x.npy", 1000)
        with pytest.raises(sources.Refusal, match="shorter"):
            source.images(0, 7)
