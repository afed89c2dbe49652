"""Arrays of Dask at every door: lazy, checked at once with the words of the NumPy call, and right."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import dask
import dask.array as da
import ml_dtypes
import numpy as np
import pytest

import convgrad
from convgrad.errors import ArgumentError, ArgumentTypeError, ConvgradError
from errors.doors import DOORS, Door
from errors.test_messages import MISTAKES, Mistake


@pytest.fixture(autouse=True)
def in_this_thread() -> Any:
    with dask.config.set(scheduler="sync"):
        yield


def lazy(array: Any, chunks: Any = 2) -> Any:
    return da.from_array(array, chunks=chunks)


def never(array: Any, chunks: Any = 2) -> Any:
    """An array of Dask that must not be computed."""

    def refuse(block: Any) -> Any:
        raise AssertionError("a call computed its operand")

    return lazy(array, chunks).map_blocks(
        refuse, dtype=array.dtype, meta=np.empty((0,) * array.ndim, array.dtype)
    )


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_every_door_takes_and_gives_them(door: Door) -> None:
    arguments = door.arguments()
    wanted = door.function(**arguments)
    chunked = {name: lazy(arguments[name]) for name in door.arrays}
    result = door.function(**arguments | chunked)
    assert isinstance(result, da.Array) and result.chunks
    assert np.array_equal(result.compute(), wanted)
    for name in door.arrays:  # one of them is enough
        result = door.function(**arguments | {name: chunked[name]})
        assert isinstance(result, da.Array)
        assert np.array_equal(result.compute(), wanted)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_nothing_is_computed_in_the_call(door: Door) -> None:
    arguments = door.arguments()
    made = door.function(**arguments | {name: never(arguments[name]) for name in door.arrays})
    with pytest.raises(AssertionError, match="computed its operand"):
        made.compute()


def spelled(error: Exception) -> str:
    """Lists and tuples alike: a repeated call on arrays of NumPy has kept its lists as tuples."""
    return str(error).replace("(", "[").replace(",)", "]").replace(")", "]")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_mistakes_are_found_in_the_call_with_the_same_words(mistake: Mistake) -> None:
    compared = 0
    doors = [door for door in DOORS if mistake.applies(door)]
    for door in doors[:: max(1, len(doors) // 3)]:  # all of them meet in the same checks
        arguments = door.arguments(**mistake.changes(door))
        chunked = {
            name: never(value, -1)
            for name, value in arguments.items()
            if name in door.arrays and type(value) is np.ndarray and value.dtype.kind in "fiuV"
        }
        if not chunked:
            continue
        with pytest.raises(ConvgradError) as plain:
            door.function(**arguments)
        with pytest.raises(ConvgradError) as caught:
            door.function(**arguments | chunked)
        assert type(caught.value) is type(plain.value)
        assert spelled(caught.value) == spelled(plain.value)
        compared += 1
    assert compared


def test_more_leading_dimensions() -> None:
    x = np.arange(2 * 3 * 5 * 4 * 2, dtype=np.float32).reshape(2, 3, 5, 4, 2)
    f = np.ones((2, 2, 2, 3), np.float32)
    made = convgrad.conv2d(lazy(x), f, 1, "SAME")
    assert made.shape == (2, 3, 5, 4, 3)
    assert np.array_equal(made.compute(), convgrad.conv2d(x, f, 1, "SAME"))


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32]
)
def test_dtypes(dtype: Any) -> None:
    x = (np.arange(2 * 6 * 6 * 4) % 7).reshape(2, 6, 6, 4).astype(dtype)
    f = (np.arange(3 * 3 * 4 * 2) % 5).reshape(3, 3, 4, 2).astype(dtype)
    made = convgrad.conv2d(lazy(x), f, 1, "SAME")
    assert made.dtype == x.dtype
    assert np.array_equal(made.compute(), convgrad.conv2d(x, f, 1, "SAME"))


def test_other_byte_order() -> None:
    x = np.arange(2 * 6 * 6 * 4).reshape(2, 6, 6, 4).astype(">f4")
    f = np.ones((3, 3, 4, 1), ">f4")
    made = convgrad.depthwise_conv2d(lazy(x), f, 1, "SAME")
    assert np.array_equal(made.compute(), convgrad.depthwise_conv2d(x, f, 1, "SAME"))


def test_chunks_of_unknown_sizes_are_refused() -> None:
    x = lazy(np.ones((4, 6, 6, 2), np.float32))
    some = x[x.sum(axis=(1, 2, 3)) > 0]
    with pytest.raises(
        ArgumentError,
        match=r"conv2d: `input` must have chunks of known sizes, .*compute_chunk_sizes",
    ):
        convgrad.conv2d(some, np.ones((1, 1, 2, 2), np.float32), 1, "SAME")
    made = convgrad.conv2d(some.compute_chunk_sizes(), np.ones((1, 1, 2, 2), np.float32), 1, "SAME")
    assert made.compute().sum() == 4 * 6 * 6 * 2 * 2


def test_chunks_that_are_no_arrays_of_numpy_are_refused() -> None:
    masked = da.ma.masked_equal(lazy(np.ones((4, 6, 6, 2), np.float32)), 0)
    with pytest.raises(
        ArgumentTypeError, match=r"conv2d: `input` .* got chunks of type MaskedArray"
    ):
        convgrad.conv2d(masked, np.ones((1, 1, 2, 2), np.float32), 1, "SAME")


@pytest.mark.parametrize("sizes", [[1, 5, 5, 2], [5, 5]])
def test_sizes_must_be_known(sizes: list[int]) -> None:
    g = lazy(np.ones((1, 5, 5, 4), np.float32))
    with pytest.raises(
        ArgumentTypeError, match="`input_sizes` must be known when the call is made"
    ):
        convgrad.conv2d_backprop_input(
            never(np.array(sizes)), np.ones((3, 3, 2, 4), np.float32), g, 1, "SAME"
        )
    with pytest.raises(ArgumentTypeError, match="`strides` must be an int"):
        convgrad.conv2d(g, np.ones((3, 3, 4, 4), np.float32), never(np.array([1, 1])), "SAME")


@pytest.mark.parametrize(
    ("make", "got"),
    [
        (lambda block: block[:1], r"got \[1, 6, 6, 2\] of float32"),
        (lambda block: block.astype(np.float64), "got .* of float64"),
        (lambda block: block[0], r"got \[6, 6, 2\] of float32"),
        (lambda block: "a word", "got"),
    ],
)
def test_a_chunk_that_is_not_what_was_declared(make: Any, got: str) -> None:
    """Dask believes its makers; a kernel would read beyond the end."""
    x = lazy(np.ones((4, 6, 6, 2), np.float32), (2, -1, -1, -1))
    wrong = x.map_blocks(
        make, dtype=np.float32, meta=np.empty((0,) * 4, np.float32), chunks=x.chunks
    )
    for made in (
        convgrad.depthwise_conv2d(wrong, np.ones((3, 3, 2, 1), np.float32), 1, "SAME"),
        convgrad.depthwise_conv2d(
            wrong.rechunk((2, 3, 6, 2)), np.ones((3, 3, 2, 1), np.float32), 1, "SAME"
        ),
        convgrad.depthwise_conv2d_backprop_filter(wrong, [3, 3, 2, 1], x, 1, "SAME"),
    ):
        with pytest.raises(Exception) as caught:
            made.compute()
        if isinstance(caught.value, ConvgradError):
            assert "a chunk must have the shape" in str(caught.value)


def test_options_around_the_call_are_heeded_in_tasks() -> None:
    """Winograd's sums have other roundings, so the bits tell which one ran."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 32, 32, 64), np.float32)
    f = rng.standard_normal((3, 3, 64, 64), np.float32)
    made = {}
    for how in ("off", "auto"):
        with convgrad.options(winograd=how):
            made[how] = convgrad.conv2d(lazy(x, -1), f, 1, "SAME"), convgrad.conv2d(x, f, 1, "SAME")
    assert not np.array_equal(made["off"][1], made["auto"][1])
    for chunked, plain in made.values():
        assert np.array_equal(chunked.compute(), plain)
    assert made["off"][0].name != made["auto"][0].name


