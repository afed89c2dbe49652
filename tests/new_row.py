"""A package with one more activation, as a row and nothing else; run as a child, a bridge that computes with it.

`add` copies the package and writes the row into `_problem/activations.py`. Softsign is u / (1 + |u|), which PyTorch and
Keras have, so that layers of theirs must be recognised too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from child_python import child_environment

NAME = "softsign"
ROW = """ROWS = (
    Activation(
        "softsign",
        value=lambda o, u, slope: u / (1 + o.where(u > 0, u, -u)),
        kernel=lambda k, u, slope: u / (k.where(k.compare(u, "ogt", 0.0), u, -u) + 1.0),
        derivative=lambda o, u, slope: 1 / (1 + o.where(u > 0, u, -u)) ** 2,
        kernel_gradient=lambda k, u, g, slope: (
            g
            / (k.where(k.compare(u, "ogt", 0.0), u, -u) + 1.0)
            / (k.where(k.compare(u, "ogt", 0.0), u, -u) + 1.0)
        ),
        torch="softsign",
        torch_layer="Softsign",
        keras="softsign",
    ),
"""


def add(folder: Path) -> None:
    """Write the package with the row into a folder."""
    import convgrad

    package = folder / "convgrad"
    ignored = shutil.ignore_patterns("__pycache__", "include")
    shutil.copytree(Path(convgrad.__file__).parent, package, ignore=ignored)
    table = package / "_problem" / "activations.py"
    text = table.read_text(encoding="utf-8")
    assert text.count("\nROWS = (\n") == 1
    table.write_text(text.replace("ROWS = (\n", ROW, 1), encoding="utf-8")


def run(folder: Path, kind: str) -> None:
    """Compute with the new row on one kind of array, in a process of its own."""
    add(folder)
    environment = child_environment({"KERAS_BACKEND": "torch"})
    tests = Path(__file__).parent
    environment["PYTHONPATH"] = os.pathsep.join((str(folder), environment["PYTHONPATH"]))
    done = subprocess.run(
        [sys.executable, str(tests / "new_row.py"), str(folder), kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def _numpy() -> None:
    import numpy as np

    import convgrad
    from convgrad import reference

    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 2, 2)
    want = reference.batch_norm_act(x, activation=NAME)
    got = convgrad.batch_norm_act(x, activation=NAME)
    np.testing.assert_allclose(got.y, want.y, atol=1e-6)
    z = (x - want.mean) / np.sqrt(want.variance + 1e-3)
    np.testing.assert_allclose(want.y, z / (1 + abs(z)), atol=1e-6)
    arguments = (x[::-1], x, None, None, got.mean, got.variance)
    for one, other in zip(
        convgrad.batch_norm_act_grad(*arguments, activation=NAME),
        reference.batch_norm_act_grad(*arguments, activation=NAME),
        strict=True,
    ):
        if one is not None:
            np.testing.assert_allclose(one, other, atol=2e-5)


def _dask() -> None:
    import dask.array as da

    _door(da.from_array, lambda array: array.compute(), da.Array)


def _torch() -> None:
    import torch
    from torch import nn

    import convgrad.torch

    _door(lambda array: torch.from_numpy(array.copy()), lambda t: t.detach().numpy(), torch.Tensor)
    x = torch.linspace(-2, 3, 48).reshape(2, 4, 2, 3).requires_grad_()
    got = convgrad.torch.batch_norm_act(x, training=True, activation=NAME)
    norm = nn.functional.batch_norm(x, None, None, training=True)
    torch.testing.assert_close(got, nn.functional.softsign(norm))
    model = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.Softsign())
    want = model(x)
    report = convgrad.torch.accelerate(model, fuse=True)
    torch.testing.assert_close(model(x), want)
    assert NAME in str(report), report


def _jax() -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    import convgrad.jax

    _door(jnp.asarray, np.asarray, jax.Array)
    x = jnp.linspace(-2, 3, 48).reshape(2, 2, 3, 4)
    y, *_ = jax.jit(lambda x: convgrad.jax.batch_norm_act(x, activation=NAME))(x)
    plain, *_ = convgrad.jax.batch_norm_act(x)
    np.testing.assert_allclose(y, jax.nn.soft_sign(plain), atol=1e-5)


def _tensorflow() -> None:
    import numpy as np
    import tensorflow as tf

    import convgrad.tensorflow

    _door(tf.constant, lambda tensor: tensor.numpy(), tf.Tensor)
    x = tf.reshape(tf.linspace(-2.0, 3.0, 48), (2, 2, 3, 4))
    y, *_ = tf.function(lambda x: convgrad.tensorflow.batch_norm_act(x, activation=NAME))(x)
    plain, *_ = convgrad.tensorflow.batch_norm_act(x)
    np.testing.assert_allclose(y, tf.nn.softsign(plain), atol=1e-5)


def _keras() -> None:
    import keras
    import numpy as np

    import convgrad.keras

    layers = [keras.layers.Conv2D(4, 1), keras.layers.BatchNormalization()]
    model = keras.Sequential([keras.Input((3, 3, 2)), *layers, keras.layers.Activation(NAME)])
    x = np.linspace(-2, 3, 36, dtype=np.float32).reshape(2, 3, 3, 2)
    want = model.predict(x, verbose=0)
    report = convgrad.keras.accelerate(model, fuse=True)
    np.testing.assert_allclose(model.predict(x, verbose=0), want, atol=1e-5)
    assert NAME in str(report), report


def _door(make: Any, back: Any, own: type) -> None:
    """Check both functions on arrays of a framework, with and without what is kept beside an image."""
    from norm_doors import Case, check_case

    for residual in ("", "before", "after"):
        for is_training in (True, False):
            case = Case(activation=NAME, residual=residual, is_training=is_training)
            check_case(case, make, back, own)


KINDS = {
    "numpy": _numpy,
    "dask": _dask,
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "keras": _keras,
}

if __name__ == "__main__":
    import convgrad

    assert Path(convgrad.__file__).parent.parent == Path(sys.argv[1]), convgrad.__file__
    KINDS[sys.argv[2]]()
