"""`accelerate`: JAX's own convolutions are ours inside, JAX's outside, in this thread, whatever was jitted where."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import convgrad
from convgrad.errors import ArgumentError, ArgumentTypeError
from convgrad.jax import accelerate
from jax_bridge.configurations import Configuration, some
from jax_bridge.models import CONVOLUTIONS, apply, images, loss, parameters
from jax_bridge.running import (
    TARGET,
    arriving,
    assert_right,
    custom_calls,
    everything,
    function,
    general,
    operands,
    same_numbers,
)

NHWC = ("NHWC", "HWIO", "NHWC")


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    assert counted(small, *PAIR) == (0, 1)


def small(image: Any, weight: Any) -> Any:
    return lax.conv_general_dilated(image, weight, (1, 1), "SAME", dimension_numbers=NHWC)


PAIR = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 3, 2, 3), np.float32)


def counted(call: Any, *arrays: Any) -> tuple[int, int]:
    """Count our calls and XLA's convolutions of a function that nothing has been remembered of."""
    return custom_calls(jax.jit(lambda *given: call(*given)), *arrays)


def test_a_network() -> None:
    weights, given = parameters(), images()
    wanted = jax.jit(apply)(weights, given), jax.jit(jax.grad(loss))(weights, given)
    with accelerate():
        made = jax.jit(apply)(weights, given), jax.jit(jax.grad(loss))(weights, given)
        assert counted(apply, weights, given) == (CONVOLUTIONS, 0)
        ours, theirs = counted(jax.grad(loss), weights, given)
        assert ours >= 2 * CONVOLUTIONS and theirs == 0
    same_numbers(made, wanted)
    assert counted(apply, weights, given) == (0, CONVOLUTIONS)


def test_training() -> None:
    """Some steps, the whole step jitted with donation: the same loss as without us, to rounding."""

    def train() -> list[float]:
        @jax.jit
        def step(weights: Any, given: Any) -> Any:
            value, moves = jax.value_and_grad(loss)(weights, given)
            return jax.tree.map(lambda each, move: each - 0.05 * move, weights, moves), value

        weights, values = parameters(), []
        for at in range(6):
            weights, value = step(weights, images(at % 2))
            values.append(float(value))
        return values

    wanted = train()
    with accelerate():
        made = train()
    assert wanted[0] > wanted[-2]
    np.testing.assert_allclose(made, wanted, rtol=1e-9)


@pytest.mark.parametrize(
    "configuration", [each for each in some(60, seed=9) if each.general][:16], ids=str
)
def test_everything_the_function_takes(configuration: Configuration) -> None:
    """`jax.lax.conv_general_dilated` inside is `convgrad.jax.conv_general_dilated` outside."""
    arrays, moved = operands(configuration, "float32"), arriving(configuration, "float32")
    with accelerate():
        call = jax.jit(everything(general(configuration, lax.conv_general_dilated)))
        made = [np.asarray(each) for each in call(*arrays, moved)]
        mine, _ = custom_calls(call, *arrays, moved)
    assert_right(configuration, made, arrays, moved)
    assert (mine > 0) == configuration.ours
    outside = jax.jit(everything(function(configuration)))(*arrays, moved)
    for one, other in zip(made, outside, strict=True):
        assert one.tobytes() == np.asarray(other).tobytes()


def test_other_convolutions_are_left_to_jax() -> None:
    """1-D, 3-D, complex, integers: as before, and computed."""
    rng = np.random.default_rng(0)
    one = rng.standard_normal((2, 3, 9)), rng.standard_normal((4, 3, 3))
    three = rng.standard_normal((1, 2, 4, 4, 4)), rng.standard_normal((2, 2, 3, 3, 3))
    whole = rng.integers(-3, 4, (1, 2, 5, 5)), rng.integers(-3, 4, (3, 2, 3, 3))
    mixed = rng.standard_normal((1, 2, 5, 5)) + 1j, rng.standard_normal((3, 2, 3, 3)) + 2j
    for image, weight in (one, three, whole, mixed):
        call = lambda *given: lax.conv(*given, (1,) * (given[0].ndim - 2), "SAME")  # noqa: E731
        wanted = call(image, weight)
        with accelerate():
            made = jax.jit(call)(image, weight)
            # JAX makes three real convolutions of a complex one, and these are ours.
            assert counted(call, image, weight) == ((3, 0) if image is mixed[0] else (0, 1))
        np.testing.assert_allclose(made, wanted, rtol=1e-9, atol=1e-9)
    wide = lambda *given: lax.conv(*given, (1, 1), "SAME", preferred_element_type=np.float64)  # noqa: E731
    with accelerate():
        narrow = jnp.ones((1, 2, 5, 5), np.float32), jnp.ones((3, 2, 3, 3), np.float32)
        assert counted(wide, *narrow) == (0, 1) and wide(*narrow).dtype == np.float64


