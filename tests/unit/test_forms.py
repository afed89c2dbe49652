"""Every way to write strides, dilations, padding, layout, sizes and arrays, each giving the canonical form's result."""

from __future__ import annotations

import enum

import numpy as np
import pytest

import convgrad
from convgrad import nn, raw_ops
from convgrad._base.dtypes import FLOATING
from convgrad.compat.v1 import nn as v1
from convgrad.errors import ArgumentError, ArgumentTypeError, DTypeError
from errors.doors import BATCH, DOORS, EVERY, HEIGHT, IN_C, OUT_C, WIDTH, expected, image, numbers


class Index:
    """An integer that is not an int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


class Three(enum.IntEnum):
    VALUE = 3


class Vector:
    """A 1-D array of some other framework."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __repr__(self):
        return f"Vector({self.values})"


def equal(result, wanted):
    assert result.shape == wanted.shape
    assert np.array_equal(result, wanted)


def with_grad(door, strides, dilations, padding, layout="NHWC"):
    """Return arguments whose `out_backprop` fits these settings, and the oracle's answer."""
    changes = {}
    if door.has_grad:
        arguments = door.arguments(layout=layout)
        filters = arguments[door.filter]
        window = (filters.shape if isinstance(filters, np.ndarray) else filters)[:2]
        rows, cols = (
            convgrad._problem.geometry.solve(*each[:4], each[4]).out
            for each in zip(
                (HEIGHT, WIDTH),
                window,
                strides,
                dilations,
                (padding, padding) if isinstance(padding, str) else padding,
                strict=True,
            )
        )
        channels = arguments[door.grad].shape[3 if layout == "NHWC" else 1]
        changes[door.grad] = numbers(image(layout, BATCH, rows, cols, channels), np.float32, 9)
    return changes, expected(door, strides, dilations, padding, layout, **changes)


# ---- strides and dilations

SQUARE = [
    3,
    np.int8(3),
    np.uint64(3),
    np.array(3),
    Index(3),
    Three.VALUE,
    [3],
    (3,),
    np.array([3]),
    range(3, 4),
]
OBLONG = [
    [2, 3],
    (2, 3),
    np.array([2, 3]),
    np.array([2, 3], np.uint8),
    np.array([2, 3], object),
    [np.int64(2), Index(3)],
    range(2, 4),
    Vector([2, 3]),
]
FOUR = [
    [1, 2, 3, 1],
    (1, 2, 3, 1),
    np.array([1, 2, 3, 1]),
    [1, np.int32(2), Index(3), np.array(1)],
    Vector([1, 2, 3, 1]),
]
FLEXIBLE_DOORS = [door for door in EVERY if door.forms in ("flexible", "friendly")]
STRICT_DOORS = [door for door in DOORS if door.forms in ("strict", "raw", "pair")]
FLEXIBLE_FORMS = [
    *((form, (3, 3)) for form in SQUARE),
    *((form, (2, 3)) for form in (*OBLONG, *FOUR)),
    (None, (1, 1)),
    (1, (1, 1)),
]


def ids(rows):
    return [f"{type(row[0]).__name__}-{row[1]}-{position}" for position, row in enumerate(rows)]


