"""`convgrad.batch_norm_act` and its gradients on arrays of Dask, cut in any way."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest

import norm_doors
from convgrad._base.dtypes import FLOAT
from convgrad.errors import ArgumentError
from norm_doors import BACKWARD, FORWARD, Case


def halves(array: Any) -> Any:
    """Cut every axis in two."""
    return da.from_array(array, chunks=tuple(max(1, (size + 1) // 2) for size in array.shape))


def back(array: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return array.compute(scheduler="synchronous")


@norm_doors.every_case
def test_values(case: Case) -> None:
    norm_doors.check_case(case, halves, back, da.Array)


def test_mixed_with_arrays_of_numpy() -> None:
    norm_doors.check_mixed(halves, back, da.Array)


def test_mistakes() -> None:
    norm_doors.check_mistakes(halves)


@pytest.mark.parametrize("seed", range(12))
def test_chunks_of_each_operand_are_its_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = Case(residual=("", "before", "after")[seed % 3], is_training=bool(seed % 2))

    def cut(array: Any) -> Any:
        sizes = []
        for size in array.shape:
            places = sorted({0, size, *rng.integers(0, size + 1, 2).tolist()})
            chunks = np.diff(places).tolist()
            if rng.random() < 0.2:
                chunks.insert(0, 0)
            sizes.append(tuple(chunks))
        return da.from_array(array, chunks=tuple(sizes))

    norm_doors.check_case(case, cut, back, da.Array)


def test_nothing_is_computed_by_a_call() -> None:
    def refuse(block: Any) -> Any:
        raise AssertionError("computed")

    x = da.ones((4, 4, 4, 2), chunks=2, dtype=np.float32).map_blocks(refuse, meta=np.ones(0, "f4"))
    result = FORWARD(x)
    assert result.y.chunks == x.chunks and result.mean.chunks == (x.chunks[3],)
    assert result.y.dtype == result.variance.dtype == np.float32
    gradients = BACKWARD(x, x, None, None, result.mean, result.variance)
    assert gradients.input.chunks == x.chunks and gradients.residual is None


def test_statistics_far_from_zero() -> None:
    """A mean of 1000 costs no digits, whatever the chunks."""
    rng = np.random.default_rng(0)
    x = (1000 + rng.standard_normal((8, 16, 16, 3))).astype(np.float32)
    exact = x.astype(np.float64).var(axis=(0, 1, 2))
    got = back(FORWARD(da.from_array(x, chunks=(3, 5, 7, 2))).variance)
    np.testing.assert_allclose(got, exact, rtol=2 * FLOAT.unit)


def test_a_chunk_that_is_not_what_its_array_says() -> None:
    def narrower(block: Any) -> Any:
        return block[:, :1]

    x = da.ones((4, 4, 4, 2), chunks=(2, 4, 4, 2), dtype=np.float32)
    wrong = x.map_blocks(narrower, dtype=np.float32, meta=np.ones((0,) * 4, "f4"))
    with pytest.raises(ArgumentError, match="a chunk must have the shape"):
        back(FORWARD(x, residual=wrong).y)
