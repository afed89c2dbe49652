"""Messages between processes: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from convgrad._base import messages


@dataclass(frozen=True)
class Point:
    x: int
    at: tuple[Any, ...] = ()


def sent(value: Any, *records: type) -> Any:
    stream = io.BytesIO()
    messages.write(stream, value)
    stream.seek(0)
    result = messages.read(stream, *records)
    assert not stream.read(), "all of it was read"
    return result


def test_values_come_out_as_they_went_in() -> None:
    value = (
        "a",
        [1, 2.5, None, True],
        {"k": (1,), 3: "x"},
        Point(4, ((1, 2), "SAME")),
        np.int64(7),
    )
    assert sent(value, Point) == value
    assert np.isnan(sent(float("nan"))) and sent(float("inf")) == float("inf")


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, ">f8", np.int32, bool]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_arrays_come_out_as_they_went_in(dtype: Any, shape: tuple[int, ...]) -> None:
    first = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    second = np.ones((2, 2), np.float32)
    got = sent({"first": first, "second": [second[:, ::-1]]})
    assert got["first"].dtype == first.dtype.newbyteorder("=") and got["first"].shape == shape
    np.testing.assert_array_equal(got["first"], first)
    np.testing.assert_array_equal(got["second"][0], second)
    assert got["first"].flags.writeable


@pytest.mark.parametrize(
    "value", [object(), np.array([None]), np.zeros(2, [("a", "f4")]), {1, 2}, b"bytes", print]
)
def test_nothing_else_is_sent(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        sent(value)


def test_no_record_is_made_that_the_reader_does_not_expect() -> None:
    with pytest.raises(messages.Garbled):
        sent(Point(1))


def test_an_early_end_is_seen() -> None:
    stream = io.BytesIO()
    messages.write(stream, np.ones(4))
    for length in (0, 3, 12, len(stream.getvalue()) - 1):
        with pytest.raises(EOFError):
            messages.read(io.BytesIO(stream.getvalue()[:length]))


@pytest.mark.parametrize(
    "bytes_",
    [
        b"garbage{}garbage",  # a length of 10**18
        b"\xff" * 16,  # a length of -1, at which a stream is read to its end
        b"\x02" + bytes(7) + b"{x",
        b"\x05" + bytes(7) + b"{}   ",
        b"\x24" + bytes(7) + b'{"array": "float32", "shape": [-1]} ' + b"1234",
        b"\x28" + bytes(7) + b'{"array": "float32", "shape": ["seven"]}',
    ],
)
def test_what_is_no_message_is_said_so(bytes_: bytes) -> None:
    """A kernel may write into any pipe it finds."""
    with pytest.raises(messages.Garbled):
        messages.read(io.BytesIO(bytes_), Point)
