"""A problem as one line of text, both ways: what the command line takes, files list and recordings hold.

::

    OP INPUT FILTER [strides=S] [dilations=S] [padding=P] [data_format=F] [dtype=T]

OP is one of the six operations. INPUT and FILTER are the shapes of the forward operation, also for its gradients, with
``x`` between the sizes; INPUT is in the order of `data_format`. S is a number or ``rows,columns``; P is SAME, VALID or
``top,bottom:left,right``. Left out are strides and dilations of 1, SAME, NHWC and float32. ``#`` starts a comment.

`write` spells every problem in one way, so that texts can be compared: keys in this order, none that says its default,
but always the padding, as the numbers it comes to. A word of the benchmarks such as ``8x56x56x144k3s2`` (`layer_text`)
stands for the three operations on a layer; `dtype` and `data_format` may follow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .._base.dtypes import DTYPES, FLOATING, INT32, DType
from .._base.errors import ArgumentError, ConvgradError, nearest, shown
from . import convolution, geometry, layer_text
from .convolution import Call, Kind, Problem, Settings, Shape
from .layer_text import LayerText

OPS = {call.function: call for call in convolution.OPS}
KEYS = ("strides", "dilations", "padding", "data_format", "dtype")
FORM = "OP INPUT FILTER [key=value ...]"
EXAMPLE = "conv2d 8x28x28x64 3x3x64x64 strides=2"
_DATA_FORMATS = ("NHWC", "NCHW")
_DTYPES = {row.numpy.name: row for row in DTYPES}
_TYPED = {**_DTYPES, **{row.name: row for row in DTYPES}}
"""As they may be written: `half` too, as other arguments call it."""
_LONGEST_NUMBER = 20
"""Digits; Python refuses to read 5000 of them."""
_LARGEST_STEP = 2**31 - 1


@dataclass(frozen=True)
class Line:
    """What a line says, in its own words: a problem no longer knows that its padding was called SAME."""

    call: Call
    input_shape: Shape
    filter_shape: Shape
    settings: Settings
    dtype: DType

    @cached_property
    def problem(self) -> Problem:
        """The problem itself; `ArgumentError` where TensorFlow's rules refuse it."""
        return convolution.build(
            self.call, self.settings, self.dtype, self.input_shape, self.filter_shape, None
        )


def read(line: str) -> Problem:
    """Read one problem.

    >>> read("conv2d 8x28x28x64 3x3x64x64 strides=2").output_shape
    (8, 14, 14, 64)
    """
    return read_line(line).problem


def read_line(line: str) -> Line:
    """Read one problem and keep how it was written; the problem itself was built, so that it is known to exist."""
    found = parse(line)
    if len(found) != 1:
        named = "stands for the three operations on a layer" if found else "is empty"
        raise ArgumentError(f"problem {shown(line)} {named}; one must be named, as in {EXAMPLE!r}.")
    return found[0]


def read_lines(text: str, name: str) -> list[Problem]:
    """Read a file of lines, each problem once, in the order they first occur; `name` is the file's, for messages.

    >>> [write(each) for each in read_lines("1x4x4x2k3v  # all three\\nconv2d 1x4x4x2 1x1x2x2", "mine")][1:]
    ['depthwise_conv2d_backprop_input 1x4x4x2 3x3x2x1 padding=0,0:0,0', \
'depthwise_conv2d_backprop_filter 1x4x4x2 3x3x2x1 padding=0,0:0,0', 'conv2d 1x4x4x2 1x1x2x2 padding=0,0:0,0']
    """
    return list(dict.fromkeys(line.problem for line in parse_lines(text, name)))


def parse_lines(text: str, name: str) -> list[Line]:
    """Read a file of lines as `read_lines` does, and keep how they were written."""
    found: list[Line] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        try:
            found += _lines(line)
        except ConvgradError as error:
            raise ArgumentError(f"{name}, line {number}: {error}") from None
    return found


def parse(line: str) -> list[Line]:
    """Read a line: one problem, three of a layer, none of a comment. Each of them was built."""
    try:
        return _lines(line)
    except ConvgradError as error:
        raise ArgumentError(f"problem {shown(line)}: {error}") from None


