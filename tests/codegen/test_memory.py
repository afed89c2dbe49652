"""Loads and stores touch exactly what they say."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from calling import TARGETS, label, run
from convgrad._compiler.codegen import BF16, F16, F32, F64, I32, I64
from guard import guarded

KINDS = {
    "f32": (F32, np.float32),
    "f64": (F64, np.float64),
    "i32": (I32, np.int32),
    "f16": (F16, np.float16),
    "bf16": (BF16, ml_dtypes.bfloat16),
}
each_target = pytest.mark.parametrize("target", TARGETS, ids=label)
each_kind = pytest.mark.parametrize("kind", KINDS)
each_end = pytest.mark.parametrize("at", ["start", "end"])


def _lanes(target, element):
    return target.lanes(max(element.size, 4))


@each_target
@each_kind
@each_end
def test_whole_vectors(target, kind, at):
    element, dtype = KINDS[kind]
    lanes = _lanes(target, element)
    x = guarded(np.arange(1, lanes + 1).astype(dtype), at)
    y = guarded(np.zeros(lanes, dtype), at)
    run(
        target,
        lambda k: k.arg_pointer(1, element).store(k.arg_pointer(0, element).load(lanes)),
        x,
        y,
    )
    assert (x == y).all()


@each_target
@each_kind
def test_tails_never_leave_the_array(target, kind):
    """Constant and run-time counts, with the array's end or start at a forbidden page."""
    element, dtype = KINDS[kind]
    lanes = _lanes(target, element)
    for count in sorted({0, 1, 2, min(3, lanes), lanes // 2, lanes - 1, lanes}):
        x = guarded(np.arange(1, count + 1).astype(dtype), "end")
        outs = [guarded(np.zeros(count, dtype), "end") for _ in range(2)]
        whole = np.full((2, lanes), -1, dtype)
        shifted = guarded(np.arange(1, count + 1).astype(dtype), "start")
        last = np.full(lanes, -1, dtype)
        tail = [lane >= lanes - count for lane in range(lanes)]

        def write(k, count=count, tail=tail):
            source = k.arg_pointer(0, element)
            for i, n in enumerate((count, k.arg_i64(5))):
                values = source.load(lanes, count=n)
                k.arg_pointer(1 + i, element).store(values, count=n)
                k.arg_pointer(3, element).offset(i * lanes).store(values)
            before = k.arg_pointer(4, element).offset(count - lanes)
            k.arg_pointer(6, element).store(before.load(lanes, mask=tail))
            before.store(before.load(lanes, mask=tail), mask=tail)

        run(target, write, x, *outs, whole, shifted, count, last)
        for out in outs:
            assert (out == x).all()
        padded = np.zeros(lanes, dtype)
        padded[:count] = x
        assert (whole == padded).all()
        assert (last[lanes - count :] == shifted).all() and (last[: lanes - count] == 0).all()


@each_target
@each_kind
@each_end
def test_known_runs_of_lanes_read_nothing_else(target, kind, at):
    """Every run of neighbouring lanes, known when the kernel is written, of an array that holds no other."""
    element, dtype = KINDS[kind]
    lanes = _lanes(target, element)
    runs = [(first, behind) for behind in range(1, lanes + 1) for first in range(behind)]
    runs = runs if lanes <= 8 else runs[::5]
    sources = [guarded(np.arange(1, end - first + 1).astype(dtype), at) for first, end in runs]
    results = np.full((len(runs), lanes), 77).astype(dtype)

    def write(k):
        for number, (first, behind) in enumerate(runs):
            mask = [first <= lane < behind for lane in range(lanes)]
            source = k.arg_pointer(number, element).offset(-first)
            place = k.arg_pointer(len(runs), element).offset(number * lanes)
            place.store(source.load(lanes, mask=mask))

    run(target, write, *sources, results)
    for (first, behind), y in zip(runs, results, strict=True):
        expected = np.zeros(lanes)
        expected[first:behind] = np.arange(1, behind - first + 1)
        assert y.astype(np.float64).tolist() == expected.tolist(), (first, behind)


@each_target
@each_kind
def test_stores_leave_other_lanes_alone(target, kind):
    element, dtype = KINDS[kind]
    lanes = _lanes(target, element)
    odd = [bool(i % 2) for i in range(lanes)]
    out = np.full((3, lanes), 9, dtype)

    def write(k):
        place = k.arg_pointer(0, element)
        ones = k.constant(F32 if element.size == 2 else element, lanes, 1)
        place.store(ones, mask=odd)
        place.offset(lanes).store(ones, mask=k.first_lanes(lanes, k.arg_i64(1)))
        place.offset(2 * lanes).store(ones, count=k.arg_i64(2))

    run(target, write, out, 2, 1 << 40)
    assert (out[0] == np.where(odd, 1, 9).astype(dtype)).all()
    assert (out[1, :2] == 1).all() and (out[1, 2:] == 9).all() and (out[2] == 1).all()


@each_target
@each_kind
@each_end
def test_scalars_and_broadcasts(target, kind, at):
    element, dtype = KINDS[kind]
    lanes = _lanes(target, element)
    x = guarded(np.array([3], dtype), at)
    y = guarded(np.zeros(1, dtype), at)
    z = np.zeros(lanes, dtype)

    def write(k):
        k.arg_pointer(1, element).store(k.arg_pointer(0, element).load())
        k.arg_pointer(2, element).store(k.arg_pointer(0, element).broadcast(lanes))

    run(target, write, x, y, z)
    assert y[0] == 3 and (z == 3).all()


def test_offsets_and_kinds_of_pointer():
    x = np.arange(16, dtype=np.int32)
    out = np.zeros(4, np.int64)

    def write(k):
        p, place = k.arg_pointer(0, I32), k.arg_pointer(1, I64)
        place.store_int((p + 3 + k.arg_i64(2)).offset(-1).load_int())
        place.offset(1).store_int(p.as_element(I64).offset(2).load_int())
        place.offset(2).store_int(p.offset(k.i64(4)).load_int() * -1)
        k.arg_pointer(3, I32).prefetch()
        k.arg_pointer(3, I32).prefetch(write=True, locality=0)

    run(TARGETS[0], write, x, out, 5, 12345)
    assert out.tolist() == [7, 4 + (5 << 32), -4, 0]


@each_target
def test_bits_are_copied_unchanged(target):
    x = np.array([0x7D01, 0xFFFF, 1, 0x8000] * 8, np.uint16)  # signalling NaNs among them
    y = np.zeros_like(x)

    def write(k):
        for i in range(0, 32, 8):
            bits = k.arg_pointer(0, F16).offset(i).load_bits(8)
            k.arg_pointer(1, F16).offset(i).store_bits(bits)

    run(target, write, x, y)
    assert (x == y).all()


@each_target
def test_scratch_blocks_are_aligned_and_apart(target):
    lanes = target.lanes(4)
    out = np.zeros((2, lanes), np.float32)

    def write(k):
        a, b = k.scratch(F32, 3), k.scratch(F32, lanes)
        a.store(k.constant(F32, lanes, 1), count=3)
        b.store(k.constant(F32, lanes, 2), aligned=True)
        k.arg_pointer(0, F32).store(a.load(lanes, count=3))
        k.arg_pointer(0, F32).offset(lanes).store(b.load(lanes, aligned=True))
        assert k.finish().scratch_bytes == 128

    run(target, write, out)
    assert (out[1] == 2).all() and (out[0, :3] == 1).all() and (out[0, 3:] == 0).all()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_the_guard_bites():
    program = "import numpy as np, calling, guard\nfrom convgrad._compiler.codegen import F32\n" + (
        "x = guard.guarded(np.zeros(3, np.float32), 'end')\n"
        "y = np.zeros(4, np.float32)\n"
        "calling.run(calling.ROWS[0], lambda k: k.arg_pointer(1, F32).store("
        "k.arg_pointer(0, F32).load(4)), x, y)\n"
    )
    folder = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({folder!r})\n{program}"]
    )
    assert done.returncode == -signal.SIGSEGV


@each_target
def test_addresses_are_read_from_memory(target):
    x, y = np.array([1.5, 2.5], np.float32), np.zeros(2, np.float32)
    block = np.array([0, x.ctypes.data], np.int64)

    def body(k):
        there = k.arg_pointer(0, I64).offset(1).load_pointer(F32)
        k.arg_pointer(1, F32).store(there.load(2))

    run(target, body, block, y)
    assert y.tolist() == [1.5, 2.5]
