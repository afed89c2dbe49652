"""Every row of activations and of dtypes, for the tests that take them through each bridge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from convgrad import reference
from convgrad._base.dtypes import FLOATING, DType, accumulator, round_once
from convgrad._problem import activations
from convgrad._problem.norm import oracle
from convgrad.errors import ConvgradError

UNKNOWN = "swoosh"
SLOPE = 0.3
POINTS = np.concatenate([np.linspace(-8, 8, 129), [-30.0, 30.0, -1e-4, 1e-4]])
"""Arguments, with the kinks of all rows among them."""
ROW_NAMES = [row.name for row in activations.ROWS]
PAIRS = [(name, row) for name in activations.ACTIVATIONS for row in FLOATING]


def check_formula(activated: Callable[[str, Any, float], Any], array: Callable[[Any], Any]) -> None:
    """Check a bridge's formula of every activation, and that it refuses one that is unknown."""
    for name in ROW_NAMES:
        got = np.asarray(activated(name, array(POINTS), SLOPE), np.float64)
        want = oracle.value(name, POINTS, SLOPE)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14, err_msg=name)
    with pytest.raises(ConvgradError, match=f"unknown activation '{UNKNOWN}'"):
        activated(UNKNOWN, array(POINTS), SLOPE)


def images(row: DType) -> dict[str, Any]:
    """Return the arrays of a small batch norm: 2 images of 3x4 with 5 channels."""
    rng = np.random.default_rng(3)

    def drawn(shape: tuple[int, ...], to: DType) -> Any:
        return round_once(rng.standard_normal(shape) * 2, to)

    wide = accumulator(row)
    return {
        "input": drawn((2, 3, 4, 5), row),
        "scale": drawn((5,), wide),
        "offset": drawn((5,), wide),
    }


def check_door(name: str, row: DType, run: Callable[..., Any]) -> None:
    """Check `batch_norm_act` of a bridge on images [n, h, w, c]; `run` returns y as float64, of x, scale and offset."""
    arrays = images(row)
    got = run(*arrays.values(), name, SLOPE)
    want = reference.batch_norm_act(**arrays, epsilon=0.25, activation=name, negative_slope=SLOPE).y
    assert got.shape == want.shape
    off = np.abs(got - want) / (np.abs(want) + 1)
    assert off.max() <= row.unit + 64 * accumulator(row).unit, (name, row.name, off.max())