def write(problem: Problem) -> str:
    """Spell a problem; `read` gives it back.

    >>> write(read("depthwise_conv2d 8x56x56x144 3x3x144x1 dtype=half strides=2,2"))
    'depthwise_conv2d 8x56x56x144 3x3x144x1 strides=2 padding=0,1:0,1 dtype=float16'
    """
    rows, cols = problem.rows, problem.cols
    words = [operation(problem), _sizes(problem.input_shape), _sizes(problem.filter_shape)]
    for key, pair in (
        ("strides", (rows.stride, cols.stride)),
        ("dilations", (rows.dilation, cols.dilation)),
    ):
        if pair != (1, 1):
            words.append(f"{key}={pair[0]}" if pair[0] == pair[1] else f"{key}={pair[0]},{pair[1]}")
    words.append(f"padding={_padding(problem)}")
    if problem.data_format != "NHWC":
        words.append(f"data_format={problem.data_format}")
    if problem.dtype.numpy.name != "float32":
        words.append(f"dtype={problem.dtype.numpy.name}")
    return " ".join(words)


def operation(problem: Problem) -> str:
    """Return the public name of a problem's operation."""
    return next(
        name
        for name, call in OPS.items()
        if call.kind is problem.kind and call.depthwise is problem.depthwise
    )


