"""What else JAX does to functions: donation, checkpoints, loops, lowering ahead of time, tracing without numbers."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import convgrad
import convgrad.jax
from jax_bridge.configurations import Configuration, some
from jax_bridge.running import (
    TARGET,
    arriving,
    bits,
    by_numpy,
    by_us,
    everything,
    function,
    native,
    operands,
    same_numbers,
)

LAYERS = (
    Configuration(depth=4, made=4),
    Configuration("depthwise_conv2d", groups=4, depth=1, made=1, dilations=(2, 1)),
    Configuration(
        "conv_general_dilated", orders=("NHWC", "HWIO", "NHWC"), depth=4, made=4, kernel=(1, 1)
    ),
)
"""Layers that give what they take, so that they can follow each other."""
every_layer = pytest.mark.parametrize("configuration", LAYERS, ids=str)


@pytest.mark.parametrize("configuration", some(12, seed=7), ids=str)
def test_without_jit(configuration: Configuration) -> None:
    """Call by call, and inside `disable_jit`: the bits of the jitted call."""
    arrays, moved = operands(configuration, "float32"), arriving(configuration, "float32")
    jitted = bits(by_us(configuration, arrays, moved))
    call = everything(function(configuration))
    assert bits(call(*map(jnp.asarray, (*arrays, moved)))) == jitted
    with jax.disable_jit():
        assert bits(call(*map(jnp.asarray, (*arrays, moved)))) == jitted


@every_layer
def test_donation(configuration: Configuration) -> None:
    """A result may take the memory of what was given: the kernels must not read what they have overwritten."""
    image, weight = operands(configuration)
    wanted = np.asarray(jax.jit(native(configuration))(image, weight))
    given = jnp.array(image)
    made = jax.jit(function(configuration), donate_argnums=0)(given, weight)
    np.testing.assert_allclose(made, wanted, rtol=1e-9, atol=1e-9)
    assert given.is_deleted()

    def step(image: Any, weight: Any) -> Any:
        loss = lambda *both: jnp.sum(function(configuration)(*both) ** 2)  # noqa: E731
        moves = jax.grad(loss, (0, 1))(image, weight)
        return tuple(each - 0.1 * move for each, move in zip((image, weight), moves, strict=True))

    plain = jax.jit(step)(image, weight)
    donated = jax.jit(step, donate_argnums=(0, 1))(jnp.array(image), jnp.array(weight))
    assert bits(plain) == bits(donated)


@every_layer
@pytest.mark.parametrize(
    "policy", [None, jax.checkpoint_policies.dots_saveable], ids=["all", "dots"]
)
def test_checkpoint(configuration: Configuration, policy: Any) -> None:
    """The forward pass is computed again in the backward pass."""
    image, weight = operands(configuration)
    call = function(configuration)

    def loss(wrap: Any) -> Any:
        def run(image: Any, weight: Any) -> Any:
            layer = wrap(lambda image: jnp.tanh(call(image, weight)))
            return jnp.sum(layer(layer(layer(image))) ** 2)

        return jax.jit(jax.grad(run, (0, 1)))

    kept, again = loss(lambda each: each), loss(lambda each: jax.checkpoint(each, policy=policy))
    same_numbers(kept(image, weight), again(image, weight))
    count = lambda step: step.lower(image, weight).as_text().count(f"@{TARGET}")  # noqa: E731
    assert count(again) > count(kept)


@every_layer
def test_loops(configuration: Configuration) -> None:
    """scan with gradients, while, fori and cond."""
    image, weight = operands(configuration)
    weights = np.stack([weight, -weight, weight * 0.5])

    def of(call: Any) -> Any:
        def scanned(image: Any, weights: Any) -> Any:
            body = lambda image, weight: (jnp.tanh(call(image, weight)), jnp.sum(image))  # noqa: E731
            last, sums = jax.lax.scan(body, image, weights)
            return jnp.sum(last**2) + jnp.sum(sums)

        def others(image: Any, weights: Any) -> Any:
            image = jax.lax.fori_loop(
                0, 3, lambda at, each: jnp.tanh(call(each, weights[at])), image
            )
            _, image = jax.lax.while_loop(
                lambda carried: carried[0] < 2,
                lambda carried: (carried[0] + 1, jnp.sin(call(carried[1], weights[0]))),
                (0, image),
            )
            return jax.lax.cond(image.sum() > 0, call, lambda x, f: call(-x, f), image, weights[1])

        gradients = jax.grad(scanned, (0, 1))(image, weights)
        return (
            *jax.jit(jax.value_and_grad(scanned, (0, 1)))(image, weights),
            gradients,
            jax.jit(others)(image, weights),
        )

    same_numbers(of(function(configuration)), of(native(configuration)))


@every_layer
def test_ahead_of_time(configuration: Configuration) -> None:
    """Lowered from shapes alone, compiled, then called."""
    arrays, moved = operands(configuration, "float32"), arriving(configuration, "float32")
    shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in (*arrays, moved)]
    lowered = jax.jit(everything(function(configuration))).lower(*shapes)
    text = lowered.as_text()
    assert text.count(f"@{TARGET}") == 3
    compiled = lowered.compile()
    assert bits(compiled(*arrays, moved)) == bits(by_numpy(configuration, arrays, moved))
    with pytest.raises(TypeError, match="float64"):
        compiled(*(each.astype(np.float64) for each in (*arrays, moved)))


def test_lowered_text_is_the_same_in_every_trace() -> None:
    """The persistent cache of compiled functions looks it up by this text."""
    configuration = Configuration()
    arrays, moved = operands(configuration, "float32"), arriving(configuration, "float32")
    texts = {
        jax.jit(everything(function(configuration))).lower(*arrays, moved).as_text()
        for _ in range(2)
    }
    assert len(texts) == 1
    assert not re.search(r"\b\d{9,}\b|0x[0-9a-f]{8,}", texts.pop()), "there may be an address in it"


@pytest.mark.parametrize("configuration", some(12, seed=8), ids=str)
def test_shapes_without_numbers(configuration: Configuration) -> None:
    arrays = operands(configuration, "float32")
    shapes = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays]
    mine, theirs = (jax.eval_shape(call(configuration), *shapes) for call in (function, native))
    assert (mine.shape, mine.dtype, mine.weak_type) == (
        theirs.shape,
        theirs.dtype,
        theirs.weak_type,
    )
    assert f"{theirs.shape[0]}" in str(jax.make_jaxpr(function(configuration))(*shapes))


def test_constants() -> None:
    """Both operands known when it is compiled: folding must not fail on them."""
    configuration = Configuration()
    image, weight = operands(configuration, "float32")
    call = function(configuration)
    made = jax.jit(lambda: call(image, weight))()
    assert bits([made]) == bits([call(jnp.asarray(image), jnp.asarray(weight))])


def test_other_arrays_beside_jaxs() -> None:
    """One array of JAX makes the result one; lists, NumPy's arrays and tracers may stand beside it."""
    image, weight = operands(Configuration(), "float32")
    for given in ((jnp.asarray(image), weight), (image, jnp.asarray(weight))):
        assert isinstance(convgrad.conv2d(*given, 1, "SAME"), jax.Array)
    made = jax.jit(lambda image: convgrad.conv2d(image, weight, 1, "SAME"))(image)
    assert isinstance(made, jax.Array)
    assert isinstance(convgrad.conv2d(image, weight, 1, "SAME"), np.ndarray)
    assert np.array_equal(made, convgrad.conv2d(image, weight, 1, "SAME"))