@pytest.mark.parametrize("door", FLEXIBLE_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize(("form", "pair"), FLEXIBLE_FORMS, ids=ids(FLEXIBLE_FORMS))
def test_flexible_strides(door, form, pair):
    changes, wanted = with_grad(door, pair, (1, 1), "SAME")
    equal(door.call(**changes, strides=form), wanted)


@pytest.mark.parametrize("door", FLEXIBLE_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize(("form", "pair"), FLEXIBLE_FORMS, ids=ids(FLEXIBLE_FORMS))
def test_flexible_dilations(door, form, pair):
    changes, wanted = with_grad(door, (1, 1), pair, "SAME")
    equal(door.call(**changes, dilations=form), wanted)


STRICT_FORMS = [[1, 2, 3, 1], (1, 2, 3, 1), [1, np.int8(2), np.uint64(3), Index(1)]]


@pytest.mark.parametrize("door", STRICT_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("form", STRICT_FORMS, ids=["list", "tuple", "indices"])
def test_strict_strides(door, form):
    changes, wanted = with_grad(door, (2, 3), (1, 1), "SAME")
    equal(door.call(**changes, strides=form), wanted)


@pytest.mark.parametrize("door", STRICT_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("form", STRICT_FORMS, ids=["list", "tuple", "indices"])
def test_strict_dilations(door, form):
    changes, wanted = with_grad(door, (1, 1), (2, 3), "SAME")
    equal(door.call(**changes, dilations=form[1:3] if door.forms == "pair" else form), wanted)


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_dilations_none_is_one(door):
    equal(door.call(dilations=None), expected(door))


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_stride_and_dilation_together_follow_the_documented_sum(door, layout):
    changes, wanted = with_grad(door, (2, 3), (2, 1), "SAME", layout)
    equal(
        door.call(layout=layout, **changes, **door.settings((2, 3), (2, 1), "SAME", layout)), wanted
    )


@pytest.mark.parametrize("door", STRICT_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize(
    ("form", "error"),
    [
        (1, ArgumentTypeError),
        (None, ArgumentTypeError),
        (np.array([1, 1, 1, 1]), ArgumentTypeError),
        (range(1, 5), ArgumentTypeError),
        ("1111", ArgumentTypeError),
        (Vector([1, 1, 1, 1]), ArgumentTypeError),
        ([1], ArgumentError),
        ([1, 1], ArgumentError),
        ([1, 1, 1], ArgumentError),
        ([1, 1, 1, 1, 1], ArgumentError),
        ([], ArgumentError),
    ],
    ids=repr,
)
def test_strict_strides_take_a_list_of_four_only(door, form, error):
    with pytest.raises(error, match="`strides`"):
        door.call(strides=form)


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.forms == "pair"], ids=lambda door: door.id
)
@pytest.mark.parametrize("form", [[1], [1, 1, 1], [1, 1, 1, 1], [1] * 5, []], ids=len)
def test_depthwise_dilations_take_two_only(door, form):
    with pytest.raises(ArgumentError, match="`dilations` must hold 2 values"):
        door.call(dilations=form)


NO_INTEGERS = [2.0, 2.5, np.float32(2), True, np.True_, "2", b"2", None, 2j, [2], np.array([2])]


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
@pytest.mark.parametrize("argument", ["strides", "dilations"])
@pytest.mark.parametrize("entry", NO_INTEGERS, ids=repr)
def test_entries_that_are_no_integers_are_refused(door, argument, entry):
    form = [1, entry] if argument == "dilations" and door.forms == "pair" else [1, entry, 1, 1]
    with pytest.raises(ArgumentTypeError, match=f"`{argument}` must hold integers"):
        door.call(**{argument: form})


@pytest.mark.parametrize("door", FLEXIBLE_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("argument", ["strides", "dilations"])
@pytest.mark.parametrize(
    "form",
    [2.0, 2.5, True, "2", b"2", {1: 1}, {1}, np.array(2.0), np.array([1.0]), np.ones(2, bool), np.ones((2, 2), int)],
    ids=repr,
)  # fmt: skip
def test_flexible_forms_take_integers_only(door, argument, form):
    with pytest.raises(ArgumentTypeError, match=f"`{argument}`"):
        door.call(**{argument: form})


# ---- padding

PADS = ((1, 0), (2, 3))
NHWC_PADS = [[0, 0], [1, 0], [2, 3], [0, 0]]
NCHW_PADS = [[0, 0], [0, 0], [1, 0], [2, 3]]


def tuples(pairs):
    return tuple(tuple(pair) for pair in pairs)


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
@pytest.mark.parametrize("word", ["SAME", "VALID", np.str_("VALID")], ids=repr)
def test_padding_words(door, word):
    changes, wanted = with_grad(door, (1, 1), (1, 1), str(word))
    equal(door.call(**changes, padding=word), wanted)


@pytest.mark.parametrize(
    "door", [door for door in EVERY if door.forms != "raw"], ids=lambda door: door.id
)
@pytest.mark.parametrize(("layout", "pairs"), [("NHWC", NHWC_PADS), ("NCHW", NCHW_PADS)])
@pytest.mark.parametrize(
    "write",
    [
        list,
        tuples,
        lambda pairs: [tuple(pair) for pair in pairs],
        lambda pairs: list(np.array(pairs).tolist()),
    ],
    ids=["lists", "tuples", "mixed", "tolist"],
)
def test_padding_lists(door, layout, pairs, write):
    changes, wanted = with_grad(door, (1, 1), (1, 1), PADS, layout)
    equal(door.call(layout=layout, **changes, padding=write(pairs)), wanted)


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.forms == "raw"], ids=lambda door: door.id
)
@pytest.mark.parametrize(("layout", "pairs"), [("NHWC", NHWC_PADS), ("NCHW", NCHW_PADS)])
@pytest.mark.parametrize("write", [list, tuple])
def test_raw_explicit_paddings(door, layout, pairs, write):
    changes, wanted = with_grad(door, (1, 1), (1, 1), PADS, layout)
    flat = write(number for pair in pairs for number in pair)
    equal(door.call(layout=layout, **changes, padding="EXPLICIT", explicit_paddings=flat), wanted)


@pytest.mark.parametrize(
    "door", [door for door in EVERY if door.forms == "friendly"], ids=lambda door: door.id
)
@pytest.mark.parametrize(
    ("form", "canonical"),
    [
        (((1, 0), (2, 3)), PADS),
        ([[1, 0], [2, 3]], PADS),
        ("same", "SAME"),
        ("valid", "VALID"),
        ("Same", "SAME"),
        (0, ((0, 0), (0, 0))),
        (1, ((1, 1), (1, 1))),
        (np.uint8(2), ((2, 2), (2, 2))),
        (Index(1), ((1, 1), (1, 1))),
        (Three.VALUE, ((3, 3), (3, 3))),
        ((1, 2), ((1, 1), (2, 2))),
        ([2, 0], ((2, 2), (0, 0))),
        ((np.int64(1), Index(3)), ((1, 1), (3, 3))),
    ],
    ids=repr,
)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_friendly_padding(door, form, canonical, layout):
    changes, wanted = with_grad(door, (1, 1), (1, 1), canonical, layout)
    equal(door.call(layout=layout, **changes, padding=form), wanted)


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.forms != "friendly"], ids=lambda door: door.id
)
@pytest.mark.parametrize("form", ["same", "valid", [[1, 0], [2, 3]], 1, (1, 1)], ids=repr)
def test_friendly_padding_is_for_the_top_level_only(door, form):
    with pytest.raises((ArgumentError, ArgumentTypeError), match="`padding`"):
        door.call(padding=form)


