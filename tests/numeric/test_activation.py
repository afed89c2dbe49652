"""Activations in registers against exact ones, over all arguments that matter."""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calling import TARGETS, label, run
from convgrad._compiler.codegen import F32, F64, KernelBuilder
from convgrad._kernels.norm import activation
from convgrad._problem import activations
from convgrad._problem.activations import ACTIVATIONS, FORWARD_ONLY
from convgrad._problem.norm import oracle
from convgrad.errors import InternalError

SLOPE = 0.25


def arguments(dtype: Any) -> np.ndarray[Any, Any]:
    """Return numbers of both signs and all sizes, kinks and what is beside them."""
    sizes = np.concatenate([np.logspace(-30, 3, 700), np.linspace(0, 40, 3001)])
    kinks = np.array([0.0, 3.0, 6.0, 1.5])
    near = [np.nextafter(kinks.astype(dtype), towards) for towards in (dtype(-9), dtype(9))]
    every = np.concatenate([sizes, kinks, *near])
    return np.concatenate([every, -every]).astype(dtype)


def computed(target: Any, name: str, x: Any, derivative: bool) -> Any:
    element = F64 if x.dtype == np.float64 else F32
    lanes = target.lanes(element.size)
    x = np.resize(x, -(-len(x) // lanes) * lanes)
    y = np.full_like(x, np.nan)

    def body(k: KernelBuilder) -> None:
        slope = k.constant(element, lanes, SLOPE)
        source, result = k.arg_pointer(0, element), k.arg_pointer(1, element)
        with k.loop(0, len(x), lanes) as at:
            u = source.offset(at).load(lanes)
            if derivative:
                one = k.constant(element, lanes, 1)
                found = activation.gradient(k, name, u, one, slope)
            else:
                found = activation.activated(k, name, u, slope)
            result.offset(at).store(found)

    run(target, body, x, y)
    return x, y


@pytest.mark.parametrize("target", TARGETS, ids=label)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*ACTIVATIONS, *FORWARD_ONLY])
def test_values_and_derivatives(name: str, dtype: Any, target: Any) -> None:
    """A value is within 4 units of its argument's size, a derivative within 4 of one more than that."""
    unit = float(np.finfo(dtype).eps) / 2
    for derivative in (False,) if name in FORWARD_ONLY else (False, True):
        x, got = computed(target, name, arguments(dtype), derivative)
        wide = x.astype(np.float64)
        function = oracle.derivative if derivative else oracle.activated
        with np.errstate(over="ignore", under="ignore"):
            exact = function(name, wide, SLOPE)
        # The oracle is itself off by a unit of float64, times what exp makes of an argument's rounding.
        allowed = 4 * unit * (np.minimum(np.abs(wide), 1e3) + derivative)
        allowed = allowed + np.finfo(dtype).smallest_subnormal
        if name == "sigmoid":
            allowed = allowed + 4 * unit * exact
        if dtype is np.float64:
            allowed = allowed + 8 * unit * np.minimum(wide * wide, 50.0)
        error = np.abs(got - exact)
        worst = int(np.argmax(error - allowed))
        assert (error <= allowed).all(), (derivative, x[worst], got[worst], exact[worst])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*ACTIVATIONS, *FORWARD_ONLY])
def test_a_nan_stays_one(name: str, dtype: Any) -> None:
    x = np.array([np.nan, 1.0], dtype)
    for derivative in (False,) if name in FORWARD_ONLY else (False, True):
        _, got = computed(TARGETS[0], name, x, derivative)
        kept = not derivative or name not in ("none", "relu", "relu6", "leaky_relu")
        assert np.isnan(got[0]) == kept, (derivative, got[0])
        assert not np.isnan(got[1])


def test_constants_are_rounded_correctly() -> None:
    """They are literals, so that no C library decides about bits; here are 60 digits to compare them with."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
    with localcontext() as digits_kept:
        digits_kept.prec = 60
        assert float(1 / Decimal(2).ln()) == activation._LOG2E
        assert float(1 / (2 * pi).sqrt()) == activation._BELL_AT_0
        assert float((2 / pi).sqrt()) == activations._TANH
        for size, digits in ((4, 24), (8, 53)):
            high, low = map(Decimal, activation._EXP[size][5:7])
            assert abs(high + low - Decimal(2).ln()) < Decimal(2) ** -(digits + 10), (
                "ln 2 in two parts"
            )
    text = Path(activation.__file__).read_text() + Path(activations.__file__).read_text()
    assert not re.search(r"math\.(log|exp|pow|sin|cos|tanh|erf)", text), (
        "roots are rounded correctly anywhere"
    )


def test_an_unknown_name_is_refused() -> None:
    """It is never taken for "none"."""
    one = np.ones(8, np.float32)
    for call in (
        lambda: oracle.activated("swoosh", one.astype(np.float64)),
        lambda: oracle.derivative("swoosh", one.astype(np.float64)),
        lambda: computed(TARGETS[0], "swoosh", one, False),
        lambda: computed(TARGETS[0], "swoosh", one, True),
    ):
        with pytest.raises(
            InternalError, match="unknown activation 'swoosh'; there are none, relu"
        ):
            call()
