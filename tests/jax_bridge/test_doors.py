"""TensorFlow's functions with arrays of JAX: such arrays come back, with the bits NumPy gets and derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import convgrad
import convgrad.jax
from convgrad.errors import ArgumentError, ArgumentTypeError, DTypeError
from errors.doors import DOORS, FRIENDLY, REFERENCE, Door, expected

DTYPES = [np.dtype(each) for each in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
every_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)


def given(
    door: Door, dtype: Any = np.float32, change: Any = jnp.asarray, **more: Any
) -> dict[str, Any]:
    """Return the arguments of a call whose arrays have become something else."""
    arguments = door.arguments(dtype=dtype, **more)
    return arguments | {name: change(arguments[name]) for name in door.arrays}


def test_the_module_has_the_friendly_functions() -> None:
    for door in FRIENDLY:
        assert getattr(convgrad.jax, door.id) is getattr(convgrad, door.id)
    assert set(convgrad.jax.__all__) == {
        *(door.id for door in FRIENDLY),
        *("MemorySetting", "accelerate", "batch_norm_act", "conv_general_dilated", "register"),
        "tune_memory",
    }


@every_door
def test_an_array_comes_back(door: Door) -> None:
    for dtype in DTYPES:
        for layout in ("NHWC", "NCHW"):
            result = door.function(**given(door, dtype, layout=layout))
            assert isinstance(result, jax.Array) and result.dtype == dtype
            theirs = door.call(dtype=dtype, layout=layout)
            assert np.asarray(result).tobytes() == theirs.tobytes() and result.shape == theirs.shape
            assert np.array_equal(result, expected(door, layout=layout))


@every_door
def test_inside_jit(door: Door) -> None:
    """Random numbers round: the same kernels must have run."""
    rng = np.random.default_rng(1)
    arguments = door.arguments()
    arrays = {
        name: rng.standard_normal(arguments[name].shape).astype(np.float32) for name in door.arrays
    }
    rest = {name: value for name, value in arguments.items() if name not in arrays}
    made = jax.jit(lambda arrays: door.function(**rest, **arrays))(arrays)
    assert np.asarray(made).tobytes() == door.function(**rest, **arrays).tobytes()


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.takes_int32], ids=lambda door: door.id
)
def test_integers(door: Door) -> None:
    result = door.function(**given(door, np.int32))
    assert result.dtype == jnp.int32 and np.array_equal(result, expected(door))


@every_door
def test_derivatives(door: Door) -> None:
    """Every function is linear in each of its arrays, so on whole numbers a difference is the derivative, exactly."""
    arguments = given(door, np.float64)
    only_shape = (
        () if not door.like else (door.input,) if door.op.endswith("_input") else (door.filter,)
    )
    rng = np.random.default_rng(2)
    for name in door.arrays:

        def call(array: Any, name: str = name) -> Any:
            return door.function(**arguments | {name: array})

        before = arguments[name]
        move = rng.integers(-3, 4, before.shape).astype(np.float64)
        made, slope = jax.jvp(call, (before,), (move,))
        back = rng.integers(-3, 4, made.shape).astype(np.float64)
        (pulled,) = jax.vjp(call, before)[1](back)
        if name in only_shape:
            assert not np.any(slope) and not np.any(pulled)
            continue
        np.testing.assert_array_equal(slope, call(before + move) - call(before))
        assert np.any(slope)
        assert np.vdot(pulled, move) == np.vdot(back, slope)


@every_door
def test_an_array_beside_others(door: Door) -> None:
    """One array of JAX makes the result one, whichever argument it is; lists and NumPy's arrays become such."""
    for first in door.arrays:
        for other in (np.asarray, lambda array: array.tolist()):
            arguments = given(door, np.float32, other)
            arguments[first] = jnp.asarray(door.arguments()[first])
            result = door.function(**arguments)
            assert isinstance(result, jax.Array), (first, type(result))
            assert result.dtype == jnp.float32
            assert np.array_equal(result, expected(door))


@every_door
def test_shapes_are_known_without_numbers(door: Door) -> None:
    arguments = door.arguments()
    arrays = {name: jax.ShapeDtypeStruct(arguments[name].shape, np.float32) for name in door.arrays}
    rest = {name: value for name, value in arguments.items() if name not in arrays}
    made = jax.eval_shape(lambda arrays: door.function(**rest, **arrays), arrays)
    assert made.shape == np.shape(expected(door)) and made.dtype == np.float32


