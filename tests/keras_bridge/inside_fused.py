"""`accelerate(model, fuse=True)`: batch norms and activations in one pass, against Keras's own, and the way back."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as kl

import convgrad.keras
import rows
from convgrad import _engine
from convgrad._bridges.keras import activations, backends, graphs
from convgrad._problem.norm import Task
from convgrad.errors import ArgumentError
from keras_bridge.running import BACKEND, array, numbers

COMPUTER = backends.computer("test")
X = numbers((16, 8, 6, 3), seed=2, dtype="float32") * 2 + 1
Y = X.mean((1, 2))


def block(x: Any, activation: Any, **settings: Any) -> Any:
    return activation(kl.BatchNormalization(**settings)(x))


def network(dtype: Any = None) -> Any:
    """Batch norms of all kinds: followed by activations, by another layer, by two, without scale and offset."""
    keras.utils.set_random_seed(7)
    with _policy(dtype):
        inputs = keras.Input((8, 6, 3))
        x = block(kl.Conv2D(8, 3, padding="same")(inputs), kl.ReLU(6), momentum=0.7)
        x = block(kl.DepthwiseConv2D(3)(x), kl.Activation("swish"), epsilon=1e-5, scale=False)
        two = kl.BatchNormalization(center=False)(x)
        x = kl.Add()([two, kl.LeakyReLU(0.1)(two)])
        x = kl.GlobalAveragePooling2D(name="pool")(kl.BatchNormalization()(x))
        return keras.Model(inputs, kl.Dense(3, dtype="float32")(x))


class _policy:
    def __init__(self, dtype: Any) -> None:
        self.dtype, self.before = dtype, keras.config.dtype_policy()

    def __enter__(self) -> None:
        if self.dtype:
            keras.config.set_dtype_policy(self.dtype)

    def __exit__(self, *error: Any) -> None:
        keras.config.set_dtype_policy(self.before)


def compiled(model: Any, **more: Any) -> Any:
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", **more)
    return model


def trained(model: Any, steps: int = 3) -> Any:
    for at in range(steps):
        part = slice(8 * (at % 2), 8 * (at % 2) + 8)
        model.train_on_batch(X[part], Y[part])
    return model


def distance(one: Any, other: Any) -> float:
    """Return how far apart the weights of two models are: moving statistics are among them."""
    return max(
        float(np.max(np.abs(a - b)))
        for a, b in zip(one.get_weights(), other.get_weights(), strict=True)
    )


def predicted(model: Any) -> np.ndarray:
    return array(model(X, training=False))


NEAR = 3e-6
"""Of weights after three steps in float32, whose numbers are about 1."""


def passes() -> set[str]:
    """Return which passes of batch norm this process has prepared, with sizes."""
    keys = [key[0] for key in list(_engine.memory) if isinstance(key, tuple)]
    return {f"{each.name} {each.channels}" for each in keys if isinstance(each, Task)}


def test_training() -> None:
    before = passes()
    theirs, mine = (compiled(network()) for _ in range(2))
    report = convgrad.keras.accelerate(mine, fuse=True)
    rows = {layer.what: layer.reason for layer in report.layers if layer.kind != "Conv2D"}
    assert not report.left
    assert {"batch norm, relu6", "batch norm, silu"} <= rows.keys()
    reasons = [layer.reason for layer in report.layers if layer.what == "batch norm"]
    assert [each.partition(": ")[2].split()[0] for each in reasons] == ["2", "pool"], reasons
    old = mine.get_weights()
    trained(theirs)
    trained(mine)
    assert passes() - before == {"forward 8", "backward 8"}
    assert (
        max(float(np.max(np.abs(a - b))) for a, b in zip(old, mine.get_weights(), strict=True))
        > 0.1
    )
    assert distance(theirs, mine) < NEAR
    np.testing.assert_allclose(predicted(mine), predicted(theirs), atol=NEAR)
    # And back.
    assert convgrad.keras.restore(mine) == len(report.taken)
    assert not any("call" in layer.__dict__ for layer in (mine, *mine.layers))
    theirs.set_weights(mine.get_weights())
    assert np.array_equal(predicted(mine), predicted(theirs))


def test_a_small_error_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousandth, in what batch norms give; the test above would fail."""
    theirs, mine = (network() for _ in range(2))
    convgrad.keras.accelerate(mine, fuse=True)
    right = COMPUTER.batch_norm

    def wrong(*given: Any) -> Any:
        result, *statistics = right(*given)
        return result * 1.001, *statistics

    monkeypatch.setattr(COMPUTER, "batch_norm", wrong)
    assert float(np.max(np.abs(predicted(mine) - predicted(theirs)))) > 10 * NEAR
    for model in (theirs, mine):
        model(X, training=True)  # moving statistics of later layers follow
    assert distance(theirs, mine) > NEAR


