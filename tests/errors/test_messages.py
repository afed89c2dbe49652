"""One case per rule and function: the class of the error, and a message naming function, argument, rule and value."""

from __future__ import annotations

import itertools
import re
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import convgrad
from convgrad import _arrays
from convgrad._arrays import repeated
from convgrad._problem import arguments
from convgrad.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    ConvgradError,
    DTypeError,
)
from errors.doors import DOORS, EVERY, Door


@dataclass(frozen=True)
class Mistake:
    """A rule broken by some changes to a valid call, and what must be said about it."""

    id: str
    error: type[Exception]
    pattern: str
    """What follows the function's name; {input}, {filter}, {grad}, {sizes} are the door's words for them."""
    changes: Callable[[Door], dict[str, Any]]
    applies: Callable[[Door], bool] = lambda door: True


def fixed(**changes: Any) -> Callable[[Door], dict[str, Any]]:
    return lambda door: changes


def is_raw(door: Door) -> bool:
    return door.forms == "raw"


def is_cooked(door: Door) -> bool:
    return door.forms != "raw"


def is_friendly(door: Door) -> bool:
    return door.forms == "friendly"


def is_tensorflows(door: Door) -> bool:
    return door.forms != "friendly"


def is_strict(door: Door) -> bool:
    return door.forms in ("strict", "raw", "pair")


def is_flexible(door: Door) -> bool:
    return not is_strict(door)


def takes_four_dilations(door: Door) -> bool:
    return door.forms != "pair"


def says(value: Any) -> str:
    return re.escape(repr(value))


def dilations(four: list[Any]) -> Callable[[Door], dict[str, Any]]:
    """Write four NHWC dilations in the door's form."""
    return lambda door: {"dilations": four[1:3] if door.forms == "pair" else four}


FOUR_PAIRS = [[0, 0], [0, 0], [0, 0], [0, 0]]


def pads(position: int, pair: Any) -> list[Any]:
    return [*FOUR_PAIRS[:position], pair, *FOUR_PAIRS[position + 1 :]]


def eight(position: int, value: Any) -> list[Any]:
    return [value if i == position else 0 for i in range(8)]


