"""Every row of the table but the convolutions: the C++ headers against `convgrad.graph`, on the same graphs.

Results agree to the last bit where arithmetic defines it. Stated otherwise:

- STEPS: functions of the C library, which NumPy has of its own.
- shares of a softmax: the sum of a row's exponentials begins with 1, so its logarithm is known to some steps of 1 and
  no better, however small it is. Python rounds in the same order (shift, exp, sum, log, subtract, then to the type).
- LOOSE: sums (C++ keeps floats in double, NumPy in the type and in pairs) and whatever is made of several of these.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cc_cases import Case, Refused
from cc_ops_program import Runner
from cc_programs import Builds, found, setting
from convgrad._apps.graph import dtypes
from convgrad._apps.graph.table import TABLE

FLOATS = ("DT_HALF", "DT_BFLOAT16", "DT_FLOAT", "DT_DOUBLE")
NUMBERS = tuple(name for name in dtypes.BY_NAME if name != "DT_BOOL")
ANY = tuple(dtypes.BY_NAME)
EXACT = 0
STEPS = {"Exp": 3, "Log": 4, "Tanh": 4, "Sigmoid": 6, "RandomNormal": 4}
"""Steps of the type between two results, for float32 and float64.

Measured over 200,000 numbers each: 2, 3, 3, 4 and 0. The C library's own errors are 0.5, 0.8, 2.1 and 2.0 steps,
NumPy's up to 2.3, 2.8, 1.4 and 3.0; NumPy promises 4 where it has code for wider vectors than were measured. The narrow
types are computed in float32 (numbers at random in float64), so a result is the same or its neighbour, and Sigmoid,
which is rounded between, one further.
"""
LOGARITHM = 4
"""Steps of max(1, result) for the logarithm of a share, and of the logarithm for a share; measured 2.0 and 3.4."""
LOOSE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-5, "float64": 1e-12}
"""Of the largest element of a result."""

Cases = Iterator[Case]


pytestmark = pytest.mark.cc_long  # all of the headers in one program: 15 s of compiling


@pytest.fixture(scope="module", params=["C++17", "sanitized"])
def runner(
    request: pytest.FixtureRequest, builds: Builds, tmp_path_factory: pytest.TempPathFactory
) -> Runner:
    program = builds.all_together(setting(found()[0], request.param))
    return Runner(program, tmp_path_factory.mktemp("companion_ops"))


def random(rng: np.random.Generator, dtype: str, shape: Any, small: bool = False) -> Any:
    """Return numbers of a type; all that integers have, unless they must stay `small`."""
    kind = dtypes.BY_NAME[dtype]
    if kind in dtypes.FLOATS:
        return rng.standard_normal(shape).astype(np.float32).astype(kind)
    if dtype == "DT_BOOL":
        return rng.integers(0, 2, shape).astype(bool)
    ends = np.iinfo(kind)
    if small:
        return rng.integers(max(ends.min, -9), 10, shape).astype(kind)
    return rng.integers(ends.min, ends.max, shape, dtype=kind, endpoint=True)


def differ(ours: Any, theirs: Any, tolerance: Any) -> str:
    """Return how a result of C++ is not Python's, or nothing."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{ours.shape} is not {theirs.dtype}{theirs.shape}"
    if ours.dtype not in dtypes.FLOATS or tolerance == EXACT:
        same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
        return "" if np.all(same) else f"{ours} is not {theirs}"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.all(finite | (a == b) | (np.isnan(a) & np.isnan(b))):
        return f"{ours} is not {theirs}"
    a, b = np.where(finite, a, 0), np.where(finite, b, 0)
    if tolerance == LOOSE:
        allowed = LOOSE[ours.dtype.name] * max(1.0, float(np.max(np.abs(b), initial=0)))
    elif callable(tolerance):
        allowed = tolerance(b, ours.dtype)
    else:
        narrow = dtypes.wide(ours.dtype) != ours.dtype
        allowed = ((tolerance + 2) // 4 if narrow else tolerance) * _step(b, ours.dtype)
    off = np.abs(a - b) / allowed
    return (
        ""
        if np.all(off <= 1)
        else f"off by {off.max():.3g} times what may be: {ours} is not {theirs}"
    )


def _step(values: Any, dtype: Any) -> Any:
    """Return the distance from a number of a type to the next."""
    import ml_dtypes

    info = ml_dtypes.finfo(dtype)
    exponent = np.floor(np.log2(np.maximum(np.abs(values), float(info.tiny))))
    return np.exp2(exponent - info.nmant)


def _logarithm(logs: Any, dtype: Any) -> Any:
    """Return how far logarithms of shares may be off: the wide type's sum, and the rounding of a narrow one."""
    wide = dtypes.wide(dtype)
    return LOGARITHM * _step(np.maximum(1, np.abs(logs)), wide) + (wide != dtype) * _step(
        logs, dtype
    )


def _share(shares: Any, dtype: Any) -> Any:
    """Return the same for shares: what is added to a logarithm multiplies its share."""
    with np.errstate(divide="ignore"):
        logs = np.where(shares > 0, np.log(shares), 0)
    off = LOGARITHM * _step(np.maximum(1, np.abs(logs)), dtypes.wide(dtype))
    return shares * off + _step(shares, dtype)


def check(runner: Runner, cases: list[Case], tolerance: Any = EXACT) -> None:
    """Run cases both ways and compare: results, or that both refuse."""
    assert cases
    ours = runner.run(cases)
    wrong = []
    for case in cases:
        mine, theirs = ours.get(case.name, []), case.results()
        if len(mine) != len(theirs):
            wrong.append(f"{case.name}: {mine} of {theirs}")
            continue
        for a, b in zip(mine, theirs, strict=True):
            if isinstance(a, Refused) != isinstance(b, Refused):
                wrong.append(f"{case.name}: C++ {a}, Python {b}")
            elif not isinstance(a, Refused):
                wrong += [
                    f"{case.name}: {said}"
                    for x, y in zip(a, b, strict=True)
                    if (said := differ(x, y, tolerance))
                ]
    assert not wrong, "\n".join(wrong[:8])


def one(name: str, op: str, arrays: list[Any], known: bool, outputs: int = 1, **attrs: Any) -> Case:
    """Return a case of one op: its shapes known when it is made, or in the run alone."""
    case = Case(name)
    pins = [
        case.placeholder(array.dtype, array.shape if known else None)
        for array in map(np.asarray, arrays)
    ]
    result = case.op(op, *pins, **attrs)
    fetched = [result] + [f"{result}:{at}" for at in range(1, outputs)]
    return case.run(*fetched, feeds=dict(zip(pins, arrays, strict=True)))


def seeded(*parts: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(parts).encode()))


