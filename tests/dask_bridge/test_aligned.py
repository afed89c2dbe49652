"""Blocks that Dask fuses with what makes their chunks, and those it must not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.blockwise import Blockwise

import convgrad
from convgrad._bridges.dask import graph, halo

MADE: Counter[Any] = Counter()
"""How often each chunk was made."""


def counted(seed: int, block_info: Any = None) -> Any:
    place = block_info[None]
    MADE[seed, place["chunk-location"]] += 1
    rng = np.random.default_rng([seed, *place["chunk-location"]])
    return rng.integers(-4, 5, place["chunk-shape"]).astype(np.float32)


def images(seed: int, shape: tuple[int, ...], chunks: Any) -> da.Array:
    sizes = da.core.normalize_chunks(chunks, shape)
    empty = np.empty((0,) * 4, np.float32)
    return da.map_blocks(counted, seed, chunks=sizes, dtype=np.float32, meta=empty)


def tasks_of(array: da.Array) -> list[str]:
    """Return the first words of the keys that are left when Dask has fused what it can."""
    (left,) = dask.optimize(array)
    keys = left.__dask_graph__().to_dict()
    return [(key[0] if isinstance(key, tuple) else key).partition("-")[0] for key in keys]


def check(lazy: da.Array, expected: Any) -> None:
    """Integers are exact, and each chunk is made once."""
    MADE.clear()
    found = lazy.compute(scheduler="sync")
    assert MADE and set(MADE.values()) == {1}
    np.testing.assert_array_equal(found, expected)


F = np.random.default_rng(9).integers(-4, 5, (3, 3, 4, 6)).astype(np.float32)
NCHW = {"data_format": "NCHW"}


def test_a_filter_gradient_makes_both_chunks_itself() -> None:
    x, g = images(1, (10, 6, 6, 4), (3, -1, -1, -1)), images(2, (10, 6, 6, 6), (3, -1, -1, -1))
    lazy = convgrad.conv2d_backprop_filter(x, F.shape, g, 1, "SAME")
    assert sorted(tasks_of(lazy)) == ["convgrad", "part", "part", "part", "part"]
    whole = convgrad.conv2d_backprop_filter(x.compute(), F.shape, g.compute(), 1, "SAME")
    check(lazy, whole)


@pytest.mark.parametrize("copied", [True, False])
def test_beside_strips_the_other_chunk_is_made_in_the_task(
    copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and columns are cut: chunks of the input are taken by strips, too, those of the gradient are not."""
    monkeypatch.setattr(halo, "LEAST", 1 << 60 if copied else 0)
    x, g = images(1, (4, 40, 40, 4), (2, 10, 20, -1)), images(2, (4, 40, 40, 6), (2, 10, 20, -1))
    lazy = convgrad.conv2d_backprop_filter(x, F.shape, g, 1, "SAME")
    left = Counter(tasks_of(lazy))
    assert left["counted"] == left["part"] == left["strips"] == 16
    # For each of two chunks of images: 12 neighbours above and below, 8 beside and 12 at corners.
    assert left["strip"] == 2 * (12 + 8 + 12)
    whole = convgrad.conv2d_backprop_filter(x.compute(), F.shape, g.compute(), 1, "SAME")
    check(lazy, whole)
    both = convgrad.conv2d_backprop_filter(x, (3, 3, 4, 4), x, 1, "SAME")
    check(both, convgrad.conv2d_backprop_filter(x.compute(), (3, 3, 4, 4), x.compute(), 1, "SAME"))


@pytest.mark.parametrize("same", [True, False])
def test_channels_of_a_depthwise_gradient_are_found(same: bool) -> None:
    """Images and channels are cut; both images are the same array, or two."""
    x = images(1, (6, 4, 5, 5), (2, 2, -1, -1))
    g = x if same else images(2, (6, 4, 5, 5), (2, 2, -1, -1))
    lazy = convgrad.depthwise_conv2d_backprop_filter(x, [3, 3, 4, 1], g, 1, "SAME", **NCHW)
    assert tasks_of(lazy).count("part") == 6
    whole = convgrad.depthwise_conv2d_backprop_filter(
        x.compute(), [3, 3, 4, 1], g.compute(), 1, "SAME", **NCHW
    )
    check(lazy, whole)


def test_a_small_filter_leaves_one_task_per_chunk() -> None:
    x = images(1, (6, 400, 200, 4), (2, -1, -1, -1))
    lazy = convgrad.conv2d(x, F, 1, "SAME")
    assert isinstance(lazy.dask.layers[lazy.name], Blockwise) and len(tasks_of(lazy)) == 3
    check(lazy, convgrad.conv2d(x.compute(), F, 1, "SAME"))


def test_a_large_filter_is_a_task_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "INSIDE", F.nbytes - 1)
    x = images(1, (6, 400, 200, 4), (2, -1, -1, -1))
    lazy = convgrad.conv2d(x, F, 1, "SAME")
    assert tasks_of(lazy).count("filter") == 1
    check(lazy, convgrad.conv2d(x.compute(), F, 1, "SAME"))


@pytest.mark.parametrize(
    ("of_x", "of_g"),
    [
        ((2, -1, -1, 2), (2, -1, -1, 3)),  # channels of both: every pair of chunks
        ((2, -1, -1, 2), (2, -1, -1, -1)),
        ((2, -1, -1, -1), (3, -1, -1, -1)),  # blocks of parts of chunks
        ((2, 3, -1, -1), (2, 3, -1, -1)),  # halos
        (((2, 0, 4), -1, -1, -1), ((2, 0, 4), -1, -1, -1)),
        ((-1, -1, -1, -1), (-1, -1, -1, -1)),
    ],
)
def test_no_chunk_is_made_twice(of_x: Any, of_g: Any) -> None:
    x, g = images(1, (6, 6, 6, 4), of_x), images(2, (6, 6, 6, 6), of_g)
    lazy = convgrad.conv2d_backprop_filter(x, F.shape, g, 1, "SAME")
    whole = convgrad.conv2d_backprop_filter(x.compute(), F.shape, g.compute(), 1, "SAME")
    check(lazy, whole)


def test_chunks_that_two_calls_take_are_made_once() -> None:
    x, g = images(1, (6, 6, 6, 4), (2, -1, -1, -1)), images(2, (6, 6, 6, 6), (2, -1, -1, -1))
    both = (
        convgrad.conv2d_backprop_filter(x, F.shape, g, 1, "SAME"),
        convgrad.conv2d_backprop_input(x.shape, F, g, 1, "SAME"),
    )
    MADE.clear()
    dask.compute(*both, scheduler="sync")
    assert set(MADE.values()) == {1} and len(MADE) == 6