# ---- data_format, name, use_cudnn_on_gpu


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
@pytest.mark.parametrize("form", ["NHWC", None, np.str_("NHWC")], ids=repr)
def test_nhwc(door, form):
    equal(door.call(data_format=form), expected(door))


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_nchw(door):
    equal(door.call(layout="NCHW"), expected(door, layout="NCHW"))


@pytest.mark.parametrize(
    "door", [door for door in EVERY if door.forms == "friendly"], ids=lambda door: door.id
)
@pytest.mark.parametrize(
    ("form", "layout"),
    [
        ("channels_last", "NHWC"),
        ("Channels_Last", "NHWC"),
        ("nhwc", "NHWC"),
        ("channels_first", "NCHW"),
        (np.str_("CHANNELS_FIRST"), "NCHW"),
        ("nChW", "NCHW"),
    ],
    ids=repr,
)
def test_friendly_data_format(door, form, layout):
    equal(door.call(layout=layout, data_format=form), expected(door, layout=layout))


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.forms != "friendly"], ids=lambda door: door.id
)
@pytest.mark.parametrize("form", ["channels_last", "channels_first", "nhwc"])
def test_friendly_data_format_is_for_the_top_level_only(door, form):
    with pytest.raises(ArgumentError, match="`data_format` must be 'NHWC' or 'NCHW'; write "):
        door.call(data_format=form)


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_nchw_is_nhwc_transposed(door):
    """Not through the oracle: the same numbers in the other order, filters untouched."""
    nhwc = door.arguments()
    nchw = door.arguments(layout="NCHW")
    images = (door.grad,) if door.sizes == door.input else (door.input, door.grad)
    for name in images:
        if name in nhwc:
            nchw[name] = nhwc[name].transpose(0, 3, 1, 2)
    result, wanted = door.function(**nchw), door.function(**nhwc)
    equal(result, wanted if door.op.endswith("_filter") else wanted.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("name", ["", "layer_1", None, 7, np.ones(2)])
def test_name_changes_nothing(door, name):
    equal(door.call(name=name), expected(door))


CUDNN_DOORS = [
    door
    for door in DOORS
    if not door.depthwise
    and door.op != "conv2d_transpose"
    and (door.forms == "raw" or door.id.startswith("v1."))
]


@pytest.mark.parametrize("door", CUDNN_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("value", [True, False, None])
def test_use_cudnn_on_gpu_changes_nothing(door, value):
    equal(door.call(use_cudnn_on_gpu=value), expected(door))


def test_there_are_eight_functions_with_use_cudnn_on_gpu():
    assert len(CUDNN_DOORS) == 8


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.forms == "raw"], ids=lambda door: door.id
)
@pytest.mark.parametrize("argument", ["explicit_paddings", "data_format", "dilations", "name"])
def test_raw_none_means_the_default(door, argument):
    equal(door.call(**{argument: None}), expected(door))