SHAPES = (
    ((3, 4), (3, 4)),
    ((), ()),
    ((2, 3), ()),
    ((), (5,)),
    ((3, 1, 4), (2, 1)),
    ((2, 1, 3, 1), (4, 1, 5)),
    ((0, 3), (1, 3)),
    ((7,), (1,)),
    ((2, 3), (3, 2)),
    ((4,), (3, 2)),
)


@pytest.mark.parametrize("op", ["Add", "Subtract", "Multiply", "Div", "Equal"])
def test_two_operands_agree_with_numpy(runner: Runner, op: str) -> None:
    cases = []
    for dtype in ANY if op == "Equal" else NUMBERS:
        rng = seeded(op, dtype)
        for number, (a, b) in enumerate(SHAPES):
            x, y = random(rng, dtype, a), random(rng, dtype, b)
            if op == "Div" and dtype not in FLOATS and number != 1:
                y = np.where(y == 0, np.ones_like(y), y)
            if op == "Equal" and dtype != "DT_BOOL":
                x, y = random(rng, dtype, a, small=True), random(rng, dtype, b, small=True)
                x, y = np.trunc(x), np.trunc(y)
                x, y = x.astype(dtypes.BY_NAME[dtype]), y.astype(dtypes.BY_NAME[dtype])
            cases += [
                one(f"{op}-{dtype}-{number}-{known}", op, [x, y], known) for known in (True, False)
            ]
    check(runner, cases)


def test_special_numbers_of_floats(runner: Runner) -> None:
    special = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 6e-8, 65504.0, 1e-40, 3e38]
    cases = []
    for dtype in FLOATS:
        with np.errstate(all="ignore"):
            x = np.array(special, np.float64).astype(dtypes.BY_NAME[dtype])
        for op in ("Add", "Subtract", "Multiply", "Div", "Equal", "ReluGrad"):
            a, b = (m.reshape(-1) for m in np.meshgrid(x, x))
            a, b = a.astype(x.dtype), b.astype(x.dtype)
            cases.append(one(f"{op}-{dtype}", op, [a, b], True))
        cases += [
            one(f"{op}-{dtype}", op, [x], True) for op in ("Negate", "Square", "Sqrt", "Relu")
        ]
    check(runner, cases)


def test_integers_divide_towards_zero_and_wrap(runner: Runner) -> None:
    cases = []
    for dtype in NUMBERS:
        kind = dtypes.BY_NAME[dtype]
        if dtype in FLOATS:
            continue
        ends = np.iinfo(kind)
        some = [ends.min, ends.max, 1, 2, 3, 7]
        some += [] if ends.min == 0 else [-1, -2, -7]
        x, y = (m.reshape(-1) for m in np.meshgrid(np.array(some, kind), np.array(some, kind)))
        keep = y != 0
        cases.append(one(f"whole-{dtype}", "Div", [x[keep], y[keep]], True))
        zero = np.zeros(1, kind)
        cases.append(one(f"zero-{dtype}", "Div", [x, zero], True))
        cases.append(one(f"empty-{dtype}", "Div", [x[:0], zero], True))
        cases += [one(f"{op}-{dtype}", op, [x], True) for op in ("Negate", "Square", "Relu")]
    check(runner, cases)


@pytest.mark.parametrize("op", ["Negate", "Square", "Relu"])
def test_one_operand_is_exact(runner: Runner, op: str) -> None:
    cases = []
    for dtype in NUMBERS:
        rng = seeded(op, dtype)
        cases += [
            one(f"{op}-{dtype}-{shape}", op, [random(rng, dtype, shape)], False)
            for shape in ((), (0,), (5, 7), (2, 300))
        ]
    check(runner, cases)


@pytest.mark.parametrize("op", ["Sqrt", "Exp", "Log", "Tanh", "Sigmoid"])
def test_functions_are_within_steps(runner: Runner, op: str) -> None:
    cases = []
    for dtype in FLOATS:
        rng = seeded(op, dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 80.0, -80.0, 1.0])
        special = special.astype(dtypes.BY_NAME[dtype])
        for number, x in enumerate((random(rng, dtype, (40, 9)), special)):
            cases.append(one(f"{op}-{dtype}-{number}", op, [x], True))
        cases.append(one(f"{op}-{dtype}-scalar", op, [random(rng, dtype, ())], False))
    check(runner, cases, STEPS.get(op, EXACT))