@pytest.mark.single
def test_sizes_may_be_arrays_of_jax() -> None:
    """The sizes of a gradient are numbers, whatever holds them."""
    weight, moved = jnp.ones((2, 2, 1, 1)), jnp.ones((1, 3, 3, 1))
    made = convgrad.conv2d_backprop_input(jnp.array([1, 3, 3, 1]), weight, moved, 1, "SAME")
    assert made.shape == (1, 3, 3, 1)


def test_more_dimensions() -> None:
    """`conv2d` takes images with more leading dimensions."""
    image, weight = jnp.ones((2, 3, 4, 4, 2)), jnp.ones((3, 3, 2, 5))
    made = jax.jit(lambda *both: convgrad.conv2d(*both, 1, "VALID"))(image, weight)
    assert made.shape == (2, 3, 2, 2, 5) and (made == 18).all()


@every_door
def test_mistakes_are_those_of_numpy(door: Door) -> None:
    """The same words, when it is called and when it is traced."""
    for changes in ({"padding": "SAMEISH"}, {"strides": 0}, {"data_format": "NWHC"}):
        with pytest.raises((ArgumentError, ArgumentTypeError)) as by_numpy:
            door.call(**changes)
        with pytest.raises((ArgumentError, ArgumentTypeError)) as called:
            door.function(**given(door, **changes))
        assert str(called.value) == str(by_numpy.value)
        with pytest.raises((ArgumentError, ArgumentTypeError)) as traced:
            arguments = door.arguments(**changes)
            arrays = {name: arguments.pop(name) for name in door.arrays}
            jax.jit(lambda arrays, rest=arguments: door.function(**rest, **arrays))(arrays)
        assert str(traced.value) == str(by_numpy.value)


def test_shapes_are_checked_as_for_arrays_of_numpy() -> None:
    for image, weight in (
        ((1, 3, 3, 2), (2, 2, 3, 1)),
        ((3, 3, 2), (2, 2, 2, 1)),
        ((1, 3, 3, 2), (2, 2, 2)),
    ):
        with pytest.raises(ArgumentError) as wanted:
            convgrad.conv2d(np.ones(image), np.ones(weight), 1, "SAME")
        for call in (convgrad.jax.conv2d, jax.jit(convgrad.jax.conv2d, static_argnums=(2, 3))):
            with pytest.raises(ArgumentError) as got:
                call(jnp.ones(image), jnp.ones(weight), 1, "SAME")
            assert str(got.value) == str(wanted.value)


@pytest.mark.parametrize(
    "dtype", [jnp.int16, jnp.bool_, jnp.complex64, jnp.uint8, jnp.float8_e4m3fn], ids=str
)
def test_other_dtypes_are_refused(dtype: Any) -> None:
    image, weight = jnp.ones((1, 3, 3, 1), dtype), jnp.ones((2, 2, 1, 1), dtype)
    with pytest.raises(
        DTypeError, match=f"conv2d: `input` must have one of .*got {jnp.dtype(dtype).name}"
    ):
        convgrad.conv2d(image, weight, 1, "SAME")
    with pytest.raises(DTypeError, match="conv2d: `input` must have one of"):
        jax.jit(lambda *both: convgrad.conv2d(*both, 1, "SAME"))(image, weight)


def test_dtypes_are_not_mixed() -> None:
    image, weight = jnp.ones((1, 1, 1, 1), jnp.bfloat16), jnp.ones((1, 1, 1, 1), jnp.float32)
    for call in (convgrad.conv2d, jax.jit(convgrad.conv2d, static_argnums=(2, 3))):
        with pytest.raises(
            DTypeError, match=r"conv2d: `filters` must have the dtype .*bfloat16, got float32"
        ):
            call(image, weight, 1, "SAME")
    with pytest.raises(DTypeError, match="`filters` must have the dtype"):
        convgrad.conv2d(image, np.ones((1, 1, 1, 1)), 1, "SAME")


@pytest.mark.parametrize("door", REFERENCE, ids=lambda door: door.id)
def test_the_oracle_answers_in_numpy(door: Door) -> None:
    result = door.function(**given(door))
    assert type(result) is np.ndarray and result.dtype == np.float64
    assert np.array_equal(result, expected(door))


def test_deleted_arrays_are_refused() -> None:
    image, weight = jnp.ones((1, 3, 3, 1)), jnp.ones((2, 2, 1, 1))
    image.delete()
    with pytest.raises((ArgumentError, ArgumentTypeError, RuntimeError), match="delete"):
        convgrad.conv2d(image, weight, 1, "SAME")