def test_switches_are_those_of_the_call() -> None:
    """Also those that say their defaults: where it is computed may say something else."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 32, 32, 64), np.float32)
    f = rng.standard_normal((3, 3, 64, 64), np.float32)
    made, plain = convgrad.conv2d(lazy(x, -1), f, 1, "SAME"), convgrad.conv2d(x, f, 1, "SAME")
    with convgrad.options(winograd="off"):
        assert not np.array_equal(convgrad.conv2d(x, f, 1, "SAME"), plain)
        assert np.array_equal(made.compute(), plain)


def test_an_empty_image_beside_a_chunked_filter() -> None:
    x, f = np.zeros((2, 0, 3, 4), np.float32), da.zeros((1, 1, 4, 5), dtype=np.float32)
    assert convgrad.conv2d(x, f, 1, "SAME").compute().shape == (2, 0, 3, 5)
    assert convgrad.explain("conv2d", x.shape, f).chunked.shape == (2, 0, 3, 5)
    g = np.zeros((0, 3, 3, 5), np.float32)
    assert convgrad.conv2d_backprop_input([0, 3, 3, 4], f, g, 1, "SAME").compute().size == 0


def test_empty_chunks_among_leading_dimensions() -> None:
    x = np.arange(3 * 2 * 4 * 4, dtype=np.float32).reshape(1, 3, 2, 4, 4)
    f = np.ones((2, 2, 4, 1), np.float32)
    chunked = da.from_array(x, chunks=((0, 0, 1, 0), (1, 1, 1), (2,), (4,), (4,)))
    made = convgrad.conv2d(chunked, f, 1, "SAME")
    assert np.array_equal(made.compute(), convgrad.conv2d(x, f, 1, "SAME"))


class Holding:
    """What looks like an array and would be computed to become one, as xarray's on Dask does."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def __dask_graph__(self) -> Any:
        return self._graph

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        assert self._graph is None, "computed in the call"
        return np.ones((1, 2, 2, 1), np.float32)


