"""Every row of activations and dtypes on arrays of Dask."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest

import convgrad
import new_row
import rows
from convgrad._base.dtypes import DTYPES, DType


def test_a_new_activation_is_one_row(tmp_path: Path) -> None:
    new_row.run(tmp_path, Path(__file__).with_name("child_of_new_row.py"))


def test_an_unknown_activation_is_refused() -> None:
    x = da.ones((1, 2, 2, 1), dtype=np.float32)
    rows.check_unknown(lambda name: convgrad.batch_norm_act(x, activation=name))


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_every_dtype_is_taken(row: DType) -> None:
    rows.check_dtype(row, da.from_array, lambda array: array.compute())