PADDING = [
    *(
        Mistake(
            f"padding word {word!r}",
            ArgumentError,
            rf"`padding` must be 'SAME', 'VALID'.* or .*got {says(word)}",
            fixed(padding=word),
        )
        for word in ("", "FULL", "SAME ", "REFLECT", "EXPLICITLY")
    ),
    *(
        Mistake(
            f"padding word {word!r}",
            ArgumentError,
            rf"`padding` must be 'SAME', 'VALID' or .*; write {says(word.upper())}, got {says(word)}",
            fixed(padding=word),
            is_tensorflows,
        )
        for word in ("same", "Valid")
    ),
    Mistake(
        "padding word 'explicit'",
        ArgumentError,
        r"`padding` must be 'SAME', 'VALID' or 'EXPLICIT'; write 'EXPLICIT', got 'explicit'",
        fixed(padding="explicit"),
        is_raw,
    ),
    *(
        Mistake(
            f"padding {value!r}",
            ArgumentTypeError,
            rf"`padding` must be 'SAME', 'VALID'.* or .*got {says(value)}",
            fixed(padding=value),
        )
        for value in (None, 0.5, True, np.float32(1), np.True_, b"SAME", {"SAME": 1})
    ),
    *(
        Mistake(
            f"padding {value!r} in {layout}",
            error,
            rf"`padding` must be .*; write {says(wanted)}, got {says(value)}\.$",
            fixed(padding=value, layout=layout),
            lambda door: is_tensorflows(door) and is_cooked(door),
        )
        for layout, value, error, wanted in (
            ("NHWC", 1, ArgumentTypeError, [[0, 0], [1, 1], [1, 1], [0, 0]]),
            ("NCHW", np.int8(2), ArgumentTypeError, [[0, 0], [0, 0], [2, 2], [2, 2]]),
        )
    ),
    *(
        Mistake(
            f"padding {value!r} in {layout}",
            ArgumentError,
            rf".*`padding` must .*; write {says(wanted)}, got .*{says(value)}\.$",
            fixed(padding=value, layout=layout),
            lambda door: is_tensorflows(door) and is_cooked(door),
        )
        for layout, value, wanted in (
            ("NHWC", (1, 2), [[0, 0], [1, 1], [2, 2], [0, 0]]),
            ("NCHW", [1, 2], [[0, 0], [0, 0], [1, 1], [2, 2]]),
            ("NHWC", ((1, 0), (2, 3)), [[0, 0], [1, 0], [2, 3], [0, 0]]),
        )
    ),
    *(
        Mistake(
            f"raw padding {value!r}",
            ArgumentTypeError,
            rf"`padding` must be 'SAME', 'VALID' or 'EXPLICIT'; write 'EXPLICIT' with "
            rf"explicit_paddings={says(wanted)}, got {says(value)}\.$",
            fixed(padding=value),
            is_raw,
        )
        for value, wanted in (
            (1, [0, 0, 1, 1, 1, 1, 0, 0]),
            ((1, 2), [0, 0, 1, 1, 2, 2, 0, 0]),
        )
    ),
    *(
        Mistake(
            f"padding {value!r}",
            ArgumentTypeError,
            rf"`padding` must be 'SAME', 'VALID' or .*[^\]], got {value}\.$",
            fixed(padding=value),
            is_tensorflows,
        )
        for value in (-1, 2**31)
    ),
    *(
        Mistake(
            f"padding {value!r}",
            ArgumentError,
            rf"all elements of `padding` must be {rule}, got .* in {says(value)}",
            fixed(padding=value),
            is_friendly,
        )
        for value, rule in (
            (-1, "nonnegative"),
            ((1, -1), "nonnegative"),
            (-(2**70), "nonnegative"),
            (2**31, r"below 2\*\*31"),
            ([2**63, 0], r"below 2\*\*31"),
        )
    ),
    *(
        Mistake(
            f"padding {value!r}",
            ArgumentTypeError,
            rf"`padding` must hold integers, got .*{says(value)}",
            fixed(padding=value),
            is_friendly,
        )
        for value in ((1.0, 1), [1, True], (np.float32(1), 1))
    ),
    *(
        Mistake(
            f"padding {value!r}",
            ArgumentError,
            rf"`padding` must be 1 int, 2 ints \(rows, columns\) or a list of pairs \(before, after\), "
            rf"got {len(value)} ints: {says(value)}",
            fixed(padding=value),
            is_friendly,
        )
        for value in ((1,), (1, 1, 1), [0, 1, 1, 0], [0] * 8)
    ),
    Mistake(
        "padding an int and a pair",
        ArgumentError,
        r"each element of `padding` must be a list of size 2 \(before, after\), got 1 in ",
        fixed(padding=(1, (1, 1))),
        is_cooked,
    ),
    Mistake(
        "EXPLICIT outside raw_ops",
        ArgumentError,
        r"`padding` must be .*give the list of pairs itself, got 'EXPLICIT'",
        fixed(padding="EXPLICIT"),
        is_cooked,
    ),
    *(
        Mistake(
            f"padding of {length} pairs",
            ArgumentError,
            rf"`padding` must hold 4 pairs in NHWC order.*, got {length}: ",
            fixed(padding=[[0, 0]] * length),
            is_cooked,
        )
        for length in (0, 1, 3, 5)
    ),
    *(
        Mistake(
            f"padding element {element!r}",
            ArgumentError,
            rf"each element of `padding` must be a list of size 2 \(before, after\), got {says(element)} in ",
            fixed(padding=pads(1, element)),
            is_cooked,
        )
        for element in (0, None, [], [1], [1, 1, 1], "00", np.array([0, 0]), {0: 0, 1: 1})
    ),
    Mistake(
        "padding flat",
        ArgumentError,
        r"each element of `padding` must be a list of size 2",
        fixed(padding=[0] * 8),
        lambda door: is_tensorflows(door) and is_cooked(door),
    ),
    Mistake(
        "padding an array",
        ArgumentError,
        r"`padding` must be a list or tuple of pairs, not an array; use `.tolist\(\)`, got array",
        fixed(padding=np.zeros((4, 2), int)),
        is_cooked,
    ),
    *(
        Mistake(
            f"pad {value!r}",
            ArgumentTypeError,
            rf"`padding` must hold integers, got .*{says(value)}",
            fixed(padding=pads(1, [0, value])),
            is_cooked,
        )
        for value in (1.0, True, "1", None, [1])
    ),
    *(
        Mistake(
            f"pad {value}",
            ArgumentError,
            rf"all elements of `padding` must be {rule}, got {value} in \[\[",
            fixed(padding=pads(position, [0, value])),
            is_cooked,
        )
        for value, rule in (
            (-1, "nonnegative"),
            (-(2**70), "nonnegative"),
            (2**31, r"below 2\*\*31"),
            (2**63, r"below 2\*\*31"),
        )
        for position in (1, 2)
    ),
    *(
        Mistake(
            f"pad on dimension {position} of NHWC",
            ArgumentError,
            r"`padding` in the batch and depth dimensions must be 0 \(NHWC\), got \[\[",
            fixed(padding=pads(position, [0, 1])),
            is_cooked,
        )
        for position in (0, 3)
    ),
    *(
        Mistake(
            f"pad on dimension {position} of NCHW",
            ArgumentError,
            r"`padding` in the batch and depth dimensions must be 0 \(NCHW\), got \[\[",
            fixed(padding=pads(position, [1, 0]), layout="NCHW"),
            is_cooked,
        )
        for position in (0, 1)
    ),
    *(
        Mistake(
            f"raw EXPLICIT with {length} values",
            ArgumentError,
            rf"`explicit_paddings` must contain 8 values with padding 'EXPLICIT', got {length}: \[",
            fixed(padding="EXPLICIT", explicit_paddings=[0] * length),
            is_raw,
        )
        for length in (0, 2, 4, 7, 9)
    ),
    Mistake(
        "raw EXPLICIT without values",
        ArgumentError,
        r"`explicit_paddings` must contain 8 values",
        fixed(padding="EXPLICIT"),
        is_raw,
    ),
    *(
        Mistake(
            f"raw values with {word}",
            ArgumentError,
            rf"`explicit_paddings` must be empty with padding '{word}', got \[0, 0, 1",
            fixed(padding=word, explicit_paddings=eight(2, 1)),
            is_raw,
        )
        for word in ("SAME", "VALID")
    ),
    Mistake(
        "raw padding a list",
        ArgumentTypeError,
        r"`padding` must be 'SAME', 'VALID' or 'EXPLICIT', got \[\[",
        fixed(padding=FOUR_PAIRS),
        is_raw,
    ),
    Mistake(
        "raw explicit_paddings nested",
        ArgumentTypeError,
        r"`explicit_paddings` must hold integers, got \[0, 0\] in \[\[",
        fixed(padding="EXPLICIT", explicit_paddings=FOUR_PAIRS),
        is_raw,
    ),
    *(
        Mistake(
            f"raw explicit_paddings {value!r}",
            ArgumentTypeError,
            r"`explicit_paddings` must be a flat list of 8 ints, got ",
            fixed(padding="EXPLICIT", explicit_paddings=value),
            is_raw,
        )
        for value in (0, "00000000", np.zeros(8, int))
    ),
    *(
        Mistake(
            f"raw pad {value!r}",
            ArgumentTypeError,
            rf"`explicit_paddings` must hold integers, got .*{says(value)}",
            fixed(padding="EXPLICIT", explicit_paddings=eight(2, value)),
            is_raw,
        )
        for value in (1.0, True, "1")
    ),
    *(
        Mistake(
            f"raw pad {value}",
            ArgumentError,
            rf"all elements of `explicit_paddings` must be {rule}, got {value} in \[",
            fixed(padding="EXPLICIT", explicit_paddings=eight(5, value)),
            is_raw,
        )
        for value, rule in ((-1, "nonnegative"), (2**31, r"below 2\*\*31"))
    ),
    *(
        Mistake(
            f"raw pad on value {position} of {layout}",
            ArgumentError,
            rf"`explicit_paddings` in the batch and depth dimensions must be 0 \({layout}\), got \[",
            fixed(padding="EXPLICIT", explicit_paddings=eight(position, 1), layout=layout),
            is_raw,
        )
        for layout, position in (("NHWC", 0), ("NHWC", 7), ("NCHW", 1), ("NCHW", 2))
    ),
]

