"""Every row of the table of ops, over all dtypes it takes, against NumPy and the eager functions."""

from __future__ import annotations

import numpy as np
import pytest

import cases as convolutions
import convgrad
from convgrad._apps.graph import dtypes
from convgrad._apps.graph.table import TABLE
from graph_pools import max_pool, max_pool_grad, max_pool_grad_grad
from graphs import close, computed, numbers, same_bits, whole

SHAPES = ((), (1,), (0,), (3, 0, 2), (2, 3), (5, 1, 4))
PAIRS = (
    ((), ()),
    ((2, 3), ()),
    ((2, 1), (1, 3)),
    ((0, 1), (1, 3)),
    ((4,), (3, 4)),
    ((3, 4), (3, 4)),
    ((1,), (2, 2)),
)
HARD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-4, -300.0, 6e4)
INT32 = np.dtype(np.int32)


def indices(*values, dtype=np.int32):
    return np.array(values, dtype)


def exact(array):
    """Return an array in the type a result is expected to be computed in."""
    return array.astype(np.float64) if array.dtype in dtypes.FLOATS else array


def unary(formula, positive=False):
    def cases(dtype, rng):
        for shape in SHAPES:
            x = numbers(rng, shape, dtype)
            x = abs(x) if positive else x
            yield [x], {}, formula(exact(x))
        if dtype in dtypes.FLOATS:
            x = np.array(HARD, np.float64).astype(dtype)
            yield [x], {}, formula(exact(x))

    return cases


def binary(formula, divisor=False):
    def cases(dtype, rng):
        for shapes in PAIRS:
            x, y = (numbers(rng, shape, dtype) for shape in shapes)
            if divisor and dtype not in dtypes.FLOATS:
                y = np.where(y == 0, dtype.type(3), y)
            yield [x, y], {}, formula(exact(x), exact(y))
        if dtype in dtypes.FLOATS:
            x, y = np.array(HARD).astype(dtype), np.array(HARD[::-1]).astype(dtype)[:, None]
            yield [x, y], {}, formula(exact(x), exact(y))

    return cases