def _sizes(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _padding(problem: Problem) -> str:
    """Spell the pads, or SAME where it says more than they do.

    An empty window, which gradients of dense convolutions may have, fits into an image more often than SAME counts.
    """
    axes = (problem.rows, problem.cols)
    if all(
        geometry.solve(*axis[:4], (axis.before, axis.after)) == axis and min(axis[4:6]) >= 0
        for axis in axes
    ):
        return ":".join(f"{axis.before},{axis.after}" for axis in axes)
    if any(geometry.solve(*axis[:4], "SAME") != axis for axis in axes):
        raise ArgumentError(f"write: `problem` must have axes that some padding makes, got {axes}.")
    return "SAME"


def _lines(line: str) -> list[Line]:
    words = line.partition("#")[0].split()
    if not words:
        return []
    if words[0] not in OPS and layer_text.looks_like(words[0]):
        found = list(
            _of_layer(layer_text.parse(words[0]), words[0], _values(words[1:], layer=True))
        )
    else:
        found = [_of_operation(words)]
    for each in found:
        each.problem  # noqa: B018 (builds it)
    return found


def _of_operation(words: list[str]) -> Line:
    op, *rest = words
    if op not in OPS:
        hint = nearest(op, OPS) or f"; a line reads {FORM}, as in {EXAMPLE!r}."
        raise ArgumentError(f"OP must be one of {', '.join(OPS)}, got {shown(op)}{hint}")
    shapes = [word for word in rest if "=" not in word]
    if len(shapes) != 2 or shapes != rest[:2]:
        if len(shapes) > 2:
            what = shapes[2]
            hint = nearest(what.partition(":")[0], KEYS) or "."
            raise ArgumentError(
                f"behind INPUT and FILTER every word must be key=value, got {shown(what)}{hint}"
            )
        raise ArgumentError(
            f"INPUT and FILTER must follow {op}, two shapes such as 8x28x28x64 3x3x64x64, got {shown(' '.join(rest))}."
        )
    values = _values(rest[2:])
    call, dtype = OPS[op], _dtype(values)
    if dtype is INT32 and (call.depthwise or call.kind is Kind.FILTER_GRADIENT):
        allowed = ", ".join(row.numpy.name for row in FLOATING)
        raise ArgumentError(f"`dtype` must be one of {allowed} for {op}, got 'int32'.")
    settings = Settings(
        strides=_steps("strides", values),
        dilations=_steps("dilations", values),
        padding=_read_padding(values.get("padding", "SAME")),
        data_format=_data_format(values),
    )
    return Line(call, _shape("INPUT", shapes[0]), _shape("FILTER", shapes[1]), settings, dtype)


def _of_layer(layer: LayerText, word: str, values: dict[str, str]) -> Iterator[Line]:
    dense = layer.outputs > 0
    if dense and layer.multiplier != 1:
        raise ArgumentError(f"{word}: `m` is for depthwise problems, `o` for dense ones.")
    if not dense and layer.groups != 1:
        raise ArgumentError(f"{word}: `g` needs `o`, the number of output channels.")
    sizes = (layer.batch, layer.height, layer.width, layer.channels, *layer.window)
    if min(*sizes, layer.multiplier, layer.groups) < 1:
        raise ArgumentError(f"{word}: every size must be at least 1.")
    if layer.channels % layer.groups or layer.outputs % layer.groups:
        raise ArgumentError(f"{word}: groups must divide input and output channels.")
    for key, pair in (("s", layer.strides), ("d", layer.dilations)):
        if not 1 <= min(pair) <= max(pair) <= _LARGEST_STEP:
            raise ArgumentError(f"{word}: `{key}` must be from 1 to {_LARGEST_STEP}.")
    settings = Settings(layer.strides, layer.dilations, layer.padding, _data_format(values))
    depth = (
        (layer.channels // layer.groups, layer.outputs)
        if dense
        else (layer.channels, layer.multiplier)
    )
    spatial = (layer.height, layer.width)
    image = (layer.batch, *spatial, layer.channels)
    if settings.data_format == "NCHW":
        image = (layer.batch, layer.channels, *spatial)
    for call in OPS.values():
        if call.depthwise is not dense:
            yield Line(call, image, (*layer.window, *depth), settings, _dtype(values))


def _values(words: list[str], layer: bool = False) -> dict[str, str]:
    """Read key=value words; the keys are known and stand once."""
    keys = ("data_format", "dtype") if layer else KEYS
    values: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise ArgumentError(f"behind a layer every word must be key=value, got {shown(word)}.")
        if key not in keys:
            if key in KEYS:
                raise ArgumentError(
                    f"`{key}` stands in the layer's own text (s2x1, d2, v, p1), got {shown(word)} behind it."
                )
            raise ArgumentError(
                f"the key must be one of {', '.join(keys)}, got {shown(word)}{nearest(key, keys) or '.'}"
            )
        if key in values:
            raise ArgumentError(
                f"`{key}` must be given once, got {shown(values[key])} and {shown(value)}."
            )
        values[key] = value
    return values


def _numbers(text: str, sign: str) -> tuple[int, ...] | None:
    """Read whole numbers, or return None."""
    words = text.split(sign)
    plain = all(
        word.isascii() and word.isdigit() and len(word) <= _LONGEST_NUMBER for word in words
    )
    return tuple(map(int, words)) if plain else None


def _shape(what: str, word: str) -> Shape:
    numbers = _numbers(word.lower().replace(",", "x"), "x")
    if numbers is None or len(numbers) != 4:
        got = "" if numbers is None else f"{len(numbers)} of them: "
        raise ArgumentError(
            f"{what} must be four sizes with x between them, such as 8x28x28x64, got {got}{shown(word)}."
        )
    return numbers


def _steps(key: str, values: dict[str, str]) -> tuple[int, int]:
    text = values.get(key, "1")
    numbers = _numbers(text, ",")
    if numbers is None or len(numbers) > 2:
        hint = ""
        if numbers is not None and len(numbers) == 4:
            pair = numbers[1:3] if numbers[3] == 1 else numbers[2:]
            hint = f"; write {key}={pair[0]},{pair[1]}"
        raise ArgumentError(
            f"`{key}` must be a whole number, or two with a comma between them (rows,columns){hint}, got {shown(text)}."
        )
    if not 1 <= min(numbers) <= max(numbers) <= _LARGEST_STEP:
        raise ArgumentError(f"`{key}` must be from 1 to {_LARGEST_STEP}, got {shown(text)}.")
    return numbers[0], numbers[-1]


def _read_padding(text: str) -> layer_text.Padding:
    word = text.upper()
    if word == "SAME":
        return "SAME"
    if word == "VALID":
        return "VALID"
    pairs = [_numbers(pair, ",") for pair in text.split(":")]
    rows, cols = (pairs[0], pairs[-1]) if len(pairs) == 2 else (None, None)
    if rows is None or cols is None or len(rows) != 2 or len(cols) != 2:
        hint = nearest(word, ("SAME", "VALID")) or "."
        raise ArgumentError(
            f"`padding` must be SAME, VALID or top,bottom:left,right such as 1,1:0,2, got {shown(text)}{hint}"
        )
    return (rows[0], rows[1]), (cols[0], cols[1])


def _data_format(values: dict[str, str]) -> str:
    text = values.get("data_format", "NHWC")
    if text.upper() not in _DATA_FORMATS:
        raise ArgumentError(f"`data_format` must be NHWC or NCHW, got {shown(text)}.")
    return text.upper()


def _dtype(values: dict[str, str]) -> DType:
    text = values.get("dtype", "float32")
    if text not in _TYPED:
        raise ArgumentError(
            f"`dtype` must be one of {', '.join(_DTYPES)}, got {shown(text)}{nearest(text, _TYPED) or '.'}"
        )
    return _TYPED[text]