def test_mistakes_are_told_in_jaxs_words() -> None:
    """What is malformed for JAX stays so, and the block is left as it should."""
    wrong = np.ones((1, 4, 4, 2)), np.ones((3, 3, 5, 3))
    with pytest.raises(Exception) as wanted:
        small(*wrong)
    with pytest.raises(type(wanted.value)) as got, accelerate():
        small(*wrong)
    assert str(got.value) == str(wanted.value)
    assert counted(small, *PAIR) == (0, 1)


# What JAX remembers of functions. -------------------------------------------------------------------------------------


def test_jitted_and_called_outside_then_used_inside() -> None:
    """JAX keeps what it compiled by the function's shapes: it must not hand out the one of the other side."""
    call = jax.jit(lambda *given: small(*given))
    assert custom_calls(call, *PAIR) == (0, 1)
    wanted = call(*PAIR)
    with accelerate():
        assert custom_calls(call, *PAIR) == (1, 0)
        assert_same(call(*PAIR), wanted)
    assert custom_calls(call, *PAIR) == (0, 1)
    with accelerate():
        assert custom_calls(call, *PAIR) == (1, 0)


def test_jitted_and_called_inside_then_used_outside() -> None:
    with accelerate():
        call = jax.jit(lambda *given: small(*given))
        wanted = call(*PAIR)
        assert custom_calls(call, *PAIR) == (1, 0)
    assert custom_calls(call, *PAIR) == (0, 1)
    assert_same(call(*PAIR), wanted)


def test_what_runs_is_told_apart_too() -> None:
    """Not the text alone: what a jitted function runs, told by bits. Our sums and XLA's round apart."""
    rng = np.random.default_rng(0)
    pair = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((2, 9, 9, 37), (3, 3, 37, 19))
    ]
    call = jax.jit(lambda *given: small(*given))
    outside = np.asarray(call(*pair)).tobytes()
    with accelerate():
        inside = np.asarray(call(*pair)).tobytes()
        assert np.asarray(small(*pair)).tobytes() == inside
    assert outside != inside  # else nothing is shown below
    assert np.asarray(call(*pair)).tobytes() == outside
    with accelerate():
        assert np.asarray(call(*pair)).tobytes() == inside
    assert np.asarray(small(*map(jnp.asarray, pair))).tobytes() == outside


def test_functions_inside_functions() -> None:
    """A jitted layer that was called before by itself, inside another function that is traced in the block."""
    layer = jax.jit(lambda *given: small(*given))
    layer(*PAIR)
    whole = jax.jit(lambda *given: jnp.tanh(layer(*given)))
    with accelerate():
        assert custom_calls(whole, *PAIR) == (1, 0)
        whole(*PAIR)
    assert custom_calls(jax.jit(lambda *given: layer(*given) + 1), *PAIR) == (0, 1)


@pytest.mark.parametrize(
    "wrap",
    [jax.checkpoint, jax.custom_vjp, lambda call: jax.vmap(call, (None, 0)), jax.custom_jvp],
    ids=["checkpoint", "custom_vjp", "vmap", "custom_jvp"],
)
def test_wrapped_functions(wrap: Any) -> None:
    """Whatever stands between the block and the convolution."""
    image, weight = PAIR
    call = wrap(lambda *given: small(*given))
    if wrap is jax.custom_vjp:
        call.defvjp(
            lambda *given: (small(*given), given),
            lambda kept, moved: jax.vjp(small, *kept)[1](moved),
        )
    elif wrap is jax.custom_jvp:
        call.defjvp(lambda given, moves: jax.jvp(small, given, moves))
    elif wrap is not jax.checkpoint:
        weight = weight[None]
    gradient = jax.grad(lambda *given: jnp.sum(call(*given) ** 2), (0, 1))
    wanted = gradient(image, weight)
    with accelerate():
        mine, theirs = counted(gradient, image, weight)
        assert mine >= 2 and theirs == 0
        made = gradient(image, weight)
    same_to_float32(made, wanted)


def test_a_backward_pass_after_the_block() -> None:
    """What the block computed is differentiated by us, also after it: derivatives of our sums are our sums."""
    with accelerate():
        made, back = jax.vjp(small, *map(jnp.asarray, PAIR))
    wanted, theirs = jax.vjp(small, *map(jnp.asarray, PAIR))
    same_to_float32((made, back(made)), (wanted, theirs(wanted)))