def test_options_are_heeded() -> None:
    """A switch that changes bits changes them here too, when a function is traced, also if it was traced before."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 24, 24, 64)).astype(np.float32)
    weight = rng.standard_normal((3, 3, 64, 64)).astype(np.float32)
    call = lambda *given: convgrad.conv2d(*given, 1, "SAME")  # noqa: E731
    found: dict[str, bytes] = {}
    for way in ("off", "fast", "off"):
        with convgrad.options(winograd=way):
            wanted = bits([call(image, weight)])
            assert bits([call(jnp.asarray(image), jnp.asarray(weight))]) == wanted, way
            assert bits([jax.jit(lambda *given: call(*given))(image, weight)]) == wanted, way
            found[way] = wanted
    assert found["off"] != found["fast"]  # else nothing was shown


def test_integers() -> None:
    """int32 is summed exactly, without derivatives."""
    image = jnp.arange(-8, 8, dtype=jnp.int32).reshape(1, 4, 4, 1)
    weight = jnp.arange(9, dtype=jnp.int32).reshape(3, 3, 1, 1)
    made = jax.jit(lambda *given: convgrad.jax.conv2d(*given, 1, "SAME"))(image, weight)
    theirs = jax.lax.conv_general_dilated(
        image, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    assert made.dtype == jnp.int32 and np.array_equal(made, theirs)
