"""Whole models: what is taken and left, training, compiled functions, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as kl

import convgrad.keras
from convgrad._problem.convolution import Kind
from convgrad.errors import ArgumentTypeError
from keras_bridge.running import ALL, BACKEND, computed, numbers, taken


@pytest.fixture(autouse=True)
def in_float64() -> Iterator[None]:
    """Images and losses, too, where a test does not name another dtype."""
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx("float32")


_sizes = iter(range(9, 200, 2))
"""A width that no other model here has, nor half of it, so that its problems are its own."""


def network(width: int, dtype: Any = "float64", **settings: Any) -> Any:
    """A model with every kind of layer that is taken, and some around them."""
    keras.utils.set_random_seed(7)
    inputs = keras.Input((12, width, 3), dtype="float64" if dtype == "float64" else "float32")
    x = kl.Conv2D(8, 3, strides=2, padding="same", dtype=dtype, **settings)(inputs)
    x = kl.DepthwiseConv2D(3, padding="same", activation="tanh", dtype=dtype)(x)
    x = kl.BatchNormalization(dtype=dtype)(x)
    x = kl.SeparableConv2D(6, 3, padding="same", dtype=dtype)(x)
    x = kl.Conv2DTranspose(4, 3, strides=2, padding="same", dtype=dtype)(x)
    x = kl.GlobalAveragePooling2D(dtype=dtype)(x)
    return keras.Model(inputs, kl.Dense(3, dtype=dtype)(x))


def small(width: int, dtype: Any = "float64") -> Any:
    """Two layers, which ask for problems of every kind when they are trained."""
    keras.utils.set_random_seed(7)
    inputs = keras.Input((12, width, 3), dtype="float64" if dtype == "float64" else "float32")
    x = kl.Conv2D(4, 3, strides=2, padding="same", dtype=dtype)(inputs)
    x = kl.Conv2DTranspose(3, 3, strides=2, padding="same", dtype=dtype)(x)
    return keras.Model(inputs, kl.GlobalAveragePooling2D(dtype=dtype)(x))


def images(width: int, dtype: str = "float64", count: int = 12) -> tuple[np.ndarray, np.ndarray]:
    x = numbers((count, 12, width, 3), seed=width, dtype=dtype)
    return x, x.mean((1, 2))


def train(model: Any, width: int, epochs: int = 1, dtype: str = "float64", count: int = 12) -> None:
    x, y = images(width, dtype, count)
    model.fit(x, y, batch_size=4, epochs=epochs, verbose=0, shuffle=False)


def compiled(model: Any, **more: Any) -> Any:
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", **more)
    return model


NEAR = 1e-9 if BACKEND == "tensorflow" else 1e-6
"""Beside convolutions (`test_values_and_gradients` has those), Keras computes float64 in float32 on JAX and PyTorch."""


def near(mine: Any, theirs: Any, tolerance: float = NEAR) -> None:
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


# Training. ------------------------------------------------------------------------------------------------------------


def test_fit_evaluate_predict_are_those_of_keras() -> None:
    width = next(_sizes)
    x, y = images(width)
    theirs = compiled(network(width))
    train(theirs, width)
    ours = taken(compiled(network(width)))
    with computed(*ALL):
        train(ours, width)
    near(ours.get_weights(), theirs.get_weights())
    near(
        [each.numpy() for each in ours.optimizer.variables],
        [each.numpy() for each in theirs.optimizer.variables],
    )
    near([ours.evaluate(x, y, 4, verbose=0)], [theirs.evaluate(x, y, 4, verbose=0)])
    near([ours.predict(x, 4, verbose=0)], [theirs.predict(x, 4, verbose=0)])


def test_a_model_in_training_changes_over_and_back() -> None:
    """Functions that it has compiled are dropped, though somebody holds them; the optimizer goes on."""
    width = next(_sizes)
    theirs = compiled(small(width))
    train(theirs, width, epochs=3)
    ours = compiled(small(width))
    x, y = images(width)
    with computed():
        train(ours, width)
        ours.evaluate(x, y, verbose=0)
        ours.predict(x, verbose=0)
    held = [ours.train_function, ours.test_function, ours.predict_function]
    assert all(held)
    taken(ours)
    optimizer = ours.optimizer
    with computed(*ALL):
        train(ours, width)
    with computed(Kind.FORWARD, Kind.INPUT_GRADIENT):  # another size of the batch
        ours.evaluate(x, y, verbose=0, batch_size=6)
    with computed(Kind.FORWARD, Kind.INPUT_GRADIENT):
        ours.predict(x, verbose=0, batch_size=12)
    held += [ours.train_function, ours.test_function, ours.predict_function]
    assert convgrad.keras.restore(ours) == 2
    with computed():
        train(ours, width)
        ours.evaluate(x, y, verbose=0, batch_size=3)
        ours.predict(x, verbose=0, batch_size=2)
    assert ours.optimizer is optimizer and ours.compiled and len(held) == 6
    near(ours.get_weights(), theirs.get_weights())


WAYS = {
    "torch": ["run_eagerly", "jit_compile"],  # has no several steps at once
    "jax": ["run_eagerly", "steps_per_execution", "jit_compile"],
    "tensorflow": ["run_eagerly", "steps_per_execution"],  # `test_compiling_with_xla` has the third
}


@pytest.mark.parametrize("how", WAYS[BACKEND])
def test_ways_to_run(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    width = next(_sizes)
    if BACKEND == "torch":
        import torch

        # The default turns the graph into C++, half a minute per model; the operator in it is the same.
        traced = partial(torch.compile, backend="aot_eager")
        monkeypatch.setattr(torch, "compile", traced)
    several = how == "steps_per_execution"
    theirs = compiled(small(width))
    train(theirs, width, count=12 if several else 4)
    ours = taken(compiled(small(width), **{how: 3 if several else True}))
    with computed(*ALL):
        train(ours, width, count=12 if several else 4)
    near(ours.get_weights(), theirs.get_weights())


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy: str) -> None:
    """Weights and optimizer stay float32; training goes where Keras's own goes, as far as 16 bits tell."""
    width = next(_sizes)
    runs = []
    for ours in (False, True):
        model = compiled(small(width, policy))
        if ours:
            taken(model)
            with computed(*ALL):
                train(model, width, dtype="float32")
        else:
            train(model, width, dtype="float32")
        runs.append(model.get_weights())
        assert {each.dtype for each in model.trainable_weights} == {"float32"}
    near(*runs, tolerance=0.02)
    assert model.layers[1].compute_dtype == policy.removeprefix("mixed_")


