"""Addresses and blocks of words."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from convgrad._runtime import pointers


class Subclass(np.ndarray):
    pass


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4)[::-1, 1:],
        np.empty((0, 3), np.int32),
        np.float32(3) + np.zeros((), np.float32),
        np.arange(6.0).view(Subclass),
        np.frombuffer(bytes(32), np.uint8, offset=3),
    ],
    ids=["plain", "reversed", "empty", "scalar", "subclass", "read-only"],
)
def test_data_pointer_is_numpys(array):
    array = np.asanyarray(array)
    assert pointers.data_pointer(array) == array.ctypes.data
    assert pointers._direct_pointer(array) == array.ctypes.data


def test_the_direct_way_is_taken_on_plain_cpython():
    assert pointers._direct_pointer_works() == (pointers.data_pointer is pointers._direct_pointer)


def test_a_wrong_offset_is_noticed(monkeypatch):
    wrong = pointers._direct_pointer.__defaults__
    monkeypatch.setattr(
        pointers._direct_pointer, "__defaults__", (wrong[0], wrong[1] + 8, *wrong[2:])
    )
    assert not pointers._direct_pointer_works()


def test_words_are_64_bits_and_join():
    block = pointers.pack_words(1, -2) + pointers.pack_words(2**62)
    assert struct.unpack("=3q", block) == (1, -2, 2**62)
    assert pointers.pack_words() == b""
