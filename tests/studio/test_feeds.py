"""Arrays from files: those that are right, and those somebody made to hurt."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import struct
import time
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convgrad._apps.studio import api, feeds
from convgrad._apps.studio import png as pixels
from convgrad.errors import ArgumentError


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=array.dtype.hasobject)
    return stream.getvalue()


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def rows_of(image: np.ndarray, filters: list[int]) -> bytes:
    """Write the rows of a PNG, each with a filter of the list in turn; by the standard, apart from the reader."""
    height, width, channels = image.shape
    rows, above = [], np.zeros(width * channels, np.int64)
    for at in range(height):
        row = image[at].reshape(-1).astype(np.int64)
        left = np.concatenate([np.zeros(channels, np.int64), row[:-channels]])
        corner = np.concatenate([np.zeros(channels, np.int64), above[:-channels]])
        kind = filters[at % len(filters)]
        guess = [0 * row, left, above, (left + above) // 2, None][kind]
        if guess is None:
            near = left + above - corner
            a, b, c = abs(near - left), abs(near - above), abs(near - corner)
            guess = np.where((a <= b) & (a <= c), left, np.where(b <= c, above, corner))
        rows.append(bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes())
        above = row
    return b"".join(rows)


def png(image: np.ndarray, filters: list[int], **header: int) -> bytes:
    """Write a PNG."""
    height, width, channels = image.shape
    colour = {1: 0, 3: 2, 4: 6}[channels]
    head = {
        "width": width,
        "height": height,
        "depth": 8,
        "colour": colour,
        "interlaced": 0,
        **header,
    }
    ihdr = struct.pack(
        ">IIBBBBB",
        head["width"],
        head["height"],
        head["depth"],
        head["colour"],
        0,
        0,
        head["interlaced"],
    )
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", ihdr)
        + chunk(b"tEXt", b"x")
        + chunk(b"IDAT", zlib.compress(rows_of(image, filters)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", ">f4", ">i8", "u1", "?", "f2"])
def test_npy(dtype):
    array = np.asfortranarray(np.arange(6).reshape(2, 3).astype(dtype))
    found, members = feeds.read("x.NPY", npy(array))
    assert found.tolist() == array.tolist() and members == []
    tensor = feeds.tensor(found)
    raw = np.frombuffer(base64.b64decode(tensor["base64"]), found.dtype)
    assert raw.tolist() == array.ravel().tolist() and tensor["shape"] == [2, 3]


def test_npz_gives_the_first_array_or_the_one_named():
    stream = io.BytesIO()
    np.savez_compressed(stream, a=np.arange(2), b=np.float32(3))
    found, members = feeds.read("x.npz", stream.getvalue())
    assert found.tolist() == [0, 1] and members == ["a", "b"]
    found, _ = feeds.read("x.npz", stream.getvalue(), "b")
    assert found.shape == () and found == 3
    with pytest.raises(ArgumentError, match="no array 'c'"):
        feeds.read("x.npz", stream.getvalue(), "c")


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("filters", [[0], [1], [2], [3], [4], [4, 3, 2, 1, 0]])
def test_png(channels, filters):
    image = np.random.default_rng(1).integers(0, 256, (7, 5, channels))
    found, _ = feeds.read("x.png", png(image, filters))
    assert found.dtype == np.float32 and found.shape == (1, 7, 5, channels)
    assert np.array_equal(np.rint(found[0] * 255), image)


@pytest.mark.parametrize("undo", [pixels.by_rows, pixels.by_diagonals, pixels.unfiltered])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 2), (2, 9), (9, 2), (60, 60)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_filters_are_undone_whatever_the_shape(undo, size, channels):
    """Row after row and diagonal after diagonal are the same; each row has another filter, chosen by chance."""
    generator = np.random.default_rng(size[0] + channels)
    wanted = generator.integers(0, 256, (*size, channels))
    filters = [*generator.permutation(5).tolist(), *generator.integers(0, 5, size[0]).tolist()]
    kinds = np.array(filters[: size[0]], np.uint8)
    lines = np.frombuffer(rows_of(wanted, filters), np.uint8).reshape(size[0], -1)
    assert np.array_equal(lines[:, 0], kinds)
    found = undo(kinds, lines[:, 1:].reshape(wanted.shape))
    assert found.dtype == np.uint8 and np.array_equal(found, wanted)


def test_a_photograph_is_not_undone_byte_by_byte():
    """That took the server 8 s for one. By diagonals it is four to seven times as fast as the quickest such loop."""
    generator = np.random.default_rng(1)
    stored = generator.integers(0, 256, (600, 600, 3), np.uint8)
    for kind in (3, 4):
        seconds = {}
        for undo in (pixels.by_rows, pixels.unfiltered):
            took = []
            for _ in range(2):
                start = time.process_time()
                undo(np.full(600, kind, np.uint8), stored)
                took.append(time.process_time() - start)
            seconds[undo.__name__] = min(took)
        assert seconds["unfiltered"] * 2 < seconds["by_rows"], seconds


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def bomb() -> bytes:
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w") as file,
    ):
        for _ in range(300):
            file.write(bytes(1 << 20))
    return stream.getvalue()


SQUARE = np.zeros((2, 2, 1), int)
BROKEN = {
    "x.npy": b"",
    "y.npy": b"\x93NUMPY",
    "z.npy": b"\x93NUMPY\x09\x00" + bytes(200),
    "promise.npy": header(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n"
    ),
    "negative.npy": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }\n")
    + bytes(99),
    "code.npy": header("__import__('os').system('true')\n"),
    "objects.npy": npy(np.array([{}, None], object)),
    "short.npy": npy(np.arange(10))[:-1],
    "texts.npy": npy(np.array(["a", "b"])),
    "complex.npy": npy(np.array([1j])),
    "x.npz": b"PK",
    "bomb.npz": bomb(),
    "x.png": b"\x89PNG\r\n\x1a\n",
    "y.png": b"GIF89a",
    "short.png": png(SQUARE, [0])[:-30],
    "deep.png": png(SQUARE, [0], depth=16),
    "palette.png": png(SQUARE, [0], colour=3),
    "laced.png": png(SQUARE, [0], interlaced=1),
    "large.png": png(SQUARE, [0], width=1 << 30, height=1 << 30),
    "empty.png": png(SQUARE, [0], width=0),
    "early.png": png(SQUARE, [0], height=3),
    "x.jpg": b"",
    "npy": b"",
    "": b"",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_line(name):
    with pytest.raises(ArgumentError) as caught:
        feeds.read(name, BROKEN[name])
    assert len(str(caught.value).splitlines()) == 1


def test_a_row_with_an_unknown_filter():
    data = png(SQUARE, [0])
    packed = chunk(b"IDAT", zlib.compress(bytes([9, 0, 0, 0, 0, 0])))
    start = data.index(b"IDAT") - 4
    with pytest.raises(ArgumentError, match="unknown filter 9"):
        feeds.read("x.png", data[:start] + packed)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(["npy", "npz", "png"]),
    cut=st.integers(0, 400),
    at=st.integers(0, 400),
    byte=st.integers(0, 255),
)
def test_damaged_files_are_read_or_refused(kind, cut, at, byte):
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(9))
    whole = {
        "npy": npy(np.arange(9)),
        "npz": stream.getvalue(),
        "png": png(np.ones((3, 3, 3), int), [4]),
    }[kind]
    data = bytearray(whole[: len(whole) - cut] if cut < len(whole) else whole)
    data[at % len(data)] = byte
    with contextlib.suppress(ArgumentError):
        feeds.read(f"x.{kind}", bytes(data))


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_python_cannot_stop_are_refused_unread(packing, monkeypatch):
    """Some 600 bytes of bzip2 unpack to gigabytes, whatever size the archive states."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        archive.writestr("a.npy", npy(np.zeros(1 << 20)))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(ArgumentError, match="stored or deflated"):
        feeds.read("x.npz", stream.getvalue())


def test_an_array_no_page_could_carry_is_refused():
    """Every check sends the whole page; one above 64 MB would be refused for ever after."""
    most = feeds.read("x.npy", npy(np.zeros(feeds.MOST_BYTES, np.uint8)))[0]
    assert len(json.dumps(feeds.tensor(most))) < api.MOST_BODY * 7 // 8
    with pytest.raises(ArgumentError, match="at most"):
        feeds.read("x.npy", npy(np.zeros(feeds.MOST_BYTES + 1, np.uint8)))
    wide = chunk(b"IHDR", struct.pack(">IIBBBBB", 4000, 3000, 8, 2, 0, 0, 0))
    with pytest.raises(ArgumentError, match="4000 by 3000 pixels"):
        feeds.read("x.png", b"\x89PNG\r\n\x1a\n" + wide + chunk(b"IEND", b""))