DATA_FORMAT = [
    *(
        Mistake(
            f"data_format {word!r}",
            ArgumentError,
            rf"`data_format` must be 'NHWC' or 'NCHW', got {says(word)}",
            fixed(data_format=word),
        )
        for word in ("NHCW", "", "NCHW_VECT_C", "NDHWC", "HWNC", "channels", "channels-last")
    ),
    *(
        Mistake(
            f"data_format {word!r}",
            ArgumentError,
            rf"`data_format` must be 'NHWC' or 'NCHW'; write {says(wanted)}, got {says(word)}",
            fixed(data_format=word),
            is_tensorflows,
        )
        for word, wanted in (
            ("nhwc", "NHWC"),
            ("channels_last", "NHWC"),
            ("Channels_First", "NCHW"),
        )
    ),
    *(
        Mistake(
            f"data_format {value!r}",
            ArgumentTypeError,
            rf"`data_format` must be a string, got {says(value)}",
            fixed(data_format=value),
        )
        for value in (1, b"NHWC", ["NHWC"], True)
    ),
]

STRIDES_AND_DILATIONS = [
    *(
        Mistake(
            f"{argument} of {length}",
            ArgumentError,
            rf"`{argument}` must specify 4 dimensions, got {length}: \[",
            fixed(**{argument: [1] * length}),
            lambda door, argument=argument: (
                is_strict(door) and (argument == "strides" or takes_four_dilations(door))
            ),
        )
        for argument in ("strides", "dilations")
        for length in (0, 1, 2, 3, 5)
    ),
    *(
        Mistake(
            f"dilations of {length}",
            ArgumentError,
            rf"`dilations` must hold 2 values \(rows, columns\), got {length}: \[",
            fixed(dilations=[1] * length),
            lambda door: door.forms == "pair",
        )
        for length in (0, 1, 3, 4, 5)
    ),
    *(
        Mistake(
            f"{argument} of {length}",
            ArgumentError,
            rf"`{argument}` should be of length 1, 2 or 4, got {length}: \[",
            fixed(**{argument: [1] * length}),
            is_flexible,
        )
        for argument in ("strides", "dilations")
        for length in (0, 3, 5)
    ),
    *(
        Mistake(
            f"strides {value!r}",
            ArgumentTypeError,
            r"`strides` must be a list or tuple of 4 ints, got ",
            fixed(strides=value),
            is_strict,
        )
        for value in (1, None, "1111", np.array([1, 1, 1, 1]), {1: 1})
    ),
    *(
        Mistake(
            f"dilations {value!r}",
            ArgumentTypeError,
            r"`dilations` must be a list or tuple of [24] ints, got ",
            fixed(dilations=value),
            is_strict,
        )
        for value in (1, "1111", np.array([1, 1, 1, 1]), {1: 1})
    ),
    *(
        Mistake(
            f"{argument} {value!r}",
            ArgumentTypeError,
            rf"`{argument}` must be an int, or a sequence of 1, 2 or 4 ints, got ",
            fixed(**{argument: value}),
            is_flexible,
        )
        for argument in ("strides", "dilations")
        for value in ("1111", {1: 1}, np.ones((2, 2), int))
    ),
    *(
        Mistake(
            f"stride {value} at {position}",
            ArgumentError,
            rf"`strides` must be {rule}, got {value} in \[",
            fixed(strides=[value if i == position else 1 for i in range(4)]),
        )
        for value, rule in (
            (0, "larger than 0"),
            (-1, "larger than 0"),
            (-(2**63), "larger than 0"),
            (2**31, r"below 2\*\*31"),
            (4538426903074820908, r"below 2\*\*31"),
        )
        for position in range(4)
    ),
    *(
        Mistake(
            f"dilation {value} at {position}",
            ArgumentError,
            rf"`dilations` must be {rule}, got {value} in \[",
            dilations([value if i == position else 1 for i in range(4)]),
        )
        for value, rule in ((0, "larger than 0"), (-1, "larger than 0"), (2**31, r"below 2\*\*31"))
        for position in (1, 2)
    ),
    *(
        Mistake(
            f"{argument} on dimension {position} of {layout}",
            ArgumentError,
            rf"`{argument}` in the batch and depth dimensions must be 1 \({layout}\), got \[",
            fixed(**{argument: [2 if i == position else 1 for i in range(4)]}, layout=layout),
            takes_four_dilations if argument == "dilations" else lambda door: True,
        )
        for argument in ("strides", "dilations")
        for layout, position in (("NHWC", 0), ("NHWC", 3), ("NCHW", 0), ("NCHW", 1))
    ),
]