def test_other_collections_are_not_computed() -> None:
    f = np.ones((1, 1, 1, 1), np.float32)
    assert convgrad.conv2d(Holding(None), f, 1, "SAME").sum() == 4  # its data are in memory
    for value in (Holding({}), dask.delayed(np.ones)((1, 2, 2, 1), np.float32)):
        with pytest.raises(
            ArgumentTypeError,
            match=r"`input` must be an array, got .* would be computed here and now",
        ):
            convgrad.conv2d(value, f, 1, "SAME")


def test_names_follow_from_what_is_computed() -> None:
    x, f = lazy(np.ones((4, 6, 6, 2), np.float32)), np.ones((3, 3, 2, 1), np.float32)
    once, again = (convgrad.depthwise_conv2d(x, f, 1, "SAME") for _ in range(2))
    assert once.name == again.name
    others = [
        convgrad.depthwise_conv2d(x, f, 2, "SAME"),
        convgrad.depthwise_conv2d(x, 2 * f, 1, "SAME"),
        convgrad.depthwise_conv2d(x + 1, f, 1, "SAME"),
        convgrad.depthwise_conv2d(x.rechunk((4, 2, 2, 2)), f, 1, "SAME"),
    ]
    assert len({once.name, *(each.name for each in others)}) == 5


def test_nan_and_infinities_pass_through_partial_sums() -> None:
    x = np.ones((4, 5, 5, 3), np.float32)
    g = np.ones((4, 5, 5, 3), np.float32)
    x[0, 2, 2, 0], x[1, 2, 2, 1], x[3, 2, 2, 1] = np.nan, np.inf, -np.inf
    made = convgrad.depthwise_conv2d_backprop_filter(
        lazy(x, (1, -1, -1, -1)), [3, 3, 3, 1], g, 1, "SAME"
    )
    wanted = convgrad.depthwise_conv2d_backprop_filter(x, [3, 3, 3, 1], g, 1, "SAME")
    assert np.array_equal(made.compute(), wanted, equal_nan=True)
    assert np.isnan(wanted[..., :2, :]).all() and np.isfinite(wanted[..., 2, :]).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_partial_sums_are_rounded_once(dtype: Any) -> None:
    """Of 4096 ones and many small numbers, sums rounded on the way would lose every small one."""
    x = np.full((64, 2, 2, 1), 0.25, dtype)
    x[0] = 4096 if dtype is np.float16 else 512
    g = np.ones((64, 2, 2, 1), dtype)
    made = convgrad.depthwise_conv2d_backprop_filter(
        lazy(x, (1, -1, -1, -1)), [1, 1, 1, 1], g, 1, "SAME"
    )
    exact = float(x.astype(np.float64).sum())
    assert made.compute().item() == np.float64(exact).astype(dtype)
    assert made.compute().item() != x[0].astype(np.float64).sum()


def test_importing_the_package_imports_no_dask() -> None:
    script = (
        "import sys, numpy as np, convgrad; convgrad.conv2d(np.ones((1,2,2,1),'f'), np.ones((1,1,1,1),'f'), 1, 'SAME');"
        "print([name for name in ('dask', 'distributed', 'zarr', 'cloudpickle') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_arrays_of_query_planning_are_refused() -> None:
    """An experiment of Dask's, switched on before it is imported."""
    script = (
        "import dask; dask.config.set({'array.query-planning': True})\n"
        "import dask.array as da, numpy as np, convgrad\n"
        "try: convgrad.conv2d(da.ones((1, 4, 4, 1), dtype='f4'), np.ones((1, 1, 1, 1), 'f4'), 1, 'SAME')\n"
        "except convgrad.errors.ArgumentTypeError as error: print(error)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("conv2d: `input` must be an array of Dask that has a graph, ")


def test_a_filter_may_change_after_the_call() -> None:
    f = np.ones((3, 3, 1, 1), np.float32)
    made = convgrad.conv2d(lazy(np.ones((1, 5, 5, 1), np.float32)), f, 1, "VALID")
    f[:] = 0
    assert (made.compute() == 9).all()
