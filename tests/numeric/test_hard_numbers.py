"""Numbers that are hard to add: ten million of them, some that cancel, heavy tails, subnormals, overflow, Inf, NaN.

`python tools/accuracy.py` measures the same beside TensorFlow, PyTorch and JAX; docs/accuracy.md has the tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import ROWS
from cases import DTYPES, KINDS, UNITS, Case, Data, normal, run, whole_numbers
from convgrad._base import dtypes
from convgrad._compiler.targets import Target
from kernels import FIXED, NAMES, compute, random_case_for

TERMS = (10, 1000, 1000)
"""Images, rows, columns: 10^7 products in the middle tap of a filter gradient."""
NARROW = ("half", "bfloat16", "float32")


def rounded(exact: Any, dtype: str) -> Any:
    if dtype == "float64":
        return np.asarray(exact, np.float64)
    row = dtypes.find(DTYPES[dtype])
    assert row is not None
    return dtypes.round_once(np.asarray(exact, np.float64), row)


def filter_gradient(depthwise: bool, x: Any, g: Any) -> Any:
    name = "depthwise_conv2d_backprop_filter" if depthwise else "conv2d_backprop_filter"
    return getattr(convgrad, name)(x[..., None], (3, 3, 1, 1), g[..., None], 1, "SAME")[:, :, 0, 0]


@pytest.mark.parametrize("depthwise", [True, False])
@pytest.mark.parametrize("dtype", NARROW)
def test_ten_million_ones_are_counted(dtype: str, depthwise: bool) -> None:
    """10^7 is below 2^24: a float32 sum has no excuse, in whatever order. One running half would stop at 2048."""
    scale = 2.0**-10 if dtype == "half" else 1.0  # 10^7 is beyond a half's range
    x = np.full(TERMS, scale, DTYPES[dtype])
    got = filter_gradient(depthwise, x, np.ones(TERMS, DTYPES[dtype]))
    edge = np.array([999, 1000, 999])
    expected = rounded(10 * np.multiply.outer(edge, edge) * scale, dtype)
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("depthwise", [True, False])
@pytest.mark.parametrize("dtype", NARROW)
def test_ten_million_terms_of_one_sign_err_by_eight_units(dtype: str, depthwise: bool) -> None:
    """A running float32 sum errs by hundreds of units here: its errors do not cancel when no term does."""
    rng = np.random.default_rng(1)
    x = rng.random(TERMS, np.float32).astype(DTYPES[dtype])
    g = (rng.random(TERMS, np.float32) * np.float32(2.0**-9)).astype(DTYPES[dtype])
    got = float(filter_gradient(depthwise, x, g)[1, 1])
    exact = np.dot(x.astype(np.float64).ravel(), g.astype(np.float64).ravel())
    rounding = 0.0 if dtype == "float32" else UNITS[dtype]
    assert abs(got - exact) <= (8 * 2.0**-24 + rounding * 1.001) * exact


def layer(dtype: str, depthwise: bool) -> Case:
    channels = (32, 1, 1) if depthwise else (1, 32, 32)
    return Case(depthwise, 4, (20, 20), *channels, (3, 3), (1, 1), (1, 1), "SAME", "NHWC", dtype)


def worst(case: Case, kind: str, data: Data, got: Any) -> float:
    """Return the largest error relative to the sum of the products' sizes, in units of float32."""
    exact = run(case, kind, data, "reference")
    sizes = Data(*(np.abs(each) for each in (data.x, data.f, data.g)))
    scale = run(case, kind, sizes, "reference")
    error = np.abs(got.astype(np.float64) - exact) - UNITS[case.dtype] * np.abs(exact)
    return float((error / scale).max() / 2.0**-24)


def cancelling(case: Case, kind: str, rng: np.random.Generator) -> Data:
    """Return operands whose sums are of pairs that cancel to a millionth of their size."""
    data = normal(case, rng)

    def opposite(values: Any) -> Any:
        noise = 1e-6 * rng.standard_normal(values.shape)
        return (-values.astype(np.float64) * (1 + noise)).astype(values.dtype)

    half = case.batch // 2
    if kind == "filter":
        data.x[half:], data.g[half:] = data.x[:half], opposite(data.g[:half])
    elif kind == "forward":
        data.x[..., 1::2], data.f[:, :, 1::2] = data.x[..., ::2], opposite(data.f[:, :, ::2])
    else:
        data.g[..., 1::2], data.f[..., 1::2] = data.g[..., ::2], opposite(data.f[..., ::2])
    return data


