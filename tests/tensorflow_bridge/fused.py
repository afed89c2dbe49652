"""What grappler makes of convolutions and their neighbours after `install()`: parts of `installed`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as eager_context
from tensorflow.python.framework import op_def_library

from convgrad._bridges.tensorflow import kernels
from tensorflow_bridge.running import bits

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 9, 8, 8)).astype(np.float32)
DENSE = RNG.standard_normal((3, 3, 8, 16)).astype(np.float32)
DEEP = RNG.standard_normal((3, 3, 8, 2)).astype(np.float32)
ROWS = RNG.standard_normal((4, 16)).astype(np.float32)
ROWS[3] = ROWS[3] ** 2 + 0.5
MORE = RNG.standard_normal((2, 9, 8, 16)).astype(np.float32)
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda u: u,
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "elu": tf.nn.elu,
    "leaky": lambda u: tf.nn.leaky_relu(u, 0.3),
    "larger": lambda u: tf.maximum(u * 0.3, u),
    "swish": lambda u: u * tf.sigmoid(u),
    "hardswish": lambda u: u * tf.nn.relu6(u + 3) * 0.16666667,
    "mish": lambda u: u * tf.tanh(tf.math.softplus(u)),
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
}
EXACT = ("none", "relu", "relu6", "leaky", "larger")


def conv(x: Any) -> Any:
    return tf.nn.conv2d(x, tf.cast(DENSE, x.dtype), 1, "SAME")


def deep(x: Any) -> Any:
    return tf.nn.depthwise_conv2d(x, tf.cast(DEEP, x.dtype), [1] * 4, "SAME")


def biased(y: Any) -> Any:
    return tf.nn.bias_add(y, tf.cast(ROWS[0], y.dtype))


def normalized(y: Any) -> Any:
    scale, offset, mean, variance = ROWS
    return tf.compat.v1.nn.fused_batch_norm(
        y, scale, offset, mean, variance, epsilon=0.01, is_training=False
    )[0]


def planes(x: Any) -> Any:
    y = tf.nn.conv2d(tf.transpose(x, [0, 3, 1, 2]), DENSE, 1, "SAME", data_format="NCHW")
    return tf.nn.relu(tf.nn.bias_add(y, ROWS[0], data_format="NCHW"))


def padded(x: Any) -> Any:
    more = tf.pad(x, [[0, 0], [2, 1], [1, 2], [0, 0]])
    return tf.nn.relu(biased(tf.nn.conv2d(more, DENSE, 2, "VALID")))


def squeezed(x: Any) -> Any:
    return biased(tf.squeeze(conv(x[:, :1]), [1]))


def line(x: Any) -> Any:
    return tf.nn.relu(biased(tf.nn.conv1d(x[:, 0], DENSE[0], 1, "SAME")))


def perceptron(x: Any) -> Any:
    y = tf.nn.relu(biased(conv(x)))
    return tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.reshape(y, (-1, 16)), ROWS.T), ROWS[:, 0]))


def forms() -> dict[str, tuple[Callable[[Any], Any], bool]]:
    """By name: a function of an image, and whether it is exact whatever computes the part behind the convolution."""
    found: dict[str, tuple[Callable[[Any], Any], bool]] = {}
    for name, act in ACTIVATIONS.items():
        exact = name in EXACT
        found[f"bias {name}"] = (lambda x, act=act: act(biased(conv(x)))), exact
        found[f"depthwise bias {name}"] = (lambda x, act=act: act(biased(deep(x)))), exact
        found[f"norm {name}"] = (lambda x, act=act: act(normalized(conv(x)))), False
        found[f"depthwise norm {name}"] = (lambda x, act=act: act(normalized(deep(x)))), False
        found[f"bias add {name}"] = (lambda x, act=act: act(biased(conv(x)) + _like(x))), exact
        found[f"alone {name}"] = (lambda x, act=act: act(conv(x))), exact
    return found | {
        "planes": (planes, True),
        "padded": (padded, True),
        "squeezed": (squeezed, True),
        "line": (line, True),
    }


def _like(x: Any) -> Any:
    return tf.concat([x, x + 1], 3)


def traced(function: Any, x: Any) -> tuple[Any, list[Any]]:
    """Return what a graph gives, and its nodes after all rewriting."""
    context = eager_context.context()
    context.enable_run_metadata()
    made = function(x)
    metadata = context.export_run_metadata()
    context.disable_run_metadata()
    return made, [
        node
        for each in metadata.function_graphs
        for graph in (each.post_optimization_graph, *each.partition_graphs)
        for node in graph.node
    ]


def counted(run: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a call gives, and how many kinds of calls our kernels have met in it."""
    found = kernels.ready()
    assert found is not None
    found.table.clear()
    return run(), len(found.table)


