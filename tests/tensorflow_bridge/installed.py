"""What a process finds after `convgrad.tensorflow.install()`: a program that prints one JSON document.

Each function of `PARTS` looks at one thing and answers with what is wrong (a list of texts) or with what it saw. One
process does all of them, because loading TensorFlow takes seconds; `test_install` reads the answers.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tensorflow as tf

import convgrad
import convgrad.tensorflow
from cases import KINDS, Case, run
from peers.recorded import digest, read, whole
from tensorflow_bridge import dilations, fused, malformed
from tensorflow_bridge.configurations import CONFIGURATIONS
from tensorflow_bridge.keras_digits import losses
from tensorflow_bridge.running import bits, native, operands, pair, tensors

PARTS: dict[str, Callable[[], Any]] = {each.__name__: each for each in fused.PARTS}


def part(function: Callable[[], Any]) -> Callable[[], Any]:
    PARTS[function.__name__] = function
    return function


def compare(cases: Any, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[str]:
    """Return which of TensorFlow's own ops do not give the bits of our NumPy calls."""
    wrong = []
    for case in cases:
        data = operands(case)
        given = tensors(data)
        for kind in KINDS:
            wanted = run(case, kind, data)
            call = wrap(lambda one, two, case=case, kind=kind: native(case, kind, one, two))
            try:
                made = call(*pair(given, kind))
            except Exception as error:
                wrong.append(f"{case} {kind}: {type(error).__name__} {str(error)[:300]}")
                continue
            if bits(made) != bits(wanted):
                wrong.append(
                    f"{case} {kind}: {bits(made)[:2]} beside {bits(wanted)[:2]}, other bits"
                )
    return wrong


@part
def eager() -> list[str]:
    return compare(CONFIGURATIONS, lambda call: call)


def drawable(case: Case) -> bool:
    """Tell whether TensorFlow lets a graph have it: a window larger than the image has no shape there."""
    return all(size == 0 or out > 0 for size, out in zip(case.size, case.out_size, strict=True))


@part
def graphs() -> list[str]:
    """Every third one in a function with known shapes."""
    chosen = filter(drawable, CONFIGURATIONS[::3])
    return compare(chosen, lambda call: tf.function(call, autograph=False))


@part
def unknown_shapes() -> list[str]:
    def wrap(call: Any) -> Any:
        return lambda one, two: tf.function(
            call,
            autograph=False,
            input_signature=[tf.TensorSpec([None] * 4, each.dtype) for each in (one, two)],
        )(one, two)

    return compare(filter(drawable, CONFIGURATIONS[1::8]), wrap)


@part
def recorded() -> list[str]:
    """The answers of TensorFlow's compiler, which are right, from its plain kernels."""
    cases, answers = read()
    hashes = iter(answers["TensorFlow"]["hashes"])
    wrong = []
    for case in cases:
        given = tensors(whole(case))
        for kind in KINDS:
            wanted = next(hashes)
            try:
                same = digest(np.asarray(native(case, kind, *pair(given, kind)))) == wanted
            except Exception as error:
                wrong.append(f"{case} {kind}: {type(error).__name__} {str(error)[:200]}")
                continue
            if not same:
                wrong.append(f"{case} {kind}: another answer")
    return wrong


@part
def facts() -> dict[str, Any]:
    """The facts of the README: dilations that are ignored, sums that stop growing."""
    x = np.arange(5, dtype=np.float32).reshape(1, 5, 1, 1)
    how = {"strides": [1] * 4, "padding": "SAME", "dilations": [1, 2, 2, 1]}
    taps = tf.nn.depthwise_conv2d_backprop_filter(x, [3, 1, 1, 1], np.ones_like(x), **how)
    sums = {}
    for dtype in (tf.float16, tf.bfloat16, tf.float32):
        ones = tf.ones((1, 72, 72, 1), dtype)
        made = tf.nn.depthwise_conv2d_backprop_filter(ones, [1] * 4, ones, [1] * 4, "VALID")
        sums[dtype.name] = float(tf.cast(made, tf.float64)[0, 0, 0, 0])
    empty = tf.nn.depthwise_conv2d_backprop_filter(
        tf.ones((0, 4, 4, 1)), [1, 3, 1, 1], tf.ones((0, 4, 4, 1)), [1] * 4, "SAME"
    )
    return {"taps": np.ravel(taps).tolist(), "sums": sums, "empty": np.ravel(empty).tolist()}


