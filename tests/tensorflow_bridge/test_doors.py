"""Every public function with tensors: tensors come back, from every door, in every dtype and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
import convgrad.tensorflow
from convgrad._base.dtypes import FLOATING
from convgrad.errors import ArgumentError, ArgumentTypeError, ConvgradError, DTypeError
from errors.doors import DOORS, FRIENDLY, REFERENCE, Door, expected
from tensorflow_bridge.running import bits

every_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)


def given(door: Door, change: Any = tf.constant, **how: Any) -> dict[str, Any]:
    """Return the arguments of a call whose arrays have become something else."""
    arguments = door.arguments(**how)
    return arguments | {name: change(arguments[name]) for name in door.arrays}


@every_door
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_tensor_comes_back(door: Door, layout: str) -> None:
    for row in FLOATING:
        made = door.function(**given(door, dtype=row.numpy, layout=layout))
        assert isinstance(made, tf.Tensor) and made.dtype == tf.as_dtype(row.numpy)
        assert bits(made) == bits(door.call(dtype=row.numpy, layout=layout))
        assert np.array_equal(made, expected(door, layout=layout))


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.takes_int32], ids=lambda door: door.id
)
def test_integers(door: Door) -> None:
    made = door.function(**given(door, dtype=np.int32))
    assert made.dtype == tf.int32 and np.array_equal(made, expected(door))


@every_door
def test_one_tensor_is_enough(door: Door) -> None:
    """NumPy's arrays and lists beside a tensor are taken, and the answer is a tensor."""
    arguments = door.arguments()
    for name in door.arrays:
        made = door.function(**arguments | {name: tf.constant(arguments[name])})
        assert isinstance(made, tf.Tensor) and np.array_equal(made, expected(door))
    first, *others = door.arrays
    made = door.function(
        **arguments
        | {first: tf.constant(arguments[first])}
        | {name: arguments[name].tolist() for name in others}
    )
    assert isinstance(made, tf.Tensor) and np.array_equal(made, expected(door))


@every_door
def test_variables(door: Door) -> None:
    """Also trained: the gradient of a variable is a tensor of its shape."""
    arguments = given(door, lambda array: tf.Variable(array))
    with tf.GradientTape() as tape:
        made = door.function(**arguments)
    assert isinstance(made, tf.Tensor) and np.array_equal(made, expected(door))
    variables = [arguments[name] for name in door.arrays]
    for variable, gradient in zip(variables, tape.gradient(made, variables), strict=True):
        # The V2 raw ops take an array for the sake of its shape alone.
        assert gradient is None or gradient.shape == variable.shape


@every_door
def test_the_tape_reaches_every_array(door: Door) -> None:
    arguments = given(door, dtype=np.float64)
    arrays = [arguments[name] for name in door.arrays]
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        made = tf.reduce_sum(door.function(**arguments) ** 2)
    gradients = dict(zip(door.arrays, tape.gradient(made, arrays), strict=True))
    for name, gradient in gradients.items():
        if door.like and name == (door.input if door.op.endswith("_input") else door.filter):
            assert gradient is None or not np.any(gradient), name  # only its shape is read
            continue
        step = 1e-4
        move = np.random.default_rng(1).standard_normal(arguments[name].shape)

        def loss(way: float, name: str = name, move: Any = move) -> float:
            moved = np.asarray(arguments[name]) + way * move
            return float(np.sum(np.asarray(door.function(**arguments | {name: moved})) ** 2))

        slope = (loss(step) - loss(-step)) / (2 * step)
        assert abs(float(np.sum(gradient * move)) - slope) < 1e-5 * max(1, abs(slope)), name


def test_the_module_has_the_eight_functions() -> None:
    for door in FRIENDLY:
        assert getattr(convgrad.tensorflow, door.id) is door.function
    assert set(convgrad.tensorflow.__all__) == {
        *(door.id for door in FRIENDLY),
        *("install", "installed", "Installed", "tune_memory", "MemorySetting", "batch_norm_act"),
    }


@pytest.mark.parametrize("door", REFERENCE, ids=lambda door: door.id)
def test_the_oracle_takes_tensors_and_answers_in_numpy(door: Door) -> None:
    made = door.function(**given(door))
    assert type(made) is np.ndarray and made.dtype == np.float64
    assert np.array_equal(made, expected(door))


@every_door
def test_mixed_dtypes_are_refused(door: Door) -> None:
    arguments = given(door)
    other = door.arrays[1]
    for dtype in (tf.float64, tf.bfloat16):
        with pytest.raises(DTypeError, match=f"`{other}` must have the dtype"):
            door.function(**arguments | {other: tf.cast(arguments[other], dtype)})


@every_door
@pytest.mark.parametrize("dtype", [tf.int64, tf.complex64, tf.bool, tf.uint8, tf.string])
def test_other_dtypes_are_refused(door: Door, dtype: Any) -> None:
    arguments = door.arguments()
    name = door.arrays[0]
    value = tf.zeros(arguments[name].shape, dtype) if dtype != tf.string else tf.fill((1,) * 4, "x")
    with pytest.raises(DTypeError, match=f"^{door.shown}: `{name}` must have one of the dtypes"):
        door.function(**arguments | {name: value})


@every_door
def test_ranks_are_checked(door: Door) -> None:
    """Eagerly and while tracing, with the words NumPy's callers get."""
    arguments = door.arguments()
    for name in door.arrays:
        flat = arguments | {name: arguments[name].reshape(-1)}
        with pytest.raises(ArgumentError) as numpy:
            door.function(**flat)
        tensors = flat | {each: tf.constant(flat[each]) for each in door.arrays}
        with pytest.raises(ArgumentError) as eager:
            door.function(**tensors)
        assert str(eager.value) == str(numpy.value)
        with pytest.raises(ArgumentError) as traced:
            tf.function(lambda tensors=tensors: door.function(**tensors), autograph=False)()
        assert str(traced.value) == str(numpy.value)


@every_door
def test_what_is_wrong_only_when_it_runs(door: Door) -> None:
    """Unknown ranks that turn out bad: TensorFlow's own error class, and our words in it."""
    arguments = door.arguments()
    name = door.arrays[0]
    function = tf.function(
        lambda array: door.function(**arguments | {name: array}),
        input_signature=[tf.TensorSpec(None, tf.float32)],
        autograph=False,
    )
    bad = tf.ones((4, 5)) if door.takes_more_dimensions else tf.ones((2, 3, 4))
    try:
        function(bad)
    except tf.errors.InvalidArgumentError as error:
        # The op knows its own arguments' names, not those of a function that is made of it.
        own = {"conv2d_transpose": "out_backprop"}.get(
            door.op, "input_sizes" if door.like else name
        )
        assert f"`{name}`" in str(error) or f"`{own}`" in str(error), error
    except ConvgradError:
        pass
    else:
        raise AssertionError("a bad rank was taken")


def test_a_ragged_or_sparse_tensor_is_refused() -> None:
    f = tf.ones((1, 1, 1, 1))
    for value in (
        tf.ragged.constant([[[[1.0]]], [[[1.0]], [[2.0]]]]),
        tf.sparse.from_dense(tf.ones((1, 2, 2, 1))),
        tf.IndexedSlices(tf.ones((1, 2, 2, 1)), tf.constant([0]), tf.constant([1, 2, 2, 1])),
    ):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="conv2d: `input`"):
            convgrad.conv2d(value, f, 1, "SAME")