# ---- sizes

SIZE_FORMS = [
    list,
    tuple,
    lambda sizes: np.zeros(sizes).shape,
    lambda sizes: np.array(sizes, np.int8),
    lambda sizes: np.array(sizes, np.uint16),
    lambda sizes: np.array(sizes, np.int32),
    lambda sizes: np.array(sizes, np.int64),
    lambda sizes: np.array(sizes, np.uint64),
    lambda sizes: np.array(sizes, ">i4"),
    lambda sizes: np.repeat(sizes, 2)[::2],
    lambda sizes: [np.int32(size) for size in sizes],
    lambda sizes: [Index(size) for size in sizes],
    Vector,
]
SIZE_DOORS = [door for door in EVERY if door.sizes]


@pytest.mark.parametrize("door", SIZE_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("write", SIZE_FORMS)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_sizes(door, write, layout):
    sizes = door.arguments(layout=layout)[door.sizes]
    equal(door.call(layout=layout, **{door.sizes: write(sizes)}), expected(door, layout=layout))


@pytest.mark.parametrize("door", SIZE_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_two_sizes_are_rows_and_columns_of_dense_input_gradients(door, layout):
    sizes = np.array([HEIGHT, WIDTH])
    if door.op in ("conv2d_backprop_input", "conv2d_transpose"):
        equal(door.call(layout=layout, **{door.sizes: sizes}), expected(door, layout=layout))
        equal(
            door.call(layout=layout, **{door.sizes: [HEIGHT, WIDTH]}), expected(door, layout=layout)
        )
    else:
        with pytest.raises(ArgumentError, match=f"`{door.sizes}` must hold 4 values, got 2"):
            door.call(layout=layout, **{door.sizes: [HEIGHT, WIDTH]})


@pytest.mark.parametrize("door", SIZE_DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize(
    "write",
    [
        lambda sizes: [float(size) for size in sizes],
        lambda sizes: np.array(sizes, np.float64),
        lambda sizes: np.array(sizes, bool),
        lambda sizes: [str(size) for size in sizes],
        lambda sizes: "2562",
        lambda sizes: [*sizes[:3], True],
        lambda sizes: [*sizes[:3], None],
    ],
    ids=["floats", "float array", "bool array", "texts", "text", "a bool", "a None"],
)
def test_sizes_are_integers(door, write):
    with pytest.raises(ArgumentTypeError, match=f"`{door.sizes}` must hold integers"):
        door.call(**{door.sizes: write(door.arguments()[door.sizes])})


# ---- more batch dimensions

BATCHED = [door for door in DOORS if door.takes_more_dimensions]
LEADING = [(2, 3), (1, 2, 1), (2, 1, 3, 2), (0, 3), (3, 0), (1,) * 20]


def test_all_doors_of_conv2d_but_raw_take_more_dimensions():
    assert [door.id for door in BATCHED] == ["conv2d", "nn.conv2d", "v1.conv2d"]


@pytest.mark.parametrize("door", BATCHED, ids=lambda door: door.id)
@pytest.mark.parametrize("leading", LEADING, ids=str)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_more_batch_dimensions_come_back(door, leading, layout):
    x = numbers((*leading, *image(layout, 0, HEIGHT, WIDTH, IN_C)[1:]), np.float32, 5)
    flat = x.reshape(-1, *x.shape[-3:]) if x.size else np.zeros((0, *x.shape[-3:]), np.float32)
    changes = {"strides": list(image(layout, 1, 2, 1, 1)), "padding": "VALID"}
    wanted = door.call(layout=layout, input=flat, **changes)
    result = door.call(layout=layout, input=x, **changes)
    assert result.shape == (*leading, *image(layout, 0, 2, 5, OUT_C)[1:])
    assert np.array_equal(result.ravel(), wanted.ravel())
    assert result.flags.c_contiguous and result.flags.writeable


@pytest.mark.parametrize("door", BATCHED, ids=lambda door: door.id)
def test_more_batch_dimensions_of_a_strided_array(door):
    x = numbers((3, 2, HEIGHT, WIDTH, IN_C), np.float32, 5)
    wanted = door.call(input=np.ascontiguousarray(x.swapaxes(0, 1)))
    equal(door.call(input=x.swapaxes(0, 1)), wanted)


# ---- old and new names, missing ones

OLD_AND_NEW = [
    (v1.conv2d, "filter", "filters", {"strides": 1, "padding": "SAME"}),
    (v1.conv2d_backprop_input, "filter", "filters", {"strides": [1, 1, 1, 1], "padding": "SAME"}),
    (v1.conv2d_transpose, "filter", "filters", {"strides": 1}),
    (v1.conv2d_transpose, "value", "input", {"strides": 1}),
]
ONE = np.full((1, 1, 1, 1), 2, np.float32)


def call_with(function, names, how):
    given = dict.fromkeys(names, ONE)
    if function is v1.conv2d:
        given.setdefault("input", ONE)
    if function is v1.conv2d_backprop_input:
        given |= {"input_sizes": [1, 1, 1, 1], "out_backprop": ONE}
    if function is v1.conv2d_transpose:
        given["output_shape"] = [1, 1, 1, 1]
        if not {"value", "input"} & given.keys():
            given["value"] = ONE
        if not {"filter", "filters"} & given.keys():
            given["filter"] = ONE
    return function(**given, **how)


@pytest.mark.parametrize(("function", "old", "new", "how"), OLD_AND_NEW)
def test_old_and_new_names(function, old, new, how):
    assert call_with(function, [old], how).item() == call_with(function, [new], how).item() == 4
    message = f"{function.__name__}: Cannot specify both '{old}' and '{new}'"
    with pytest.raises(ArgumentError, match=message):
        call_with(function, [old, new], how)


@pytest.mark.parametrize("function", [v1.depthwise_conv2d, v1.separable_conv2d])
def test_rate_is_dilations(function):
    x, f = numbers((1, 7, 7, 2), np.float32, 1), numbers((3, 3, 2, 1), np.float32, 2)
    operands = (
        (x, f) if function is v1.depthwise_conv2d else (x, f, np.ones((1, 1, 2, 1), np.float32))
    )
    old = function(*operands, [1, 1, 1, 1], "SAME", rate=[2, 3])
    by_position = function(*operands, [1, 1, 1, 1], "SAME", [2, 3])
    new = function(*operands, [1, 1, 1, 1], "SAME", dilations=(2, 3))
    neither = function(*operands, [1, 1, 1, 1], "SAME")
    assert np.array_equal(old, new) and np.array_equal(old, by_position)
    assert not np.array_equal(old, neither)
    with pytest.raises(
        ArgumentError, match=f"{function.__name__}: Cannot specify both 'rate' and 'dilations'"
    ):
        function(*operands, [1, 1, 1, 1], "SAME", rate=[2, 3], dilations=[2, 3])


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: v1.conv2d(ONE, strides=1, padding="SAME"), "filter"),
        (lambda: v1.conv2d_backprop_input([1] * 4, None, ONE, [1] * 4, "SAME"), "filter"),
        (
            lambda: v1.conv2d_backprop_input([1] * 4, ONE, strides=[1] * 4, padding="SAME"),
            "out_backprop",
        ),
        (lambda: v1.conv2d_transpose(filter=ONE, output_shape=[1] * 4), "value"),
        (lambda: v1.conv2d_transpose(ONE, output_shape=[1] * 4), "filter"),
        (lambda: v1.conv2d_transpose(ONE, ONE), "output_shape"),
    ],
)
def test_v1_arguments_left_out(call, argument):
    with pytest.raises(ArgumentError, match=f"`{argument}` must be .*got None"):
        call()


