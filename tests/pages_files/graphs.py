"""Graphs that tests of pages and exports share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from convgrad._apps.graph.table import TABLE
from convgrad.graph import ClientSession, Graph, Scope, add_symbolic_gradients, ops

HOSTILE = (
    'quote"',
    "apostrophe'",
    'three"""quotes',
    "three'''quotes",
    "line\nimport os",
    "return\rline",
    "back\\slash\\",
    "trailing\\",
    "*/ int x; /*",
    "??/ trigraph",
    "//",
    "# comment",
    "{braces} %s %(x)d",
    "</svg><script>alert(1)</script>",
    "]]> &amp; <!--",
    "합성곱",
    "été 🎉",
    "\u2028separator\u2029\x85",
    "\u202eright-to-left",
    "nul\x00bell\x07",
    "\ud800 alone",
    "class",
    "lambda",
    "import",
    "match",
    "while",
    "int",
    "auto",
    "operator",
    "np",
    "ops",
    "scope",
    "run",
    "main",
    "root",
    "session",
    "std",
    "l",
    "print",
    "__import__('os').system('false')",
    "__name__",
    "",
    " ",
    "1st",
    "Class",
    "class_1",
    "x" * 300,
)
"""Names a page can give a block, and worse."""


@dataclass
class Case:
    """A graph, and what a run of it needs."""

    scope: Scope
    feeds: dict[str, Any] = field(default_factory=dict)
    initial: dict[str, Any] = field(default_factory=dict)
    fetches: list[str] | None = None

    @property
    def graph(self) -> Graph:
        return self.scope.graph

    def results(self, names: list[str]) -> dict[str, Any]:
        """Run a session here: arrays by the names of outputs."""
        session = ClientSession(self.scope)
        session.set_variables(self.initial)
        by_name = {each.name: each for node in self.graph.nodes for each in node.outputs}
        feeds = {self.graph.by_name[name].outputs[0]: value for name, value in self.feeds.items()}
        return dict(zip(names, session.run([by_name[name] for name in names], feeds), strict=True))


def document_block() -> Case:
    """The block of the document: a depthwise filter gradient of random numbers."""
    scope = Scope.new_root_scope()
    x = ops.RandomNormal(scope.with_op_name("input"), [2, 8, 8, 3], "DT_FLOAT")
    dy = ops.RandomNormal(scope.with_op_name("dy"), [2, 4, 4, 6], "DT_FLOAT", seed=3, seed2=4)
    ops.DepthwiseConv2dNativeBackpropFilter(
        scope.with_op_name("df"), x, [3, 3, 3, 2], dy, [1, 2, 2, 1], "SAME"
    )
    return Case(scope)


def network() -> Case:
    """Three convolutions, a loss, and its gradients with respect to their filters."""
    scope, rng = Scope.new_root_scope(), np.random.default_rng(0)
    x = ops.Placeholder(scope.with_op_name("x"), "float32", [None, 16, 16, 3])
    labels = ops.Placeholder(scope.with_op_name("labels"), "float32", [2, 4])
    hidden: Any = x
    filters = []
    for at, (before, behind) in enumerate([(3, 8), (8, 6), (6, 4)]):
        layer = scope.new_sub_scope(f"layer{at}")
        w = ops.Variable(layer.with_op_name("w"), [3, 3, before, behind], "float32")
        filters.append(w)
        hidden = ops.Conv2D(layer.with_op_name("conv"), hidden, w, [1, 2, 2, 1], "SAME")
        hidden = ops.Relu(layer, ops.BiasAdd(layer, hidden, np.zeros(behind, np.float32)))
    logits = ops.Mean(scope.with_op_name("logits"), hidden, [1, 2])
    loss = ops.SoftmaxCrossEntropyWithLogits(scope.with_op_name("loss"), logits, labels)
    grads = add_symbolic_gradients(scope, [loss.loss], filters)
    return Case(
        scope,
        {
            "x": rng.standard_normal((2, 16, 16, 3)).astype(np.float32),
            "labels": np.eye(4, dtype=np.float32)[[1, 3]],
        },
        {
            w.name: rng.standard_normal(w.operation.specs[0].shape).astype(np.float32)
            for w in filters
        },
        ["loss", "logits:0", *(grad.name for grad in grads)],
    )