@part
def dilated() -> dict[str, Any]:
    return {"float64": dilations.rows(tf), "float32": dilations.rows(tf, np.float32)}


@part
def tapes() -> list[str]:
    """Gradients of `tf.nn.conv2d` that TensorFlow refuses on a CPU: NCHW, groups, dilations, in graphs too."""
    wrong = []
    for case in (
        Case(False, 2, (7, 6), 2, 3, 4, (3, 3), (1, 1), (1, 1), "SAME"),
        Case(False, 2, (7, 6), 1, 3, 4, (3, 3), (2, 2), (1, 1), "SAME", "NCHW"),
        Case(
            False, 2, (7, 6), 2, 3, 4, (3, 2), (1, 2), (1, 1), ((1, 0), (0, 2)), "NCHW", "float64"
        ),
        Case(False, 1, (9, 8), 1, 2, 3, (3, 3), (1, 1), (2, 3), "VALID", "NHWC", "half"),
        Case(False, 1, (9, 8), 3, 2, 1, (3, 3), (1, 1), (2, 2), "SAME", "NCHW", "bfloat16"),
    ):
        data = operands(case)
        given = tensors(data)

        def both(x: Any, f: Any, g: Any, case: Case = case) -> Any:
            with tf.GradientTape() as tape:
                tape.watch([x, f])
                y = native(case, "forward", x, f)
            return tape.gradient(y, [x, f], g)

        for call in (both, tf.function(both, autograph=False)):
            dx, df = call(given.x, given.f, given.g)
            if bits(dx) != bits(run(case, "input", data)):
                wrong.append(f"{case} input")
            if bits(df) != bits(run(case, "filter", data)):
                wrong.append(f"{case} filter")
    return wrong


@part
def malformed_calls() -> list[dict[str, Any]]:
    """All 31 in this one process: it is still there afterwards, or the document is missing."""
    return [malformed.attempt(number, tf) for number in range(len(malformed.MALFORMED))]


@part
def malformed_graphs() -> list[dict[str, Any]]:
    """The same while a graph is built or run."""
    found = []
    for number, call in enumerate(malformed.MALFORMED):
        try:
            made = tf.function(partial(call.run, tf), autograph=False)()
        except Exception as error:
            found.append({"number": number, "kind": "E", "text": str(error)[:200]})
            continue
        right = call.right is not None and np.array_equal(made, call.right)
        found.append({"number": number, "kind": "V" if right else "W", "text": str(made.shape)})
    return found


