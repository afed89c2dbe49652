"""Work with known answers for the programs of the fault tests: small and large, dense and depthwise, all sums."""

from __future__ import annotations

import numpy as np

import convgrad
from convgrad import _engine
from convgrad._compiler import jit

_rng = np.random.default_rng(0)


def _whole(*shape: int) -> np.ndarray:
    return _rng.integers(-4, 5, shape).astype(np.float32)


X, SMALL, G = _whole(2, 40, 40, 16), _whole(1, 5, 6, 3), _whole(2, 40, 40, 8)
DEPTHWISE, DENSE = _whole(3, 3, 16, 1), _whole(3, 3, 16, 8)

CALLS = [
    ("depthwise_conv2d", (X, DEPTHWISE, 1, "SAME")),
    ("depthwise_conv2d", (SMALL, _whole(2, 2, 3, 2), 1, "VALID")),
    ("depthwise_conv2d_backprop_filter", (X, DEPTHWISE.shape, X, 1, "SAME")),
    ("conv2d", (X, DENSE, 1, "SAME")),
    ("conv2d_backprop_input", (X.shape, DENSE, G, 1, "SAME")),
    ("conv2d_backprop_filter", (X, DENSE.shape, G, 1, "SAME")),
]
_answers: list[np.ndarray] = []


def expect() -> None:
    """Compute the right answers by the oracle, which compiles nothing and starts nothing."""
    if not _answers:
        _answers.extend(getattr(convgrad.reference, name)(*args) for name, args in CALLS)


def work(calls: range = range(len(CALLS))) -> None:
    """Do all of it, or some, and compare every number; the data are whole, so answers are exact."""
    expect()
    for number in calls:
        name, args = CALLS[number]
        result = getattr(convgrad, name)(*args)
        if result.shape != _answers[number].shape or not (result == _answers[number]).all():
            raise AssertionError(
                f"{name} is wrong"
            )  # numpy.testing takes as long to import as NumPy


def forget() -> None:
    """Make the next call plan and load its kernels again, as in a new process."""
    _engine.memory.clear()
    jit._kernels.clear()


def import_all() -> None:
    """Import what is imported late, compiler included, and load the entry that runs programs."""
    from convgrad._compiler.jit import llvm
    from convgrad._engine import prepare
    from convgrad._runtime import code

    llvm.binding()
    code.ensure(prepare.load_runtime)
