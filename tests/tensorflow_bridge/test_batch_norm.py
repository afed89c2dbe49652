"""Batch norm with activation on tensors: against the formulas, eagerly and in graphs, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
from convgrad._base import dtypes
from convgrad._bridges.tensorflow import batch_norm, formulas, kernels, passes
from convgrad._problem.norm import ACTIVATIONS
from convgrad._problem.norm.normalisation import write
from convgrad.errors import InternalError
from convgrad.tensorflow import batch_norm_act

CASES = [
    ("NHWC" if number % 2 else "NCHW", activation, position, (number // 2 + at) % 2 == 0)
    for number, activation in enumerate(ACTIVATIONS)
    for at, position in enumerate((None, "before", "after"))
]


def tensors(layout: str, position: str | None, frozen: bool) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    shape = (3, 4, 5, 6)
    channels = shape[3 if layout == "NHWC" else 1]
    found = {
        "x": 2 + 3 * rng.standard_normal(shape),
        "scale": 3 * rng.standard_normal(channels),
        "offset": 2 + rng.standard_normal(channels),
    }
    if position:
        found["residual"] = rng.standard_normal(shape)
    if frozen:
        found |= {"mean": rng.standard_normal(channels), "variance": 1 + rng.random(channels)}
    return {name: tf.constant(value) for name, value in found.items()}


def differentiated(layout: str, activation: str, position: str | None) -> Any:
    """Return a function of tensors that returns all results and all gradients."""

    def run(given: dict[str, Any]) -> Any:
        weight = tf.constant(np.random.default_rng(9).standard_normal((3, 4, 5, 6)))
        with tf.GradientTape() as tape:
            tape.watch(given)
            y, mean, variance = batch_norm_act(
                **given,
                activation=activation,
                residual_position=position or "before",
                data_format=layout,
            )
            total = tf.reduce_sum(tf.cast(y, tf.float64) * weight)
        return y, mean, variance, tape.gradient(total, given)

    return run


def natively(run: Any, given: Any) -> Any:
    """Run in TensorFlow's own operations, whose derivatives are its own too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_norm, "_is_ours", lambda: False)
        return run(given)


def near(got: Any, wanted: Any, tolerance: float) -> None:
    for one, other in zip(tf.nest.flatten(got), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("layout", "activation", "position", "frozen"), CASES)
def test_values_and_gradients(
    layout: str, activation: str, position: str | None, frozen: bool
) -> None:
    given, run = tensors(layout, position, frozen), differentiated(layout, activation, position)
    found = kernels.ready()
    assert found is not None
    found.table.clear()
    got = run(given)
    assert len(found.table) == 2  # forwards and backwards, by kernels
    near(got, natively(run, given), 1e-9)
    near(tf.function(run)(given), got, 1e-12)
    assert len(found.table) == 2