@part
def node_types() -> dict[str, Any]:
    """Which ops run in graphs after all rewriting, and whether the numbers are ours: bias and relu invite fusion."""
    from tensorflow.python.eager import context as eager_context

    context = eager_context.context()
    found = {}
    for name, case in (
        ("dense", Case(False, 2, (8, 8), 1, 8, 16, (3, 3), (1, 1), (1, 1), "SAME")),
        ("pointwise", Case(False, 2, (8, 8), 1, 8, 16, (1, 1), (1, 1), (1, 1), "SAME")),
        ("depthwise", Case(True, 2, (8, 8), 16, 1, 1, (3, 3), (1, 1), (1, 1), "SAME")),
    ):
        data = operands(case)
        given = tensors(data)
        channels = case.output_shape[-1]
        bias = tf.constant(np.linspace(-1, 1, channels, dtype=np.float32))
        scale, zero = tf.ones((channels,)), tf.zeros((channels,))
        y = run(case, "forward", data)
        with_bias = y + np.asarray(bias)

        # TensorFlow's own batch norm takes 1 / sqrt(1) from an instruction that is off by 1e-7 on Intel's CPUs and
        # by nothing on AMD's. Whichever it is, it is the same for all pixels, and sums that are not ours would show.
        def of_ones(scale: Any = scale, zero: Any = zero, shape: Any = case.output_shape) -> Any:
            return tf.compat.v1.nn.fused_batch_norm(
                tf.ones(shape), scale, zero, zero, scale, epsilon=0.0, is_training=False
            )[0]

        factors = [1, np.asarray(of_ones()), np.asarray(tf.function(of_ones, autograph=False)())]
        normal = [np.maximum(y * factor, 0) for factor in factors]

        def plain(x: Any, f: Any, case: Case = case) -> Any:
            return native(case, "forward", x, f)

        def biased(x: Any, f: Any, case: Case = case, bias: Any = bias) -> Any:
            return tf.nn.bias_add(native(case, "forward", x, f), bias)

        def activated(x: Any, f: Any, case: Case = case, bias: Any = bias) -> Any:
            return tf.nn.relu(tf.nn.bias_add(native(case, "forward", x, f), bias))

        def normalized(
            x: Any, f: Any, case: Case = case, scale: Any = scale, zero: Any = zero
        ) -> Any:
            y = native(case, "forward", x, f)
            return tf.nn.relu(
                tf.compat.v1.nn.fused_batch_norm(
                    y, scale, zero, zero, scale, epsilon=0.0, is_training=False
                )[0]
            )

        def padded(x: Any, f: Any, case: Case = case) -> Any:
            more = tf.pad(x, [[0, 0], [2, 1], [1, 2], [0, 0]])
            wide = replace(case, size=(11, 11), padding="VALID")
            return native(wide, "forward", more, f)

        def trained(x: Any, f: Any, case: Case = case, bias: Any = bias) -> Any:
            with tf.GradientTape() as tape:
                tape.watch([x, f])
                y = tf.nn.relu(tf.nn.bias_add(native(case, "forward", x, f), bias))
            return tape.gradient(y, [x, f])

        wide = replace(case, size=(11, 11), padding="VALID")
        more = np.pad(data.x, [(0, 0), (2, 1), (1, 2), (0, 0)])
        arrives = (with_bias > 0).astype(np.float32)
        gradients = type(data)(data.x, data.f, arrives)
        for label, call, wanted in (
            ("plain", plain, [y]),
            ("bias", biased, [with_bias]),
            ("bias, relu", activated, [np.maximum(with_bias, 0)]),
            ("batch norm, relu", normalized, normal[:1]),
            ("pad", padded, [run(wide, "forward", type(data)(more, data.f, None))]),
            ("gradients", trained, [run(case, kind, gradients) for kind in ("input", "filter")]),
        ):
            function = tf.function(call, autograph=False)
            context.enable_run_metadata()
            made = function(given.x, given.f)
            metadata = context.export_run_metadata()
            context.disable_run_metadata()
            ops = {
                node.op
                for graph in metadata.function_graphs
                for node in graph.post_optimization_graph.node
            } | {
                node.op
                for each in metadata.function_graphs
                for graph in each.partition_graphs
                for node in graph.node
            }
            made = made if isinstance(made, list | tuple) else [made]
            ours = [bits(a) for a in made] == [bits(np.asarray(b)) for b in wanted]
            if label == "batch norm, relu":
                ours = bits(made[0]) in map(bits, normal)
            found[f"{name}, {label}"] = {
                "ops": sorted(op for op in ops if "onv" in op),
                "ours": ours,
                "close": all(
                    np.allclose(a, b, atol=1e-4) for a, b in zip(made, wanted, strict=True)
                ),
            }
    return found


@part
def keras() -> list[float]:
    return losses()


@part
def dispatch() -> list[str]:
    """Types of a user's own still come first, as TensorFlow documents."""
    from tensorflow.python.util.dispatch import register_dispatchable_type

    class Array:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __array__(self, *_: Any, **__: Any) -> Any:
            return self.array

    register_dispatchable_type(Array)
    api = tf.nn.depthwise_conv2d_backprop_filter

    @tf.experimental.dispatch_for_api(api, {"input": Array}, {"out_backprop": Array})
    def mine(
        input: Any,
        filter_sizes: Any,
        out_backprop: Any,
        strides: Any,
        padding: Any,
        data_format: str = "NHWC",
        dilations: Any = (1, 1, 1, 1),
        name: Any = None,
    ) -> Any:
        return "mine", type(input).__name__, type(out_backprop).__name__

    one = np.ones((1, 4, 4, 2), np.float32)
    seen = []
    for first, second in ((Array(one), one), (one, Array(one)), (one, one)):
        made = api(first, [3, 3, 2, 1], second, strides=[1, 1, 1, 1], padding="SAME")
        seen.append(" ".join(made) if isinstance(made, tuple) else type(made).__name__)
    return seen


