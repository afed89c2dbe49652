"""Another thread, or the owner of the memory, works against a running call: nothing may be read out of bounds."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

import convgrad
from convgrad import _engine, reference
from convgrad._arrays import repeated
from convgrad.errors import ArgumentError

SHAPE, FILTER = (2, 32, 32, 16), np.ones((3, 3, 16, 1), np.float32)


def _while(disturb: Callable[[], None], call: Callable[[], object], calls: int) -> int:
    """Make calls while another thread disturbs as fast as it can; returns how many were refused."""
    stop, refused = threading.Event(), 0

    def other() -> None:
        while not stop.is_set():
            disturb()

    thread = threading.Thread(target=other)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(calls):
            try:
                call()
            except (ValueError, TypeError):
                refused += 1
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    return refused


def test_resizing_is_refused_during_a_call(monkeypatch):
    """NumPy moves the memory of an array under everybody's feet, unless somebody holds a weak reference to it."""
    x = np.ones(SHAPE, np.float32)
    seen = []
    real = convgrad._arrays.numpy.new_result

    def resize(*arguments):
        for array in (x, FILTER):
            with pytest.raises(ValueError, match="cannot resize"):
                array.resize((1,), refcheck=False)
            seen.append(array.shape)
        return real(*arguments)

    for module in (convgrad._arrays.numpy, repeated):
        monkeypatch.setattr(module, "new_result", resize)
    for _ in range(2):  # the second call is one that is remembered
        convgrad.depthwise_conv2d(x, FILTER, 1, "SAME")
        convgrad.depthwise_conv2d(x[:, :16], FILTER, 1, "SAME")  # a view: its owner is held
    assert seen == [SHAPE, FILTER.shape] * 4
    monkeypatch.undo()
    x.resize((1,), refcheck=False)  # afterwards it is the caller's again
    assert x.shape == (1,)


def _resize(x):
    for shape in ((1, 1, 1, 16), SHAPE):
        with contextlib.suppress(ValueError):
            x.resize(shape, refcheck=False)


def _reshape(x):
    for shape in ((1, 1, 2, 16384), (32, 32, 2, 16), SHAPE):
        x.shape = shape


def _retype(x):
    for kind in (np.float64, np.int16, np.complex64, np.float32):
        x.dtype = kind


def _write(x):
    x[...] = np.nan
    x[...] = 1


@pytest.mark.parametrize("disturb", [_resize, _reshape, _retype, _write])
@pytest.mark.parametrize("whose", ["owner", "view", "oracle"])
@pytest.mark.filterwarnings("ignore:.*(shape|dtype|strides).*:DeprecationWarning")
def test_an_array_changed_by_another_thread(disturb, whose):
    """Numbers may differ and calls may be refused; memory is never touched beyond its end."""
    owner = np.ones(SHAPE, np.float32)
    x = owner if whose != "view" else owner[:]
    call = reference.depthwise_conv2d if whose == "oracle" else convgrad.depthwise_conv2d
    _while(
        lambda: disturb(x if disturb is not _resize else owner),
        lambda: call(x, FILTER, 1, "SAME"),
        60,
    )
    clean = np.ones(SHAPE, np.float32)
    result = convgrad.depthwise_conv2d(clean, FILTER, 1, "SAME")
    np.testing.assert_array_equal(result, reference.depthwise_conv2d(clean, FILTER, 1, "SAME"))


def test_settings_changed_by_another_thread_are_not_remembered_under_another_name():
    """A list that changed between being a key and being read would answer for all later calls."""
    strides = [1, 1, 1, 1]
    x = np.ones((1, 8, 8, 16), np.float32)

    def toggle() -> None:
        strides[1] = strides[2] = 3 - strides[1]

    def call() -> None:
        _engine.memory.clear()
        convgrad.depthwise_conv2d(x, FILTER, strides, "SAME")
        for key, found in list(_engine.memory.items()):
            if type(found) is repeated.Ready:
                rows = -(-8 // key[0][3][1])
                assert found.result_shape[1:3] == (rows, rows)
                seen.add(rows)

    seen = set()
    _while(toggle, call, 2000)
    assert seen <= {8, 4} and seen


def test_a_size_that_changed_is_named():
    x = np.ones((1, 8, 8, 16), np.float32)
    convgrad.depthwise_conv2d(x, FILTER, 1, "SAME")
    with pytest.raises(ArgumentError, match="changed its size during the call, from 4096 to 2048"):
        convgrad._arrays.numpy.lend("f", x[:, :4], convgrad._base.dtypes.FLOAT, 4096)


@pytest.mark.skipif(sys.platform == "win32", reason="a mapped file cannot be cut there")
@pytest.mark.parametrize("offset", [0, 8192])
def test_a_mapped_file_that_was_cut_is_refused(tmp_path, offset):
    """Reading it would end the process: SIGBUS."""
    path = tmp_path / "numbers"
    path.write_bytes(bytes(offset) + np.ones(SHAPE, np.float32).tobytes())
    mapped = np.memmap(path, np.float32, "r+", offset=offset, shape=SHAPE)
    plain = np.frombuffer(
        mmap.mmap(os.open(path, os.O_RDWR), 0), np.float32, offset=offset
    ).reshape(SHAPE)
    arrays = [mapped, np.asarray(mapped), mapped[:, ::2], plain]
    for call in (convgrad.depthwise_conv2d, reference.depthwise_conv2d):
        for x in arrays:
            call(x, FILTER, 1, "SAME")
    os.truncate(path, path.stat().st_size - 4096)
    for call in (convgrad.depthwise_conv2d, reference.depthwise_conv2d):
        for x in arrays:
            with pytest.raises(ArgumentError, match="a memory-mapped file that was truncated"):
                call(x, FILTER, 1, "SAME")


def test_memory_that_is_lent_cannot_be_closed():
    memory = mmap.mmap(-1, 4 * 2 * 32 * 32 * 16)
    x = np.frombuffer(memory, np.float32).reshape(SHAPE)
    convgrad.depthwise_conv2d(x, FILTER, 1, "SAME")
    with pytest.raises(BufferError):
        memory.close()
    numbers = bytearray(x.nbytes)
    y = np.frombuffer(numbers, np.float32).reshape(SHAPE)
    with pytest.raises(BufferError):
        numbers.clear()
    convgrad.depthwise_conv2d(y, FILTER, 1, "SAME")