def test_a_small_error_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above tells a gradient that is off by a thousandth."""
    given, run = tensors("NHWC", None, False), differentiated("NHWC", "silu", None)
    execute = passes.execute

    def wrong(call: Any, operands: Any) -> Any:
        made = execute(call, operands)
        return {name: each * 1.001 if name == "dx" else each for name, each in made.items()}

    wanted = natively(run, given)
    monkeypatch.setattr(passes, "execute", wrong)
    with pytest.raises(AssertionError):
        near(run(given), wanted, 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_narrow_dtypes(dtype: str) -> None:
    row = dtypes.find(tf.as_dtype(dtype).as_numpy_dtype(0).dtype)
    assert row is not None
    wide = tensors("NHWC", "before", False)
    narrow = {
        name: tf.cast(each, dtype if name in ("x", "residual") else tf.float32)
        for name, each in wide.items()
    }
    wide = {name: tf.cast(each, tf.float64) for name, each in narrow.items()}
    run = differentiated("NHWC", "silu", "before")
    y, mean, _, moves = run(narrow)
    assert (y.dtype, mean.dtype, moves["scale"].dtype) == (dtype, tf.float32, tf.float32)
    assert (moves["x"].dtype, moves["residual"].dtype) == (dtype, dtype)
    for got, exact in zip(
        tf.nest.flatten((y, moves)), tf.nest.flatten(_first_and_last(run(wide))), strict=True
    ):
        bound = 8 * row.unit * float(tf.reduce_max(tf.abs(exact)))
        np.testing.assert_allclose(tf.cast(got, tf.float64), exact, rtol=0, atol=bound)


def _first_and_last(results: Any) -> Any:
    return results[0], results[3]


def test_only_what_is_wanted_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = tensors("NHWC", "before", True)
    seen: list[str] = []
    execute = passes.execute
    monkeypatch.setattr(
        passes, "execute", lambda call, of: seen.append(write(call)) or execute(call, of)
    )
    for watched, wanted in (("x", "dx"), ("offset", "parameters"), ("residual", "dresidual")):
        with tf.GradientTape() as tape:
            tape.watch(given[watched])
            y, _, _ = batch_norm_act(**given, activation="relu")
        assert tape.gradient(y, given[watched]) is not None
        assert f"wanted={wanted} " in seen[-1]


def test_sizes_that_are_not_known_yet() -> None:
    """In a graph of any size: the same record serves each, empty images have no statistics."""
    run = tf.function(
        lambda x: batch_norm_act(x, activation="relu"),
        input_signature=[tf.TensorSpec([None, None, None, 3])],
    )
    graph = run.get_concrete_function()
    assert [each.shape.as_list() for each in graph.outputs] == [[None, None, None, 3], [3], [3]]
    for size in (1, 4):
        x = tf.random.stateless_normal((2, size, 3, 3), (1, 2))
        near(run(x), natively(lambda x: batch_norm_act(x, activation="relu"), x), 1e-5)
    y, mean, _ = run(tf.zeros((0, 2, 2, 3)))
    assert y.shape == (0, 2, 2, 3) and np.isnan(mean).all()


def test_bits_do_not_depend_on_threads() -> None:
    given, run = tensors("NHWC", "after", False), differentiated("NHWC", "gelu", "after")
    wanted = [np.asarray(each).tobytes() for each in tf.nest.flatten(run(given))]
    for threads in (1, 3):
        with convgrad.threads(threads):
            assert [np.asarray(each).tobytes() for each in tf.nest.flatten(run(given))] == wanted


def test_what_xla_compiles_is_tensorflows() -> None:
    x = tf.random.stateless_normal((2, 3, 4, 5), (1, 2))
    compiled = tf.function(lambda x: batch_norm_act(x, activation="silu"), jit_compile=True)
    near(compiled(x), batch_norm_act(x, activation="silu"), 1e-5)


def twice(layout: str, activation: str, position: str | None) -> Any:
    """Return a function of tensors that returns gradients of gradients, and derivatives in forward mode."""
    run = differentiated(layout, activation, position)

    def again(given: dict[str, Any]) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(given)
            found = run(given)
            total = tf.add_n([tf.reduce_sum(tf.sin(each)) for each in tf.nest.flatten(found[3])])
        moves = {name: tf.cos(3 * each) for name, each in given.items()}
        with tf.autodiff.ForwardAccumulator(
            tf.nest.flatten(given), tf.nest.flatten(moves)
        ) as forward:
            y = batch_norm_act(
                **given,
                activation=activation,
                residual_position=position or "before",
                data_format=layout,
            )[0]
        zero = tf.UnconnectedGradients.ZERO  # of what the first ones do not depend on
        return tape.gradient(total, given, None, zero), forward.jvp(y)

    return again


@pytest.mark.parametrize(("layout", "activation", "position", "frozen"), CASES)
def test_second_derivatives_and_forward_mode(
    layout: str, activation: str, position: str | None, frozen: bool
) -> None:
    """By all tensors, those of statistics that are given included; also in a graph."""
    given, run = tensors(layout, position, frozen), twice(layout, activation, position)
    wanted = natively(run, given)
    assert all(np.any(each) for each in tf.nest.flatten(wanted[1]))
    near(run(given), wanted, 1e-8)
    if layout == "NHWC":
        near(tf.function(run)(given), wanted, 1e-8)


def test_second_derivatives_of_narrow_dtypes_and_third_ones() -> None:
    x = tf.random.stateless_normal((2, 3, 4, 5), (1, 2))

    def third(x: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            found = [batch_norm_act(x, activation="silu")[0] ** 2]
            for _ in range(2):
                found.append(tape.gradient(found[-1], x))
        return [*found[1:], tape.gradient(found[-1], x)]

    near(tf.function(third)(x), natively(third, x), 1e-3)
    half = [tf.cast(each, tf.float32) for each in third(tf.cast(x, tf.bfloat16))[:2]]
    near(half, third(tf.cast(tf.cast(x, tf.bfloat16), tf.float32))[:2], 0.05)


def test_graphs_of_an_older_version_say_what_they_lack() -> None:
    """Their nodes have no rows behind the operands: they are computed as before, and not differentiated again."""
    text = "batch_norm_act.backward 1x1x1 NHWC float32 relu wanted=dx,parameters epsilon=0.001"
    x = tf.random.stateless_normal((2, 3, 4, 5), (1, 2))
    weight = tf.ones(5)
    made = passes.execute(
        batch_norm.normalisation.read(
            text.replace("backward", "forward").replace("wanted=dx,parameters", "given=weight")
        ),
        {"x": x, "weight": weight},
    )
    operands = [x, tf.ones_like(x), made["saved"]]

    @tf.function
    def older(x: Any) -> Any:
        return passes.op_def_library._apply_op_helper(
            passes.BACKWARD, operands=[x, *operands[1:]], Tout=[tf.float32] * 3, call=text
        )[3]

    with tf.GradientTape() as tape:
        tape.watch(x)
        y, _, _ = batch_norm_act(x, weight, activation="relu")
    near(older(x)[0], tape.gradient(y, x), 1e-6)

    with pytest.raises(LookupError, match="older convgrad"), tf.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(older(x)[0], x)


def test_an_unknown_activation_is_not_taken_for_none() -> None:
    with pytest.raises(InternalError, match="unknown activation 'swoosh'"):
        formulas.activated("swoosh", tf.ones(3), 0.0)


IMAGE, ROW = tf.zeros((1, 2, 2, 3)), tf.ones(3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": IMAGE[0]}, "`x` must have 4 dimensions, got 3"),
        ({"x": tf.cast(IMAGE, tf.int32)}, "`x` must be one of half, .*, got int32"),
        ({"scale": ROW[1:]}, r"`scale` must have shape \(3,\), the channels of `x`, got \(2,\)"),
        ({"offset": tf.cast(ROW, tf.int64)}, "`offset` must be one of half, .*, got int64"),
        ({"variance": ROW}, "`mean` and `variance` must be given together, got no `mean`"),
        ({"residual": IMAGE[:, 1:]}, "`residual` must have the shape of `x`"),
        ({"residual": tf.cast(IMAGE, tf.half)}, "`residual` must have the dtype of `x`, float32"),
        ({"activation": 3}, "`activation` must be one of 'none', 'relu', .*got 3"),
        ({"epsilon": "1"}, "`epsilon` must be a number, got '1'"),
    ],
)
def test_mistakes_are_named(arguments: Any, words: str) -> None:
    with pytest.raises(convgrad.errors.ConvgradError, match=f"^batch_norm_act: {words}"):
        batch_norm_act(**{"x": IMAGE, **arguments})


def test_mistakes_that_only_the_run_knows() -> None:
    @tf.function(input_signature=[tf.TensorSpec(None)] * 3)
    def run(x: Any, scale: Any, residual: Any) -> Any:
        return batch_norm_act(x, scale, residual=residual)[0]

    for given, words in (
        ((IMAGE[0], ROW, IMAGE), "`x` must have 4 dimensions, got 3"),
        ((IMAGE, ROW[1:], IMAGE), r"`scale` must have shape \(3,\)"),
        ((IMAGE, ROW, tf.zeros((1, 2, 3, 2))), "`residual` must have the shape of `x`"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            run(*given)


@pytest.mark.parametrize("wrong", ["text", "inputs", "types"])
def test_nodes_of_strange_files_are_refused(wrong: str) -> None:
    """A node whose attributes contradict each other is never computed."""
    call = "batch_norm_act.forward 1x1x1 NHWC float32 relu given=weight epsilon=0.001"
    text = {"text": call.replace("relu", "relu7")}.get(wrong, call)
    operands = [IMAGE] if wrong == "inputs" else [IMAGE, ROW]
    types = [tf.float32] * (3 if wrong == "types" else 2)

    @tf.function
    def run() -> Any:
        _, _, _, made = passes.op_def_library._apply_op_helper(
            passes.FORWARD, operands=operands, Tout=types, call=text
        )
        return made[0]

    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"batch norm|batch_norm_act: attribute"
    ):
        run()


LOADS = """
import sys, numpy as np, tensorflow as tf, convgrad.tensorflow
loaded = tf.saved_model.load(sys.argv[1])
x = tf.reshape(tf.range(24.0), (2, 2, 2, 3)) ** 2
print(np.asarray(loaded.run(x)).tobytes().hex())
"""


def test_saved_models(tmp_path: Path) -> None:
    module = tf.Module()
    module.run = tf.function(
        lambda x: batch_norm_act(x, activation="silu")[0],
        input_signature=[tf.TensorSpec([None, 2, 2, 3])],
    )
    tf.saved_model.save(module, str(tmp_path / "model"))
    done = subprocess.run(
        [sys.executable, "-c", LOADS, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=True,
    )
    x = tf.reshape(tf.range(24.0), (2, 2, 2, 3)) ** 2
    assert done.stdout.split()[-1] == np.asarray(module.run(x)).tobytes().hex()