def reshaped(
    role: str, shape: Callable[[tuple[int, ...]], tuple[int, ...]]
) -> Callable[[Door], dict[str, Any]]:
    """Give the operand or sizes in a role another shape."""

    def changes(door: Door) -> dict[str, Any]:
        name = getattr(door, role)
        old = door.arguments()[name]
        new = shape(tuple(old) if name == door.sizes else old.shape)
        return {name: list(new) if name == door.sizes else np.ones(new, np.float32)}

    return changes


def has_array(role: str) -> Callable[[Door], bool]:
    return lambda door: getattr(door, role) in door.arrays


def has(role: str) -> Callable[[Door], bool]:
    return lambda door: getattr(door, role) in (*door.arrays, door.sizes)


RANKS = [
    *(
        Mistake(
            f"{role} of rank {rank}",
            ArgumentError,
            rf"`{{{role}}}` must be 4-dimensional, got shape \[.*\] with {rank} dimensions?\.",
            reshaped(role, lambda shape, rank=rank: (shape * 2)[:rank]),
            lambda door, role=role, rank=rank: (
                has_array(role)(door)
                and not (role == "input" and rank > 4 and door.takes_more_dimensions)
            ),
        )
        for role in ("input", "filter", "grad")
        for rank in (0, 1, 2, 3, 5, 7)
    ),
]

CHANNELS = [
    Mistake(
        "depth not a multiple",
        ArgumentError,
        r"`{input}` depth must be evenly divisible by `{filter}` depth .*, got 5 and 4",
        reshaped("input", lambda shape: (*shape[:3], 5)),
        lambda door: not door.depthwise,
    ),
    Mistake(
        "filter deeper than input",
        ArgumentError,
        r"`{input}` depth must be evenly divisible by `{filter}` depth .*, got 4 and 8",
        reshaped("filter", lambda shape: (*shape[:2], 8, shape[3])),
        lambda door: not door.depthwise,
    ),
    Mistake(
        "outputs not a multiple of groups",
        ArgumentError,
        r"output depth must be evenly divisible by the number of groups "
        r"\(4 = `{input}` depth 4 / `{filter}` depth 1\), got 6",
        reshaped("filter", lambda shape: (*shape[:2], 1, shape[3])),
        lambda door: not door.depthwise,
    ),
    Mistake(
        "depth differs",
        ArgumentError,
        r"`{input}` and `{filter}` must have the same depth, got 8 and 4",
        reshaped("input", lambda shape: (*shape[:3], 8)),
        lambda door: door.depthwise,
    ),
    Mistake(
        "filter depth differs",
        ArgumentError,
        r"`{input}` and `{filter}` must have the same depth, got 4 and 2",
        reshaped("filter", lambda shape: (*shape[:2], 2, 4)),
        lambda door: door.depthwise,
    ),
    Mistake(
        "filter depth 0",
        ArgumentError,
        r"`{filter}` depth must be strictly positive, got shape \[3, 2, 0, 6\]",
        reshaped("filter", lambda shape: (*shape[:2], 0, shape[3])),
        lambda door: not door.depthwise,
    ),
    Mistake(
        "no input channels",
        ArgumentError,
        r"`{input}` must have at least 1 channel, got 0",
        reshaped("input", lambda shape: (*shape[:3], 0)),
        lambda door: not door.depthwise,
    ),
    *(
        Mistake(
            f"filter without {what}",
            ArgumentError,
            r"`{filter}` must have at least 1 row and 1 column, got shape \[",
            reshaped(
                "filter",
                lambda shape, cut=cut: tuple(0 if i == cut else n for i, n in enumerate(shape)),
            ),
            lambda door: door.depthwise or not door.has_grad,
        )
        for cut, what in enumerate(("rows", "columns"))
    ),
    Mistake(
        "pointwise filter not 1x1",
        ArgumentError,
        r"`pointwise_filter` must have rank 4 and shape \[1, 1, C\*M, O\], got \[1, 2, 8, 3\]",
        fixed(pointwise_filter=np.ones((1, 2, 8, 3), np.float32)),
        lambda door: door.op == "separable_conv2d",
    ),
    Mistake(
        "pointwise filter of rank 3",
        ArgumentError,
        r"`pointwise_filter` must have rank 4 .*, got \[1, 8, 3\]",
        fixed(pointwise_filter=np.ones((1, 8, 3), np.float32)),
        lambda door: door.op == "separable_conv2d",
    ),
    Mistake(
        "pointwise filter depth",
        ArgumentError,
        r"`depthwise result` depth must be evenly divisible by `pointwise_filter` depth .*, got 8 and 3",
        fixed(pointwise_filter=np.ones((1, 1, 3, 3), np.float32)),
        lambda door: door.op == "separable_conv2d",
    ),
]