def test_loops() -> None:
    """scan traces its body by itself, and remembers it."""
    image = np.ones((1, 4, 4, 2), np.float32)
    weights = np.ones((3, 3, 3, 2, 2), np.float32) * 0.1

    def body(image: Any, weight: Any) -> Any:
        return jnp.tanh(small(image, weight)), None

    run = lambda *given: lax.scan(body, *given)[0]  # noqa: E731
    wanted = run(image, weights)
    assert counted(run, image, weights) == (0, 1)
    with accelerate():
        assert counted(run, image, weights) == (1, 0)
        same_to_float32(run(image, weights), wanted)
    assert counted(run, image, weights) == (0, 1)


# The block itself. ----------------------------------------------------------------------------------------------------


def test_nested() -> None:
    with accelerate():
        with accelerate():
            assert counted(small, *PAIR) == (1, 0)
        assert counted(small, *PAIR) == (1, 0)
    assert counted(small, *PAIR) == (0, 1)


def test_one_object_again_and_again() -> None:
    block = accelerate()
    for _ in range(2):
        with block:
            assert counted(small, *PAIR) == (1, 0)
        assert counted(small, *PAIR) == (0, 1)


def test_decorator() -> None:
    @accelerate()
    def run(image: Any, weight: Any) -> Any:
        """What it is for."""
        return small(image, weight)

    assert run.__name__ == "run" and run.__doc__ == "What it is for."
    assert counted(run, *PAIR) == (1, 0)
    assert custom_calls(jax.jit(run), *PAIR) == (1, 0)
    jitted = accelerate()(jax.jit(lambda *given: small(*given)))
    jitted(*PAIR)
    assert counted(jitted, *PAIR) == (1, 0)
    assert counted(small, *PAIR) == (0, 1)


def test_functions_that_run_later_cannot_be_decorated() -> None:
    """Their bodies would run after the block, on JAX's own kernels, and nobody would notice."""

    def generator(image: Any, weight: Any) -> Any:
        yield small(image, weight)

    async def coroutine(image: Any, weight: Any) -> Any:
        return small(image, weight)

    for later, what in ((generator, "a generator"), (coroutine, "a coroutine")):
        with pytest.raises(ArgumentTypeError, match=f"^accelerate: .* returns {what} that runs"):
            accelerate()(later)


def test_an_exception_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), accelerate():
        raise ZeroDivisionError
    assert counted(small, *PAIR) == (0, 1)

    def fail(image: Any, weight: Any) -> Any:
        small(image, weight)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), accelerate():
        jax.jit(fail)(*PAIR)
    assert counted(small, *PAIR) == (0, 1)


def test_other_threads_do_not_see_it() -> None:
    found: list[Any] = []
    entered, looked = threading.Event(), threading.Event()

    def other() -> None:
        entered.wait(60)
        found.append(counted(small, *PAIR))
        with accelerate():
            found.append(counted(small, *PAIR))
        looked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with accelerate():
        entered.set()
        assert looked.wait(60)
        assert counted(small, *PAIR) == (1, 0)
    thread.join()
    assert found == [(0, 1), (1, 0)]


def test_the_function_itself_is_left_alone() -> None:
    """Who compares or pickles it finds what was there."""
    before = lax.conv_general_dilated
    with accelerate():
        assert lax.conv_general_dilated is before
    assert lax.conv_general_dilated is before


def test_exports_of_symbolic_shapes_are_jaxs() -> None:
    """A program of ours is for one shape: JAX's convolution stays what it is, and our function refuses."""
    image, weight = PAIR
    (batch,) = jax.export.symbolic_shape("batch")
    spec = jax.ShapeDtypeStruct((batch, *image.shape[1:]), image.dtype)
    with accelerate():
        exported = jax.export.export(jax.jit(lambda *given: small(*given)))(spec, weight)
    assert f"@{TARGET}_" not in exported.mlir_module()
    assert_same(exported.call(image, weight), small(image, weight))
    with pytest.raises(ArgumentError, match="must have a shape of known sizes"):
        jax.export.export(jax.jit(lambda x: convgrad.conv2d(x, weight, 1, "SAME")))(spec)


def test_names_of_our_calls() -> None:
    with accelerate():
        text = jax.jit(lambda *given: small(*given)).lower(*PAIR).as_text()
    assert f"@{TARGET}_" in text


def assert_same(mine: Any, theirs: Any) -> None:
    np.testing.assert_array_equal(mine, theirs)


def same_to_float32(mine: Any, theirs: Any) -> None:
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5),
        mine,
        theirs,
    )
