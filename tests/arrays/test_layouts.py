"""Arrays of any layout go in and are never changed; results are new, aligned, C-contiguous and in native order."""

from __future__ import annotations

import array

import ml_dtypes
import numpy as np
import pytest

import convgrad
from convgrad import nn
from convgrad._base.dtypes import FLOATING, INT32
from convgrad.errors import ArgumentTypeError, DTypeError
from errors.doors import DOORS, EVERY, FRIENDLY, expected, numbers
from layouts import LAYOUTS

OPS = [door for door in FRIENDLY if door.op not in ("conv2d_transpose", "separable_conv2d")]
"""The six operations; all other doors bring their arrays in through the same function."""


def bits(x):
    return np.asarray(x).tobytes()


def check_result(result, dtype, *inputs):
    assert type(result) is np.ndarray
    assert result.dtype == dtype and result.dtype.isnative
    assert result.flags.c_contiguous and result.flags.writeable and result.flags.aligned
    assert result.ctypes.data % 64 == 0 or not result.size
    for each in inputs:
        assert not np.shares_memory(result, np.asarray(each))


def exactly(row, door, **arrays):
    return expected(door, **arrays).astype(row.numpy)


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("door", OPS, ids=lambda door: door.id)
def test_any_layout_gives_the_same_and_is_left_alone(door, layout, row):
    arguments = door.arguments(dtype=row.numpy)
    for name in door.arrays:
        arguments[name] = LAYOUTS[layout](arguments[name])
    operands = [arguments[name] for name in door.arrays]
    before = [(bits(x), x.flags.writeable, x.dtype, x.strides) for x in operands]
    result = door.function(**arguments)
    assert bits(result) == bits(exactly(row, door))
    check_result(result, row.numpy, *operands)
    assert [(bits(x), x.flags.writeable, x.dtype, x.strides) for x in operands] == before


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
@pytest.mark.parametrize("door", OPS, ids=lambda door: door.id)
def test_any_layout_gives_the_same_bits_of_any_numbers(door, row):
    """Numbers of all sizes, subnormal, infinite and none at all: a copy may round nothing and tidy nothing up."""
    rng = np.random.default_rng(9)
    arguments = door.arguments(dtype=row.numpy)
    for name in door.arrays:
        shape = arguments[name].shape
        numbers = rng.standard_normal(shape) * 2.0 ** rng.integers(-18, 8, shape)
        arguments[name] = numbers.astype(row.numpy)
    arguments[door.arrays[0]].flat[:3] = [np.inf, np.nan, -0.0]
    wanted = bits(door.function(**arguments))
    for layout, write in LAYOUTS.items():
        other = {name: write(arguments[name]) for name in door.arrays}
        assert all(
            bits(other[name]) == bits(arguments[name])
            for name in door.arrays
            if "swapped" not in layout
        )
        assert bits(door.function(**{**arguments, **other})) == wanted, layout


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.takes_int32], ids=lambda door: door.id
)
def test_int32(door, layout):
    arguments = door.arguments(dtype=np.int32)
    for name in door.arrays:
        arguments[name] = LAYOUTS[layout](arguments[name])
    result = door.function(**arguments)
    assert np.array_equal(result, expected(door))
    check_result(result, INT32.numpy, *(arguments[name] for name in door.arrays))


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_results_of_every_function(door, layout, row):
    arguments = door.arguments(dtype=row.numpy, layout=layout)
    operands = [arguments[name] for name in door.arrays]
    before = [bits(x) for x in operands]
    result = door.function(**arguments)
    assert bits(result) == bits(expected(door, layout=layout).astype(row.numpy))
    check_result(result, row.numpy, *operands)
    assert [bits(x) for x in operands] == before
    again = door.function(**arguments)
    assert not np.shares_memory(result, again)
    result.fill(7)
    assert bits(again) == bits(door.function(**arguments))


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("door", OPS, ids=lambda door: door.id)
def test_broadcast_arrays(door, axis, row):
    """Arrays with a stride of 0 along one axis."""
    arguments = door.arguments(dtype=row.numpy)
    plain = {}
    for name in door.arrays:
        x = arguments[name]
        arguments[name] = np.broadcast_to(x.take([0], axis), x.shape)
        assert arguments[name].strides[axis] == 0
        plain[name] = arguments[name].astype(np.float64)
    result = door.function(**arguments)
    assert bits(result) == bits(exactly(row, door, **plain))
    check_result(result, row.numpy, *(arguments[name] for name in door.arrays))


@pytest.mark.parametrize("door", OPS, ids=lambda door: door.id)
def test_one_number_seen_everywhere(door):
    arguments = door.arguments()
    for name in door.arrays:
        arguments[name] = np.broadcast_to(np.float32(1), arguments[name].shape)
    plain = {name: arguments[name].copy() for name in door.arrays}
    assert np.array_equal(door.function(**arguments), expected(door, **plain))


@pytest.mark.parametrize("door", OPS, ids=lambda door: door.id)
def test_one_array_in_two_places(door):
    """The same memory as both operands is read twice and written never."""
    x = numbers((3, 3, 3, 3), np.float32, 1)
    shape = {door.sizes: (3, 3, 3, 3)} if door.sizes else {}
    if door.depthwise and door.has_grad:
        shape = (
            {door.sizes: (3, 3, 3, 1)} if door.sizes == door.filter else {door.sizes: (3, 3, 3, 3)}
        )
    same = dict.fromkeys(door.arrays, x)
    if door.op == "depthwise_conv2d_backprop_input":
        same[door.filter] = x[..., :1]
    before = bits(x)
    result = door.call(**shape, **same)
    copies = {name: value.copy() for name, value in same.items()}
    assert np.array_equal(result, expected(door, **shape, **copies))
    assert bits(x) == before


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
@pytest.mark.parametrize("door", OPS, ids=lambda door: door.id)
def test_memory_mapped_files(door, row, tmp_path):
    arguments = door.arguments(dtype=row.numpy)
    for name in door.arrays:
        x = arguments[name]
        path = tmp_path / name
        path.write_bytes(x.tobytes())
        arguments[name] = np.memmap(path, x.dtype, "r", shape=x.shape)
    result = door.function(**arguments)
    assert bits(result) == bits(exactly(row, door))
    check_result(result, row.numpy)
    for name in door.arrays:
        assert (tmp_path / name).read_bytes() == bits(door.arguments(dtype=row.numpy)[name])