def test_add_n(runner: Runner) -> None:
    cases = []
    for dtype in NUMBERS:
        rng = seeded("AddN", dtype)
        for count in (1, 2, 5):
            x = [random(rng, dtype, (3, 700)) for _ in range(count)]
            cases.append(one(f"{dtype}-{count}", "AddN", x, count == 2))
        for known in (True, False):
            x = [random(rng, dtype, (3, 2)), random(rng, dtype, (2, 3))]
            cases.append(one(f"{dtype}-differ-{known}", "AddN", x, known))
    check(runner, cases)


def test_matmul(runner: Runner) -> None:
    exact, loose = [], []
    for dtype in NUMBERS:
        rng = seeded("MatMul", dtype)
        for m, k, n in ((1, 1, 1), (5, 7, 3), (70, 33, 19), (4, 0, 3), (0, 2, 3), (3, 300, 9)):
            for turned in range(4):
                ta, tb = bool(turned & 1), bool(turned & 2)
                a = random(rng, dtype, (k, m) if ta else (m, k))
                b = random(rng, dtype, (n, k) if tb else (k, n))
                case = one(
                    f"{dtype}-{m}-{k}-{n}-{turned}", "MatMul", [a, b], bool(m % 2),
                    transpose_a=ta, transpose_b=tb,
                )  # fmt: skip
                (loose if dtype in FLOATS else exact).append(case)
    rng = seeded("MatMul refused")
    for known in (True, False):
        for number, (a, b) in enumerate((((2, 3), (2, 3)), ((3,), (3, 2)), ((2, 3), (3,)))):
            x = [random(rng, "DT_FLOAT", a), random(rng, "DT_FLOAT", b)]
            exact.append(one(f"refused-{known}-{number}", "MatMul", x, known))
    check(runner, exact)
    check(runner, loose, LOOSE)


REDUCED = (
    ((3, 4, 5), 1), ((3, 4, 5), [0, 2]), ((3, 4, 5), [-1]), ((3, 4, 5), [2, 0]), ((6,), [0]), ((), []),
    ((3, 4), []), ((0, 4), [0]), ((4, 0), [0]), ((2, 3), [2]), ((2, 3), [-3]), ((2, 3), [0, 0]), ((2, 3), [0, -2]),
    ((300, 40), [0]), ((40, 300), [1]), ((2, 3), [[0]]),
)  # fmt: skip


@pytest.mark.parametrize("op", ["Sum", "Mean"])
def test_sums_and_means(runner: Runner, op: str) -> None:
    exact, loose = [], []
    for dtype in NUMBERS:
        rng = seeded(op, dtype)
        for number, (shape, axis) in enumerate(REDUCED):
            x = random(rng, dtype, shape)
            for keep in (False, True):
                for way in ("known", "const", "fed"):
                    case = Case(f"{dtype}-{number}-{keep}-{way}")
                    p = case.placeholder(x.dtype, None if way == "fed" else x.shape)
                    axes = np.array(axis, np.int64 if keep else np.int32)
                    a = case.placeholder(axes.dtype) if way == "fed" else case.const(axes)
                    feeds = {p: x, a: axes} if way == "fed" else {p: x}
                    case.run(case.op(op, p, a, keep_dims=keep), feeds=feeds)
                    (loose if dtype in FLOATS else exact).append(case)
    check(runner, exact)
    check(runner, loose, LOOSE)


def test_largest(runner: Runner) -> None:
    cases = []
    for dtype in ANY:
        rng = seeded("ArgMax", dtype)
        for number, (shape, axis) in enumerate(
            (((5, 7), 0), ((5, 7), -1), ((3, 4, 5), 1), ((6,), 0), ((2, 0), 0), ((0, 2), 0), ((2, 3), 2), ((), 0))
        ):  # fmt: skip
            x = random(rng, dtype, shape, small=True)
            if dtype in FLOATS and x.size > 12:
                x.reshape(-1)[11] = np.nan
            for known in (True, False):
                case = one(
                    f"{dtype}-{number}-{known}", "ArgMax", [x, np.int32(axis)], known,
                    output_type=np.dtype(np.int32 if known else np.int64),
                )  # fmt: skip
                cases.append(case)
    check(runner, cases)


def test_l2_loss(runner: Runner) -> None:
    cases = [
        one(f"{dtype}-{shape}", "L2Loss", [random(seeded("L2", dtype), dtype, shape)], True)
        for dtype in FLOATS
        for shape in ((), (0,), (3, 5), (100,))
    ]
    check(runner, cases, LOOSE)


def test_casts(runner: Runner) -> None:
    cases = []
    for given in ANY:
        rng = seeded("Cast", given)
        for wanted in ANY:
            x = random(rng, given, (3, 100))
            if given in FLOATS:
                scale = 1 if "UINT" in wanted else 30
                x = (np.abs(x) if "UINT" in wanted else x) * x.dtype.type(scale)
                x = x.astype(dtypes.BY_NAME[given])
            cases.append(one(f"{given}-{wanted}", "Cast", [x], True, DstT=dtypes.BY_NAME[wanted]))
    ties = np.array(
        [
            2049.0,
            2051.0,
            1 + 2**-11 + 2**-40,
            65519.99,
            65520.0,
            2**-25,
            2**-25 + 2**-60,
            1e-300,
            1e300,
        ]
    )
    cases += [
        one(f"ties-{wanted}", "Cast", [ties], True, DstT=dtypes.BY_NAME[wanted])
        for wanted in FLOATS
    ]
    check(runner, cases)