def test_a_policy_per_layer() -> None:
    width = next(_sizes)
    inputs = keras.Input((12, width, 3))
    x = kl.Conv2D(4, 3, dtype="mixed_bfloat16")(inputs)
    x = kl.Conv2D(4, 3, dtype="float64")(x)
    model = taken(keras.Model(inputs, kl.Conv2D(2, 1, dtype="float16")(x)))
    with computed(Kind.FORWARD):
        result = model(keras.ops.convert_to_tensor(images(width, "float32")[0]))
    assert keras.backend.standardize_dtype(result.dtype) == "float16"


def test_frozen_layers_regularizers_and_constraints() -> None:
    keras.config.set_floatx(
        "float32"
    )  # TensorFlow cannot add up losses of two dtypes, with us or without
    width = next(_sizes)
    models = []
    for ours in (False, True):
        keras.utils.set_random_seed(7)
        model = keras.Sequential(
            [
                keras.Input((12, width, 3), dtype="float32"),
                kl.DepthwiseConv2D(3, name="frozen", trainable=False, dtype="float32"),
                kl.Conv2D(
                    *(3, 3),
                    kernel_regularizer="l2",
                    kernel_constraint=keras.constraints.MaxNorm(0.3),
                    activity_regularizer="l1",
                    bias_regularizer="l2",
                    dtype="float32",
                ),
                kl.GlobalAveragePooling2D(dtype="float32"),
            ]
        )
        before = model.get_weights()
        compiled(model)
        if ours:
            taken(model)
        with computed(*(Kind.FORWARD, Kind.FILTER_GRADIENT) if ours else ()):
            train(model, width, dtype="float32")
        models.append(model)
    theirs, ours = models
    near(ours.get_weights(), theirs.get_weights(), tolerance=1e-5)
    frozen, _, trained, _ = (
        np.array_equal(*each) for each in zip(ours.get_weights(), before, strict=True)
    )
    assert frozen and not trained
    assert np.linalg.norm(ours.get_weights()[2].reshape(-1, 3), axis=0).max() <= 0.9
    for each in (
        models
    ):  # a loss of activity is that of the last call, and a compiled one leaves none behind
        each(keras.ops.convert_to_tensor(images(width, "float32")[0][:4]))
    assert len(ours.losses) == len(theirs.losses) == 3


