"""Messages between our own processes: numbers, words, arrays and records, in JSON and raw bytes.

A child may run somebody else's kernel, so what it answers is data and never code: it names only the records the
reader expects, and an array is a dtype, a shape and bytes.
"""

from __future__ import annotations

import json
import signal
import struct
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np

from .dtypes import BFLOAT16, AnyArray

_LENGTH = struct.Struct("<q")
_LONGEST_HEAD = 1 << 28
"""Bytes of a message without its arrays."""
_NAMED = {BFLOAT16.numpy.name: BFLOAT16.numpy}
"""NumPy knows this one by name only once somebody has imported it."""


def is_plain(array: AnyArray) -> bool:
    """Return whether an array's bytes and the name of its dtype say all about it."""
    try:
        return not array.dtype.hasobject and _dtype(array.dtype.name) == array.dtype.newbyteorder(
            "="
        )
    except TypeError:
        return False


def write(stream: BinaryIO | Any, value: Any) -> None:
    """Send one message."""
    arrays: list[AnyArray] = []
    head = json.dumps(_packed(value, arrays)).encode()
    stream.write(_LENGTH.pack(len(head)) + head)
    for array in arrays:
        stream.write(array.tobytes())
    stream.flush()


class Garbled(EOFError):
    """What came is not a message: somebody's kernel wrote into the pipe. Nothing after it can be understood."""


def read(stream: BinaryIO | Any, *records: type) -> Any:
    """Receive one message; `records` are the classes that may occur in it. EOFError where it ends early."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if not 0 <= length <= _LONGEST_HEAD:
        raise Garbled(f"a message of {length} bytes")
    known = {record.__name__: record for record in records}
    try:
        return _unpacked(json.loads(_exactly(stream, length)), stream, known)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        raise Garbled(f"{type(error).__name__}: {error}") from error


def _packed(value: Any, arrays: list[AnyArray]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _packed(value.item(), arrays)
    if isinstance(value, list):
        return [_packed(each, arrays) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_packed(each, arrays) for each in value]}
    if isinstance(value, dict):
        pairs = [[_packed(key, arrays), _packed(each, arrays)] for key, each in value.items()]
        return {"dict": pairs}
    if isinstance(value, np.ndarray):
        if not is_plain(value):
            raise TypeError(f"an array of {value.dtype} cannot be sent")
        native = np.ascontiguousarray(value, value.dtype.newbyteorder("="))
        arrays.append(native)
        return {"array": native.dtype.name, "shape": list(value.shape)}
    if is_dataclass(value):
        own = {each.name: getattr(value, each.name) for each in fields(value)}
        return {"record": type(value).__name__, "fields": _packed(own, arrays)}
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _unpacked(value: Any, stream: BinaryIO | Any, records: dict[str, type]) -> Any:
    """Arrays follow in the order in which they are named."""
    if isinstance(value, list):
        return [_unpacked(each, stream, records) for each in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_unpacked(each, stream, records) for each in value["tuple"])
    if "dict" in value:
        return dict(_unpacked(pair, stream, records) for pair in value["dict"])
    if "array" in value:
        dtype = _dtype(value["array"])
        data = _exactly(stream, prod(value["shape"]) * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(value["shape"]).copy()
    return records[value["record"]](**_unpacked(value["fields"], stream, records))


def _dtype(name: str) -> np.dtype[Any]:
    return _NAMED.get(name) or np.dtype(name)


def _exactly(stream: BinaryIO | Any, count: int) -> bytes:
    if count < 0:  # `read` would wait for the end of the stream
        raise Garbled(f"an array of {count} bytes")
    data: bytes = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def ending(status: int) -> str:
    """Say how a process ended, by the status its parent sees.

    >>> ending(3), ending(-9)
    ('ended (status 3)', 'died (signal 9, SIGKILL)')
    """
    if status >= 0:
        return f"ended (status {status})"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "unknown"
    return f"died (signal {-status}, {name})"