def test_casts_of_what_does_not_fit_end_well(runner: Runner) -> None:
    cases = []
    for given in FLOATS:
        with np.errstate(over="ignore"):  # a half has no 3e38
            x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, -1.5])
            x = x.astype(dtypes.BY_NAME[given])
        cases += [
            one(f"{given}-{wanted}", "Cast", [x], True, DstT=dtypes.BY_NAME[wanted])
            for wanted in ANY
        ]
    for results in runner.run(cases).values():
        assert len(results) == 1 and not isinstance(results[0], Refused)


RESHAPES = (
    ((2, 6), [3, 4]), ((2, 6), [-1]), ((2, 6), [3, -1]), ((2, 6), [-1, -1]), ((2, 6), [5, -1]), ((2, 6), [13]),
    ((2, 6), [-2, 6]), ((2, 6), [0, -1]), ((0, 6), [0, -1]), ((0, 6), [3, -1]), ((0, 6), [0]), ((), []), ((1,), []),
    ((2, 6), [[12]]), ((2, 6), [2**31 - 1, 2**31 - 1, 2**31 - 1]), ((2, 6), [-(2**31), 6]),
)  # fmt: skip


def test_reshape(runner: Runner) -> None:
    cases = []
    for dtype in ANY:
        rng = seeded("Reshape", dtype)
        for number, (shape, wanted) in enumerate(RESHAPES):
            x = random(rng, dtype, shape)
            sizes = np.array(wanted, np.int32)
            cases.append(one(f"{dtype}-{number}-fed", "Reshape", [x, sizes], False))
            case = Case(f"{dtype}-{number}-const")
            p, s = case.placeholder(x.dtype, shape), case.const(sizes.astype(np.int64))
            cases.append(case.run(case.op("Reshape", p, s), feeds={p: x}))
    smallest = np.array([-(2**63), 6], np.int64)
    cases.append(one("smallest", "Reshape", [np.ones((2, 6)), smallest], False))
    check(runner, cases)


def test_transpose_and_its_inverse(runner: Runner) -> None:
    cases = []
    orders = ((2, 0, 1), (0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 0, 1), (0, 1), (0, 1, 3), (1, 2, 0))
    for dtype in ANY:
        x = random(seeded("Transpose", dtype), dtype, (3, 4, 5))
        for order in orders:
            perm = np.array(order, np.int32)
            cases.append(one(f"{dtype}-{order}-fed", "Transpose", [x, perm], False))
            case = Case(f"{dtype}-{order}-const")
            p, s = case.placeholder(x.dtype, x.shape), case.const(perm)
            cases.append(case.run(case.op("Transpose", p, s), feeds={p: x}))
    for number, order in enumerate(([2, 0, 1], [0, 0], [0, 2], [-1, 0], [], [[0, 1]])):
        for dtype in (np.int32, np.int64):
            x = np.array(order, dtype)
            cases.append(one(f"i{number}-{dtype.__name__}", "InvertPermutation", [x], False))
            case = Case(f"i{number}-{dtype.__name__}-const")
            cases.append(case.run(case.op("InvertPermutation", case.const(x))))
    cases.append(one("scalar", "Transpose", [np.float32(1), np.zeros(0, np.int32)], False))
    cases.append(one("back", "Transpose", [np.ones((2, 3)), np.array([-1, 0])], False))
    case = Case("back-const")
    p = case.const(np.ones((2, 3)))
    cases.append(case.run(case.op("Transpose", p, case.const(np.array([-1, 0])))))
    check(runner, cases)


REPEATS = (
    ((3,), [2, 3]), ((2, 1, 3), [2, 4, 3]), ((), [2, 2]), ((1, 1), [3, 5]), ((3,), [4]), ((3,), [1]), ((2, 2), [2]),
    ((3,), [-3]), ((3,), [-1]), ((1,), [0]), ((0,), [0]), ((3,), [[3]]), ((), []), ((3,), [2**20] * 3 + [3]),
    ((1,), [2**31 - 1] * 4), ((2, 3), [1, 2, 3]), ((2, 3), [4, 2, 3]),
)  # fmt: skip


def test_repeating_and_summing_back(runner: Runner) -> None:
    exact, loose = [], []
    for dtype in ANY:
        rng = seeded("Broadcast", dtype)
        for number, (shape, wanted) in enumerate(REPEATS):
            x, sizes = random(rng, dtype, shape), np.array(wanted, np.int32)
            exact.append(one(f"{dtype}-{number}-fed", "BroadcastTo", [x, sizes], False))
            case = Case(f"{dtype}-{number}-const")
            p, s = case.placeholder(x.dtype, shape), case.const(sizes)
            exact.append(case.run(case.op("BroadcastTo", p, s), feeds={p: x}))
            small = math.prod(np.abs(sizes).reshape(-1).tolist()) < 1000
            if dtype != "DT_BOOL" and small and sizes.ndim == 1 and min(wanted, default=0) >= 0:
                big = random(rng, dtype, wanted)
                for known in (True, False):
                    case = one(
                            f"sum-{dtype}-{number}-{known}", "SumToShape",
                            [big, np.array(shape, np.int64)], known,
                        )  # fmt: skip
                    (loose if dtype in FLOATS else exact).append(case)
    check(runner, exact)
    check(runner, loose, LOOSE)