WINDOWS = [
    Mistake(
        "window too large",
        ArgumentError,
        r"computed output size would be negative: -1 rows \(input 1, filter 3, stride 1, VALID, reach 3\)",
        lambda door: (
            reshaped("input", lambda shape: (shape[0], 1, *shape[2:]))(door) | {"padding": "VALID"}
        ),
    ),
    Mistake(
        "dilated window too large",
        ArgumentError,
        r"computed output size would be negative: -3 columns "
        r"\(input 6, filter 2, stride 1, dilation 9, padding \(0, 0\), reach 10\)",
        lambda door: door.settings(dilations=(1, 9), padding=((0, 0), (0, 0))),
    ),
    Mistake(
        "explicit padding too small",
        ArgumentError,
        r"computed output size would be negative: -\d+ rows "
        r"\(input 5, filter 3, stride 1, dilation 9, padding \(1, 2\), reach 19\)",
        lambda door: door.settings(dilations=(9, 1), padding=((1, 2), (0, 0))),
    ),
]

GRADS = [
    Mistake(
        "batch of g",
        ArgumentError,
        r"`{grad}` must have the batch size of `{input}`, 2, got 3",
        reshaped("grad", lambda shape: (3, *shape[1:])),
        has("grad"),
    ),
    Mistake(
        "rows of g",
        ArgumentError,
        r"`{grad}` must have 5 rows \(input 5, filter 3, stride 1, SAME\), got 6",
        reshaped("grad", lambda shape: (shape[0], 6, *shape[2:])),
        has("grad"),
    ),
    Mistake(
        "columns of g",
        ArgumentError,
        r"`{grad}` must have 6 columns \(input 6, filter 2, stride 1, SAME\), got 1",
        reshaped("grad", lambda shape: (*shape[:2], 1, shape[3])),
        has("grad"),
    ),
    Mistake(
        "channels of g",
        ArgumentError,
        r"`{grad}` must have 6 channels \(the out_depth of `{filter}`\), got 4",
        reshaped("grad", lambda shape: (*shape[:3], 4)),
        lambda door: has("grad")(door) and not door.depthwise,
    ),
    Mistake(
        "channels of g, depthwise",
        ArgumentError,
        r"`{grad}` must have 8 channels \(`{filter}` depth 4 x multiplier 2\), got 4",
        reshaped("grad", lambda shape: (*shape[:3], 4)),
        lambda door: has("grad")(door) and door.depthwise,
    ),
    Mistake(
        "empty g",
        ArgumentError,
        r"`{grad}` must have 5 rows .*, got 0",
        reshaped("grad", lambda shape: (shape[0], 0, *shape[2:])),
        has("grad"),
    ),
]


def sizes(value: Any) -> Callable[[Door], dict[str, Any]]:
    return lambda door: {door.sizes: value}


def has_sizes(door: Door) -> bool:
    return door.sizes is not None


SIZES = [
    Mistake(
        "sizes None",
        ArgumentError,
        r"`{sizes}` must be a vector of sizes, got None",
        sizes(None),
        has_sizes,
    ),
    *(
        Mistake(
            f"sizes {value!r}",
            ArgumentError,
            r"`{sizes}` must be 1-dimensional, got ",
            sizes(value),
            has_sizes,
        )
        for value in (5, [[1, 1, 1, 1]], np.ones((2, 2), int), np.array(4), [np.ones(4, int)])
    ),
    *(
        Mistake(
            f"{length} sizes",
            ArgumentError,
            rf"`{{sizes}}` must hold 4 values( or 2 values)?, got {length}: ",
            sizes([1] * length),
            has_sizes,
        )
        for length in (0, 1, 3, 5, 13)
    ),
    *(
        Mistake(
            f"size {value} at {position}",
            ArgumentError,
            rf"`{{sizes}}` dimension {position} must be >= 0, got \[.*{value}",
            lambda door, position=position, value=value: {
                door.sizes: [
                    value if i == position else n
                    for i, n in enumerate(door.arguments()[door.sizes])
                ]
            },
            has_sizes,
        )
        for value in (-1, -(2**63))
        for position in range(4)
    ),
    *(
        Mistake(
            f"sizes {value!r}",
            ArgumentTypeError,
            r"`{sizes}` must hold integers, got ",
            sizes(value),
            has_sizes,
        )
        for value in (
            "abcd",
            b"abcd",
            [1.0, 1.0, 1.0, 1.0],
            np.ones(4),
            ["1", "1", "1", "1"],
            [1, 1, 1, True],
            np.ones(4, bool),
        )
    ),
]


def converted(position: int, change: Callable[[Any], Any]) -> Callable[[Door], dict[str, Any]]:
    """Change the array at a position of the door's list of arrays, counted from the end if negative."""
    return lambda door: {door.arrays[position]: change(door.arguments()[door.arrays[position]])}


def ragged(array: Any) -> list[Any]:
    nested = array.tolist()
    nested[0][0][0] = nested[0][0][0][:-1]
    return nested


