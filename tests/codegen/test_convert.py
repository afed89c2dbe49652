"""float16 and bfloat16 conversions: every bit pattern in, every kind of rounding out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from calling import HALF_TARGETS, label, run
from convgrad._compiler.codegen import BF16, F16, F32

KINDS = {"f16": (F16, np.float16), "bf16": (BF16, ml_dtypes.bfloat16)}
pytestmark = [
    pytest.mark.parametrize("target", HALF_TARGETS, ids=label),
    pytest.mark.parametrize("kind", KINDS),
]


def _convert(target, source, source_element, result, result_element):
    lanes = target.lanes(4)

    def write(k):
        with k.loop(0, k.arg_i64(2), lanes) as i:
            values = k.arg_pointer(0, source_element).offset(i).load(lanes)
            k.arg_pointer(1, result_element).offset(i).store(values)

    assert source.size % lanes == 0
    run(target, write, source, result, source.size)


def test_every_pattern_loads(target, kind):
    element, dtype = KINDS[kind]
    bits = np.arange(65536, dtype=np.uint16)
    out = np.zeros(65536, np.float32)
    _convert(target, bits, element, out, F32)
    with np.errstate(invalid="ignore"):
        expected = bits.view(dtype).astype(np.float32)
    nan = np.isnan(expected)
    assert (out.view(np.uint32)[~nan] == expected.view(np.uint32)[~nan]).all()
    assert np.isnan(out[nan]).all() and (np.signbit(out) == (bits >= 0x8000)).all()


def _values():
    """Ties, their neighbours, subnormals, the edge of overflow, infinities, NaNs, noise."""
    random = np.random.default_rng(1)
    parts = [random.integers(0, 2**32, 1 << 18, dtype=np.uint32)]
    for dtype in (np.float16, ml_dtypes.bfloat16):
        with np.errstate(invalid="ignore"):
            exact = np.arange(65536, dtype=np.uint16).view(dtype).astype(np.float32)
        step = 1 << (12 if dtype is np.float16 else 15)
        base = exact.view(np.uint32)
        parts += [base + np.uint32(delta % 2**32) for delta in (-1, 0, 1, step - 1, step, step + 1)]
        # Half way between neighbours, which for subnormals is not half way between bits.
        finite = np.sort(exact[np.isfinite(exact)])
        middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
        middle = np.append(middle, np.float32(0)).view(np.uint32)
        parts += [middle, middle + np.uint32(1), middle - np.uint32(1)]
    parts += [np.arange(0x7F800000, 0x7F800000 + 4096, dtype=np.uint32)]
    parts += [
        np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FBFFFFF] * 16, np.uint32)
    ]
    values = np.concatenate(parts)
    return np.pad(values, (0, -values.size % 64)).view(np.float32)


VALUES = _values()


def test_stores_round_to_nearest_even(target, kind):
    element, dtype = KINDS[kind]
    values = VALUES.copy()
    nan = np.isnan(values)
    if kind == "bf16":
        # The NaNs that arithmetic on bfloat16 can leave: nothing in the bits that are dropped.
        values.view(np.uint32)[nan] &= 0xFFFF0000
        values.view(np.uint32)[nan] |= 0x00400000
    out = np.full(values.size, 0xAAAA, np.uint16)
    _convert(target, values, F32, out, element)
    with np.errstate(all="ignore"):
        expected = values.astype(dtype)
    assert (out[~nan] == expected.view(np.uint16)[~nan]).all()
    found = out.view(dtype)
    assert np.isnan(found[nan]).all() and ((out >= 0x8000) == np.signbit(values)).all()
    quiet = 0x0200 if kind == "f16" else 0x0040
    assert (out[nan] & quiet != 0).all()
    if kind == "bf16":
        assert (out[nan] == values.view(np.uint32)[nan] >> 16).all()


def test_every_pattern_survives_a_round_trip(target, kind):
    """Payloads too: what widening appends is dropped again. float16's NaNs may become quiet on the way."""
    element, dtype = KINDS[kind]
    bits = np.arange(65536, dtype=np.uint16)
    out = np.zeros(65536, np.uint16)
    _convert(target, bits, element, out, element)
    nan = np.isnan(bits.view(dtype)) if kind == "f16" else np.zeros(bits.size, bool)
    assert (out[~nan] == bits[~nan]).all()
    assert (out[nan] | 0x0200 == bits[nan] | 0x0200).all()