def test_one_hot(runner: Runner) -> None:
    cases = []
    for dtype in ANY:
        rng = seeded("OneHot", dtype)
        on, off = random(rng, dtype, ()), random(rng, dtype, ())
        for kind in (np.int32, np.int64, np.uint8):
            indices = rng.integers(0, 6, (2, 3)).astype(kind)
            if kind is not np.uint8:
                indices[0, 0] = -1
            for axis in (-2, -1, 0, 1, 2, 3):
                for depth in (4, 0, -1, [4]):
                    arrays = [indices, np.array(depth, np.int32), on, off]
                    name = f"{dtype}-{kind.__name__}-{axis}-{depth}"
                    cases.append(one(name.replace(" ", ""), "OneHot", arrays, True, axis=axis))
    arrays = [np.zeros((1000, 1000), np.int32), np.int64(2**40), np.float32(1), np.float32(0)]
    cases.append(one("huge", "OneHot", arrays, False))
    check(runner, cases)


def test_shape(runner: Runner) -> None:
    cases = []
    for dtype in ANY:
        for shape in ((), (3,), (2, 0, 5)):
            for wanted in ("DT_INT32", "DT_INT64", "DT_FLOAT"):
                x = np.zeros(shape, dtypes.BY_NAME[dtype])
                for known in (True, False):
                    name = f"{dtype}-{len(shape)}-{wanted}-{known}"
                    out = dtypes.BY_NAME[wanted]
                    cases.append(one(name, "Shape", [x], known, out_type=out))
    check(runner, cases)


def test_range(runner: Runner) -> None:
    cases = []
    whole = (
        (0, 10, 3),
        (0, 9, 3),
        (5, 0, -2),
        (0, 0, 1),
        (3, 2, 1),
        (2, 3, -1),
        (0, 5, 0),
        (1, 100, 7),
    )
    for dtype in NUMBERS:
        kind = dtypes.BY_NAME[dtype]
        for number, triple in enumerate(whole):
            if "UINT" in dtype and min(triple) < 0:
                continue
            arrays = [np.array(each, kind) for each in triple]
            cases.append(one(f"{dtype}-{number}", "Range", arrays, False))
            case = Case(f"{dtype}-{number}-const")
            cases.append(case.run(case.op("Range", *[case.const(each) for each in arrays])))
        if dtype in FLOATS:
            for number, triple in enumerate(
                ((0, 1, 0.1), (1, -1, -0.3), (np.nan, 1, 1), (0, np.inf, 1), (0, 3e38, 1e-38))
            ):
                with np.errstate(over="ignore"):  # a half has no 3e38
                    arrays = [np.array(each).astype(kind) for each in triple]
                cases.append(one(f"{dtype}-f{number}", "Range", arrays, False))
        else:
            ends = np.iinfo(kind)
            for number, triple in enumerate(
                ((ends.min, ends.max, ends.max), (ends.max - 3, ends.max, 2), (ends.max, ends.min, ends.min))
            ):  # fmt: skip
                if triple[2]:
                    arrays = [np.array(each, kind) for each in triple]
                    cases.append(one(f"{dtype}-e{number}", "Range", arrays, False))
    huge = [np.array(each, np.int64) for each in (-(2**63), 2**63 - 1, 1)]
    cases.append(one("huge", "Range", huge, False))
    case = Case("huge-const")
    cases.append(case.run(case.op("Range", *[case.const(each) for each in huge])))
    many = [np.array(each, np.int64) for each in (0, 2**50, 1)]
    cases.append(one("many", "Range", many, False))
    vector = [np.array([0], np.int32), np.int32(3), np.int32(1)]
    cases.append(one("vector", "Range", vector, True))
    check(runner, cases)


def _random_cases(op: str) -> list[Case]:
    cases = []
    for dtype in FLOATS:
        for seeds in ((0, 0), (1, 2), (87654321, 0), (-5, 2**40 + 3), (-(2**63), 2**63 - 1)):
            for shape in ((5,), (3, 7), (), (0, 2), (1001,)):
                case = Case(
                    f"{dtype}-{seeds[0]}-{seeds[1]}-{len(shape)}-{shape[:1]}".replace(" ", "")
                )
                sizes = case.placeholder(np.int32)
                kind = dtypes.BY_NAME[dtype]
                result = case.op(op, sizes, dtype=kind, seed=seeds[0], seed2=seeds[1])
                cases.append(case.run(result, feeds={sizes: np.array(shape, np.int32)}))
    for number, shape in enumerate(([-2, 3], [[2, 3]], [2**31 - 1] * 3)):
        cases.append(
            one(
                f"refused-{number}",
                op,
                [np.array(shape, np.int32)],
                False,
                dtype=np.dtype(np.float32),
            )
        )
        case = Case(f"refused-{number}-const")
        sizes = case.const(np.array(shape, np.int64))
        cases.append(case.run(case.op(op, sizes, dtype=np.dtype(np.float32))))
    cases.append(one("integers", op, [np.array([2], np.int32)], True, dtype=np.dtype(np.int32)))
    return cases


def test_uniform_numbers_are_the_same(runner: Runner) -> None:
    check(runner, _random_cases("RandomUniform"))


def test_normal_numbers_are_within_steps(runner: Runner) -> None:
    check(runner, _random_cases("RandomNormal"), STEPS["RandomNormal"])


def test_relu_grad(runner: Runner) -> None:
    cases = []
    for dtype in NUMBERS:
        rng = seeded("ReluGrad", dtype)
        for number, (a, b) in enumerate((((3, 4), (3, 4)), ((), ()), ((3, 4), (4,)), ((2,), (3,)))):
            x = [random(rng, dtype, a), random(rng, dtype, b)]
            cases += [
                one(f"{dtype}-{number}-{known}", "ReluGrad", x, known) for known in (True, False)
            ]
    check(runner, cases)


