"""Run by a test: layers of Keras with an activation that only a row says."""

from __future__ import annotations

import keras
import numpy as np

import convgrad.keras
from new_row import NAME, check_package


def main() -> None:
    check_package()
    layers = [keras.layers.Conv2D(4, 1), keras.layers.BatchNormalization()]
    model = keras.Sequential([keras.Input((3, 3, 2)), *layers, keras.layers.Activation(NAME)])
    x = np.linspace(-2, 3, 36, dtype=np.float32).reshape(2, 3, 3, 2)
    want = model.predict(x, verbose=0)
    report = convgrad.keras.accelerate(model, fuse=True)
    np.testing.assert_allclose(model.predict(x, verbose=0), want, atol=1e-5)
    assert NAME in str(report), report


if __name__ == "__main__":
    main()