def fusions() -> dict[str, Any]:
    """Each form with known sizes, others and none at all: by our kernels, near what the ops give one by one."""
    wrong, names, seen = [], set(), set()
    for name, (call, exact) in forms().items():
        function = tf.function(call, autograph=False)
        of_any_size = tf.function(
            call, autograph=False, input_signature=[tf.TensorSpec([None] * 3 + [8])]
        )
        (_, nodes), records = counted(lambda f=function: traced(f, tf.constant(X)))
        for node in nodes:
            if "onv" in node.op:
                names.add(node.op)
                seen.add("+".join(each.decode() for each in node.attr["fused_ops"].list.s))
        if not records:
            wrong.append(f"{name}: not by our kernels")
        for image in (X, X[:1, :5], X[:0]):
            wanted = np.asarray(call(tf.constant(image)))
            (first, second), more = counted(
                lambda image=image, both=(function, of_any_size): [
                    np.asarray(each(tf.constant(image))) for each in both
                ]
            )
            allowed = 0 if exact else 4e-6 * max(1, float(np.max(np.abs(wanted), initial=0)))
            if not np.allclose(first, wanted, rtol=0, atol=allowed):
                off = float(np.max(np.abs(first - wanted)))
                wrong.append(f"{name}, {image.shape}: off by {off:.1e}")
            if not np.allclose(second, wanted, rtol=0, atol=allowed):
                wrong.append(f"{name}, {image.shape}: off where sizes are not known")
            again = np.asarray(function(tf.constant(image)))
            if bits(first) != bits(again) or (not more and image.size):
                wrong.append(f"{name}, {image.shape}: other bits again, or {more} records")
    return {"wrong": wrong, "names": sorted(names), "fused": sorted(seen - {""})}


def rest_of_remapping() -> list[str]:
    """What is not ours is fused as before."""
    _, nodes = traced(tf.function(perceptron, autograph=False), tf.constant(X))
    return sorted({node.op for node in nodes if "MatMul" in node.op or node.op == "BiasAdd"})


def ways() -> dict[str, Any]:
    """Other ways a graph is run: they have options of their own for grappler."""
    v1 = tf.compat.v1
    call = forms()["bias relu"][0]
    wanted = bits(call(tf.constant(X)))

    def session(**options: Any) -> Any:
        with tf.Graph().as_default():
            image = v1.placeholder(tf.float32, [None, 9, 8, 8])
            result = call(image)
            with v1.Session(**options) as opened:
                return opened.run(result, {image: X})

    def dataset() -> Any:
        return next(iter(tf.data.Dataset.from_tensors(X).map(call)))

    def frozen() -> Any:
        graph = tf.function(call).get_concrete_function(tf.TensorSpec(X.shape)).graph
        text = graph.as_graph_def().SerializeToString()
        imported = v1.wrap_function(
            lambda: tf.graph_util.import_graph_def(v1.GraphDef.FromString(text), name=""), []
        )
        return imported.prune(graph.inputs[0].name, graph.outputs[0].name)(tf.constant(X))

    found = {}
    for name, way in {
        "session": session,
        "session with options": lambda: session(config=v1.ConfigProto(log_device_placement=False)),
        "session with threads": lambda: session(
            config=v1.ConfigProto(inter_op_parallelism_threads=2)
        ),
        "tf.data": dataset,
        "from a file": frozen,
    }.items():
        made, records = counted(way)
        found[name] = [bits(made) == wanted, records]
    return found


def refusals() -> list[str]:
    """Nodes no grappler makes: refused with words, never computed wrongly."""
    found = []
    for fused, args in (
        (["BiasAdd", "Selu"], [ROWS[0]]),
        (["Relu", "BiasAdd"], [ROWS[0]]),
        (["BiasAdd"], [ROWS[0][:3]]),
        (["BiasAdd", "Add"], [ROWS[0], MORE[:1]]),
        (["FusedBatchNorm"], [*ROWS[:3], ROWS[3][:5]]),
        (["FusedBatchNorm", "Add"], [*ROWS, MORE]),
        (["BiasAdd"], [ROWS[0], ROWS[0]]),
        (["BiasAdd"], [ROWS[0].astype(np.float64)]),
    ):

        def node(fused: Any, args: Any) -> Any:
            given = [tf.constant(each) for each in args]
            return op_def_library._apply_op_helper(
                "_FusedConv2D",
                name="node",
                input=X,
                filter=DENSE,
                args=given,
                host_args=[],
                num_args=len(given),
                strides=[1] * 4,
                padding="SAME",
                explicit_paddings=[],
                data_format="NHWC",
                filter_format="HWIO",
                dilations=[1] * 4,
                use_cudnn_on_gpu=True,
                epsilon=0.001,
                leakyrelu_alpha=0.2,
                fused_ops=fused,
            )[3][0]

        try:
            tf.function(partial(node, fused, args), autograph=False)()
            found.append(f"{fused}: computed")
        except tf.errors.InvalidArgumentError as error:
            found.append(next(line for line in str(error).splitlines() if "Conv2D: " in line))
    return found


def at_once() -> list[str]:
    """Graphs with other numbers share a record: each call has memory of its own for what follows from them."""
    found = kernels.ready()
    assert found is not None
    functions = []
    for factor in (1.0, 2.0, 3.0):
        rows = [tf.constant(factor * each) for each in ROWS]

        def call(x: Any, rows: Any = rows) -> Any:
            made = tf.compat.v1.nn.fused_batch_norm(conv(x), *rows, epsilon=0.01, is_training=False)
            return tf.nn.relu(made[0])

        functions.append(tf.function(call, autograph=False))
    found.table.clear()
    wanted = [bits(each(tf.constant(X))) for each in functions]
    wrong = [] if len(found.table) == 1 and len(set(wanted)) == 3 else ["not what is meant"]

    def work(at: int) -> None:
        made = (bits(functions[at](tf.constant(X))) for _ in range(30))
        wrong.extend(f"other bits of {at}" for each in made if each != wanted[at])

    workers = [threading.Thread(target=work, args=(at % 3,)) for at in range(6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return wrong


PARTS = (fusions, rest_of_remapping, ways, refusals, at_once)