def test_v1_none_for_strides_and_padding():
    assert v1.conv2d(ONE, ONE, padding="SAME").item() == 4
    assert v1.conv2d_transpose(ONE, ONE, [1, 1, 1, 1]).item() == 4
    assert nn.conv2d(ONE, ONE, None, "SAME").item() == 4
    assert nn.conv2d_transpose(ONE, ONE, [1, 1, 1, 1], None).item() == 4
    with pytest.raises(ArgumentTypeError, match=r"`padding` .*got None"):
        v1.conv2d(ONE, ONE)
    with pytest.raises(ArgumentTypeError, match=r"`strides` .*got None"):
        v1.conv2d_backprop_input([1, 1, 1, 1], ONE, ONE, padding="SAME")


# ---- lists in place of arrays


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
@pytest.mark.parametrize("row", FLOATING, ids=lambda row: row.name)
def test_lists_take_the_dtype_of_the_array_before_them(door, row):
    arguments = door.arguments(dtype=row.numpy)
    for name in door.arrays[1:]:
        arguments[name] = arguments[name].astype(float).tolist()
    result = door.function(**arguments)
    assert result.dtype == row.numpy
    equal(result, expected(door))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_lists_of_floats_are_float32(door):
    arguments = door.arguments()
    result = door.function(**arguments | {name: arguments[name].tolist() for name in door.arrays})
    assert result.dtype == np.float32
    equal(result, expected(door))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_lists_of_ints_are_int32(door):
    arguments = door.arguments(dtype=np.int32)
    arguments |= {name: arguments[name].tolist() for name in door.arrays}
    if door.takes_int32:
        result = door.function(**arguments)
        assert result.dtype == np.int32
        equal(result, expected(door))
    else:
        with pytest.raises(DTypeError, match=f"{door.shown}: `{door.arrays[0]}` .*got int32"):
            door.function(**arguments)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_a_list_of_ints_beside_floats_is_converted(door):
    arguments = door.arguments(dtype=np.float64)
    last = door.arrays[-1]
    arguments[last] = arguments[last].astype(int).tolist()
    assert door.function(**arguments).dtype == np.float64