WRONG_DTYPES = [
    np.int64,
    np.int16,
    np.int8,
    np.uint8,
    np.uint32,
    np.bool_,
    np.complex64,
    np.complex128,
    np.longdouble,
    np.dtype("S4"),
    np.dtype("U4"),
    np.dtype("m8[s]"),
    np.dtype("V4"),
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.int4,
]
ARRAYS = [
    *(
        Mistake(
            f"dtype {np.dtype(dtype).name} at {position}",
            DTypeError,
            r"`{array}` must have one of the dtypes half, bfloat16, float32, float64(, int32)?, "
            rf"got {re.escape(str(np.dtype(dtype)))}",
            converted(position, lambda array, dtype=dtype: np.zeros(array.shape, dtype)),
        )
        for dtype in WRONG_DTYPES
        for position in (0, -1)
    ),
    Mistake(
        "int32",
        DTypeError,
        r"`{array}` must have one of the dtypes half, bfloat16, float32, float64, got int32",
        converted(0, lambda array: array.astype(np.int32)),
        lambda door: not door.takes_int32,
    ),
    *(
        Mistake(
            f"mixed with {np.dtype(dtype)}",
            DTypeError,
            rf"`{{array}}` must have the dtype of the arrays before it, float32, got {name}; convert one of them",
            converted(-1, lambda array, dtype=dtype: array.astype(dtype)),
        )
        for dtype, name in (
            (np.float64, "float64"),
            (np.float16, "half"),
            (ml_dtypes.bfloat16, "bfloat16"),
        )
    ),
    *(
        Mistake(
            f"{what} at {position}",
            error,
            pattern,
            converted(position, change),
        )
        for position in (0, -1)
        for what, error, pattern, change in (
            ("None", ArgumentError, r"`{array}` must be an array, got None", lambda array: None),
            (
                "ragged list",
                ArgumentError,
                r"`{array}` must be a rectangular array of numbers, got a list that is not",
                ragged,
            ),
            (
                "object array",
                ArgumentError,
                r"`{array}` must be an array of numbers, got Python objects of shape \[",
                lambda array: array.astype(object),
            ),
            (
                "list of objects",
                ArgumentError,
                r"`{array}` must be an array of numbers, got Python objects of shape \[2",
                lambda array: [None, None],
            ),
            (
                "some object",
                ArgumentError,
                r"`{array}` must be an array of numbers, got Python objects of shape \[\]",
                lambda array: object(),
            ),
            (
                "masked array",
                ArgumentTypeError,
                r"`{array}` must not be a masked array, because its mask would be lost; use `.filled\(value\)`",
                lambda array: np.ma.masked_array(array),
            ),
            (
                "text",
                DTypeError,
                r"`{array}` must have one of the dtypes .*, got <U5",
                lambda array: "array",
            ),
            (
                "bytes",
                DTypeError,
                r"`{array}` must have one of the dtypes .*, got \|S5",
                lambda array: b"array",
            ),
            (
                "a bool",
                DTypeError,
                r"`{array}` must have one of the dtypes .*, got bool",
                lambda array: True,
            ),
            (
                "list of texts",
                DTypeError,
                r"`{array}` must have one of the dtypes .*, got <U1",
                lambda array: ["a"],
            ),
            (
                "list of bools",
                DTypeError,
                r"`{array}` must have one of the dtypes .*, got bool",
                lambda array: [True],
            ),
            (
                "list of complex",
                DTypeError,
                r"`{array}` must .*, got complex128",
                lambda array: [1j],
            ),
        )
    ),
    Mistake(
        "a number",
        ArgumentError,
        r"`{array}` must be 4-dimensional, got shape \[\] with 0 dimensions",
        converted(-1, lambda array: 1.0),
        lambda door: door.op != "separable_conv2d",
    ),
]

MISTAKES = [
    *PADDING,
    *DATA_FORMAT,
    *STRIDES_AND_DILATIONS,
    *RANKS,
    *CHANNELS,
    *WINDOWS,
    *GRADS,
    *SIZES,
    *ARRAYS,
]


def array_of(mistake: Mistake, door: Door) -> str:
    return next((name for name in mistake.changes(door) if name in door.arrays), "")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_message(mistake):
    doors = [door for door in DOORS if mistake.applies(door)]
    assert doors, "a row that applies to nothing tests nothing"
    for door in doors:
        changes = mistake.changes(door)
        with pytest.raises(ConvgradError) as caught:
            door.call(**changes)
        pattern = mistake.pattern
        for role in ("input", "filter", "grad", "sizes"):
            pattern = pattern.replace(f"{{{role}}}", str(getattr(door, role)))
        pattern = pattern.replace("{array}", array_of(mistake, door))
        assert type(caught.value) is mistake.error, (door.id, caught.value)
        assert re.match(f"{re.escape(door.shown)}: {pattern}", str(caught.value), re.DOTALL), (
            f"{door.id} said {caught.value} instead of {pattern}"
        )
        assert str(caught.value).endswith("."), caught.value
        assert len(str(caught.value).splitlines()) == 1, caught.value


def test_classes():
    """ValueError for values and shapes, TypeError for types and call forms, and one base for all."""
    assert issubclass(ArgumentError, ValueError) and not issubclass(ArgumentError, TypeError)
    assert issubclass(ArgumentTypeError, TypeError) and not issubclass(
        ArgumentTypeError, ValueError
    )
    assert issubclass(DTypeError, ArgumentTypeError)
    assert issubclass(AllocationError, MemoryError)
    for name in convgrad.errors.__all__:
        assert issubclass(getattr(convgrad.errors, name), ConvgradError)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.id)
