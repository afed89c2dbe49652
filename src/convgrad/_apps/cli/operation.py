"""The arguments that describe an operation, as text: shared by the verbs that take one."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

import convgrad

from ..._base import dtypes
from ..._base.errors import nearest
from ..._problem.convolution import OPS

CALLS = {call.function: call for call in OPS}
TRANSPOSE, SEPARABLE = "conv2d_transpose", "separable_conv2d"
NAMES = tuple(CALLS)
"""The six operations."""
ALL = (*NAMES, TRANSPOSE, SEPARABLE)
"""Those, and the two layers that are made of them."""
DTYPES = tuple(row.name for row in dtypes.DTYPES)


class Arguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: Any, **how: Any) -> Any: ...


def add_op(parser: Arguments, names: tuple[str, ...] = NAMES) -> Any:
    """Add the operation's name."""
    return parser.add_argument(
        "op",
        type=partial(read_operation, names=names),
        choices=names,
        metavar="OP",
        help=f"one of {', '.join(names)}",
    )


def add_settings(parser: Arguments) -> None:
    """Add strides, padding, layout and dilations; `settings` reads them back."""
    parser.add_argument(
        "--strides",
        type=ints,
        default=1,
        metavar="S",
        help="2, or 2,1 (rows, columns), or 1,2,2,1 in the layout's order; default 1",
    )
    parser.add_argument(
        "--padding",
        type=padding,
        default="SAME",
        metavar="P",
        help="SAME, VALID, 1,1:0,2 (top,bottom:left,right), or 4 pairs such as 0,0:1,1:0,2:0,0; default SAME",
    )
    parser.add_argument(
        "--data-format",
        default="NHWC",
        choices=("NHWC", "NCHW"),
        help="order of the dimensions; default NHWC",
    )
    parser.add_argument(
        "--dilations", type=ints, default=1, metavar="D", help="as --strides; default 1"
    )


def add_threads(parser: Arguments) -> None:
    """Add the number of threads; None leaves it to the switches."""
    parser.add_argument(
        "--threads", type=count, metavar="N", help="threads of one call; default all processors"
    )


def threads(given: Any) -> AbstractContextManager[None]:
    """Return a block in which calls use the threads of `add_threads`."""
    return nullcontext() if given.threads is None else convgrad.threads(given.threads)


def settings(given: Any) -> dict[str, Any]:
    """Return the arguments of `add_settings` as keywords of the Python functions."""
    return {
        "strides": given.strides,
        "padding": given.padding,
        "data_format": given.data_format,
        "dilations": given.dilations,
    }


def read_operation(text: str, names: tuple[str, ...]) -> str:
    """Read an operation's name; a wrong one is answered with the nearest right one."""
    if text not in names:
        raise ArgumentTypeError(
            f"there is no operation {text!r}{nearest(text, names) or '; there are ' + ', '.join(names)}"
        )
    return text


def ints(text: str) -> int | tuple[int, ...]:
    """Read one whole number, or several with commas.

    >>> ints("2"), ints("1,2,2,1")
    (2, (1, 2, 2, 1))
    """
    try:
        numbers = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ArgumentTypeError(
            f"{text!r} must be whole numbers with commas between them"
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers


def count(text: str) -> int:
    """Read a whole number from 1 up."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} must be a whole number from 1 up")
    return int(text)


def nbytes(text: str) -> int:
    """Read a number of bytes, with an optional K, M or G.

    >>> nbytes("4096"), nbytes("256M")
    (4096, 268435456)
    """
    scale = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper())
    return count(text) if scale is None else count(text[:-1]) << scale


def read_shape(text: str) -> tuple[int, ...]:
    """Read a shape, with commas or x between the sizes.

    >>> read_shape("8,28,28,64"), read_shape("3x3x64x1")
    ((8, 28, 28, 64), (3, 3, 64, 1))
    """
    numbers = ints(text.replace("x", ","))
    return (numbers,) if isinstance(numbers, int) else numbers


def chunks(text: str) -> tuple[int, ...]:
    """Read the sizes of chunks, one for each of four dimensions; -1 is all of one.

    >>> chunks("8,256,256,-1")
    (8, 256, 256, -1)
    """
    sizes = read_shape(text)
    if len(sizes) != 4 or any(size < 1 and size != -1 for size in sizes):
        raise ArgumentTypeError(
            f"{text!r} must be 4 sizes, each from 1 up or -1 for the whole, such as 8,256,256,-1"
        )
    return sizes


def padding(text: str) -> str | tuple[tuple[int, ...], ...]:
    """Read a word, or pairs with colons between them; the library says what is wrong with the numbers.

    >>> padding("same"), padding("0,0:1,1:1,1:0,0")
    ('same', ((0, 0), (1, 1), (1, 1), (0, 0)))
    """
    if text.isalpha():
        return text
    pairs = tuple(read_shape(pair) for pair in text.split(":"))
    if any(len(pair) != 2 for pair in pairs):
        raise ArgumentTypeError(f"{text!r} must be SAME, VALID or pairs such as 1,1:0,2")
    return pairs
