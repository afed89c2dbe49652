"""Files, pickles, copies and clones: what an accelerated model writes is what Keras writes, and needs no convgrad."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as kl

import convgrad.keras
from convgrad._problem import Kind
from keras_bridge.running import ALL, array, computed, numbers, taken

WITHOUT = """
import sys
sys.modules["convgrad"] = None  # importing it raises
import keras, numpy as np
model = keras.saving.load_model(sys.argv[1])
model.load_weights(sys.argv[2])
x = np.load(sys.argv[3])
np.savez(sys.argv[4], result=model.predict(x, verbose=0), steps=np.asarray(model.optimizer.iterations))
print(type(model.layers[1]) is keras.layers.Conv2D, model.evaluate(x, x.mean((1, 2)), verbose=0) >= 0)
"""


def network(width: int, compiled: bool = True) -> Any:
    keras.utils.set_random_seed(11)
    inputs = keras.Input((10, width, 3))
    x = kl.Conv2D(6, 3, padding="same", kernel_regularizer="l2", name="one")(inputs)
    x = kl.DepthwiseConv2D(3, name="two", dtype="mixed_bfloat16")(x)
    x = kl.SeparableConv2D(5, 3, name="three", dtype="float32")(x)
    inner = keras.Sequential([kl.Conv2DTranspose(4, 2, strides=2, name="four")], name="inner")
    x = kl.GlobalAveragePooling2D()(inner(x))
    model = keras.Model(inputs, kl.Dense(3)(x), name="net")
    if compiled:
        model.compile("adam", "mse")
    return model


def trained(width: int, ours: bool) -> tuple[Any, np.ndarray]:
    model = network(width)
    x = numbers((6, 10, width, 3), dtype="float32")
    if ours:
        taken(model)
    with computed(*ALL if ours else ()):
        model.fit(x, x.mean((1, 2)), batch_size=3, verbose=0, shuffle=False)
    return model, x


def test_a_file_of_a_trained_model(tmp_path: Path) -> None:
    """Its parts equal those natively saved; a process that cannot import convgrad reads it and goes on."""
    model, x = trained(17, ours=True)
    ours, weights = tmp_path / "ours.keras", tmp_path / "ours.weights.h5"
    model.save(ours)
    model.save_weights(weights)
    before = model.predict(x, verbose=0)
    assert convgrad.keras.restore(model) == 4
    theirs = tmp_path / "theirs.keras"
    model.save(theirs)
    with zipfile.ZipFile(ours) as mine, zipfile.ZipFile(theirs) as native:
        assert mine.namelist() == native.namelist()
        config = mine.read("config.json").decode()
        assert json.loads(config) == json.loads(native.read("config.json"))
        assert "convgrad" not in config and '"Conv2DTranspose"' in config
        assert mine.read("model.weights.h5") == native.read("model.weights.h5")
    np.save(tmp_path / "x.npy", x)
    result = tmp_path / "result.npz"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, (ours, weights, tmp_path / "x.npy", result))],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]
    with np.load(result) as found:
        np.testing.assert_allclose(found["result"], before, rtol=0.02, atol=0.02)
        assert found["steps"] == 2


def test_a_loaded_model_is_keras_s_until_it_is_accelerated(tmp_path: Path) -> None:
    model, x = trained(19, ours=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [type(layer) for layer in loaded.layers] == [type(layer) for layer in model.layers]
    with computed():
        loaded.predict(x, verbose=0, batch_size=4)
    assert len(convgrad.keras.accelerate(loaded).taken) == 4
    assert np.array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
    loaded.fit(x, x.mean((1, 2)), batch_size=3, verbose=0, shuffle=False)
    model.fit(x, x.mean((1, 2)), batch_size=3, verbose=0, shuffle=False)
    for mine, theirs in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("how", ["pickle", "deepcopy", "clone", "config"])
def test_copies_are_keras_s(how: str) -> None:
    width = {"pickle": 21, "deepcopy": 23, "clone": 25, "config": 27}[how]
    model = network(
        width, compiled=False
    )  # an optimizer without steps Keras does not read back, with us or without
    taken(model)
    x = keras.ops.convert_to_tensor(numbers((2, 10, width, 3), dtype="float32"))
    if how == "pickle":
        copied = pickle.loads(pickle.dumps(model))
    elif how == "deepcopy":
        copied = copy.deepcopy(model)
    elif how == "clone":
        copied = keras.models.clone_model(model)
    else:
        copied = keras.Model.from_config(model.get_config())
    copied.set_weights(model.get_weights())
    assert convgrad.keras.restore(copied) == 0
    with computed():
        theirs = array(copied(x))
    with computed(Kind.FORWARD):
        mine = array(model(x))
    np.testing.assert_allclose(mine, theirs, rtol=0.02, atol=0.02)
    for name in ("one", "two", "three"):
        assert type(copied.get_layer(name)) is type(model.get_layer(name))
        assert copied.get_layer(name).get_config() == model.get_layer(name).get_config()


def test_a_layer_by_itself() -> None:
    """Its description is that of the class it has."""
    layer = taken(kl.Conv2D(4, 3, name="alone"))
    layer.build((None, 8, 9, 2))
    native = kl.Conv2D(4, 3, name="alone")
    native.build((None, 8, 9, 2))
    described = keras.saving.serialize_keras_object(layer)
    assert described == keras.saving.serialize_keras_object(native)
    assert described["module"] == "keras.layers" and described["class_name"] == "Conv2D"
    again = keras.saving.deserialize_keras_object(described)
    assert type(again) is kl.Conv2D and convgrad.keras.restore(again) == 0
    assert type(pickle.loads(pickle.dumps(layer))) is kl.Conv2D