def quotient(x, y):
    if x.dtype.kind == "f":
        return x / y
    whole_numbers = [
        int(abs(int(a)) // abs(int(b))) * (1 if (a < 0) == (b < 0) else -1)
        for a, b in zip(*(each.reshape(-1) for each in np.broadcast_arrays(x, y)), strict=True)
    ]
    return np.array(whole_numbers, x.dtype).reshape(np.broadcast_shapes(x.shape, y.shape))


def add_n(dtype, rng):
    for count, shape in ((1, (2, 3)), (2, ()), (5, (3,)), (3, (0, 2))):
        parts = [whole(rng, shape, dtype) for _ in range(count)]
        yield [parts], {}, sum(exact(part) for part in parts[1:]) + exact(parts[0])


def matmul(dtype, rng):
    for m, k, n in ((2, 3, 4), (1, 1, 1), (7, 5, 9), (0, 3, 2), (2, 0, 3)):
        a, b = whole(rng, (m, k), dtype), whole(rng, (k, n), dtype)
        for turned_a in (False, True):
            for turned_b in (False, True):
                given = [a.T.copy() if turned_a else a, b.T.copy() if turned_b else b]
                attrs = {"transpose_a": turned_a, "transpose_b": turned_b}
                yield given, attrs, exact(a) @ exact(b)


def shape_of(dtype, rng):
    for shape in SHAPES:
        for kind in (np.int32, np.int64):
            yield [numbers(rng, shape, dtype)], {"out_type": kind}, np.array(shape, kind)


def reshape(dtype, rng):
    for shape, wanted, found in (
        ((2, 3), (3, 2), (3, 2)),
        ((2, 3), (-1,), (6,)),
        ((), (1, 1), (1, 1)),
        ((1,), (), ()),
        ((0, 3), (-1, 3), (0, 3)),
        ((4, 0), (0, 7), (0, 7)),
        ((2, 3, 4), (3, -1, 2), (3, 4, 2)),
    ):
        x = numbers(rng, shape, dtype)
        for kind in (np.int32, np.int64):
            yield [x, indices(*wanted, dtype=kind)], {}, x.reshape(found)


def transpose(dtype, rng):
    for shape, perm in (
        ((), ()),
        ((4,), (0,)),
        ((2, 3), (1, 0)),
        ((2, 0, 3), (2, 0, 1)),
        ((1, 3), (0, 1)),
    ):
        x = numbers(rng, shape, dtype)
        yield [x, indices(*perm)], {}, x.transpose(perm)


def inverse(dtype, rng):
    for count in (0, 1, 5):
        perm = rng.permutation(count).astype(dtype)
        yield [perm], {}, np.argsort(perm)


def cast(dtype, rng):
    x = numbers(rng, (2, 3), dtype)
    for wanted in dtypes.ANY:
        if wanted.kind == "u" and dtype.kind not in "ub":
            x = abs(x)  # a negative float as an unsigned integer is anything
        yield [x], {"DstT": wanted}, _exact_cast(x, wanted)
    yield [numbers(rng, (), dtype)], {"DstT": dtype}, None
    yield [numbers(rng, (0, 2), dtype)], {"DstT": np.float32}, np.zeros((0, 2), np.float32)


def _exact_cast(x, wanted):
    if x.dtype in dtypes.FLOATS and wanted.kind in "iu":
        return np.trunc(exact(x)).astype(wanted)
    return exact(x).astype(wanted)


def one_hot(dtype, rng):
    on, off = np.ones((), dtype), np.zeros((), dtype)
    for kind in (np.uint8, np.int32, np.int64):
        for shape, axis in (((), -1), ((3,), 0), ((2, 3), 1), ((2, 3), -1), ((0,), -1)):
            at = rng.integers(0, 5, shape).astype(kind)
            rows = (at[..., None] == np.arange(4)).astype(dtype)
            expected = rows if axis == -1 else np.moveaxis(rows, -1, axis)
            yield [at, indices(4)[0], on, off], {"axis": axis}, expected
    yield [indices(-1, 0), np.int32(0), on, off], {}, np.zeros((2, 0), dtype)


def broadcast_to(dtype, rng):
    for shape, wanted in (
        ((), ()),
        ((), (2, 3)),
        ((3, 1), (2, 3, 4)),
        ((2, 3), (2, 3)),
        ((1,), (0,)),
    ):
        x = numbers(rng, shape, dtype)
        yield [x, indices(*wanted)], {}, np.broadcast_to(x, wanted)


def sum_to_shape(dtype, rng):
    for shape, wanted in (
        ((), ()),
        ((2, 3), ()),
        ((2, 3, 4), (3, 1)),
        ((2, 3), (2, 3)),
        ((0, 3), (1, 3)),
    ):
        x = whole(rng, shape, dtype)
        extra = len(shape) - len(wanted)
        axes = (*range(extra), *(at + extra for at, size in enumerate(wanted) if size == 1))
        yield [x, indices(*wanted)], {}, exact(x).sum(axes).reshape(wanted)


REDUCED = (
    ((), ()),
    ((3,), (0,)),
    ((2, 3, 4), (1, -1)),
    ((2, 3), ()),
    ((0, 3), (0,)),
    ((2, 0), (0, 1)),
)


def total(dtype, rng):
    for shape, axes in REDUCED:
        x = whole(rng, shape, dtype)
        for keep in (False, True):
            expected = exact(x).sum(axes, keepdims=keep, dtype=exact(x).dtype)
            yield [x, indices(*axes)], {"keep_dims": keep}, expected
    x = whole(rng, (2, 3), dtype)
    yield [x, np.int64(-1)], {}, exact(x).sum(-1, dtype=exact(x).dtype)


def mean(dtype, rng):
    for shape, axes in REDUCED:
        x = whole(rng, shape, dtype)
        count = int(np.prod([shape[axis] for axis in axes]))
        if not count and dtype not in dtypes.FLOATS:
            continue
        with np.errstate(all="ignore"):
            expected = exact(x).sum(axes, keepdims=True, dtype=exact(x).dtype) / np.float64(count)
        yield (
            [x, indices(*axes)],
            {"keep_dims": True},
            np.trunc(expected) if dtype.kind in "iu" else expected,
        )
    if dtype.kind in "iu":  # more elements than the smallest type can count, and its lowest number
        yield (
            [np.ones(300, dtype), indices(0)],
            {},
            np.int64(np.ones(300, dtype).sum(dtype=dtype) / 300),
        )
        low = np.array([np.iinfo(dtype).min, 0, 0], dtype)
        yield [low, indices(0)], {}, np.array(-(-int(low[0]) // 3), dtype)


def spread(dtype, rng):
    for shape, axes, keep in (
        ((2, 3), (1,), False),
        ((2, 3), (0,), True),
        ((), (), False),
        ((2, 3), (), False),
    ):
        small = tuple(1 if at in axes else size for at, size in enumerate(shape))
        g = numbers(
            rng, small if keep else [s for at, s in enumerate(shape) if at not in axes], dtype
        )
        for divided in (False, True) if dtype in dtypes.FLOATS else (False,):
            count = int(np.prod([shape[axis] for axis in axes])) if divided else 1
            expected = exact(g).reshape(small) / count if divided else g.reshape(small)
            given = [g, indices(*axes), indices(*shape)]
            yield given, {"mean": divided}, np.broadcast_to(expected, shape)


def l2_loss(dtype, rng):
    for shape in SHAPES:
        x = whole(rng, shape, dtype)
        yield [x], {}, np.square(exact(x)).sum() / 2


def arg_max(dtype, rng):
    for shape, axis in (((4,), 0), ((2, 3), 1), ((2, 3), -2), ((0, 3), 1)):
        x = numbers(rng, shape, dtype)
        for kind in (np.int32, np.int64):
            yield [x, np.int32(axis)], {"output_type": kind}, np.argmax(exact(x), axis).astype(kind)


def layouts(shape):
    return (("NHWC", shape), ("NCHW", (shape[0], shape[-1], *shape[1:-1])))


def bias_add(dtype, rng):
    for channels in ((2, 5, 4, 3), (2, 3), (1, 2, 3), (0, 2, 3), (2, 2, 2, 2, 0)):
        for layout, shape in layouts(channels):
            x, bias = numbers(rng, shape, dtype), numbers(rng, channels[-1:], dtype)
            along = bias if layout == "NHWC" else bias.reshape(-1, *[1] * (len(shape) - 2))
            yield [x, bias], {"data_format": layout}, exact(x) + exact(along)


def bias_add_grad(dtype, rng):
    for channels in ((2, 3, 2, 3), (2, 3), (0, 2, 3)):
        for layout, shape in layouts(channels):
            g = whole(rng, shape, dtype)
            at = len(shape) - 1 if layout == "NHWC" else 1
            axes = tuple(axis for axis in range(len(shape)) if axis != at)
            yield [g], {"data_format": layout}, exact(g).sum(axes, dtype=exact(g).dtype)


def shares(x):
    raised = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return raised / raised.sum(-1, keepdims=True)


def softmax(formula):
    def cases(dtype, rng):
        for shape in ((3,), (2, 5), (0, 4), (3, 0), (2, 2, 3)):
            x = numbers(rng, shape, dtype)
            yield [x], {}, formula(shares(exact(x)))
        hard = np.array([[1.0, 400.0, -300.0], [np.nan, 1.0, 2.0], [-np.inf, 0.0, 0.0]]).astype(
            dtype
        )
        yield [hard], {}, formula(shares(exact(hard)))

    return cases


def cross_entropy(dtype, rng):
    for first, second in (
        ((3, 4), (3, 4)),
        ((1, 4), (3, 4)),
        ((3, 4), (1, 4)),
        ((3, 1), (3, 4)),
        ((0, 2), (0, 2)),
    ):
        logits, labels = (
            numbers(rng, first, dtype),
            shares(numbers(rng, second, np.dtype(float))).astype(dtype),
        )
        whole_logits = np.broadcast_to(exact(logits), np.broadcast_shapes(first, second))
        loss = -(exact(labels) * np.log(shares(whole_logits))).sum(-1)
        yield [logits, labels], {}, (loss, shares(whole_logits) - exact(labels))


def a_range(dtype, rng):
    for start, limit, delta in ((0, 5, 1), (2, 9, 3), (3, 3, 1), (0, 100, 7)):
        yield (
            [np.array(each, dtype) for each in (start, limit, delta)],
            {},
            np.arange(start, limit, delta),
        )
    if dtype.kind != "u":
        yield [np.array(each, dtype) for each in (5, -4, -2)], {}, np.arange(5, -4, -2)
    if dtype in dtypes.FLOATS:
        yield [np.array(each, dtype) for each in (0, 1, 0.25)], {}, np.arange(0, 1, 0.25)


def convolution(name, kind, depthwise):
    def cases(dtype, rng):
        for _ in range(4):
            case = convolutions.random_case(
                rng, depthwise=depthwise, dtype="half" if dtype == np.float16 else dtype.name
            )
            data = convolutions.whole_numbers(case, rng)
            x, f, g = data.x, data.f, data.g
            given = {
                "forward": [x, f],
                "input": [indices(*case.input_shape), f, g],
                "filter": [x, indices(*case.filter_shape), g],
            }[kind]
            _, settings = convolutions.door_settings(case, "raw")
            yield given, settings, convolutions.run(case, kind, data, "reference")
            again = computed(name, given, **settings)[0]
            assert same_bits(again, convolutions.run(case, kind, data, "raw"))

    return cases


CASES = {
    "Add": binary(np.add),
    "Subtract": binary(np.subtract),
    "Multiply": binary(np.multiply),
    "Div": binary(quotient, divisor=True),
    "Equal": binary(lambda x, y: x == y),
    "AddN": add_n,
    "Negate": unary(np.negative),
    "Square": unary(np.square),
    "Sqrt": unary(np.sqrt, positive=True),
    "Exp": unary(np.exp),
    "Log": unary(np.log, positive=True),
    "Tanh": unary(np.tanh),
    "Sigmoid": unary(lambda x: 1 / (1 + np.exp(-x))),
    "Relu": unary(lambda x: np.maximum(x, x.dtype.type(0))),
    "ReluGrad": lambda dtype, rng: (
        ([g, x], {}, exact(g) * (x > 0))
        for g, x in ([numbers(rng, shape, dtype) for _ in range(2)] for shape in SHAPES)
    ),
    "MatMul": matmul,
    "Shape": shape_of,
    "Reshape": reshape,
    "Transpose": transpose,
    "InvertPermutation": inverse,
    "Cast": cast,
    "OneHot": one_hot,
    "BroadcastTo": broadcast_to,
    "SumToShape": sum_to_shape,
    "Sum": total,
    "Mean": mean,
    "SpreadReduced": spread,
    "L2Loss": l2_loss,
    "ArgMax": arg_max,
    "BiasAdd": bias_add,
    "BiasAddGrad": bias_add_grad,
    "Softmax": softmax(lambda y: y),
    "LogSoftmax": softmax(np.log),
    "SoftmaxCrossEntropyWithLogits": cross_entropy,
    "MaxPool": max_pool,
    "MaxPoolGrad": max_pool_grad,
    "MaxPoolGradGrad": max_pool_grad_grad,
    "Range": a_range,
    **{
        base + suffix: convolution(base + suffix, kind, base != "Conv2D")
        for base in ("Conv2D", "DepthwiseConv2dNative")
        for suffix, kind in (
            ("", "forward"),
            ("BackpropInput", "input"),
            ("BackpropFilter", "filter"),
        )
    },
}
ELSEWHERE = {
    "Const": "test_classes.py",
    "Placeholder": "every test",
    "Variable": "test_sessions.py",
    "Assign": "test_sessions.py",
    "ApplyGradientDescent": "test_sessions.py",
    "RandomNormal": "test_random.py",
    "RandomUniform": "test_random.py",
}


def allowed(row):
    """Return the dtypes of a row's data: of the inputs that must agree, else of the first."""
    pins = [pin for pin in row.inputs if pin.same] or row.inputs[:1]
    return sorted(pins[0].allowed, key=str)


def test_every_row_has_cases():
    assert CASES.keys() | ELSEWHERE.keys() == TABLE.keys() and not CASES.keys() & ELSEWHERE.keys()


@pytest.mark.parametrize("name", CASES)
def test_an_op_computes_what_it_says_for_every_dtype(name, checked):
    for dtype in allowed(TABLE[name]):
        rng = np.random.default_rng(len(name))
        with np.errstate(all="ignore"):
            given = list(CASES[name](dtype, rng))
        assert given
        for inputs, attrs, expected in given:
            before = [np.array(each, copy=True) for each in inputs if not isinstance(each, list)]
            results = computed(name, inputs, **attrs)
            if expected is None:
                expected = inputs[0]
            expected = expected if isinstance(expected, tuple) else (expected,)
            for got, wanted in zip(results, expected, strict=True):
                close(got, wanted, result_type(name, dtype, attrs))
            for array, kept in zip(
                [e for e in inputs if not isinstance(e, list)], before, strict=True
            ):
                assert same_bits(np.asarray(array), kept), "an input was written to"
            checked["ops of graphs"] += 1


def result_type(name, dtype, attrs):
    for attr in ("DstT", "out_type", "output_type"):
        if attr in attrs:
            return np.dtype(attrs[attr])
    return np.dtype(bool) if name == "Equal" else dtype


def test_a_mean_of_many_halves_is_spread_without_overflow():
    g, count = np.full((), 1000.0, np.float16), 100_000
    (found,) = computed("SpreadReduced", [g, indices(0), indices(count)], mean=True)
    assert found[0] == np.float16(0.01)


def test_graph_convolutions_are_the_eager_ones():
    """The table's cases above compare bits; here the words of the two doors stay together."""
    assert {name for name in CASES if "Conv" in name} == {
        name for name in dir(convgrad.raw_ops) if "onv2" in name and not name.endswith("V2")
    }


@pytest.mark.parametrize("op", ["MaxPool", "MaxPoolGrad", "MaxPoolGradGrad"])
def test_windows_far_larger_than_the_image_take_no_time(op):
    """Every tap of the window was walked, and nearly none of them meets a cell: this never ended."""
    x = numbers(np.random.default_rng(0), (1, 4, 5, 2), np.dtype("float32"))
    y = np.broadcast_to(x.max((1, 2), keepdims=True), (1, 2, 5, 2)).copy()
    inputs = {"MaxPool": [x], "MaxPoolGrad": [x, y, y], "MaxPoolGradGrad": [x, y, x]}[op]
    found = [
        computed(op, inputs, ksize=[1, size, size, 1], strides=[1, 2, 1, 1], padding="SAME")
        for size in (20, 2**40)
    ]
    assert same_bits(found[0][0], found[1][0])