@pytest.mark.parametrize("winograd", ["off", "auto"])
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("kind", KINDS)
def test_cancellation_costs_no_more_than_the_terms_do(kind: str, dtype: str, winograd: str) -> None:
    """Nearly all of the result is gone, so its own size bounds nothing; the sizes of the products do."""
    rng = np.random.default_rng(2)
    for depthwise in (False, True) if kind == "filter" else (False,):
        case = layer(dtype, depthwise)
        data = cancelling(case, kind, rng)
        with convgrad.options(winograd=winograd):
            got = run(case, kind, data)
        sizes = Data(*(np.abs(each) for each in (data.x, data.f, data.g)))
        ratio = np.abs(run(case, kind, data, "reference")).max()
        ratio /= run(case, kind, sizes, "reference").max()
        assert ratio < 1e-4, "the data does not cancel"
        assert worst(case, kind, data, got) <= 1.0


@pytest.mark.parametrize(("winograd", "limit"), [("off", 9.0), ("auto", 60.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_heavy_tails(kind: str, winograd: str, limit: float) -> None:
    """A huge number beside small ones: Winograd adds them before it multiplies, so a small result near it suffers."""
    rng = np.random.default_rng(3)
    for depthwise in (False, True):
        case = layer("float32", depthwise)
        shapes = (case.input_shape, case.filter_shape, case.output_shape)
        data = Data(*(rng.standard_t(2, shape).astype(np.float32) for shape in shapes))
        with convgrad.options(winograd=winograd):
            assert worst(case, kind, data, run(case, kind, data)) <= limit


SMALLEST = {"half": -24, "bfloat16": -133, "float32": -149, "float64": -1074}
"""The exponent of the smallest number of a dtype."""


LARGEST = {
    "half": "0x1.ffcp15",
    "bfloat16": "0x1.fep127",
    "float32": "0x1.fffffep127",
    "float64": "0x1.fffffffffffffp1023",
}


def test_numpy_keeps_subnormals() -> None:
    """Some library in this process may have told the processor to flush them: then nothing below is our doing."""
    for dtype in ("float32", "float64"):
        tiny = np.ldexp(np.ones(8), SMALLEST[dtype]).astype(DTYPES[dtype])
        assert (tiny * 2 > tiny).all()


@pytest.mark.parametrize("target", ROWS, ids=lambda target: target.label)
@pytest.mark.parametrize("name", NAMES)
def test_subnormals_are_kept(name: str, target: Target) -> None:
    """Whole numbers times a power of 2 so small that operands or all results are subnormal; nothing is rounded away.

    Nine binary places are left below, because Winograd's transforms divide; 16-bit results are rounded once.
    """
    rng = np.random.default_rng(4)
    for number, dtype in enumerate(DTYPES):
        if name == "winograd" and dtype == "float64":
            continue  # not taken
        tiny = ("first", "second", "both")[(number + ROWS.index(target)) % 3]
        case, kinds = random_case_for(
            rng, name, target, largest=16, dtype=dtype, **FIXED.get(name, {})
        )
        spare = 9 if dtype in ("float32", "float64") else 3
        power = SMALLEST[dtype] + spare
        one, two = {"first": (power, 0), "second": (0, power)}.get(
            tiny, (power // 2, power - power // 2)
        )
        kind = kinds[int(rng.integers(len(kinds)))]
        data = whole_numbers(case, rng)
        exact = run(case, kind, data, "reference")
        powers = {"forward": (one, two, 0), "input": (0, one, two), "filter": (one, 0, two)}[kind]
        wide = (each.astype(np.float64) for each in (data.x, data.f, data.g))
        scaled = Data(
            *(np.ldexp(a, e).astype(DTYPES[dtype]) for a, e in zip(wide, powers, strict=True))
        )
        got = compute(name, target, case, kind, scaled)
        expected = rounded(np.ldexp(exact, power), dtype)
        assert (expected != 0).any() or not exact.any()
        np.testing.assert_array_equal(
            got.astype(np.float64), expected.astype(np.float64), err_msg=str((case, kind))
        )


@pytest.mark.parametrize(
    ("terms", "factors", "expected"),
    [
        ((65504, 15), (1, 1), 65504),  # nearest
        ((65504, 16), (1, 1), np.inf),  # a tie, to even, which is no longer finite
        ((-65504, -16), (1, 1), -np.inf),
        ((65504, 65504, -65504), (1, 1, 1), 65504),  # a sum on the way may be beyond the range
        ((2.0**-12, 3 * 2.0**-14), (2.0**-12, 2.0**-12), 2.0**-23),  # 1.75 of the smallest number
        ((2.0**-12, 2.0**-13), (2.0**-13, 2.0**-13), 2.0**-24),  # 3/4 of it, from two that vanish
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_half_is_rounded_once(kind: str, terms: Any, factors: Any, expected: float) -> None:
    """Overflow and underflow are those of the sum, in every operation: over channels in, channels out, the batch."""
    one, two = np.array(terms, np.float16), np.array(factors, np.float16)
    assert (one == terms).all() and (two == factors).all()
    count = len(terms)
    if kind == "forward":
        got = convgrad.conv2d(one.reshape(1, 1, 1, count), two.reshape(1, 1, count, 1), 1, "SAME")
    elif kind == "input":
        f, g = two.reshape(1, 1, 1, count), one.reshape(1, 1, 1, count)
        got = convgrad.conv2d_backprop_input((1, 1, 1, 1), f, g, 1, "SAME")
    else:
        x, g = one.reshape(count, 1, 1, 1), two.reshape(count, 1, 1, 1)
        got = convgrad.conv2d_backprop_filter(x, (1, 1, 1, 1), g, 1, "SAME")
    assert got.item() == expected


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_overflows_is_infinite_and_has_its_sign(kind: str, dtype: str) -> None:
    """The largest number in every cell, with a minus in one image or channel: all sums are too large, none is a NaN."""
    largest = DTYPES[dtype].type(float.fromhex(LARGEST[dtype]))
    assert np.isfinite(largest)
    for depthwise in (False, True):
        case = layer(dtype, depthwise)
        shapes = (case.input_shape, case.filter_shape, case.output_shape)
        x, f, g = (np.ones(shape, DTYPES[dtype]) for shape in shapes)
        if kind == "filter":
            x[...] = largest
            g[..., 3] = -1
        else:
            image = x if kind == "forward" else g
            image[...] = largest
            image[1] = -largest
        got = run(case, kind, Data(x, f, g)).astype(np.float64)
        exact = run(case, kind, Data(*(np.sign(each) for each in (x, f, g))), "reference")
        assert (np.abs(exact) > 1).all() and (exact < 0).any() and (exact > 0).any()
        np.testing.assert_array_equal(got, np.copysign(np.inf, exact))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_windows(bad: float, kind: str, dtype: str) -> None:
    """One bad cell away from the border, positive numbers around it: all other results keep their bits."""
    for depthwise in (False, True):
        case = layer(dtype, depthwise)
        rng = np.random.default_rng(5)
        data = Data(*(np.abs(each) + each.dtype.type(1) for each in whole_dense(case, rng)))
        before = run(case, kind, data)
        (data.x if kind != "input" else data.g)[1, 7, 9, 3] = bad
        after = run(case, kind, data)
        hit = np.zeros(after.shape, bool)
        if kind == "filter":
            hit[:, :, 3, :] = True
        elif depthwise:
            hit[1, 6:9, 8:11, 3] = True
        else:
            hit[1, 6:9, 8:11, :] = True
        got = after.astype(np.float64)
        np.testing.assert_array_equal(got[hit], np.full(hit.sum(), bad))
        np.testing.assert_array_equal(got[~hit], before.astype(np.float64)[~hit])


def whole_dense(case: Case, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    data = whole_numbers(case, rng, 2)
    return data.x, data.f, data.g