def test_string_dtype_without_byte_order(door):
    dtype = getattr(np, "dtypes", None) and getattr(np.dtypes, "StringDType", None)
    if not dtype:
        pytest.skip("NumPy 2 only")
    with pytest.raises(DTypeError, match=r"got StringDType"):
        door.call(**{door.arrays[0]: np.full((1, 1, 1, 1), "1", dtype())})


# ---- the form of the call


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_unknown_argument(door):
    with pytest.raises(TypeError, match="stride"):
        door.call(stride=1)


@pytest.mark.parametrize("door", EVERY, ids=lambda door: door.id)
def test_missing_argument(door):
    first = next(iter(door.arguments()))
    arguments = door.arguments()
    del arguments[first]
    with pytest.raises((TypeError, ValueError), match=first):
        door.function(**arguments)


@pytest.mark.parametrize("door", [door for door in DOORS if is_raw(door)], ids=lambda door: door.id)
def test_raw_call_forms_name_the_keywords(door):
    keys = r"\(possible keys: \['input.*'strides', 'padding', .*'name'\]\)"
    with pytest.raises(
        ArgumentTypeError, match=rf"{door.shown}: only keyword arguments .*{keys}, got 2 positional"
    ):
        door.function(1, 2)
    with pytest.raises(
        ArgumentTypeError, match=rf"{door.shown}: missing arguments \['padding'\] {keys}"
    ):
        arguments = door.arguments()
        del arguments["padding"]
        door.function(**arguments)
    with pytest.raises(
        ArgumentTypeError, match=rf"{door.shown}: unknown arguments \['filters'\] {keys}"
    ):
        door.call(filters=1)


@pytest.mark.parametrize(
    "door", [door for door in DOORS if not is_raw(door)], ids=lambda door: door.id
)
def test_too_many_positional_arguments(door):
    with pytest.raises(TypeError, match="positional argument"):
        door.function(*range(20))


# ---- the order of checks: words, dtypes, ranks, channels, window, g


STAGES = ("words", "dtypes", "ranks", "channels", "window", "grad")
SIGN = {
    "words": "`padding` must be",
    "dtypes": "must have one of the dtypes|must hold real numbers",
    "ranks": "must be 4-dimensional",
    "channels": "depth",
    "window": "computed output size would be negative",
    "grad": "batch size",
}


def wrong_call(door: Door, stages: set[str]) -> dict[str, Any]:
    """Return arguments with one mistake per stage, on different things where they would hide each other."""
    arguments = door.arguments() | door.settings(padding="VALID")
    if "window" in stages:
        arguments |= door.settings(padding="VALID", dilations=(50, 1))
    if "channels" in stages:
        arguments |= reshaped("input", lambda shape: (*shape[:3], 5))(door)
    if "grad" in stages:
        arguments |= reshaped("grad", lambda shape: (3, *shape[1:]))(door)
    if "ranks" in stages:
        name = door.filter if door.filter in door.arrays else door.input
        arguments[name] = arguments[name][..., None]
    if "dtypes" in stages:
        for name in door.arrays:
            arguments[name] = arguments[name].astype(np.complex64)
    if "words" in stages:
        arguments["padding"] = "FULL"
    return arguments


TWO_MISTAKES = [
    (door, first, second)
    for door in EVERY
    for first, second in itertools.combinations(STAGES, 2)
    if second != "grad" or door.has_grad
]


@pytest.mark.parametrize(
    ("door", "first", "second"),
    TWO_MISTAKES,
    ids=[f"{door.id}-{first}-{second}" for door, first, second in TWO_MISTAKES],
)
def test_of_two_mistakes_the_earlier_is_reported(door, first, second):
    for stages in ({first}, {second}, {first, second}):
        with pytest.raises(ConvgradError, match=SIGN[min(stages, key=STAGES.index)]):
            door.function(**wrong_call(door, stages))


@pytest.mark.parametrize(
    "door", [door for door in EVERY if door.has_grad], ids=lambda door: door.id
)
def test_of_all_mistakes_the_earliest_is_reported(door):
    for position, stage in enumerate(STAGES):
        with pytest.raises(ConvgradError, match=SIGN[stage]):
            door.function(**wrong_call(door, set(STAGES[position:])))


@pytest.mark.parametrize("door", [door for door in EVERY if door.sizes], ids=lambda door: door.id)
def test_length_of_sizes_is_a_matter_of_lists(door):
    arguments = wrong_call(door, {"dtypes", "ranks", "window", "grad"}) | {door.sizes: [1, 2, 3]}
    with pytest.raises(ArgumentError, match=f"`{door.sizes}` must hold 4 values"):
        door.function(**arguments)


# ---- nothing is allocated before the checks have passed


@pytest.mark.parametrize("door", [door for door in DOORS if door.sizes], ids=lambda door: door.id)
@pytest.mark.parametrize("size", [10**5, 2**31 - 1, 2**40, 2**61])
def test_nothing_is_allocated_from_a_size_before_g_was_compared(door, size, monkeypatch):
    def refuse(*_: Any) -> Any:
        raise AssertionError("allocated")

    for module in (_arrays.numpy, repeated):
        monkeypatch.setattr(module, "new_result", refuse)
    old = door.arguments()[door.sizes]
    wrong = (
        [*old[:3], old[3] * size] if door.sizes == "filter_sizes" else [old[0], size, size, old[3]]
    )
    tracemalloc.start()
    try:
        with pytest.raises(ArgumentError, match=f"{door.shown}: `{door.grad}` must have"):
            door.call(**{door.sizes: wrong})
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "door", [door for door in DOORS if not door.has_grad], ids=lambda door: door.id
)
def test_nothing_is_allocated_for_a_result_that_is_too_large(door, monkeypatch):
    for module in (_arrays.numpy, repeated):
        monkeypatch.setattr(module, "new_result", None)
    pads = ((2**31 - 1, 2**31 - 1), (2**31 - 1, 2**31 - 1))
    with pytest.raises(
        ArgumentError,
        match=rf"{door.shown}: `result` must hold fewer than 2\*\*63 bytes, got shape",
    ):
        door.call(**door.settings(padding=pads))


