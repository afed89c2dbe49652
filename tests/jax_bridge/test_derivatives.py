"""Derivatives of the list: against finite differences to the second order, both ways, and against JAX's own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jax_bridge.configurations import CONFIGURATIONS, OURS, Configuration, some
from jax_bridge.running import arriving, custom_calls, function, native, operands, same_numbers

CHECKED = (
    Configuration(size=(3, 4), depth=2, made=2, padding=((0, 1), (2, 0))),
    Configuration(size=(4, 5), depth=2, made=2, strides=(2, 1), dilations=(1, 2), layout="NCHW"),
    Configuration(size=(4, 4), groups=2, depth=1, made=2),
    Configuration("depthwise_conv2d", size=(4, 4), groups=3, depth=1, made=2, dilations=(2, 1)),
    Configuration("conv2d_transpose", size=(5, 4), depth=2, made=2, strides=(2, 2), kernel=(3, 2)),
    Configuration("conv_general_dilated", size=(4, 4), depth=2, made=2),
    Configuration("conv_general_dilated", size=(4, 4), depth=2, made=2, batch_groups=2),
    Configuration(
        "conv_general_dilated", size=(3, 3), depth=2, made=2, orders=OURS[0], image_dilation=(2, 2),
        padding=((2, 1), (1, -1)), kernel=(2, 3),
    ),
)  # fmt: skip


@pytest.mark.parametrize("configuration", CHECKED, ids=str)
def test_finite_differences(configuration: Configuration) -> None:
    """Both modes to order 2, in every combination."""
    check_grads(
        jax.jit(function(configuration)), operands(configuration), order=2, modes=("fwd", "rev")
    )


@pytest.mark.parametrize("configuration", some(36, seed=3), ids=str)
def test_directions(configuration: Configuration) -> None:
    """jvp, linearize and the transpose of what it linearized, against JAX's own."""
    arrays, moves = operands(configuration), operands(configuration, seed=1)
    moved = arriving(configuration, "float64")

    def of(call: Any) -> Any:
        def run(image: Any, weight: Any, step: Any, turn: Any, back: Any) -> Any:
            made, linear = jax.linearize(call, image, weight)
            transposed = jax.linear_transpose(linear, image, weight)
            return (
                jax.jvp(call, (image, weight), (step, turn)),
                (made, linear(step, turn)),
                transposed(back),
                jax.jvp(lambda each: call(each, weight), (image,), (step,)),
                jax.jvp(lambda each: call(image, each), (weight,), (turn,)),
            )

        return jax.jit(run)(*arrays, *moves, moved)

    same_numbers(of(function(configuration)), of(native(configuration)))


@pytest.mark.parametrize("configuration", some(24, seed=4), ids=str)
def test_second_order(configuration: Configuration) -> None:
    """Forward over reverse and reverse over reverse: products with the second derivative of a curved loss."""
    arrays, moves = operands(configuration), operands(configuration, seed=1)

    def of(call: Any) -> Any:
        def run(arrays: Any, moves: Any) -> Any:
            loss = lambda image, weight: jnp.sum(jnp.sin(call(image, weight)))  # noqa: E731
            first = jax.grad(loss, (0, 1))
            forward = jax.jvp(first, tuple(arrays), tuple(moves))

            def slope(image: Any, weight: Any) -> Any:
                pairs = zip(first(image, weight), moves, strict=True)
                return sum(jnp.vdot(each, move) for each, move in pairs)

            return forward, jax.grad(slope, (0, 1))(*arrays)

        return jax.jit(run)(arrays, moves)

    same_numbers(of(function(configuration)), of(native(configuration)))


SMALL = [
    each
    for each in CONFIGURATIONS
    if np.prod(each.image_shape) <= 60 and np.prod(each.filter_shape) <= 60
]


@pytest.mark.parametrize("configuration", SMALL[::6], ids=str)
def test_whole_derivatives(configuration: Configuration) -> None:
    """Number by number: jacfwd, jacrev and the Hessian batch over all directions."""
    arrays = operands(configuration)

    def of(call: Any) -> Any:
        def run(image: Any, weight: Any) -> Any:
            loss = lambda *given: jnp.sum(call(*given) ** 3)  # noqa: E731
            return (
                jax.jacfwd(call, (0, 1))(image, weight),
                jax.jacrev(call, (0, 1))(image, weight),
                jax.hessian(loss, (0, 1))(image, weight),
            )

        return jax.jit(run)(*arrays)

    same_numbers(of(function(configuration)), of(native(configuration)))


@pytest.mark.parametrize("configuration", [each for each in CHECKED if each.ours], ids=str)
def test_derivatives_of_any_order_are_ours(configuration: Configuration) -> None:
    """No convolution of XLA's appears, however often it is differentiated."""
    call = function(configuration)

    def third(image: Any, weight: Any) -> Any:
        loss = lambda *given: jnp.sum(jnp.sin(call(*given)))  # noqa: E731
        second = lambda *given: jnp.sum(jax.grad(loss)(*given) ** 2)  # noqa: E731
        return jax.grad(lambda *given: jnp.sum(jnp.cos(jax.grad(second, 1)(*given))), (0, 1))(
            image, weight
        )

    mine, theirs = custom_calls(third, *operands(configuration))
    assert mine > 3 and theirs == 0


def test_only_what_is_asked_for_is_computed() -> None:
    """The gradient of the filter alone needs one sum, and the result is not computed where nobody looks at it."""
    configuration = Configuration()
    call, (image, weight) = function(configuration), operands(configuration, "float32")
    loss = lambda *given: jnp.sum(call(*given))  # noqa: E731
    for which in (0, 1):
        compiled = jax.jit(jax.grad(loss, which)).lower(image, weight).compile().as_text()
        assert compiled.count('custom_call_target="convgrad') == 1, compiled


def test_gradients_that_do_not_arrive() -> None:
    """Symbolic zeros, and results of which only a part is used."""
    configuration = Configuration()
    call, (image, weight) = function(configuration), operands(configuration)
    frozen = lambda image, weight: jnp.sum(call(image, jax.lax.stop_gradient(weight)) ** 2)  # noqa: E731
    into, none = jax.grad(frozen, (0, 1))(image, weight)
    assert np.any(into) and not np.any(none)
    unused = lambda image, weight: call(image, weight)[0].sum() * 0 + image.sum()  # noqa: E731
    np.testing.assert_array_equal(jax.grad(unused)(image, weight), np.ones_like(image))
