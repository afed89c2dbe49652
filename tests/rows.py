"""Every row of activations and of dtypes, for the tests that take them through each bridge."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import reference
from convgrad._base.dtypes import DTYPES, FLOATING, DType, accumulator, round_once
from convgrad._problem import activations
from convgrad._problem.norm import oracle
from convgrad.errors import ArgumentError, ConvgradError

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
        want = oracle.activated(name, POINTS, SLOPE)
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


def check_unknown(call: Callable[[str], Any]) -> None:
    """Check that a function names itself, the argument, the rule and the value where an activation is unknown."""
    with pytest.raises(ArgumentError) as caught:
        call(UNKNOWN)
    told = str(caught.value)
    assert told.startswith("batch_norm_act") and f"got {UNKNOWN!r}" in told, told
    assert "`activation` must be one of" in told, told
    assert all(name in told for name in activations.ACTIVATIONS), told


def check_dtype(row: DType, make: Callable[[Any], Any], back: Callable[[Any], Any]) -> None:
    """Check that a bridge takes a dtype, and gives it back: whole numbers, so that all bits are told."""
    x = np.arange(2 * 4 * 4 * 2).reshape(2, 4, 4, 2) % 5 - 2
    f = np.arange(2 * 2 * 2 * 3).reshape(2, 2, 2, 3) % 3 - 1
    image, taps = (each.astype(row.numpy) for each in (x, f))
    want = convgrad.conv2d(image, taps, 1, "SAME")
    got = back(convgrad.conv2d(make(image), make(taps), 1, "SAME"))
    assert want.dtype == got.dtype == row.numpy
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))
    assert np.abs(want.astype(np.float64)).max() > 2


def tables(package: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Find the tables of a package's modules in which dtypes are rows, with the names of those they have."""
    found = importlib.import_module(package)
    names = [package]
    if hasattr(found, "__path__"):
        names += [each.name for each in pkgutil.walk_packages(found.__path__, f"{package}.")]
    for name in names:
        for variable, value in vars(importlib.import_module(name)).items():
            if isinstance(value, dict):
                parts = [*value, *value.values()]
            elif isinstance(value, tuple | list | set | frozenset):
                parts = [*value]
            else:
                continue
            listed = frozenset(each.name for each in parts if isinstance(each, DType))
            if len(listed) > 1:
                yield f"{name}.{variable}", listed


WHOLE = tuple(frozenset(row.name for row in group) for group in (DTYPES, FLOATING))


def check_tables(*packages: str) -> None:
    """Check that no table of a bridge lacks a row; there must be one, or this would see nothing."""
    found = [table for package in packages for table in tables(package)]
    assert found
    lacking = [f"{where} has {sorted(listed)}" for where, listed in found if listed not in WHOLE]
    assert not lacking, lacking