def test_no_memory_for_a_result_is_said_so():
    """2**62 bytes: more than any machine has, less than the limit."""
    with pytest.raises(
        AllocationError,
        match=r"conv2d: no memory for a result of 4,611,686,018,427,387,904 bytes \(shape \(1, 2147483648, ",
    ):
        convgrad.conv2d(
            np.ones((1, 1, 1, 1), np.float32),
            np.ones((1, 1, 1, 1), np.float32),
            1,
            ((0, 2**31 - 1), (0, 2**29 - 1)),
        )


# ---- the oracle


@pytest.mark.parametrize(
    "door", [door for door in EVERY if door.id.startswith("reference.")], ids=lambda door: door.id
)
@pytest.mark.parametrize(
    ("changes", "error", "pattern"),
    [
        (
            fixed(padding="FULL"),
            ArgumentError,
            "`padding` must be 'SAME', 'VALID'.* or .*got 'FULL'",
        ),
        (fixed(padding=None), ArgumentTypeError, "`padding` must be"),
        (fixed(strides=0), ArgumentError, "`strides` must be larger than 0, got 0"),
        (fixed(strides=1.5), ArgumentTypeError, "`strides` must hold integers, got 1.5"),
        (
            fixed(dilations=[1, 2, 3]),
            ArgumentError,
            "`dilations` should be of length 1, 2 or 4, got 3",
        ),
        (fixed(data_format="NHCW"), ArgumentError, "`data_format` must be"),
        (
            converted(0, lambda array: array * 1j),
            DTypeError,
            "`{array}` must hold real numbers, got complex64",
        ),
        (converted(0, lambda array: None), ArgumentError, "`{array}` must be an array, got None"),
        (converted(0, ragged), ArgumentError, "`{array}` must be a rectangular array"),
        (
            converted(0, lambda array: array.astype(object)),
            ArgumentError,
            "`{array}` must be an array of numbers",
        ),
        (
            converted(0, np.ma.masked_array),
            ArgumentTypeError,
            "`{array}` must not be a masked array",
        ),
        (converted(0, lambda array: array[0]), ArgumentError, "`{array}` must be 4-dimensional"),
        (
            converted(-1, lambda array: array.astype("U4")),
            DTypeError,
            "`{array}` must hold real numbers, got <U4",
        ),
        (
            lambda door: converted(0, lambda array: array + 0.5)(door) | {"exact": True},
            ArgumentError,
            "with exact=True both operands must hold whole numbers only",
        ),
        (
            lambda door: converted(-1, lambda array: array * np.inf)(door) | {"exact": True},
            ArgumentError,
            "with exact=True both operands must hold whole numbers only",
        ),
        (
            lambda door: converted(-1, lambda array: array * np.nan)(door) | {"exact": True},
            ArgumentError,
            "with exact=True both operands must hold whole numbers only",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_reference_messages(door, changes, error, pattern):
    changed = changes(door)
    array = next((name for name in changed if name in door.arrays), "")
    with pytest.raises(
        error, match=f"^{re.escape(door.shown)}: {pattern.replace('{array}', array)}"
    ):
        door.call(**changed)


# ---- explain


@pytest.mark.parametrize("door", DOORS[:6], ids=lambda door: door.id)
@pytest.mark.parametrize("dtype", ["int32", np.int32])
def test_explain_refuses_the_dtypes_its_operation_refuses(door, dtype):
    shapes = [4, 5, 5, 2], [3, 3, 2, 2]
    if door.takes_int32:
        assert convgrad.explain(door.op, *shapes, dtype=dtype).problem.dtype.name == "int32"
    else:
        pattern = f"explain: `dtype` must be one of .*float64 for {door.op}, got .*int32"
        with pytest.raises(DTypeError, match=pattern):
            convgrad.explain(door.op, *shapes, dtype=dtype)


# ---- an argument is read once


@pytest.mark.parametrize("strides", [[1, 1, 0, 1], (1, -1, 1, 1), [1, 1.5, 1, 1], 0])
def test_a_wrong_setting_is_read_once_and_shown_as_written(strides, monkeypatch):
    read = []
    real = arguments.read_data_format

    def count(*given: Any) -> Any:
        read.append(given)
        return real(*given)

    monkeypatch.setattr(arguments, "read_data_format", count)
    with pytest.raises(ConvgradError, match=re.escape(repr(strides)) + r"\.$"):
        convgrad.conv2d(np.ones((1, 3, 3, 1)), np.ones((1, 1, 1, 1)), strides, "SAME")
    assert len(read) == 1


def test_wrong_sizes_are_shown_as_written():
    one = np.ones((1, 1, 1, 1))
    for sizes in ([1, 1, 1], (1, 1, 1)):
        with pytest.raises(ArgumentError, match=re.escape(f"got 3: {sizes}.")):
            convgrad.conv2d_backprop_input(sizes, one, one, 1, "SAME")