@part
def integers() -> list[str]:
    """int32, which only two of TensorFlow's kernels take, is computed as before or better."""
    x, f = np.arange(32, dtype=np.int32).reshape(1, 4, 4, 2), np.ones((3, 3, 2, 3), np.int32)
    y = tf.nn.conv2d(x, f, 1, "SAME")
    dx = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=x.shape, filter=f, out_backprop=y, strides=[1] * 4, padding="SAME"
    )
    wanted = convgrad.conv2d(x, f, 1, "SAME")
    back = convgrad.conv2d_backprop_input(x.shape, f, wanted, 1, "SAME")
    names = [("forward", y, wanted), ("input", dx, back)]
    return [name for name, made, right in names if bits(made) != bits(right)]


@part
def threads() -> list[str]:
    """Several threads of Python's and of TensorFlow's at once, and any number of ours."""
    wrong: list[str] = []
    case = Case(True, 4, (28, 28), 48, 1, 1, (3, 3), (2, 2), (1, 1), "SAME")
    data = operands(case)
    given = tensors(data)
    wanted = [bits(run(case, kind, data)) for kind in KINDS]
    function = tf.function(
        lambda x, f, g: [
            native(case, "forward", x, f),
            native(case, "input", f, g),
            native(case, "filter", x, g),
        ],
        autograph=False,
    )

    def work() -> None:
        made = ([bits(each) for each in function(given.x, given.f, given.g)] for _ in range(10))
        wrong.extend("other bits among threads" for each in made if each != wanted)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    for number in (1, 2, 3):
        with convgrad.threads(number):
            if [bits(each) for each in function(given.x, given.f, given.g)] != wanted:
                wrong.append(f"other bits with {number} threads")
    return wrong


@part
def saved() -> dict[str, Any]:
    """A saved model of TensorFlow's own ops knows nothing of us."""

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 2])])
        def __call__(self, x: Any) -> Any:
            return tf.nn.conv2d(x, tf.ones((3, 3, 2, 2)), 1, "SAME")

    with TemporaryDirectory() as folder:
        tf.saved_model.save(Model(), folder)
        text = (Path(folder) / "saved_model.pb").read_bytes()
        made = tf.saved_model.load(folder)(tf.ones((1, 6, 6, 2)))
    return {"names": [b"Conv2D" in text, b"onvgrad" in text], "most": float(tf.reduce_max(made))}


def install_twice() -> dict[str, Any]:
    """Install while other threads compute, twice, from two threads; what was computed before stays right after."""
    case = CONFIGURATIONS[0]
    data = operands(case)
    given = tensors(data)
    exact = run(case, "forward", data, "reference")
    stop, wrong = threading.Event(), []
    function = tf.function(lambda x, f: native(case, "forward", x, f), autograph=False)

    def work() -> None:
        while not stop.is_set():
            for call in (function, lambda x, f: native(case, "forward", x, f)):
                made = np.asarray(call(given.x, given.f))
                if not np.allclose(made, exact, atol=1e-4):
                    wrong.append("a wrong value while installing")

    workers = [threading.Thread(target=work) for _ in range(2)]
    for each in workers:
        each.start()
    before = convgrad.tensorflow.installed()
    reports: list[Any] = []
    installers = [
        threading.Thread(target=lambda: reports.append(convgrad.tensorflow.install()))
        for _ in range(2)
    ]
    for each in installers:
        each.start()
    for each in installers:
        each.join()
    again = convgrad.tensorflow.install()
    stop.set()
    for each in workers:
        each.join()
    # A function that was traced and run before computes with our kernels from its next call on, or as it did.
    made = function(given.x, given.f)
    return {
        "before": before,
        "after": convgrad.tensorflow.installed(),
        "reports": [str(each) for each in (*reports, again)],
        "wrong": wrong,
        "old function": bits(made) == bits(run(case, "forward", data)),
    }


def main() -> None:
    tf.get_logger().setLevel(
        "ERROR"
    )  # it warns of functions that are traced for each configuration
    found: dict[str, Any] = {"install": install_twice()}
    for name in sys.argv[1:] or PARTS:
        try:
            found[name] = PARTS[name]()
        except Exception:
            found[name] = traceback.format_exc()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
