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
from convgrad._problem.convolution import Kind
from keras_bridge.running import ALL, array, computed, numbers, taken

WITHOUT = """
import sys
sys.modules["convgrad"] = None  # importing it raises
import keras, numpy as np
model = keras.saving.load_model(sys.argv[1])
model.load_weights(sys.argv[2])
x = np.load(sys.argv[3])
np.savez(sys.argv[4], result=model.predict(x, verbose=0), steps=np.asarray(model.optimizer.iterations))
print(type(model.layers[1]) is keras.layers.Conv2D)
"""


def network() -> Any:
    keras.utils.set_random_seed(11)
    inputs = keras.Input((10, 17, 3))
    x = kl.Conv2D(4, 3, padding="same", kernel_regularizer="l2", name="one")(inputs)
    x = kl.DepthwiseConv2D(3, name="two", dtype="mixed_bfloat16")(x)
    x = kl.SeparableConv2D(5, 3, name="three", dtype="float32")(x)
    inner = keras.Sequential([kl.Conv2DTranspose(4, 2, strides=2, name="four")], name="inner")
    x = kl.GlobalAveragePooling2D()(inner(x))
    return keras.Model(inputs, kl.Dense(3)(x), name="net")


X = numbers((12, 10, 17, 3), dtype="float32")
"""Who computed is seen by new problems alone, so blocks have sizes of the batch that are their own."""


@pytest.fixture(scope="module")
def trained() -> Any:
    """An accelerated model with steps behind it; tests leave it so."""
    model = network()
    model.compile("adam", "mse")
    taken(model)
    with computed(*ALL):
        model.fit(X[:6], X[:6].mean((1, 2)), batch_size=3, verbose=0, shuffle=False)
    return model


def test_a_file_of_a_trained_model(trained: Any, tmp_path: Path) -> None:
    """Its parts equal those natively saved; a process that cannot import convgrad reads it and goes on."""
    ours, weights = tmp_path / "ours.keras", tmp_path / "ours.weights.h5"
    trained.save(ours)
    trained.save_weights(weights)
    with computed(Kind.FORWARD):
        before = trained.predict(X[:4], verbose=0)
    assert convgrad.keras.restore(trained) == 4
    theirs = tmp_path / "theirs.keras"
    trained.save(theirs)
    taken(trained)
    with zipfile.ZipFile(ours) as mine, zipfile.ZipFile(theirs) as native:
        assert mine.namelist() == native.namelist()
        config = mine.read("config.json").decode()
        assert json.loads(config) == json.loads(native.read("config.json"))
        assert "convgrad" not in config and '"Conv2DTranspose"' in config
        assert mine.read("model.weights.h5") == native.read("model.weights.h5")
    np.save(tmp_path / "x.npy", X[:4])
    result = tmp_path / "result.npz"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, (ours, weights, tmp_path / "x.npy", result))],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"]
    with np.load(result) as found:
        np.testing.assert_allclose(found["result"], before, rtol=0.02, atol=0.02)
        assert found["steps"] == 2


def test_a_loaded_model_is_keras_s_until_it_is_accelerated(trained: Any, tmp_path: Path) -> None:
    trained.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [type(layer) for layer in loaded.layers] == [type(layer) for layer in trained.layers]
    with computed():
        loaded.predict(X[:5], verbose=0)
    assert len(convgrad.keras.accelerate(loaded).taken) == 4
    with computed(Kind.FORWARD, Kind.INPUT_GRADIENT):
        mine = loaded.predict(X[:7], verbose=0)
    assert np.array_equal(mine, trained.predict(X[:7], verbose=0))
    states = [[each.numpy() for each in model.optimizer.variables] for model in (loaded, trained)]
    assert len(states[0]) > 10 and all(map(np.array_equal, *states))


@pytest.mark.parametrize(
    ("how", "batch"), [("pickle", 8), ("deepcopy", 9), ("clone", 10), ("config", 11)]
)
def test_copies_are_keras_s(how: str, batch: int) -> None:
    model = taken(network())  # an optimizer without steps Keras does not read back, without us too
    x = keras.ops.convert_to_tensor(X[:batch])
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
    names = ("one", "two", "three")
    for name in names:
        mine, theirs = model.get_layer(name), copied.get_layer(name)
        assert type(theirs) is type(mine) and theirs.get_config() == mine.get_config()
        assert not {"call", "rematerialized_call"} & theirs.__dict__.keys()
        assert theirs.supports_jit is True
    if how == "pickle":  # the copies are alike, as was just said
        with computed():
            theirs = array(copied(x))
        with computed(Kind.FORWARD):
            mine = array(model(x))
        np.testing.assert_allclose(mine, theirs, rtol=0.02, atol=0.02)


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