@pytest.mark.parametrize(
    "door", [door for door in DOORS if door.takes_int32], ids=lambda door: door.id
)
@pytest.mark.parametrize(
    ("number", "error", "rule"),
    [
        (0.5, DTypeError, "must hold ints"),
        (1.0, DTypeError, "must hold ints"),
        (2**31, ArgumentError, "must hold ints that fit int32"),
        (-(2**31) - 1, ArgumentError, "must hold ints that fit int32"),
    ],
)
def test_a_list_never_loses_value_beside_int32(door, number, error, rule):
    arguments = door.arguments(dtype=np.int32)
    last = door.arrays[-1]
    arguments[last] = arguments[last].tolist()
    arguments[last][0][0][0][0] = number
    with pytest.raises(error, match=f"{door.shown}: `{last}` {rule}"):
        door.function(**arguments)


def test_a_list_out_of_range_is_infinite_without_a_warning():
    one = np.ones((1, 1, 1, 1), np.float16)
    assert nn.conv2d(one, [[[[1e10]]]], 1, "SAME").item() == np.inf
    assert nn.conv2d([[[[-1e300]]]], [[[[1.0]]]], 1, "SAME").item() == -np.inf
    with np.errstate(all="raise"):
        assert nn.conv2d(one, [[[[1e-30]]]], 1, "SAME").item() == 0


