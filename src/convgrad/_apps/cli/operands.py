"""The operands of `run`: which options an operation takes, where its arrays come from, and whether memory holds them.

All is checked before anything is planned or made up: sizes that no memory holds would be planned for ever.
"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from ..._base import dtypes, headroom
from ..._base.dtypes import DType
from ..._base.errors import AllocationError
from ..._problem import arguments, convolution
from ..._problem.convolution import Kind, Problem, Shape
from . import operation, slicing, sources, stacks, stores
from .slicing import Operands
from .sources import Source
from .verb import Refusal

_ROWS = {row.name: row for row in dtypes.DTYPES}
_FILES = ("input", "filter", "pointwise_filter", "out_backprop")
_SIZES = ("input_sizes", "output_shape", "filter_sizes", "pointwise_sizes")
_OF_RANDOM = {"filter": "filter_sizes", "pointwise_filter": "pointwise_sizes"}
"""Options that say how large a random array is; the images are as large as --random says."""
_NEEDED = {
    Kind.FORWARD: ("input", "filter"),
    Kind.INPUT_GRADIENT: ("input_sizes", "filter", "out_backprop"),
    Kind.FILTER_GRADIENT: ("input", "filter_sizes", "out_backprop"),
    operation.TRANSPOSE: ("input", "filter", "output_shape"),
    operation.SEPARABLE: ("input", "filter", "pointwise_filter"),
}


@dataclass(frozen=True)
class Computation:
    """What a run computes: one problem, or two in a row of which the first one's result is the second one's input."""

    problems: tuple[Problem, ...]
    operands: Operands
    at_once: int
    """Images of a slice; 0 if none are held here."""

    @property
    def first(self) -> Problem:
        return self.problems[0]

    @property
    def last(self) -> Problem:
        return self.problems[-1]

    @property
    def flops(self) -> int:
        return sum(problem.flops for problem in self.problems)


def add_arguments(parser: ArgumentParser) -> None:
    """Add files, sizes and random numbers."""
    group = parser.add_argument_group("operands")
    for option, what in (
        ("--input", "the images"),
        ("--filter", "[kh, kw, c, m] for depthwise and separable operations, [kh, kw, c / groups, k] for others"),
        ("--pointwise-filter", "[1, 1, c * m, k], for separable_conv2d"),
        ("--out-backprop", "the gradient of the result"),
    ):  # fmt: skip
        group.add_argument(option, metavar="FILE", help=what)
    for option, what in (
        ("--input-sizes", "for the input gradient"),
        ("--output-shape", "for conv2d_transpose: the shape of its result"),
        ("--filter-sizes", "for the filter gradient, and for a random filter"),
        ("--pointwise-sizes", "for a random pointwise filter"),
    ):
        group.add_argument(option, type=operation.read_shape, metavar="SIZES", help=what)
    group.add_argument(
        "--random",
        type=operation.read_shape,
        metavar="N,H,W,C",
        help="make up the operands that are not given, for an input of this shape (in --data-format order)",
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the random numbers; default 0"
    )
    group.add_argument(
        "--dtype",
        choices=operation.DTYPES,
        help="of random operands (default float32), and what files must hold",
    )


def read(given: Namespace, files: ExitStack) -> Computation:
    """Open what was given, check all shapes, dtypes and the memory, and make up the rest."""
    return _work(given, files, lambda problems: slicing.images_at_once(problems, given.slice_bytes))


def read_lazily(given: Namespace, files: ExitStack) -> Computation:
    """The same for operands that are read elsewhere: no images are held here."""
    return _work(given, files, lambda problems: 0)


def _work(
    given: Namespace, files: ExitStack, held: Callable[[tuple[Problem, ...]], int]
) -> Computation:
    _check_options(given)
    said = _ROWS[given.dtype] if given.dtype else None
    found = {
        name: _opened(text, said, files)
        for name in _FILES
        if (text := getattr(given, name)) is not None
    }
    row = _one_dtype(found, said)
    problems = _problems(given, row, _shapes(given, found))
    at_once = held(problems)
    places = _places(given, problems)
    packed = {name: each.shape for name, each in found.items() if isinstance(each, sources.Packed)}
    made = {name: shape for name, shape in places.items() if name not in found}
    _ask_for_memory(problems, at_once, made, packed)
    for number, name in enumerate(("input", "filter", "out_backprop", "pointwise_filter")):
        if name in places and name not in found:
            found[name] = sources.Random(places[name], row, given.seed, number)
    filters = [found[name] for name in ("filter", "pointwise_filter") if name in found]
    arrays = tuple(each.images(0, each.shape[0]) for each in filters)
    operands = Operands(found.get("input"), arrays, found.get("out_backprop"))
    if given.op == operation.TRANSPOSE:  # its input is what a gradient calls `out_backprop`
        operands = Operands(None, arrays, found["input"])
    return Computation(problems, operands, at_once)


def is_many(text: str) -> bool:
    """Tell whether a word stands for a store or a stack, whose images are read through Dask."""
    return stores.is_store(text) or stacks.is_stack(text)


def _opened(text: str, said: DType | None, files: ExitStack) -> Source:
    if stores.is_store(text):
        return stores.read(text, said)
    if stacks.is_stack(text):
        return stacks.read(text, said)
    return sources.read(text, said, files)


def _shapes(given: Namespace, found: dict[str, Source]) -> dict[str, Shape | None]:
    """Return the shape of each operand that is known, from its file or from words; they must not disagree."""
    shapes: dict[str, Shape | None] = {name: source.shape for name, source in found.items()}
    if given.input_sizes and given.random and given.input_sizes != given.random:
        raise Refusal("--input-sizes and --random say the same thing; give one of them")
    for name, option, wanted in (
        ("input", "random", given.input_sizes or given.random),
        ("filter", "filter_sizes", given.filter_sizes),
        ("pointwise_filter", "pointwise_sizes", given.pointwise_sizes),
    ):
        if shapes.setdefault(name, wanted) != wanted and wanted is not None:
            raise Refusal(
                f"{_option(name)} has the shape {list(shapes[name] or ())}, "
                f"{_option(option)} says {list(wanted)}"
            )
    return shapes


def _problems(given: Namespace, row: DType, shapes: dict[str, Shape | None]) -> tuple[Problem, ...]:
    how = arguments.settings(given.op, arguments.FRIENDLY, **operation.settings(given))
    image, taps = shapes["input"], shapes["filter"]
    assert image is not None and taps is not None  # `_check_options` has seen to it
    if given.op == operation.SEPARABLE:
        mixing = shapes["pointwise_filter"]
        assert mixing is not None
        return convolution.build_separable(how, row, image, taps, mixing)
    if given.op == operation.TRANSPOSE:
        call = convolution.CONV2D_TRANSPOSE
        return (convolution.build(call, how, row, given.output_shape, taps, image),)
    call = operation.CALLS[given.op]
    grad = shapes.get("out_backprop")
    if call.kind is not Kind.FORWARD and grad is None:
        forward = convolution.DEPTHWISE if call.depthwise else convolution.CONV2D
        grad = convolution.build(forward, how, row, image, taps, None).output_shape
    return (convolution.build(call, how, row, image, taps, grad),)


def _places(given: Namespace, problems: tuple[Problem, ...]) -> dict[str, Shape]:
    """Return the shapes of the arrays an operation reads."""
    problem = problems[0]
    shapes = {
        "input": problem.input_shape,
        "filter": problem.filter_shape,
        "out_backprop": problem.output_shape,
        "pointwise_filter": problems[-1].filter_shape,
    }
    if given.op == operation.TRANSPOSE:
        shapes["input"] = problem.output_shape
    return {name: shapes[name] for name in _needed(given) if name in shapes}


def _ask_for_memory(
    problems: tuple[Problem, ...], at_once: int, made: dict[str, Shape], packed: dict[str, Shape]
) -> None:
    """Refuse sizes that no memory holds, with the names of what is too large: files are mapped and need none.

    Operands that are made up are held for a slice, compressed ones as a whole.
    """
    last = problems[-1]
    batch = min(at_once, max(last.batch, 1))
    parts = {
        f"a random {_option(name)[2:]}": shape if "filter" in name else (batch, *shape[1:])
        for name, shape in made.items()
    }
    parts |= {f"the compressed {_option(name)[2:]}": shape for name, shape in packed.items()}
    if len(problems) > 1:
        parts["the depthwise result"] = (batch, *problems[0].output_shape[1:])
    whole = last.kind is Kind.FILTER_GRADIENT
    parts["the result"] = last.result_shape if whole else (batch, *last.result_shape[1:])
    sizes = {name: math.prod(shape) * last.dtype.itemsize for name, shape in parts.items()}
    try:
        headroom.ask(sum(sizes.values()) or 1, "for a slice")
    except AllocationError:
        listed = ", ".join(
            f"{name} {list(parts[name])} takes {size / 1e9:,.1f} GB"
            for name, size in sorted(sizes.items(), key=lambda item: -item[1])
            if size > max(sizes.values()) / 100
        )
        images = "1 image" if batch == 1 else f"{batch:,} images"
        what = f"{images} at a time" if at_once else "what is held here"
        raise Refusal(f"there is no memory for {what}: {listed}") from None


def _needed(given: Namespace) -> tuple[str, ...]:
    call = operation.CALLS.get(given.op)
    return _NEEDED[given.op if call is None else call.kind]


def _check_options(given: Namespace) -> None:
    """Refuse options the operation has no use for, and name the missing ones."""
    needed = _needed(given)
    of_random = {_OF_RANDOM[name] for name in needed if name in _OF_RANDOM}
    for name in (*_FILES, *_SIZES):
        useful = name in needed or (name in of_random and given.random)
        if getattr(given, name) is not None and not useful:
            raise Refusal(
                f"{_option(name)} is not an operand of {given.op}; it takes {_list(needed)}"
            )
    missing = [name for name in needed if getattr(given, name) is None]
    if not given.random:
        if missing:
            raise Refusal(f"{given.op} needs {_list(missing)}, or --random N,H,W,C")
        return
    for name in missing:
        sizes = _OF_RANDOM.get(name)
        if sizes and getattr(given, sizes) is None:
            raise Refusal(f"--random needs {_option(sizes)} or {_option(name)} too")
        if name in ("filter_sizes", "output_shape"):
            raise Refusal(f"--random needs {_option(name)} too")


def _one_dtype(found: dict[str, Source], said: DType | None) -> DType:
    rows = {name: source.dtype for name, source in found.items()}
    if len(set(rows.values())) > 1:
        listed = ", ".join(f"{_option(name)} {row.name}" for name, row in rows.items())
        raise Refusal(f"the operands must have one dtype, got {listed}; nothing is converted")
    return next(iter(rows.values()), said or dtypes.FLOAT)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _list(names: Iterable[Any]) -> str:
    return ", ".join(map(_option, names))