# ---- objects that are not ndarrays


class HasArray:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x if dtype is None else self.x.astype(dtype)


class HasInterface:
    def __init__(self, x):
        self.x = x
        self.__array_interface__ = x.__array_interface__


class HasDLPack:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def buffer(x):
    """A 4-D memoryview of an array of the standard library."""
    code = {4: "f", 8: "d"}[x.dtype.itemsize]
    return memoryview(array.array(code, x.ravel().tolist())).cast("B").cast(code, x.shape)


WRAPPERS = {
    "__array__": HasArray,
    "__array_interface__": HasInterface,
    "DLPack": HasDLPack,
    "buffer": buffer,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_objects_that_offer_an_array(door, wrapper, dtype):
    arguments = door.arguments(dtype=dtype)
    originals = [arguments[name] for name in door.arrays]
    before = [bits(x) for x in originals]
    for name in door.arrays:
        arguments[name] = WRAPPERS[wrapper](arguments[name])
    result = door.function(**arguments)
    assert np.array_equal(result, expected(door))
    if door in DOORS:  # the oracle promises neither the dtype nor the alignment
        check_result(result, dtype, *originals)
    assert [bits(x) for x in originals] == before


def test_half_and_bfloat16_objects():
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = np.full((1, 1, 1, 1), 3, dtype)
        assert nn.conv2d(HasArray(x), HasArray(x), 1, "SAME").dtype == dtype


class Raises:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("lives on another device")


class LendsNothing:
    def __dlpack__(self, **options):
        raise BufferError("lives on another device")

    def __dlpack_device__(self):
        return (2, 0)


@pytest.mark.parametrize("kind", [Raises, LendsNothing])
@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_objects_that_cannot_become_arrays(door, kind):
    name = door.arrays[0]
    with pytest.raises(
        ArgumentTypeError, match=f"{door.shown}: `{name}` must be an array, got {kind.__name__}"
    ):
        door.call(**{name: kind()})


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_masked_arrays_are_refused_even_if_nothing_is_masked(door, masked):
    for name in door.arrays:
        x = np.ma.masked_array(door.arguments()[name], mask=masked)
        with pytest.raises(ArgumentTypeError, match=f"`{name}` must not be a masked array"):
            door.call(**{name: x})


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_have_the_wrong_rank():
    with pytest.raises(ValueError, match=r"`input` must be 4-dimensional, got shape \[2, 2\]"):
        nn.conv2d(
            np.matrix(np.ones((2, 2), np.float32)), np.ones((1, 1, 1, 1), np.float32), 1, "SAME"
        )


def test_record_arrays():
    x = np.zeros((1, 1, 1, 1), [("value", np.float32)])
    with pytest.raises(DTypeError, match="`input` must have one of the dtypes"):
        nn.conv2d(x, np.ones((1, 1, 1, 1), np.float32), 1, "SAME")
    x["value"] = 5
    assert nn.conv2d(x["value"], np.ones((1, 1, 1, 1), np.float32), 1, "SAME").item() == 5
    assert (
        nn.conv2d(x.view(np.recarray).value, np.ones((1, 1, 1, 1), np.float32), 1, "SAME").item()
        == 5
    )


# ---- zero-size

EMPTY = [(0, 4, 4, 2), (1, 0, 4, 2), (1, 4, 0, 2), (0, 0, 0, 2)]


@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
@pytest.mark.parametrize("layout", ["C", "Fortran", "strided", "read-only", "byte-swapped"])
@pytest.mark.parametrize("shape", EMPTY, ids=str)
def test_empty_arrays_give_zeros(shape, layout, row):
    x = LAYOUTS[layout](np.zeros(shape, row.numpy))
    f = LAYOUTS[layout](np.ones((3, 3, 2, 2), row.numpy))
    g = np.zeros((*shape[:3], 4), row.numpy)
    for result, wanted in (
        (convgrad.conv2d(x, f, 1, "SAME"), shape),
        (convgrad.conv2d_backprop_input(shape, f, x, 1, "SAME"), shape),
        (convgrad.conv2d_backprop_filter(x, [3, 3, 2, 2], x, 1, "SAME"), (3, 3, 2, 2)),
        (convgrad.depthwise_conv2d(x, f, 1, "SAME"), g.shape),
        (convgrad.depthwise_conv2d_backprop_input(shape, f, g, 1, "SAME"), shape),
        (convgrad.depthwise_conv2d_backprop_filter(x, [3, 3, 2, 2], g, 1, "SAME"), (3, 3, 2, 2)),
    ):
        assert result.shape == wanted and not result.any()
        check_result(result, row.numpy, x, f, g)


def test_results_are_aligned_whatever_the_allocator_does():
    """A hundred results of odd sizes, kept alive so that no two share an address."""
    kept = []
    for size in range(1, 101):
        x = np.ones((1, size, 1, 1), np.float16)
        kept.append(convgrad.conv2d(x, np.ones((1, 1, 1, 1), np.float16), 1, "SAME"))
    assert {result.ctypes.data % 64 for result in kept} == {0}
    assert all((result == 1).all() for result in kept)