def test_numbers_at_the_edges(target, kind):
    """By hand: ties, the last number before infinity, the smallest subnormal, both zeros."""
    element, _ = KINDS[kind]
    table = {
        "f16": {65504.0: 0x7BFF, 65519.99: 0x7BFF, 65520.0: 0x7C00, -65520.0: 0xFC00, 2.0**-24: 1}
        | {2.0**-25: 0, 1.5 * 2.0**-24: 2, -(2.0**-26): 0x8000, 1 + 2.0**-11: 0x3C00}
        | {1 + 3 * 2.0**-11: 0x3C02, -0.0: 0x8000, np.inf: 0x7C00},
        "bf16": {2.0**127 * (2 - 2.0**-7): 0x7F7F, 2.0**127 * (2 - 2.0**-8): 0x7F80}
        | {-(2.0**127) * (2 - 2.0**-8): 0xFF80, 2.0**-133: 1, 2.0**-134: 0, 1.5 * 2.0**-133: 2}
        | {-(2.0**-135): 0x8000, 1 + 2.0**-8: 0x3F80, 1 + 3 * 2.0**-8: 0x3F82, -np.inf: 0xFF80},
    }[kind]
    values = np.resize(np.array(list(table), np.float32), 64)
    out = np.zeros(64, np.uint16)
    _convert(target, values, F32, out, element)
    assert out.tolist() == np.resize(np.array(list(table.values()), np.uint16), 64).tolist()


def test_alternate_elements_come_apart_and_together(target, kind):
    """Every other element in a vector of its own, for bfloat16: the same bits as neighbours give."""
    element, _ = KINDS[kind]
    if kind != "bf16":
        with pytest.raises(AssertionError):
            run(target, lambda k: k.arg_pointer(0, element).load_alternate(4, 0), VALUES)
        return
    lanes = target.lanes(4)
    bits = np.arange(65536, dtype=np.uint16)
    parts = np.zeros((65536 // (2 * lanes), 2, lanes), np.float32)
    back = np.zeros(65536, np.uint16)

    def write(k):
        with k.loop(0, 65536, 2 * lanes) as i:
            source = k.arg_pointer(0, element).offset(i)
            even, odd = (source.load_alternate(lanes, part) for part in (0, 1))
            k.arg_pointer(1, F32).offset(i).store(even)
            k.arg_pointer(1, F32).offset(i + lanes).store(odd)
            k.arg_pointer(2, element).offset(i).store_alternate(even, odd)

    run(target, write, bits, parts, back)
    expected = bits.astype(np.uint32).reshape(-1, lanes, 2).transpose(0, 2, 1) << 16
    assert (parts.view(np.uint32) == expected).all() and (back == bits).all()


def test_alternate_elements_round_as_neighbours_do(target, kind):
    element, _ = KINDS["bf16"]
    lanes = target.lanes(4)
    neighbours, alternate = (np.zeros(VALUES.size, np.uint16) for _ in range(2))
    _convert(target, VALUES, F32, neighbours, element)

    def write(k):
        with k.loop(0, VALUES.size, 2 * lanes) as i:
            low, high = (k.arg_pointer(0, F32).offset(i + n).load(lanes) for n in (0, lanes))
            even = k.shuffle(low, high, range(0, 2 * lanes, 2))
            odd = k.shuffle(low, high, range(1, 2 * lanes, 2))
            k.arg_pointer(1, element).offset(i).store_alternate(even, odd)

    run(target, write, VALUES, alternate)
    assert (neighbours == alternate).all()
