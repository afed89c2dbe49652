"""Random graphs with partly known placeholders: what is inferred of every tensor is true of its array."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from convgrad._apps.graph.dtypes import FLOATS
from convgrad.graph import ClientSession, Scope, ops
from graphs import agrees, same_bits

DTYPES = [np.dtype(name) for name in ("float32", "float64", "int32", "float16")]


class Builder:
    """A graph that grows: every tensor comes with its array, so that only steps that can run are added."""

    def __init__(self, data):
        self.data, self.scope = data, Scope.new_root_scope()
        self.feeds, self.tensors = {}, []

    def pick(self, values, label=""):
        return self.data.draw(st.sampled_from(list(values)), label=label)

    def source(self):
        rank = self.data.draw(st.integers(0, 4))
        shape = tuple(self.pick((0, 1, 1, 2, 3)) for _ in range(rank))
        dtype = self.pick(DTYPES)
        array = (np.arange(int(np.prod(shape))) % 5 - 1).astype(dtype).reshape(shape)
        how = self.pick(("constant", "sizes", "some", "rank", "nothing"))
        if how == "constant":
            tensor = ops.Const(self.scope, array).output
        else:
            known = {"sizes": shape, "rank": (None,) * rank, "nothing": None}.get(
                how, tuple(self.pick((None, size)) for size in shape)
            )
            tensor = ops.Placeholder(self.scope, dtype, known).output
            self.feeds[tensor] = array
        self.tensors.append((tensor, array))

    def vector(self, values):
        """Return a small vector: known, or fed, with a known count or without."""
        array = np.array(values, np.int32).reshape(-1)
        how = self.pick(("constant", "count", "nothing"))
        if how == "constant":
            return ops.Const(self.scope, array)
        tensor = ops.Placeholder(self.scope, np.int32, [len(array)] if how == "count" else None)
        self.feeds[tensor.output] = array
        return tensor

    def step(self):
        x, a = self.pick(self.tensors)
        name = self.pick(STEPS)
        op = STEPS[name](self, x, a)
        if op is not None:
            for output in op.operation.outputs:
                (array,) = ClientSession(self.scope).run([output], self.feeds)
                self.tensors.append((output, array))


def binary(name):
    def step(self, x, a):
        fitting = [
            y for y, b in self.tensors if b.dtype == a.dtype and broadcasts(a.shape, b.shape)
        ]
        return getattr(ops, name)(self.scope, x, self.pick(fitting))

    return step


def broadcasts(one, other):
    try:
        return np.prod(np.broadcast_shapes(one, other)) < 500
    except ValueError:
        return False


def unary(name):
    return lambda self, x, a: getattr(ops, name)(self.scope, x) if a.dtype in FLOATS else None


def reshape(self, x, a):
    sizes = self.pick([(a.size,), (1, a.size), a.shape, (a.size, 1, 1)])
    if a.size and self.data.draw(st.booleans()):
        hole = self.data.draw(st.integers(0, max(0, len(sizes) - 1)))
        sizes = tuple(-1 if at == hole else size for at, size in enumerate(sizes))
    return ops.Reshape(self.scope, x, self.vector(sizes))


def reshape_to_shape(self, x, a):
    """Shapes that are asked of tensors travel as values."""
    fitting = [y for y, b in self.tensors if b.size == a.size]
    return ops.Reshape(self.scope, x, ops.Shape(self.scope, self.pick(fitting)))


def reduce(name):
    def step(self, x, a):
        if a.dtype.kind in "iu" and not a.size:
            return None
        axes = (
            self.data.draw(st.lists(st.sampled_from(range(a.ndim)), unique=True)) if a.ndim else []
        )
        axes = [axis - a.ndim if self.data.draw(st.booleans()) else axis for axis in axes]
        return getattr(ops, name)(
            self.scope, x, self.vector(axes), keep_dims=self.data.draw(st.booleans())
        )

    return step


def transpose(self, x, a):
    return ops.Transpose(self.scope, x, self.vector(self.data.draw(st.permutations(range(a.ndim)))))


def broadcast_to(self, x, a):
    shape = (self.pick((1, 2)), *(self.pick((1, 3)) if size == 1 else size for size in a.shape))
    return ops.BroadcastTo(self.scope, x, self.vector(shape)) if np.prod(shape) < 500 else None


def sum_to(self, x, a):
    shape = [self.pick((1, size)) for size in a.shape][self.pick((0, 1)) if a.ndim else 0 :]
    return ops.SumToShape(self.scope, x, self.vector(shape))


def matmul(self, x, a):
    if a.ndim != 2:
        return None
    for y, b in reversed(self.tensors):
        for turned_a in (False, True):
            for turned_b in (False, True):
                if (
                    b.dtype == a.dtype
                    and b.ndim == 2
                    and a.shape[0 if turned_a else 1] == b.shape[turned_b]
                ):
                    return ops.MatMul(self.scope, x, y, transpose_a=turned_a, transpose_b=turned_b)
    return None


def arg_max(self, x, a):
    axes = [axis for axis in range(a.ndim) if a.shape[axis]]
    return ops.ArgMax(self.scope, x, self.pick(axes)) if axes else None


def one_hot(self, x, a):
    if a.dtype != np.int32 or a.size > 100:
        return None
    return ops.OneHot(
        self.scope, x, self.pick((0, 3)), 1.0, 0.0, axis=self.pick((-1, *range(a.ndim + 1)))
    )


def pool(self, x, a):
    if a.ndim != 4:
        return None
    layout, padding = self.pick(("NHWC", "NCHW")), self.pick(("SAME", "VALID"))
    rows = 1 if layout == "NHWC" else 2
    if padding == "VALID" and min(a.shape[rows : rows + 2]) < 2:
        return None
    sizes = [2 if rows <= at < rows + 2 else 1 for at in range(4)]
    return ops.MaxPool(self.scope, x, sizes, sizes, padding, data_format=layout)


def convolve(self, x, a):
    if a.ndim != 4 or a.dtype not in FLOATS:
        return None
    layout = self.pick(("NHWC", "NCHW"))
    channels = a.shape[3 if layout == "NHWC" else 1]
    if not channels:
        return None
    taps = ops.Const(self.scope, np.ones((2, 2, channels, 2), a.dtype))
    kind = self.pick((ops.Conv2D, ops.DepthwiseConv2dNative))
    return kind(self.scope, x, taps, [1, 1, 1, 1], "SAME", data_format=layout)


def bias(self, x, a):
    if a.ndim < 2:
        return None
    layout = self.pick(("NHWC", "NCHW"))
    count = a.shape[-1 if layout == "NHWC" else 1]
    biases = [y for y, b in self.tensors if b.shape == (count,) and b.dtype == a.dtype]
    biases.append(ops.Const(self.scope, np.ones(count, a.dtype)).output)
    return ops.BiasAdd(self.scope, x, self.pick(biases), data_format=layout)


def softmax(self, x, a):
    return ops.Softmax(self.scope, x) if a.ndim and a.dtype in FLOATS else None


def entropy(self, x, a):
    if a.ndim != 2 or a.dtype not in FLOATS:
        return None
    fitting = [
        y
        for y, b in self.tensors
        if b.dtype == a.dtype and b.ndim == 2 and broadcasts(a.shape, b.shape)
    ]
    return ops.SoftmaxCrossEntropyWithLogits(self.scope, x, self.pick(fitting))


def added(self, x, a):
    same = [y for y, b in self.tensors if b.dtype == a.dtype and b.shape == a.shape]
    return ops.AddN(
        self.scope, self.data.draw(st.lists(st.sampled_from(same), min_size=1, max_size=3))
    )


def count_up(self, x, a):
    return ops.Range(
        self.scope,
        0,
        ops.Reshape(self.scope, ops.Sum(self.scope, ops.Shape(self.scope, x), [0]), []),
        1,
    )


STEPS = {
    **{name: binary(name) for name in ("Add", "Multiply", "Subtract")},
    **{name: unary(name) for name in ("Tanh", "Sigmoid", "Relu", "Square", "L2Loss")},
    "Cast": lambda self, x, a: ops.Cast(self.scope, x, self.pick(DTYPES)),
    "Shape": lambda self, x, a: ops.Shape(self.scope, x),
    "Reshape": reshape,
    "ReshapeToShape": reshape_to_shape,
    "Sum": reduce("Sum"),
    "Mean": reduce("Mean"),
    "Transpose": transpose,
    "BroadcastTo": broadcast_to,
    "SumToShape": sum_to,
    "MatMul": matmul,
    "ArgMax": arg_max,
    "OneHot": one_hot,
    "MaxPool": pool,
    "Convolve": convolve,
    "BiasAdd": bias,
    "Softmax": softmax,
    "CrossEntropy": entropy,
    "AddN": added,
    "Range": count_up,
}


# Shrinking a graph takes minutes: the first that fails is shown as it was drawn.
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(st.data())
def test_what_is_inferred_is_true(data):
    graph = Builder(data)
    for _ in range(3):
        graph.source()
    for _ in range(data.draw(st.integers(10, 25))):
        graph.step()
    outputs = [output for node in graph.scope.graph.nodes for output in node.outputs]
    arrays = ClientSession(graph.scope).run(outputs, graph.feeds)
    for output, array in zip(outputs, arrays, strict=True):
        agrees(output, array)
    # What was computed alone, when it was made, has the same bits among all others.
    by_tensor = dict(zip(outputs, arrays, strict=True))
    assert all(same_bits(by_tensor[tensor], array) for tensor, array in graph.tensors)
    # And `explain` follows the same sizes from the feeds' shapes.
    said = ClientSession(graph.scope).explain(outputs, graph.feeds)
    for step in said.steps:
        for output, spec in zip(
            graph.scope.graph.by_name[step.node].outputs, step.outputs, strict=True
        ):
            agrees_with(spec, by_tensor[output])


def agrees_with(spec, array):
    shape = spec.shape or (None,) * array.ndim
    assert spec.dtype == array.dtype
    assert len(shape) == array.ndim or spec.shape is None
    assert all(size is None or size == true for size, true in zip(shape, array.shape, strict=True))