def every_op() -> Case:
    """Every op of the table at least once, with attributes that are not the default."""
    scope, rng = Scope.new_root_scope(), np.random.default_rng(1)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    x = ops.Placeholder(scope.with_op_name("x"), "float32", [1, 4, 6, 6])
    nchw: dict[str, Any] = {"data_format": "NCHW"}
    dilated = {**nchw, "dilations": [1, 1, 2, 2]}
    strides, window = [1, 1, 2, 2], [1, 1, 2, 2]
    ones = [1, 1, 1, 1]
    explicit = {"explicit_paddings": [0, 0, 0, 0, 1, 0, 2, 1], **nchw}
    ops.Conv2D(scope, x, normal(3, 3, 4, 2), strides, "EXPLICIT", **explicit)
    y = ops.Conv2D(
        scope,
        x,
        normal(3, 3, 4, 2),
        ones,
        "SAME",
        ops.Conv2D.UseCudnnOnGpu(False).DataFormat("NCHW"),
    )
    ops.Conv2DBackpropInput(scope, [1, 4, 6, 6], normal(3, 3, 4, 2), y, ones, "SAME", **dilated)
    ops.Conv2DBackpropFilter(scope, x, [3, 3, 4, 2], y, ones, "SAME", **nchw)
    d = ops.DepthwiseConv2dNative(scope, x, normal(3, 3, 4, 2), ones, "SAME", **dilated)
    ops.DepthwiseConv2dNativeBackpropInput(
        scope, [1, 4, 6, 6], normal(3, 3, 4, 2), d, ones, "SAME", **dilated
    )
    ops.DepthwiseConv2dNativeBackpropFilter(scope, x, [3, 3, 4, 2], d, ones, "SAME", **dilated)
    pool = ops.MaxPool(scope, x, window, strides, "VALID", **nchw)
    back = ops.MaxPoolGrad(scope, x, pool, pool, window, strides, "VALID", **nchw)
    ops.MaxPoolGradGrad(scope, x, pool, back, window, strides, "VALID", **nchw)
    biased = ops.BiasAdd(scope, x, normal(4), **nchw)
    ops.BiasAddGrad(scope, biased, data_format="NCHW")
    relu = ops.Relu(scope, biased)
    ops.ReluGrad(scope, relu, relu)

    u = ops.RandomUniform(scope, [3, 5], "DT_DOUBLE", seed2=9)
    n = ops.RandomNormal(scope, [3, 5], "DT_HALF")
    ops.Sigmoid(scope, ops.Tanh(scope, ops.Negate(scope, ops.Square(scope, n))))
    ops.Exp(scope, ops.Log(scope, ops.Sqrt(scope, u)))
    ops.Div(scope, ops.Subtract(scope, ops.Add(scope, u, u), ops.Multiply(scope, u, 0.25)), u)
    ops.AddN(scope, [u, u, u])
    ops.AddN(scope, [n])
    ops.Equal(scope, u, u)
    ops.MatMul(scope, u, u, transpose_a=True)
    ops.Cast(scope, ops.Cast(scope, u, "DT_BFLOAT16"), "DT_UINT8")
    ops.Sum(scope, u, [0], keep_dims=True)
    ops.SpreadReduced(scope, ops.Mean(scope, u, 1), [1], [3, 5], mean=True)
    ops.SumToShape(scope, ops.BroadcastTo(scope, normal(1, 5), [3, 5]), [5])
    ops.L2Loss(scope, u)
    ops.ArgMax(scope, u, 1, output_type="int32")
    ops.OneHot(scope, [0, 2, 1], 4, 1.5, -0.5, axis=0)
    ops.Softmax(scope, u)
    ops.LogSoftmax(scope, u)
    ops.SoftmaxCrossEntropyWithLogits(scope, normal(2, 3), np.eye(2, 3, dtype=np.float32))
    r = ops.Range(scope, 1, 9, 2)
    shape = ops.Shape(scope, ops.Reshape(scope, r, [2, -1]), out_type="DT_INT64")
    ops.Transpose(scope, ops.Reshape(scope, r, shape), ops.InvertPermutation(scope, [1, 0]))

    v = ops.Variable(scope.with_op_name("v"), [2, 2], "float32", shared_name="s", container="c")
    w = ops.Variable(scope.with_op_name("w"), [2], "bfloat16")
    ops.ApplyGradientDescent(scope, v, 0.5, normal(2, 2), use_locking=True)
    changed = ops.Assign(
        scope.with_op_name("w/first"), w, np.array([1, 2], w.operation.specs[0].dtype)
    )
    changed.operation.attrs["use_locking"] = False
    for value in odd_constants():
        ops.Const(scope, value)
    assert {node.type for node in scope.graph.nodes} == set(TABLE)
    return Case(scope, {"x": normal(1, 4, 6, 6)}, {"v": normal(2, 2)})


def odd_constants() -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Numbers whose bits are easily lost."""
    nan = np.array([0x7FC00001, 0xFF800000, 0x7FA00000], np.uint32).view(np.float32)
    tiny = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3]
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    return [
        nan,
        np.array(tiny),
        np.array([0.1, -0.0, 1e-45, 3.4028235e38, 16777217, 1 / 3], np.float32),
        np.array([0.1, -0.0, 6e-8, 65504, 1 / 3], np.float16),
        np.array([0.1, -0.0, 9e-41, 3e38, 1 / 3], np.float32).astype(bfloat16),
        np.arange(-50, 50, dtype=np.float32).astype(bfloat16).reshape(4, 25),
        np.arange(0x10000, dtype=np.uint16)[::601].view(np.float16).reshape(1, -1),
        np.arange(100, dtype=np.int64) << 50,
        np.array([-(2**63), 2**63 - 1]),
        np.array([0, 2**64 - 1], np.uint64),
        np.array([[True, False]]),
        np.array(-128, np.int8),
        np.zeros((0, 3), np.float16),
        np.zeros((2, 0), bfloat16),
    ]


def rename(case: Case, names: tuple[str, ...]) -> Case:
    """Give the nodes of a graph hostile names, as a page may; those left over keep theirs."""
    graph = case.graph
    new = {node.name: name for node, name in zip(graph.nodes, names, strict=False)}
    for node in graph.nodes:
        node.name = new.get(node.name, node.name)
    graph.by_name = {node.name: node for node in graph.nodes}
    for values in (case.feeds, case.initial):
        for old in list(values):
            values[new.get(old, old)] = values.pop(old)
    case.fetches = None
    return case
