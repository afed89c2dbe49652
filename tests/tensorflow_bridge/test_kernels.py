"""Compiled kernels and their table: records, misses, errors, switches, more kinds of calls than are kept."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
import convgrad.tensorflow as ours
from convgrad._base import config
from convgrad._base.dtypes import DOUBLE, FLOAT
from convgrad._bridges.tensorflow import kernel, kernels, recipe
from convgrad._runtime import records
from tensorflow_bridge import children

RNG = np.random.default_rng(18)


def made() -> kernels.Kernels:
    found = kernels.kernels()
    assert found is not None, "this TensorFlow has what kernels need"
    return found


def pair(*image: int, taps: tuple[int, ...] = (3, 3, 4, 5)) -> tuple[Any, Any]:
    return RNG.normal(size=image).astype("f"), RNG.normal(size=taps).astype("f")


def test_a_record_per_kind_of_call() -> None:
    table = made().table
    table.clear()
    x, f = map(tf.constant, pair(2, 9, 8, 4))
    for _ in range(3):
        ours.conv2d(x, f, 1, "SAME")
        assert len(table) == 1
    ours.conv2d(x, f, 2, "SAME")
    ours.conv2d(x[:1], f, 2, "SAME")
    ours.conv2d_backprop_input([2, 9, 8, 4], f, ours.conv2d(x, f, 1, "SAME"), 1, "SAME")
    assert len(table) == 4
    ours.conv2d(x[:0], f, 1, "SAME")  # nothing to add up, nothing to remember
    with pytest.raises(convgrad.errors.ArgumentError):
        ours.conv2d(x, f[:, :, :3], 1, "SAME")
    assert len(table) == 4


def test_the_layout_of_keys() -> None:
    """Words do not overlap: ops with values have at most three other inputs in front of them."""
    ends = [*kernel.KEY.values(), kernel.KEY_WORDS]
    assert ends == sorted(set(ends)) and ends[0] == 0
    assert kernel.KEY_WORDS - kernel.KEY["VALUES"] >= 2 + kernel.MOST_VALUES
    assert kernel.KEY["INPUTS"] + kernel.MOST_INPUTS * kernel.TENSOR_WORDS <= kernel.KEY_WORDS
    for form in kernel.FORMS.values():
        if form.values != kernel.ABSENT:
            end = kernel.KEY["INPUTS"] + form.inputs * kernel.TENSOR_WORDS
            assert end <= kernel.KEY["VALUES"]
        assert form.inputs <= kernel.MOST_INPUTS


def test_the_words_of_a_recipe() -> None:
    """Places are numbered through: inputs, results, temporaries, constants."""
    made = recipe.Recipe()
    places = [
        *(made.result(FLOAT, (2, 3, 4, 5)), made.result(FLOAT, (5,))),
        *(made.temporary(DOUBLE, (6, 5)), made.constant(77), made.constant(88)),
    ]
    assert places == [kernel.MOST_INPUTS + at for at in range(5)]
    assert made.words() == [
        *(3, 2, 2, 0),
        *(4, 1, 2, 3, 4, 5, 0, 0, 0, 0, 480),
        *(1, 1, 5, 0, 0, 0, 0, 0, 0, 0, 20),
        *(2, 2, 6, 5, 0, 0, 0, 0, 0, 0, 240),
        *(77, 88),
    ]
    with pytest.raises(AssertionError):
        made.temporary(FLOAT, (1,))  # its number was given to a constant


def test_a_lack_of_memory_is_told() -> None:
    """A program whose partial sums fit no memory; the handles of the call's tensors are given back all the same."""
    table = made().table
    table.clear()
    x, f = map(tf.constant, pair(1, 7, 6, 4))
    ours.conv2d(x, f, 1, "SAME")
    record, (program,) = table._records[-1]
    hungry = (ctypes.c_int64 * (program.nbytes // 8)).from_buffer_copy(
        (ctypes.c_char * program.nbytes).from_address(program.address)
    )
    hungry[3] = 1 << 53  # partial sums
    record.flags.writeable = True
    record[record == program.address] = ctypes.addressof(hungry)
    raw = tf.function(lambda: ours.conv2d(x, f, 1, "SAME"))
    with pytest.raises(tf.errors.ResourceExhaustedError, match="no memory for the workspaces"):
        raw()
    table.clear()
    assert raw().shape == (1, 7, 6, 5)


@pytest.mark.parametrize("limit", ["MOST", "MOST_BYTES"])
def test_more_kinds_of_calls_than_are_kept(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Records are dropped while other threads run them; the bits stay those of NumPy's calls."""
    monkeypatch.setattr(records, limit, 4 if limit == "MOST" else 6_000)
    table = made().table
    table.clear()
    given = [pair(1, 5 + at, 6, 4) for at in range(12)]
    wanted = [convgrad.conv2d(x, f, 1, "SAME").tobytes() for x, f in given]
    tensors = [(tf.constant(x), tf.constant(f)) for x, f in given]
    wrong: list[Any] = []
    longest = 0

    def work(seed: int) -> None:
        nonlocal longest
        for at in np.random.default_rng(seed).integers(0, len(given), 60):
            y = np.asarray(ours.conv2d(*tensors[at], 1, "SAME"))
            longest = max(longest, len(table))
            if y.tobytes() != wanted[at]:
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and 0 < longest < len(given)


def test_switches_are_heeded() -> None:
    """Inside a block, after it, and by the threads of a graph, which have contexts of their own."""
    x, f = pair(2, 20, 20, 32, taps=(3, 3, 32, 32))
    graph = tf.function(lambda a, b: (ours.conv2d(a, b, 1, "SAME"), ours.conv2d(a, b, 1, "VALID")))
    graph(x, f)

    def bits(how: Any) -> list[bytes]:
        return [np.asarray(each).tobytes() for each in how(x, f)]

    def plain(a: Any, b: Any) -> Any:
        return convgrad.conv2d(a, b, 1, "SAME"), convgrad.conv2d(a, b, 1, "VALID")

    for switches in ({}, {"winograd": "off"}, {"kernels": False}, {}):
        with config.scope(**switches):
            assert bits(graph) == bits(plain), switches


RUN_TIME = [
    (
        "rank",
        lambda x, f: (x[0], f),
        r"conv2d: `input` must be 4-dimensional, got shape \[9, 8, 4\]",
    ),
    (
        "a scalar",
        lambda x, f: (x[0, 0, 0, 0], f),
        r"conv2d: `input` must be 4-dimensional, got shape \[\]",
    ),
    (
        "channels",
        lambda x, f: (x[..., :3], f),
        "`input` depth must be evenly divisible by `filters` depth",
    ),
    ("window", lambda x, f: (x, f[:0]), "must have at least 1 row and 1 column"),
]


@pytest.mark.parametrize(
    "change, words", [row[1:] for row in RUN_TIME], ids=[r[0] for r in RUN_TIME]
)
def test_errors_when_a_graph_is_run(change: Any, words: str) -> None:
    """What was not known when the graph was built is refused by the kernel, with our words."""
    shapeless = tf.TensorSpec(None, tf.float32)
    graph = tf.function(lambda x, f: ours.conv2d(x, f, 1, "SAME"), [shapeless, shapeless])
    x, f = map(tf.constant, pair(2, 9, 8, 4))
    assert graph(x, f).shape == (2, 9, 8, 5)
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        graph(*change(x, f))
    assert graph(x, f).shape == (2, 9, 8, 5)


def test_a_size_vector_that_lies() -> None:
    shapeless = tf.TensorSpec(None, tf.float32)
    graph = tf.function(
        lambda sizes, f, g: ours.conv2d_backprop_input(sizes, f, g, 1, "SAME"),
        [tf.TensorSpec(None, tf.int64), shapeless, shapeless],
    )
    g, f = pair(2, 9, 8, 5)
    assert graph([2, 9, 8, 4], f, g).shape == (2, 9, 8, 4)
    assert graph([9, 8], f, g).shape == (2, 9, 8, 4)
    for sizes in (
        [2, 9, 8],
        [[2, 9, 8, 4]],
        4,
        [],
        [2, -9, 8, 4],
        [2**62] * 4,
        [2, 9, 8, 5],
        range(99),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="conv2d_backprop_input: "):
            graph(tf.constant(sizes, tf.int64), f, g)


MERGED = """
import numpy as np, tensorflow as tf, convgrad.tensorflow
from tensorflow.python.eager import context
convgrad.tensorflow.install()
tf.config.optimizer.set_experimental_options({"remapping": False})  # else grappler fuses a bias first
context.enable_run_metadata()  # before a function is first run
rng = np.random.default_rng(0)
def some(*shape): return tf.constant(rng.normal(size=shape).astype("f"))
x, f, b, g = some(2, 8, 7, 3), some(3, 3, 3, 5), some(5), some(2, 8, 7, 5)
deep = some(3, 3, 5, 5)
pads = [[0, 0], [1, 2], [0, 3], [0, 0]]
def conv(x, f, padding): return convgrad.conv2d(x.numpy(), f.numpy(), 1, padding)
def bias(x, f, b): return tf.nn.bias_add(tf.nn.conv2d(x, f, 1, "SAME"), b)
def padded(x, f): return tf.nn.conv2d(tf.pad(x, pads), f, 1, "VALID")
def deeper(x, f): return tf.nn.conv2d(tf.pad(x, [[0, 1], [1, 1], [0, 0], [1, 1]]), f, 1, "VALID")
def gradients(x, f, b):
    with tf.GradientTape() as tape:
        tape.watch([f, b])
        loss = tf.reduce_sum(bias(x, f, b) * g)
    return tape.gradient(loss, [f, b])
def ran(function, *given):
    function = tf.function(function)
    result = function(*given)
    graphs = context.export_run_metadata().partition_graphs
    ops = {node.op for graph in graphs for node in graph.node}
    return result, ops
made, ops = ran(bias, x, f, b)
assert "_MklNativeConv2DWithBias" in ops, ops
assert np.allclose(made, conv(x, f, "SAME") + b, atol=1e-5)
made, ops = ran(padded, x, f)
assert "_MklNativePadWithConv2D" in ops, ops
assert np.array_equal(made, conv(tf.pad(x, pads), f, "VALID"))
made, ops = ran(deeper, x, deep)
assert np.array_equal(made, conv(tf.pad(x, [[0, 1], [1, 1], [0, 0], [1, 1]]), deep, "VALID"))
(df, db), ops = ran(gradients, x, f, b)
assert "_MklNativeConv2DBackpropFilterWithBias" in ops, ops
assert np.allclose(df, convgrad.conv2d_backprop_filter(x.numpy(), f.shape, g.numpy(), 1, "SAME"), atol=1e-4)
assert np.allclose(db, tf.reduce_sum(g, [0, 1, 2]), atol=1e-4)
print("as it should be")
"""


def test_what_onednn_merges() -> None:
    """Ops that are made of two are computed by us, and are right."""
    done = children.run(MERGED, TF_ENABLE_ONEDNN_OPTS="1")
    assert "as it should be" in done.stdout, done.stderr[-4000:]
