"""Everything about layers and models, in a process per backend: Keras chooses its backend once, when it is imported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from child_python import child_environment

HERE = Path(__file__).parent
INSIDE = sorted(path.name for path in HERE.glob("inside_*.py"))
QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_ENABLE_X64": "1",
    "JAX_PLATFORMS": "cpu",
    # Steps of whole models are compiled for a few runs each.
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"])
def test_on(backend: str) -> None:
    """All tests of all modules pass there, and none is left out. One child: imports take up to 10 s."""
    modules = [str(HERE / module) for module in INSIDE]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *modules],
        cwd=HERE.parents[1],
        env=child_environment({"KERAS_BACKEND": backend, **QUIET}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    last = done.stdout.strip().splitlines()[-1]
    passed = re.match(r"(\d+) passed in", last)  # and nothing beside it
    assert passed and int(passed[1]) >= 45, last


def test_there_are_modules() -> None:
    assert INSIDE == ["inside_files.py", "inside_fused.py", "inside_layers.py", "inside_models.py"]
