"""What belongs to the program stays as it was: a library is a guest in the process."""

from __future__ import annotations

import ctypes
import gc
import locale
import logging
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import convgrad
from convgrad import errors
from convgrad._base import config

X, F = np.ones((2, 40, 40, 32), np.float32), np.ones((3, 3, 32, 32), np.float32)


def everything() -> None:
    """Compute in parallel and alone, from arrays and lists, on strange numbers; make mistakes; ask for a story."""
    with convgrad.threads(3), convgrad.options(winograd="fast"):
        y = convgrad.conv2d(X, F, 1, "SAME")
        convgrad.conv2d_backprop_input(X.shape, F, y, 1, "SAME")
        convgrad.conv2d_backprop_filter(X[:, ::-1], F.shape, y, 1, "SAME")
        convgrad.depthwise_conv2d(X * np.float32(np.inf), F[..., :1], 1, "SAME")
    convgrad.nn.conv2d([[[[1e300]]]], [[[[1e300]]]], 1, "SAME")
    convgrad.reference.conv2d(X[:1, :3, :3], F, 1, "SAME")
    convgrad.explain("conv2d", X.shape, F.shape)
    for wrong in ({"strides": 0}, {"padding": "NONE"}, {"input": [[1], [2, 3]]}):
        with pytest.raises(ValueError):
            convgrad.conv2d(**{"input": X, "filters": F, "strides": 1, "padding": "SAME", **wrong})


def settings() -> dict[str, Any]:
    """Return what a library could change under its caller."""
    libm = ctypes.CDLL(None)
    found: dict[str, Any] = {
        "signal handlers": {
            number: signal.getsignal(number)
            for number in signal.valid_signals()
            if number not in (signal.SIGKILL, signal.SIGSTOP)
        },
        "NumPy's errors": np.geterr(),
        "NumPy's printing": np.get_printoptions(),
        "NumPy's random numbers": pickle.dumps(np.random.get_state()),  # noqa: NPY002 - the global one is meant
        "random numbers": random.getstate(),
        "warning filters": list(warnings.filters),
        "warnings": warnings.showwarning,
        "environment": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109 - the string itself
        "path": list(sys.path),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook),
        "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace()),
        "switch interval": sys.getswitchinterval(),
        "recursion": sys.getrecursionlimit(),
        "collector": (gc.isenabled(), gc.get_threshold(), len(gc.callbacks)),
        "locale": locale.setlocale(locale.LC_ALL),
        "loggers": (list(logging.root.handlers), logging.root.level),
        "stack size": threading.stack_size(),
    }
    if hasattr(libm, "fegetround"):
        found["rounding"] = libm.fegetround()
    if hasattr(os, "sched_getaffinity"):
        found["processors"] = os.sched_getaffinity(0)
    tiny = np.full(4, 2.0**-140, np.float32)
    found["subnormals"] = (tiny * np.float32(2)).tolist()
    return found


def test_a_call_changes_no_setting_of_the_process(capfd: pytest.CaptureFixture[str]) -> None:
    before = settings()
    everything()
    after = settings()
    for name, value in before.items():
        assert after[name] == value, name
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kernels", [True, False])
def test_the_callers_error_state_changes_nothing(kernels: bool) -> None:
    """`np.seterr(all="raise")` is for the caller's own arithmetic; here overflow and Inf - Inf are results."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        info = ml_dtypes.finfo(dtype)
        big = np.full((1, 4, 4, 2), info.max, dtype)
        tiny = np.full((1, 4, 4, 2), info.smallest_normal, dtype)
        strange = big.copy()
        strange[0, 0, 0], strange[0, 1, 1] = np.inf, np.nan
        for x in (big, tiny, strange, strange[:, ::-1]):
            for g in (big, tiny):
                with config.scope(kernels=kernels):
                    results = []
                    for state in ("ignore", "raise"):
                        with np.errstate(all=state):
                            results.append(
                                [
                                    convgrad.conv2d(x, g[0, :2, :2, :, None], 1, "SAME").tobytes(),
                                    convgrad.depthwise_conv2d_backprop_filter(
                                        x, (3, 3, 2, 1), g, 1, "SAME"
                                    ).tobytes(),
                                ]
                            )
                    assert results[0] == results[1]


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_can_be_sent_to_another_process(name: str) -> None:
    error = getattr(errors, name)("conv2d: `x` must be y, got z.")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


MISTAKES = """
import numpy as np, convgrad
x, f = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 3, 2, 2), np.float32)
for change in (
    {"strides": 0}, {"strides": 1.5}, {"padding": "x"}, {"data_format": "NWHC"}, {"dilations": -1}, {"input": x[0]},
    {"filters": f[:, :, :1, :1]}, {"filters": f.astype(float)}, {"input": None}, {"padding": ((0, 0), (0, -1))},
):
    try:
        convgrad.conv2d(**{"input": x, "filters": f, "strides": 1, "padding": "SAME", **change})
        print("accepted", change)
    except Exception as error:
        print(type(error).__name__, error)
try:
    convgrad.conv2d_backprop_filter(x, [3, 3, 2, 2], x[:, :3], 1, "SAME")
except ValueError as error:
    print(error)
print(convgrad.conv2d(x, f, 1, "SAME").sum())
"""


def test_checks_do_not_go_away_with_python_O() -> None:
    plain, optimized = (
        subprocess.run(
            [sys.executable, *options, "-c", MISTAKES], capture_output=True, text=True, check=True
        ).stdout
        for options in ([], ["-OO"])
    )
    assert plain == optimized and plain.count("\n") == 12 and plain.count("must") == 11
