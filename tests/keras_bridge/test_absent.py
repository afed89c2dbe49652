"""Where something is missing: Keras, a Keras of today, its backend, or a backend that convgrad computes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from child_python import child_environment

IMPORT = """
import sys, types
{before}
from convgrad.errors import BackendMissingError
try:
    import convgrad.keras
except BackendMissingError as error:
    print(error)
"""
ON_NUMPY = """
import keras, convgrad.keras
from convgrad.errors import ArgumentError
layer = keras.layers.Conv2D(3, 3)
try:
    convgrad.keras.accelerate(layer)
except ArgumentError as error:
    print(error)
assert "call" not in layer.__dict__
"""


def said(script: str, backend: str = "torch") -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=child_environment({"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (
            "sys.modules['keras'] = None",
            "convgrad.keras needs Keras 3, which is not installed: pip install keras",
        ),
        (
            "sys.modules['keras'] = types.ModuleType('keras'); sys.modules['keras'].__version__ = '2.15.0'",
            "convgrad.keras needs Keras 3, and 2.15.0 is installed: pip install 'keras>=3'",
        ),
        (
            "sys.modules['torch'] = None",
            "its backend must be installed, which KERAS_BACKEND names: pip install torch, jax or tensorflow-cpu",
        ),
    ],
    ids=["keras", "keras 2", "backend"],
)
def test_what_is_missing_is_named(before: str, message: str) -> None:
    assert message in said(IMPORT.format(before=before))


def test_another_backend_is_refused() -> None:
    assert said(ON_NUMPY, "numpy") == (
        "convgrad.keras.accelerate: Keras runs on the backend 'numpy', whose layers convgrad does not compute; it has "
        "torch, jax, tensorflow. KERAS_BACKEND chooses one before Keras is imported."
    )