# What is taken. -------------------------------------------------------------------------------------------------------


class Block(kl.Layer):
    """A layer of a user's own with convolutions inside, one of them in a list."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.first = kl.Conv2D(4, 3, padding="same", name="first")
        self.others = [kl.DepthwiseConv2D(3, padding="same", name="second")]

    def call(self, inputs: Any) -> Any:
        return self.others[0](self.first(inputs))


class Renamed(kl.Conv2D):
    """Derived, but computing as Keras does."""

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config()}


class Standardized(kl.Conv2D):
    def convolution_op(self, inputs: Any, kernel: Any) -> Any:
        return super().convolution_op(inputs, kernel - keras.ops.mean(kernel))


class Doubled(kl.DepthwiseConv2D):
    def call(self, inputs: Any) -> Any:
        return 2 * super().call(inputs)


def test_layers_are_found_wherever_they_are() -> None:
    width = next(_sizes)
    inner = keras.Sequential(
        [keras.Input((12, width, 4)), kl.Conv2D(4, 1, name="point")], name="inner"
    )
    shared = kl.Conv2D(4, 1, name="shared")
    frames = keras.Input((2, 12, width, 3))
    x = kl.TimeDistributed(kl.Conv2D(4, 3, padding="same", name="each"), name="frames")(frames)
    x = kl.Lambda(lambda each: each[:, 0], output_shape=(12, width, 4), name="pick")(x)
    x = Block(name="block")(shared(shared(inner(x))))
    model = keras.Model(frames, Renamed(2, 1, name="renamed")(x))
    data = numbers((3, 2, 12, width, 3), dtype="float32")
    before = model.predict(data, verbose=0)
    report = convgrad.keras.accelerate(model)
    assert sorted(report.taken) == [
        *("block/first", "block/second", "frames/each", "inner/point", "renamed", "shared")
    ]
    assert not report.left
    with computed(Kind.FORWARD):
        after = model.predict(data, verbose=0)
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
    assert convgrad.keras.restore(model) == 6


def test_what_is_left_alone_and_why() -> None:
    """Left layers go on as they were; every reason is in the report."""
    replaced = kl.Conv2D(4, 1, name="replaced")
    replaced.__dict__["call"] = lambda inputs: inputs
    layers = {
        "standardized": (
            Standardized(4, 3, name="standardized"),
            "Standardized has a `convolution_op` of its own",
        ),
        "doubled": (Doubled(3, name="doubled"), "Doubled has a `call` of its own"),
        "replaced": (replaced, "its `call` was replaced"),
        "quantized": (
            kl.Conv2D(4, 1, name="quantized", dtype="int8_from_float32"),
            "it is quantized (int8)",
        ),
        "one": (kl.Conv1D(4, 1, name="one"), "it is 1-D"),
        "one_separable": (kl.SeparableConv1D(4, 1, name="one_separable"), "it is 1-D"),
        "three": (kl.Conv3D(4, 1, name="three"), "it is 3-D"),
        "three_transposed": (kl.Conv3DTranspose(4, 1, name="three_transposed"), "it is 3-D"),
    }

    class Holder(kl.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.held = [*(layer for layer, _ in layers.values()), kl.Conv2D(4, 1, name="taken")]

    holder = Holder()
    report = convgrad.keras.accelerate(holder)
    assert report.taken == ("taken",)
    assert report.left.keys() == layers.keys()
    for name, (_, reason) in layers.items():
        assert report.left[name].endswith(reason), report.left[name]
    text = str(report)
    assert "1 of 9 layers are computed by convgrad." in text
    assert "left alone" in text and "it is 3-D" in text
    again = convgrad.keras.accelerate(holder)
    assert again.taken == ("taken",) and [row.reason for row in again.layers if row.taken] == [
        "already"
    ]
    assert convgrad.keras.restore(holder) == 1
    assert replaced.call(3) == 3


def test_nothing_taken_is_worth_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="no layer of this model was taken"):
        report = convgrad.keras.accelerate(keras.Sequential([kl.Dense(3)]))
    assert report.taken == () and report.left == {}


def test_layers_need_not_be_built() -> None:
    width = next(_sizes)
    model = keras.Sequential([kl.Conv2D(4, 3), kl.DepthwiseConv2D(3)])
    taken(model)
    with computed(Kind.FORWARD):
        result = model(keras.ops.convert_to_tensor(images(width, "float32")[0]))
    assert tuple(result.shape) == (12, 8, width - 4, 4)


def test_lora() -> None:
    """The kernel of such a layer is a sum; what computes with it makes no difference to which weights are trained."""
    width = next(_sizes)
    runs = []
    for when in ("never", "before", "after"):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((12, width, 3)), kl.Conv2D(6, 3, dtype="float32")])
        layer = model.layers[0]
        if when == "before":
            taken(model)
        layer.enable_lora(2)
        if when == "after":
            taken(model)
        compiled(model)
        x, _ = images(width, "float32")
        y = np.ones((12, 10, width - 2, 6), "float32")
        frozen = np.array(layer._kernel.numpy())
        model.fit(x, y, batch_size=4, verbose=0, shuffle=False)
        assert np.array_equal(layer._kernel.numpy(), frozen)
        runs.append([each.numpy() for each in layer.trainable_weights])
    assert len(runs[0]) == 3
    near(runs[1], runs[0], tolerance=1e-4)
    near(runs[2], runs[0], tolerance=1e-4)


def test_rematerialization() -> None:
    """What is computed a second time has the gradients of the first: `jax.checkpoint` remembers what it traced."""
    width = next(_sizes)
    runs = []
    for ours in (False, True):
        with keras.RematScope(mode="full"):
            model = small(width)
        before = model.get_weights()
        # TensorFlow refuses that in graphs, with us or without.
        compiled(model, run_eagerly=BACKEND == "tensorflow")
        if ours:
            taken(model)
        with computed(*ALL if ours else ()):
            train(model, width)
        runs.append(model.get_weights())
        assert not any(np.array_equal(*each) for each in zip(runs[-1], before, strict=True))
    near(*runs)
    assert convgrad.keras.restore(model) == 2
    assert "rematerialized_call" not in model.layers[1].__dict__


def test_compiling_with_xla() -> None:
    """TensorFlow's XLA has no kernels of ours: a model that asks for it is left alone, or compiled without."""
    width = next(_sizes)
    early, late = small(width, "float32"), small(width, "float32")
    compiled(early, jit_compile=True)
    if BACKEND != "tensorflow":
        assert taken(early).jit_compile is True  # and `test_ways_to_run` trains such a model
        return
    with pytest.warns(RuntimeWarning, match="no layer of this model was taken"):
        report = convgrad.keras.accelerate(early)
    assert set(report.left.values()) == {
        "its model is compiled with jit_compile=True, and XLA has no kernels of ours: "
        "compile it with jit_compile=False"
    }
    with computed():
        train(early, width, dtype="float32")
    taken(late)
    with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
        compiled(late, jit_compile=True)
    assert late.jit_compile is False
    with computed(*ALL):
        train(late, width, dtype="float32")
    near(late.get_weights(), early.get_weights(), tolerance=1e-3)
    convgrad.keras.restore(late)
    assert compiled(late, jit_compile=True).jit_compile is True


def test_advice_and_memory() -> None:
    model = keras.Sequential([kl.Conv2D(4, 3, data_format="channels_first")])
    report = convgrad.keras.accelerate(model, memory=True)
    assert "channels_last are faster" in str(report)
    assert report.memory is not None and f"Memory: {report.memory}." in str(report)
    report.memory.undo()
    model = keras.Sequential([kl.Conv2D(4, 3)])
    report = convgrad.keras.accelerate(model)
    assert report.advice == () and report.memory is None and "Memory" not in str(report)


@pytest.mark.parametrize("wrong", [None, 3, "model", kl.Conv2D], ids=str)
@pytest.mark.parametrize("function", ["accelerate", "restore"])
def test_only_models_and_layers(function: str, wrong: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=f"convgrad.keras.{function}: `model` must be"):
        getattr(convgrad.keras, function)(wrong)