def test_frozen_layers() -> None:
    """`trainable = False` is inference: moving statistics stay, and are what images are normalised with."""
    theirs, mine = network(), network()
    for model in (theirs, mine):
        for layer in model.layers:
            if isinstance(layer, kl.BatchNormalization):
                layer.set_weights([each + 0.3 for each in layer.get_weights()])
                layer.trainable = False
        compiled(model)
    convgrad.keras.accelerate(mine, fuse=True)
    moving = [array(each) for each in mine.non_trainable_variables]
    trained(theirs)
    trained(mine)
    assert distance(theirs, mine) < NEAR
    for old, new in zip(moving, mine.non_trainable_variables, strict=True):
        assert np.array_equal(old, array(new))


def gradient(model: Any, x: Any) -> Any:
    """Return a backend's tensor: the gradient of a bent sum of a model's result in training, by its images."""

    def loss(x: Any) -> Any:
        return keras.ops.sum(keras.ops.sin(model(x, training=True)))

    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(x)
            total = loss(x)
        return tape.gradient(total, x)
    import torch

    return torch.autograd.grad(loss(x), x, create_graph=True)[0]


def curvature(model: Any, x: np.ndarray, direction: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the gradient, what it changes by along a direction, and in forward mode where the backend has one."""
    if BACKEND == "jax":
        import jax

        values = [each.value for each in model.non_trainable_variables]
        weights = [each.value for each in model.trainable_variables]

        def loss(x: Any) -> Any:
            return keras.ops.sum(
                keras.ops.sin(model.stateless_call(weights, values, x, training=True)[0])
            )

        along = jax.grad(lambda x: jax.numpy.vdot(jax.grad(loss)(x), direction))(x)
        return jax.grad(loss)(x), along, along
    if BACKEND == "tensorflow":
        import tensorflow as tf

        image, direction = tf.constant(x), tf.constant(direction)
        with tf.GradientTape() as tape:
            tape.watch(image)
            found = gradient(model, image)
            total = tf.reduce_sum(found * direction)
        with tf.autodiff.ForwardAccumulator(image, direction) as forward:
            again = gradient(model, image)
        return found, tape.gradient(total, image), forward.jvp(again)
    import torch

    image = torch.from_numpy(x).requires_grad_()
    found = gradient(model, image)
    (along,) = torch.autograd.grad((found * torch.from_numpy(direction)).sum(), image)
    return found.detach(), along, along


def test_second_derivatives() -> None:
    """Of a whole model, against differences of the first ones; in TensorFlow also in forward mode."""
    keras.utils.set_random_seed(5)
    with _policy("float64"):
        inputs = keras.Input((4, 3, 3), dtype="float64")
        x = block(kl.Conv2D(4, 3, padding="same")(inputs), kl.Activation("silu"))
        model = keras.Model(inputs, block(x, kl.Activation("gelu"), scale=False))
    assert not convgrad.keras.accelerate(model, fuse=True).left
    x, direction = numbers((2, 4, 3, 3), 8), numbers((2, 4, 3, 3), 9)
    # On JAX there is noise of float32's size in these gradients, in Keras's own model too.
    step, allowed = (1e-3, 3e-3) if BACKEND == "jax" else (1e-5, 1e-6)
    found, along, forward = (array(each) for each in curvature(model, x, direction))
    ahead, behind = (
        array(curvature(model, x + sign * step * direction, direction)[0]) for sign in (1, -1)
    )
    assert np.any(found)
    for each in (along, forward):
        np.testing.assert_allclose(each, (ahead - behind) / (2 * step), rtol=allowed, atol=allowed)


def test_mixed_precision() -> None:
    theirs, mine = (compiled(network("mixed_bfloat16")) for _ in range(2))
    convgrad.keras.accelerate(mine, fuse=True)
    assert mine.layers[2].compute_dtype == "bfloat16"
    assert {array(each).dtype.name for each in mine.weights} == {"float32"}
    np.testing.assert_allclose(predicted(mine), predicted(theirs), atol=0.02)
    trained(theirs, 1)
    trained(mine, 1)
    assert distance(theirs, mine) < 0.02


def test_parts_of_a_model_are_other_models() -> None:
    """A model that ends behind a batch norm sees its own result, and a layer called by itself is itself."""
    theirs, mine = network(), network()
    convgrad.keras.accelerate(mine, fuse=True)
    norm = next(layer for layer in mine.layers if isinstance(layer, kl.BatchNormalization))
    at = mine.layers.index(norm)
    parts = [keras.Model(each.inputs[0], each.layers[at].output) for each in (theirs, mine)]
    np.testing.assert_allclose(*(array(part(X)) for part in parts), atol=1e-5)
    assert float(np.min(array(parts[1](X)))) < 0  # no ReLU6
    relu = mine.layers[at + 1]
    assert float(np.min(array(relu(keras.ops.convert_to_tensor(-X))))) == 0
    assert not graphs._running.frames


def test_lists_of_layers() -> None:
    """Sequential models, one inside another; what is taken off a list is no longer computed."""

    def made() -> Any:
        keras.utils.set_random_seed(3)
        inner = keras.Sequential([kl.BatchNormalization(), kl.Activation("gelu")])
        return keras.Sequential(
            [keras.Input((8, 6, 3)), kl.BatchNormalization(), kl.ReLU(negative_slope=0.3), inner]
        )

    theirs, mine = made(), made()
    report = convgrad.keras.accelerate(mine, fuse=True)
    assert len(report.taken) == 4
    for training in (False, True):
        np.testing.assert_allclose(
            *(array(model(X, training=training)) for model in (mine, theirs)), atol=1e-5
        )
    assert distance(mine, theirs) < NEAR
    for model in (mine, theirs):
        model.pop()
        model.pop()
    np.testing.assert_allclose(*(array(model(X)) for model in (mine, theirs)), atol=1e-5)
    assert float(np.min(array(mine(X)))) < -0.5  # without its activation


@pytest.mark.parametrize(
    "layer",
    [
        *("relu", "relu6", "silu", "swish", "hard_silu", "hard_swish", "gelu", "leaky_relu"),
        *(
            kl.ReLU(),
            kl.ReLU(6.0),
            kl.ReLU(negative_slope=0.1),
            kl.LeakyReLU(),
            kl.Activation("linear"),
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else f"{each.name}",
)
def test_activations(layer: Any) -> None:
    """Each is fused, and is what Keras computes."""
    layer = (
        kl.Activation(layer)
        if isinstance(layer, str)
        else type(layer).from_config(layer.get_config())
    )
    inputs = keras.Input((8, 6, 3))
    model = keras.Model(inputs, layer(kl.BatchNormalization(gamma_initializer=_four)(inputs)))
    wanted = array(model(X, training=True))
    model.layers[1].set_weights([*model.layers[1].get_weights()[:2], np.zeros(3), np.ones(3)])
    report = convgrad.keras.accelerate(model, fuse=True)
    assert len(report.taken) == 2
    np.testing.assert_allclose(array(model(X, training=True)), wanted, atol=2e-5, rtol=1e-5)


def _four(shape: Any, dtype: Any = None) -> Any:
    return keras.ops.full(shape, 4.0, dtype)


class Derived(kl.BatchNormalization):
    pass


def test_what_is_left() -> None:
    x = keras.Input((8, 6, 4))
    with keras.RematScope(mode="full"):
        again = kl.BatchNormalization(name="again")
    layers = {
        "derived": (Derived(), "is a class of its own"),
        "rows": (kl.BatchNormalization(axis=2), "its axis 2 is not that of channels"),
        "again": (again, "it is computed again for its gradient"),
        "renorm": (kl.BatchNormalization(renorm=True), "it renormalizes"),
    }
    outputs = [layer(x) for layer, _ in layers.values()]
    flat = kl.BatchNormalization(name="flat")
    model = keras.Model(x, [*outputs, flat(kl.GlobalAveragePooling2D()(x))])
    with pytest.warns(RuntimeWarning, match="no layer of this model was taken"):
        report = convgrad.keras.accelerate(model, fuse=True)
    assert report.left["flat"] == "its images have 2 dimensions"
    for layer, why in layers.values():
        assert why in report.left[layer.name]


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (lambda x: [x, kl.ReLU()(x)], "its result is one of the model's"),
        (
            lambda x: kl.ReLU(threshold=1.0, name="odd")(x),
            "odd behind it is not an activation that convgrad computes",
        ),
        (lambda x: kl.ReLU(name="wide", dtype="float64")(x), "wide behind it computes in float64"),
        (lambda x: [kl.ReLU()(x), kl.ReLU()(x)], "2 layers use its result"),
        (lambda x: (relu := kl.ReLU(name="twice"))(relu(x)), "twice is used 2 times"),
    ],
)
def test_activations_that_are_left(after: Any, why: str) -> None:
    inputs = keras.Input((8, 6, 3))
    model = keras.Model(inputs, after(kl.BatchNormalization(name="norm")(inputs)))
    wanted = keras.tree.map_structure(array, model(X))
    (row,) = convgrad.keras.accelerate(model, fuse=True).layers
    assert (row.taken, row.reason) == (True, f"without activation: {why}")
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(array(a), b, atol=1e-5), model(X), wanted
    )


def test_files(tmp_path: Any) -> None:
    mine = trained(convgrad_taken(compiled(network())), 2)
    mine.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert not any("call" in layer.__dict__ for layer in (loaded, *loaded.layers))
    np.testing.assert_allclose(predicted(loaded), predicted(mine), atol=1e-5)
    assert distance(trained(loaded, 1), trained(mine, 1)) < NEAR


def convgrad_taken(model: Any) -> Any:
    assert not convgrad.keras.accelerate(model, fuse=True).left
    return model


@pytest.mark.parametrize("count", [0, 1])
def test_one_value_and_none(count: int) -> None:
    """Keras takes the statistics of one value, which are the value and 0, and of none."""
    theirs, mine = (
        keras.Sequential([keras.Input((1, 1, 3)), kl.BatchNormalization()]) for _ in "ab"
    )
    convgrad.keras.accelerate(mine, fuse=True)
    x = keras.ops.convert_to_tensor(X[:count, :1, :1])
    made = [array(model(x, training=True)) for model in (mine, theirs)]
    np.testing.assert_allclose(*made, atol=1e-6)
    for one, other in zip(mine.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_masks_are_kerass() -> None:
    norm = kl.BatchNormalization()
    model = keras.Sequential([keras.Input((8, 6, 3)), norm])
    convgrad.keras.accelerate(model, fuse=True)
    mask = np.ones((16, 8, 6), bool)
    mask[8:] = False
    norm(keras.ops.convert_to_tensor(X), training=True, mask=keras.ops.convert_to_tensor(mask))
    np.testing.assert_allclose(array(norm.moving_mean), 0.01 * X[:8].mean((0, 1, 2)), rtol=1e-4)


def test_every_activation_with_a_name_in_keras() -> None:
    """A row of activations says what Keras calls it, and layers of it are fused as that."""
    for row in rows.activations.ROWS:
        if row.keras:
            layer = kl.Activation(getattr(keras.activations, row.keras))
            found = activations.activation_of(layer)
            assert found is not None and found.name == row.name
            made = COMPUTER.batch_norm(
                keras.ops.convert_to_tensor(X), None, None, None, 1e-3, found, "NHWC"
            )[0]
            plain = (X - X.mean((0, 1, 2))) / np.sqrt(X.var((0, 1, 2)) + 1e-3)
            np.testing.assert_allclose(array(made), array(layer(plain)), atol=2e-5)


def test_an_unknown_activation_is_refused() -> None:
    unknown = activations.AppliedActivation(rows.UNKNOWN)
    with pytest.raises(ArgumentError, match="`activation` must be one of"):
        COMPUTER.batch_norm(keras.ops.convert_to_tensor(X), None, None, None, 1e-3, unknown, "NHWC")