def test_biases(runner: Runner) -> None:
    exact, loose = [], []
    for dtype in NUMBERS:
        rng = seeded("Bias", dtype)
        for layout in ("NHWC", "NCHW"):
            for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3), (2, 3, 2, 2, 3)):
                at = 1 if layout == "NCHW" else len(shape) - 1
                x = random(rng, dtype, shape)
                for bias in ((shape[at],), (shape[at] + 1,), (shape[at], 1)):
                    for known in (True, False):
                        name = f"{dtype}-{layout}-{len(shape)}-{shape[0]}-{bias}-{known}"
                        pair = [x, random(rng, dtype, bias)]
                        exact.append(
                            one(name.replace(" ", ""), "BiasAdd", pair, known, data_format=layout)
                        )
                case = one(
                    f"g-{dtype}-{layout}-{len(shape)}-{shape[0]}", "BiasAddGrad", [x], True, data_format=layout
                )  # fmt: skip
                (loose if dtype in FLOATS else exact).append(case)
        exact.append(
            one(
                f"{dtype}-low",
                "BiasAdd",
                [random(rng, dtype, (3,)), random(rng, dtype, (3,))],
                True,
            )
        )
        exact.append(one(f"{dtype}-low-grad", "BiasAddGrad", [random(rng, dtype, (3,))], True))
    check(runner, exact)
    check(runner, loose, LOOSE)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(runner: Runner, op: str) -> None:
    cases = []
    for dtype in FLOATS:
        rng = seeded(op, dtype)
        for shape in ((5,), (3, 4), (2, 3, 7), (), (3, 0), (0, 3), (2, 1), (3, 1000)):
            x = (random(rng, dtype, shape) * dtypes.BY_NAME[dtype].type(5)).astype(
                dtypes.BY_NAME[dtype]
            )
            cases += [
                one(f"{dtype}-{shape}-{known}".replace(" ", ""), op, [x], known)
                for known in (True, False)
            ]
        special = np.array(
            [[np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [-np.inf] * 3, [6e4, -6e4, 0]]
        )
        cases.append(one(f"{dtype}-special", op, [special.astype(dtypes.BY_NAME[dtype])], True))
    check(runner, cases, _share if op == "Softmax" else _logarithm)


def test_cross_entropy(runner: Runner) -> None:
    op, cases = "SoftmaxCrossEntropyWithLogits", []
    shapes = (
        ((3, 4), (3, 4)), ((1, 4), (3, 4)), ((3, 4), (1, 4)), ((3, 1), (3, 4)), ((3, 4), (3, 1)), ((3, 4), (3, 5)),
        ((4,), (4,)), ((2, 3), (3, 3)), ((0, 4), (0, 4)), ((3, 0), (3, 0)), ((1, 1), (2, 3)), ((2, 3), (2, 3, 1)),
    )  # fmt: skip
    for dtype in FLOATS:
        rng = seeded(op, dtype)
        for number, (a, b) in enumerate(shapes):
            x = [random(rng, dtype, a), np.abs(random(rng, dtype, b)).astype(dtypes.BY_NAME[dtype])]
            cases += [
                one(f"{dtype}-{number}-{known}", op, x, known, outputs=2) for known in (True, False)
            ]
    check(runner, cases, LOOSE)


def _pools() -> Iterator[tuple[str, tuple[int, ...], dict[str, Any]]]:
    settings: list[tuple[list[int], list[int], str, list[int]]] = [
        ([2, 2], [2, 2], "VALID", []), ([3, 3], [2, 2], "SAME", []), ([3, 2], [1, 2], "SAME", []),
        ([2, 2], [1, 1], "EXPLICIT", [1, 1, 0, 1]), ([3, 3], [2, 3], "EXPLICIT", [2, 0, 1, 2]),
        ([9, 9], [1, 1], "VALID", []), ([7, 7], [3, 3], "VALID", []), ([40, 50], [1, 1], "SAME", []),
        ([2, 2], [1, 1], "EXPLICIT", [2, 0, 0, 0]), ([2, 2], [1, 1], "EXPLICIT", [-1, 0, 0, 0]),
        ([2, 2], [1, 1], "VALID", [0, 0, 0, 0]), ([2, 2], [0, 1], "VALID", []), ([0, 2], [1, 1], "SAME", []),
        ([1, 1], [3, 2], "VALID", []), ([2, 2], [1, 1], "EXPLICIT", []),
    ]  # fmt: skip
    for layout in ("NHWC", "NCHW"):
        for number, (ksize, strides, padding, pads) in enumerate(settings):
            last = layout == "NHWC"
            image = (2, 6, 5, 3) if last else (2, 3, 6, 5)

            def four(two: list[int], last: bool = last) -> tuple[int, ...]:
                return (1, *two, 1) if last else (1, 1, *two)

            flat = tuple([0, 0, *pads, 0, 0] if last else [0, 0, 0, 0, *pads]) if pads else ()
            yield f"{layout}-{number}", image, {
                "ksize": four(ksize), "strides": four(strides), "padding": padding,
                "explicit_paddings": flat, "data_format": layout,
            }  # fmt: skip
    plain = {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}
    yield "rank", (2, 3, 4), plain
    yield "batch", (2, 3, 4, 1), {**plain, "ksize": (2, 1, 1, 1)}
    yield "depth", (2, 3, 4, 2), {**plain, "ksize": (1, 1, 1, 2)}
    yield "stride", (2, 3, 4, 2), {**plain, "strides": (2, 1, 1, 1)}
    yield "three", (2, 3, 4, 2), {**plain, "ksize": (1, 2, 2)}
    yield "word", (2, 3, 4, 2), {**plain, "padding": "FULL"}
    yield "empty", (2, 0, 4, 2), {**plain, "padding": "SAME"}
    yield "none", (0, 3, 4, 2), plain
    pads = (0, 0, 1, 1, 1, 1, 0, 0)
    yield "nothing", (2, 0, 0, 2), {**plain, "padding": "EXPLICIT", "explicit_paddings": pads}
    yield "largest", (1, 3, 3, 1), {**plain, "ksize": (1, 2**40, 2**40, 1), "padding": "SAME"}


def test_pooling(runner: Runner) -> None:
    """Ties are many among small integers; every sum of a cell has Python's order."""
    cases = []
    for dtype in NUMBERS:
        rng = seeded("MaxPool", dtype)
        for name, image, attrs in _pools():
            x = random(rng, dtype, image, small=True)
            if dtype in FLOATS:
                x = np.round(x.astype(np.float32)).astype(x.dtype)
            for known in (True, False):
                case = Case(f"{dtype}-{name}-{known}")
                p = case.placeholder(x.dtype, image if known else None)
                y = case.op("MaxPool", p, **attrs)
                g = case.op("Square", y)
                back = case.op("MaxPoolGrad", p, y, g, **attrs)
                again = case.op("MaxPoolGradGrad", p, y, back, **attrs)
                cases.append(case.run(y, back, again, feeds={p: x}))
    check(runner, cases)


def test_pooling_of_what_is_no_number(runner: Runner) -> None:
    cases = []
    attrs = {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "SAME"}
    for dtype in FLOATS:
        x = random(seeded("nan", dtype), dtype, (1, 5, 5, 1))
        x[0, 1, 1, 0], x[0, 3, 3, 0], x[0, 4, 0, 0] = np.nan, np.inf, -np.inf
        case = Case(dtype)
        p = case.placeholder(x.dtype)
        y = case.op("MaxPool", p, **attrs)
        back = case.op("MaxPoolGrad", p, y, y, **attrs)
        cases.append(case.run(y, back, feeds={p: x}))
    check(runner, cases)


def test_gradients_of_pooling_check_their_shapes(runner: Runner) -> None:
    cases = []
    attrs = {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}
    x, y = np.ones((1, 3, 3, 1), np.float32), np.ones((1, 2, 2, 1), np.float32)
    for op in ("MaxPoolGrad", "MaxPoolGradGrad"):
        for number, three in enumerate(
            ([x, y, y], [x, y, x], [x, x, y], [x, x, x], [y, y, y], [x[0], y, y])
        ):
            cases += [
                one(f"{op}-{number}-{known}", op, three, known, **attrs) for known in (True, False)
            ]
    check(runner, cases)


def test_variables(runner: Runner) -> None:
    cases = []
    for dtype in FLOATS:
        rng = seeded("Variable", dtype)
        kind = dtypes.BY_NAME[dtype]
        case = Case(f"{dtype}-train")
        v = case.op("Variable", shape=(2, 3), dtype=kind)
        first = case.op("Assign", v, case.const(random(rng, dtype, (2, 3))))
        alpha, delta = case.const(random(rng, dtype, ())), case.const(random(rng, dtype, (2, 3)))
        step = case.op("ApplyGradientDescent", v, alpha, delta)
        twice = case.op("ApplyGradientDescent", step, alpha, delta)
        case.run(v).run(step).run(first).run(v).run(step).run(v).run(twice, v).run(v)
        cases.append(case)
    for number, (shape, value, strict) in enumerate(
        (((3,), (4,), True), ((3,), (4,), False), ((3,), (3, 1), True), ((None,), (4,), True), (None, (2, 2), True))
    ):  # fmt: skip
        for known in (True, False):
            case = Case(f"assign-{number}-{known}")
            v = case.op("Variable", shape=shape, dtype=np.dtype(np.int32))
            x = case.placeholder(np.int32, value if known else None)
            new = case.op("Assign", v, x, validate_shape=strict)
            case.run(new, feeds={x: np.ones(value, np.int32)}).run(v)
            cases.append(case)
    for number, (alpha, delta) in enumerate((((), (4,)), ((1,), (3,)), ((), (3, 1)), ((), (3,)))):
        for known in (True, False):
            case = Case(f"descent-{number}-{known}")
            v = case.op("Variable", shape=(3,), dtype=np.dtype(np.float32))
            first = case.op("Assign", v, case.const(np.ones(3, np.float32)))
            a = case.placeholder(np.float32, alpha if known else None)
            d = case.placeholder(np.float32, delta if known else None)
            step = case.op("ApplyGradientDescent", v, a, d)
            feeds = {a: np.ones(alpha, np.float32), d: np.ones(delta, np.float32)}
            cases.append(case.run(first).run(step, feeds=feeds).run(v))
    check(runner, cases)


Build = Callable[[Case, list[str]], str]


def _differentiable() -> dict[str, tuple[list[tuple[int, ...]], Build, bool]]:
    """Return, by row, shapes of its floats, how a result is built from them, and whether they must be above 0."""

    def op(name: str, **attrs: Any) -> Build:
        return lambda case, x: case.op(name, *x, **attrs)

    def with_ints(name: str, *numbers: Any, **attrs: Any) -> Build:
        return lambda case, x: case.op(
            name, *x, *[case.const(np.array(each, np.int32)) for each in numbers], **attrs
        )

    image = {"ksize": (1, 3, 3, 1), "strides": (1, 2, 2, 1), "padding": "SAME"}

    def pooled(name: str, second: bool) -> Build:
        def build(case: Case, x: list[str]) -> str:
            y = case.op("MaxPool", x[0], **image)
            return case.op(name, x[0], y, x[1], **image)

        return build

    def entropy(at: int) -> Build:
        return lambda case, x: (
            f"{case.op('SoftmaxCrossEntropyWithLogits', *x)}:{at}"
            if at
            else case.op("SoftmaxCrossEntropyWithLogits", *x)
        )

    binary = [(2, 1, 3), (4, 1)]
    one_shape = [(3, 4)]
    picture = [(1, 5, 5, 2), (1, 3, 3, 2)]
    return {
        **{name: (binary, op(name), name == "Div") for name in ("Add", "Subtract", "Multiply", "Div")},
        **{
            name: (one_shape, op(name), name in ("Sqrt", "Log"))
            for name in (
                "Negate", "Square", "Sqrt", "Exp", "Log", "Tanh", "Sigmoid", "Relu", "Softmax", "LogSoftmax", "L2Loss",
            )
        },
        "AddN": ([(2, 3)] * 3, op("AddN"), False),
        "MatMul": ([(2, 3), (3, 4)], op("MatMul"), False),
        "MatMul-a": ([(3, 2), (3, 4)], op("MatMul", transpose_a=True), False),
        "MatMul-b": ([(2, 3), (4, 3)], op("MatMul", transpose_b=True), False),
        "MatMul-ab": ([(3, 2), (4, 3)], op("MatMul", transpose_a=True, transpose_b=True), False),
        "Reshape": (one_shape, with_ints("Reshape", [2, -1]), False),
        "Transpose": (one_shape, with_ints("Transpose", [1, 0]), False),
        "BroadcastTo": ([(2, 1)], with_ints("BroadcastTo", [3, 2, 4]), False),
        "SumToShape": ([(3, 2, 4)], with_ints("SumToShape", [2, 1]), False),
        "Sum": ([(2, 3, 4)], with_ints("Sum", [0, 2]), False),
        "Sum-keep": ([(2, 3, 4)], with_ints("Sum", [1], keep_dims=True), False),
        "Mean": ([(2, 3, 4)], with_ints("Mean", [0, 2]), False),
        "SpreadReduced": ([(3,)], with_ints("SpreadReduced", [0], [2, 3], mean=True), False),
        "SpreadReduced-kept": ([(1, 3)], with_ints("SpreadReduced", [0], [2, 3]), False),
        "ReluGrad": ([(3, 4), (3, 4)], op("ReluGrad"), False),
        "BiasAdd": ([(2, 3, 3, 2), (2,)], op("BiasAdd"), False),
        "BiasAdd-NCHW": ([(2, 3, 4), (3,)], op("BiasAdd", data_format="NCHW"), False),
        "BiasAddGrad": ([(2, 3, 4)], op("BiasAddGrad", data_format="NCHW"), False),
        "SoftmaxCrossEntropyWithLogits": ([(3, 4), (3, 4)], entropy(0), True),
        "SoftmaxCrossEntropyWithLogits-1": ([(3, 4), (3, 4)], entropy(1), True),
        "SoftmaxCrossEntropyWithLogits-row": ([(1, 4), (3, 4)], entropy(0), True),
        "SoftmaxCrossEntropyWithLogits-column": ([(3, 1), (3, 4)], entropy(0), True),
        "MaxPool": ([picture[0]], op("MaxPool", **image), False),
        "MaxPoolGrad": (picture, pooled("MaxPoolGrad", False), False),
        "MaxPoolGradGrad": ([picture[0], picture[0]], pooled("MaxPoolGradGrad", True), False),
        "Cast": (one_shape, op("Cast", DstT=np.dtype(np.float64)), False),
    }  # fmt: skip


@pytest.mark.parametrize("name", _differentiable())
def test_gradients_of_first_and_second_order(runner: Runner, name: str) -> None:
    """Both orders, with shapes that are known and that are not, of a weighted square of the result."""
    shapes, build, positive = _differentiable()[name]
    cases = []
    for dtype in FLOATS:
        rng = seeded(name, dtype)
        arrays = [random(rng, dtype, shape) for shape in shapes]
        if positive:
            arrays = [(np.abs(x.astype(np.float32)) + 0.5).astype(x.dtype) for x in arrays]
        for known in (True, False):
            case = Case(f"{dtype}-{known}")
            pins = [case.placeholder(x.dtype, x.shape if known else None) for x in arrays]
            y = build(case, pins)
            squared = case.op("Square", y)
            first = case.grad([squared], pins)
            second = case.grad([case.op("Square", each) for each in first], pins)
            feeds = dict(zip(pins, arrays, strict=True))
            case.run(y, *first, *second, feeds=feeds)
            cases.append(case)
    check(runner, cases, LOOSE)


def test_every_row_is_here() -> None:
    """A row that nothing above runs would be a row nobody compared."""
    source = Path(__file__).read_text()
    convolutions = {name for name in TABLE if "Conv2" in name}
    assert len(convolutions) == 6
    others = set(TABLE) - convolutions - {"Const", "Placeholder"}  # each case begins with these
    assert [name for name in sorted(others) if f'"{name}"' not in source] == []


def test_gradient_of_a_sum_of_two_paths(runner: Runner) -> None:
    cases = []
    for dtype in FLOATS:
        case = Case(dtype)
        x = random(seeded("paths", dtype), dtype, (3,))
        p = case.placeholder(x.dtype, (3,))
        y = case.op("Add", case.op("Square", p), case.op("Tanh", p))
        seed = case.const(x)
        cases.append(case.run(*case.grad([y], [p], [seed]), feeds={p: x}))
    check(runner, cases, LOOSE)
