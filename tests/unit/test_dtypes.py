"""One table of dtypes: what a row says of sums is what kernels are written with."""

from __future__ import annotations

import pytest

from convgrad._base.dtypes import DTYPES, FLOAT, FLOATING, DType, accumulator
from convgrad._compiler.codegen import I16, I64, arithmetic, element


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_kernels_add_in_the_accumulator_of_the_row(row: DType) -> None:
    wide = accumulator(row)
    assert arithmetic(element(row.short)) is element(wide.short)
    assert element(row.short).size == row.itemsize
    assert accumulator(wide) is wide, "an accumulator is its own"


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
def test_no_sum_is_kept_in_less_than_float32(row: DType) -> None:
    assert accumulator(row).unit <= min(row.unit, FLOAT.unit)


def test_bits_and_indices_are_computed_with_as_they_are() -> None:
    assert (arithmetic(I16), arithmetic(I64)) == (I16, I64)
