"""Every row of activations and dtypes on arrays of JAX."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import rows
from convgrad._base.dtypes import DType
from convgrad._bridges.jax import formulas
from convgrad.errors import ArgumentError
from convgrad.jax import batch_norm_act


def test_formulas() -> None:
    rows.check_formula(formulas.activated, jnp.asarray)


@pytest.mark.parametrize(("name", "row"), rows.PAIRS)
def test_kernels(name: str, row: DType) -> None:
    def run(x: Any, scale: Any, offset: Any, activation: str, slope: float) -> Any:
        y, *_ = batch_norm_act(
            *map(jnp.asarray, (x, scale, offset)),
            epsilon=0.25,
            activation=activation,
            negative_slope=slope,
        )
        assert y.dtype == row.numpy
        return np.asarray(y, np.float64)

    rows.check_door(name, row, run)


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`activation` must be one of 'none'"):
        batch_norm_act(jnp.ones((1, 2, 2, 1)), activation=rows.UNKNOWN)
