"""Every public function, with arguments nobody should pass.

A call gives a right result, or raises one of convgrad's errors, TypeError, ValueError or MemoryError, or what the
caller's own object raised. It never crashes, hangs, fails inside, or takes more memory than what it was asked for.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convgrad
from convgrad._base import config
from hostile.doors import FUNCTIONS, call, right_arguments
from hostile.objects import ARRAYS, EVERYTHING, NUMBERS, OBJECTS, Mine

ALLOWED = (convgrad.errors.ConvgradError, TypeError, ValueError, MemoryError, Mine)
PLAIN = (int, str, list, tuple, type(None), np.ndarray)
LONGEST = 30.0
"""Seconds that only a hang takes."""

OPERANDS = {
    "input", "filter", "filters", "out_backprop", "depthwise_filter", "pointwise_filter", "scale", "offset", "mean",
    "variance", "residual",
}  # fmt: skip
VECTORS = {
    "strides", "padding", "dilations", "rate", "dilation", "explicit_paddings", "input_sizes", "filter_sizes",
    "output_shape", "input_shape", "filter_shape",
}  # fmt: skip


def make(thing: Any) -> Any:
    """Build what a strategy drew: makers are called, lists are gone through."""
    if isinstance(thing, list):
        return [make(each) for each in thing]
    return thing()


numbers = st.sampled_from(NUMBERS)
small = st.integers(-2, 9).map(lambda n: lambda: n)
vectors = st.one_of(
    st.lists(st.one_of(small, small, numbers), max_size=9),
    st.lists(st.lists(st.one_of(small, numbers), max_size=3), max_size=5),
    st.sampled_from(EVERYTHING),
)
operands = st.one_of(st.sampled_from(ARRAYS), st.sampled_from(EVERYTHING))
SPOILED = {
    name: operands
    if name in OPERANDS
    else vectors
    if name in VECTORS
    else st.sampled_from(NUMBERS + OBJECTS)
    for name in sorted(
        {each for function in FUNCTIONS.values() for each in function.__annotations__}
        | {"winograd"}
    )
}


NAMES = sorted(each for each in FUNCTIONS if not each.startswith("dispatch."))


@st.composite
def calls(draw: Any) -> tuple[str, dict[str, Any]]:
    name = draw(st.sampled_from(NAMES))
    known = set(right_arguments(name)) | (set(FUNCTIONS[name].__annotations__) - {"return"})
    known -= {"values"}
    if not known:
        return name, {}
    chosen = draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3, unique=True))
    return name, {each: draw(SPOILED[each]) for each in chosen}


@pytest.fixture
def bounded():
    """Let the process have 1 GiB more than it has, and no more."""
    if not Path("/proc/self/statm").exists():
        yield
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def judge(name: str, spoiled: dict[str, Any]) -> None:
    """Make the call; complain about all that is not allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of matrices
        made = {key: make(maker) for key, maker in spoiled.items()}
    arguments = {**right_arguments(name), **made}
    process = dict(config._process)
    begin = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(name, arguments)
    except ALLOWED as error:
        assert not isinstance(error, convgrad.errors.InternalError), traceback.format_exc()
        if isinstance(error, TypeError | ValueError | MemoryError):
            assert str(error) or isinstance(error, MemoryError)
        if isinstance(error, convgrad.errors.ConvgradError):
            assert len(str(error).splitlines()) == 1, str(error)
    else:
        _check(name, arguments, spoiled, result)
    finally:
        config._process.clear()
        config._process.update(process)
    assert time.monotonic() - begin < LONGEST, f"{name} hangs"


def _is_plain(value: Any, levels: int = 3) -> bool:
    """Tell whether a value says the same when it is asked again, and so do its elements; lists may hold themselves."""
    inside = value if isinstance(value, list | tuple) else ()
    return (
        levels > 0 and type(value) in PLAIN and all(_is_plain(each, levels - 1) for each in inside)
    )


def _check(name: str, arguments: dict[str, Any], spoiled: dict[str, Any], result: Any) -> None:
    """Compare with the oracle where the arguments are plain enough to be passed twice."""
    if name not in convgrad.reference.__all__ or not isinstance(result, np.ndarray):
        return
    if all(_is_plain(arguments[each]) for each in spoiled) and result.size < 10**5:
        with contextlib.suppress(MemoryError):
            known = getattr(convgrad.reference, name).__annotations__
            wanted = getattr(convgrad.reference, name)(
                **{key: value for key, value in arguments.items() if key in known}
            )
            assert result.shape == wanted.shape
            np.testing.assert_allclose(
                result.astype(np.float64), wanted, rtol=0.02 if result.dtype.itemsize < 4 else 1e-4
            )


SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}


@settings(max_examples=300, derandomize=True, **SETTINGS)
@given(calls())
def test_any_call(bounded, drawn):
    judge(*drawn)


@pytest.mark.faults_long
def test_any_call_for_long(bounded):
    """`FAULTS_MINUTES`, 10 unless told, of calls never made before."""
    deadline = time.monotonic() + 60 * float(os.environ.get("FAULTS_MINUTES", "10"))
    made = 0

    @settings(max_examples=2000, **SETTINGS)
    @given(calls())
    def some(drawn):
        nonlocal made
        made += 1
        if time.monotonic() < deadline:
            judge(*drawn)

    while time.monotonic() < deadline:
        some()
    print(f"{made} calls")


@pytest.mark.faults_long
@pytest.mark.parametrize("name", NAMES)
def test_every_argument_with_everything(bounded, name):
    for argument in right_arguments(name):
        for maker in EVERYTHING:
            judge(name, {argument: maker})


def test_right_arguments_are_right(monkeypatch):
    monkeypatch.setattr(config, "_process", {})  # one of the calls sets the number of threads
    for name in NAMES:
        call(name, right_arguments(name))
