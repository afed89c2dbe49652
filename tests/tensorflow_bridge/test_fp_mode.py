"""TensorFlow flushes subnormal numbers on its threads; our kernels there lose none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import convgrad
import fp_modes
from cases import KINDS, Case, Data, run
from tensorflow_bridge.running import bits, tensors

pytestmark = pytest.mark.skipif(not fp_modes.AVAILABLE, reason="no fesetenv that we know here")

CASE = Case(True, 2, (32, 32), 32, 1, 1, (3, 3), (1, 1), (1, 1), "SAME")


def _data(scale: float) -> Data:
    rng = np.random.default_rng(1)
    x, g = (rng.uniform(1, 2, (2, 32, 32, 32)) * scale for _ in range(2))
    f = rng.uniform(1, 2, (3, 3, 32, 1))
    return Data(*(each.astype(np.float32) for each in (x, f, g)))


def test_subnormals_are_kept_and_rounding_is_to_nearest() -> None:
    """In every mode of the caller, on 1 to 3 threads, eagerly and traced; and TensorFlow's own are lost."""
    given = {"tiny": _data(2.0**-140), "rough": _data(1.0)}
    wanted = {
        name: tuple(bits(run(CASE, kind, data)) for kind in KINDS) for name, data in given.items()
    }
    tiny = np.frombuffer(wanted["tiny"][0][2], np.float32)
    assert tiny.min() > 0 and tiny.max() < np.finfo(np.float32).tiny

    def all_of(x: Any, f: Any, g: Any) -> list[Any]:
        return [run(CASE, kind, Data(x, f, g)) for kind in KINDS]

    traced = tf.function(all_of, autograph=False)
    doubled = tf.function(lambda x: x * 2, autograph=False)
    lent = {name: tensors(data) for name, data in given.items()}
    assert not doubled(lent["tiny"].x).numpy().any(), (
        "TensorFlow does not flush: this shows nothing"
    )
    for number in (1, 2, 3):
        for mode in ("default", *fp_modes.MODES):
            with convgrad.threads(number), fp_modes.set_to(mode):
                made = [
                    (name, way(data.x, data.f, data.g))
                    for name, data in lent.items()
                    for way in (all_of, traced)
                ]
            for name, results in made:
                assert tuple(map(bits, results)) == wanted[name], (number, mode, name)