def test_empty_lists():
    f = np.ones((1, 1, 1, 1), np.int32)
    assert nn.conv2d([np.zeros((0, 1, 1), int)], f, 1, "SAME").shape == (1, 0, 1, 1)
    with pytest.raises(ArgumentError, match="`input` must be 4-dimensional, got shape"):
        nn.conv2d([], f.astype(np.float32), 1, "SAME")


def test_two_arrays_of_different_dtype_are_refused_everywhere():
    for door in DOORS:
        for name in door.arrays[1:]:
            changed = door.arguments()[name].astype(np.float64)
            with pytest.raises(DTypeError, match=f"{door.shown}: `{name}` .*float32, got float64"):
                door.call(**{name: changed})


# ---- the shape-only operands of the V2 raw ops


def test_v2_raw_ops_read_only_the_shape():
    nan = np.full((BATCH, HEIGHT, WIDTH, IN_C), np.nan, np.float32)
    by_id = {door.id: door for door in DOORS}
    door = by_id["raw_ops.Conv2DBackpropInputV2"]
    equal(door.call(input=nan), expected(door))
    door = by_id["raw_ops.Conv2DBackpropFilterV2"]
    equal(door.call(filter=np.full((3, 2, IN_C, OUT_C), np.inf, np.float32)), expected(door))


def test_positional_arguments_follow_tensorflow():
    x, f = numbers((1, 5, 5, 2), np.float32, 1), numbers((3, 3, 2, 4), np.float32, 2)
    wanted = nn.conv2d(x, f, [1, 2, 2, 1], "SAME", "NHWC", [1, 1, 1, 1], "name")
    equal(v1.conv2d(x, f, [1, 2, 2, 1], "SAME", True, "NHWC", [1, 1, 1, 1], "name"), wanted)
    assert wanted.shape == (1, 3, 3, 4)
    back = v1.conv2d_backprop_input(
        [1, 5, 5, 2], f, wanted, [1, 2, 2, 1], "SAME", True, "NHWC", [1] * 4, "name"
    )
    equal(nn.conv2d_transpose(wanted, f, [1, 5, 5, 2], 2, "SAME", "NHWC", 1, "name"), back)
    equal(v1.conv2d_transpose(wanted, f, [1, 5, 5, 2], 2, "SAME", "NHWC", "name"), back)
    with pytest.raises(TypeError, match="only keyword arguments"):
        raw_ops.Conv2D(x, f, [1, 1, 1, 1], "SAME")


class TensorShape:
    """Like TensorFlow's: it has lengths and elements, and is neither a sequence nor an array."""

    def __init__(self, *sizes: int | None) -> None:
        self._sizes = list(sizes)

    def as_list(self) -> list[int | None]:
        return self._sizes


def test_a_tensor_shape_is_a_size() -> None:
    f, g = np.ones((3, 3, 2, 4), np.float32), np.ones((1, 5, 6, 4), np.float32)
    got = convgrad.conv2d_backprop_input(TensorShape(1, 5, 6, 2), f, g, 1, "SAME")
    np.testing.assert_array_equal(
        got, convgrad.conv2d_backprop_input([1, 5, 6, 2], f, g, 1, "SAME")
    )
    with pytest.raises(TypeError, match="must hold integers, got None"):
        convgrad.conv2d_backprop_input(TensorShape(None, 5, 6, 2), f, g, 1, "SAME")
