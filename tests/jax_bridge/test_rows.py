"""Every row of activations and dtypes on arrays of JAX."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import convgrad
import new_row
import rows
from convgrad._base.dtypes import DTYPES, DType
from convgrad._bridges.jax import formulas
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
    x = jnp.ones((1, 2, 2, 1))
    rows.check_unknown(lambda name: batch_norm_act(x, activation=name))
    rows.check_unknown(lambda name: convgrad.batch_norm_act(x, activation=name))
    rows.check_unknown(lambda name: jax.jit(partial(convgrad.batch_norm_act, activation=name))(x))


def test_a_new_activation_is_one_row(tmp_path: Path) -> None:
    new_row.run(tmp_path, Path(__file__).with_name("child_of_new_row.py"))


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_every_dtype_is_taken(row: DType) -> None:
    rows.check_dtype(row, jnp.asarray, np.asarray)


def test_no_table_lacks_a_dtype() -> None:
    rows.check_tables("convgrad._bridges.jax", "convgrad._arrays", "convgrad._problem.norm")
