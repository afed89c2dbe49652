"""What is checked: one row per property, with the problems that show it.

Each row keeps everything else as plain as it can, so that a kernel without NCHW, or without half, fails in that row and
nowhere else. Only `mixed` draws everything at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..._problem.convolution import Kind
from ..._problem.geometry import Axis, reach
from .draws import (
    ONE,
    TWO,
    WORDS,
    Alike,
    Draw,
    Each,
    Family,
    Pair,
    Value,
    over,
    pads,
    pick,
    problem,
)
from .problems import DTYPES, LAYOUTS, OPS, Case, Trial, generator, numbers


@dataclass(frozen=True)
class Base:
    """What a plain problem is: the operation, and a layout and a dtype the kernel is known to take."""

    op: str
    dtypes: tuple[str, ...] = tuple(DTYPES)
    layouts: tuple[str, ...] = LAYOUTS
    dtype: str = "float32"
    layout: str = "NHWC"

    @property
    def kind(self) -> Kind:
        return OPS[self.op].kind

    @property
    def depthwise(self) -> bool:
        return OPS[self.op].depthwise


Changes = Family | Sequence[Family]


def _full(case: Case) -> bool:
    return not case.problem.is_empty


@dataclass(frozen=True)
class Property:
    """A row."""

    name: str
    meaning: str
    changes: Changes | Callable[[Base], Changes] = field(default_factory=dict)
    """How fields of a case are drawn that are not plain; of several tables one is taken."""
    holds: Callable[[Case], bool] = _full
    """What else must be true of a case."""
    data: Draw = "whole"
    every: int = 1
    """One problem in so many rounds: some are slow, and of some a few are enough."""
    twice: bool = False
    """Whether the kernel is called a second time with the same operands."""


def applicable(base: Base) -> list[Property]:
    """Return the rows that mean something for an operation, its dtypes and its layouts."""
    missing = {"groups"} if base.depthwise else {"multiplier"}
    missing |= set(LAYOUTS) - set(base.layouts) | DTYPES.keys() - set(base.dtypes)
    return [row for row in PROPERTIES if row.name not in missing]


def trials(rows: list[Property], base: Base, seed: int, count: int) -> Iterator[Trial]:
    """Yield `count` problems in turn over the rows, each a function of the seed, its row and its number alone."""
    made, turn = 0, 0
    while made < count:
        for row in rows:
            if turn % row.every == 0 and made < count:
                yield trial(row, base, seed, turn)
                made += 1
        turn += 1


def trial(row: Property, base: Base, seed: int, number: int) -> Trial:
    """Draw one problem of a row."""
    random = generator(seed, row.name, base.op, number)
    changes = row.changes(base) if callable(row.changes) else row.changes
    case = problem(random, over(_plain(base), changes), Case, row.holds, op=base.op)
    return Trial(
        row.name, case, pick(random, row.data), (*numbers(seed, row.name, base.op), number)
    )


def _plain(base: Base) -> Family:
    """Return small cases: stride 1, dilation 1, one group, no multiplier."""
    few = range(1, 5)
    return {
        "batch": range(1, 4),
        "size": Each(range(2, 10)),
        "groups": few if base.depthwise else 1,
        "group_in": 1 if base.depthwise else few,
        "group_out": 1 if base.depthwise else few,
        "window": Each(few),
        "padding": WORDS,
        "data_format": base.layout,
        "dtype": base.dtype,
    }


def _axes(case: Case) -> tuple[Axis, Axis]:
    return case.problem.rows, case.problem.cols


_STEP = (ONE, TWO)
_ROOM = Each(range(3, 12))
_UNEQUAL = tuple(
    Value((rows, cols)) for rows in range(1, 5) for cols in range(1, 5) if rows != cols
)
_ODD = (1, 3, 7, 9, 17, 33)
_DILATED: Family = {
    "dilations": (Alike((2, 3)), Each(range(1, 4))),
    "size": Each(range(4, 12)),
    "window": Each((2, 3)),
}
_LARGE_WINDOW: Family = {
    "size": Each(range(1, 4)),
    "window": Each(range(2, 7)),
    "padding": ("SAME", pads(range(1, 5))),
}
_ONE_TAP: Family = {"group_in": 1, "group_out": 1, "groups": 1, "window": ONE}
_LARGE_BATCHES: Changes = (
    {"batch": 257, "size": Each((1, 2)), **_ONE_TAP},
    {"batch": 4099, "size": Each((1, 2)), **_ONE_TAP},
    {"batch": 65537, "size": ONE, **_ONE_TAP},
)
_EMPTY: Changes = (
    {"batch": 0},
    {"size": Pair(0, range(2, 10)), "padding": "SAME"},
    {"group_out": 0},
    {"size": Each(range(2, 6)), "window": Pair(range(3, 7), range(1, 5)), "padding": "VALID"},
)
"""The batch, a side of the image, the output channels, or the output: its window is just too large."""


def _odd_channels(base: Base) -> Changes:
    return {"groups": _ODD} if base.depthwise else {"group_in": _ODD, "group_out": _ODD}


def _mixed(base: Base) -> Changes:
    return {
        "groups": range(1, 5) if base.depthwise else (1, 1, 2, 3),
        "group_out": (1, 1, 2, 3),
        "size": Each(range(1, 12)),
        "window": Each(range(1, 6)),
        "strides": Each(range(1, 5)),
        "dilations": Each(range(1, 4)),
        "padding": (*WORDS, pads(range(5))),
        "data_format": base.layouts,
        "dtype": base.dtypes,
    }


def _long_sums(base: Base) -> Changes:
    """Add 300 to 5000 products into each number."""
    plain: Family = {"batch": 1, "padding": "VALID", "dtype": base.dtypes}
    sides = range(17, 33)
    if base.kind is Kind.FILTER_GRADIENT:
        return {**plain, "batch": range(1, 6), "size": Alike(sides), "window": Value((1, 2))}
    if base.depthwise and base.kind is Kind.INPUT_GRADIENT:  # every output reads the middle
        return [
            {
                **plain,
                "padding": Value(((n - 1, n - 1),) * 2),
                "size": Value((n, n)),
                "window": Value((n, n)),
            }
            for n in sides
        ]
    if base.depthwise:
        return [{**plain, "size": Value((n, n + 1)), "window": Value((n, n))} for n in sides]
    part = "group_in" if base.kind is Kind.FORWARD else "group_out"
    return {**plain, part: range(300, 1200), "size": Value((3, 4)), "window": Each((1, 2))}


def _repeated(base: Base) -> Changes:
    channels, size = (8, 16, 24), Each(range(14, 25))
    plain: Family = {"size": size, "window": Value((3, 3)), "batch": 2}
    if base.depthwise:
        return {**plain, "groups": channels}
    return {**plain, "group_in": channels, "group_out": 8}


def _odd_cell(case: Case) -> bool:
    return _full(case) and any(axis.before != axis.after for axis in _axes(case))


def _remainder(case: Case) -> bool:
    """Whether cells are left over after the last window."""
    return _full(case) and any(
        (axis.size + axis.before + axis.after - reach(axis.window, axis.dilation)) % axis.stride
        for axis in _axes(case)
    )


def _dilated(case: Case) -> bool:
    return _full(case) and case.dilations != (1, 1)


def _larger(case: Case) -> bool:
    return _full(case) and any(axis.window > axis.size for axis in _axes(case))


PROPERTIES = (
    Property("basic", "stride 1, dilation 1"),
    Property(
        "stride",
        "strides 2 to 4, rows and columns alike",
        {"strides": Alike(range(2, 5)), "size": _ROOM},
    ),
    Property(
        "unequal-strides", "row and column strides differ", {"strides": _UNEQUAL, "size": _ROOM}
    ),
    Property("dilation", "dilations 1 to 3, stride 1", _DILATED, _dilated),
    Property(
        "stride-dilation",
        "strides and dilations above 1 together",
        {**_DILATED, "strides": Each((2, 3))},
        _dilated,
    ),
    Property(
        "padding-side",
        "SAME with an odd cell: it goes after",
        {"padding": "SAME", "strides": _STEP},
        _odd_cell,
    ),
    Property(
        "explicit-padding",
        "pads that differ",
        {"padding": pads(range(4)), "strides": _STEP},
        _odd_cell,
    ),
    Property("valid", "no padding", {"padding": "VALID"}),
    Property(
        "remainder",
        "(n-k) % s != 0, no padding",
        {"padding": "VALID", "strides": Alike(range(2, 5)), "size": _ROOM},
        _remainder,
    ),
    Property("large-window", "filter larger than the image", _LARGE_WINDOW, _larger),
    Property("groups", "2 to 4 groups", {"groups": range(2, 5), "group_out": range(1, 4)}),
    Property("multiplier", "channel multiplier 2 or 3", {"group_out": (2, 3)}),
    Property("odd-channels", "1, 3, 7, 9, 17, 33 channels", _odd_channels),
    Property("large-batch", "257, 4099, 65537 images", _LARGE_BATCHES, every=8),
    Property("empty", "a size of 0: zeros, or nothing", _EMPTY, lambda case: not _full(case)),
    # One in the image, where no kernel can meet it in the padding.
    Property("nan", "NaN and infinity reach their windows and no other", data=("nan", "inf")),
    *(
        Property(name, f"layout {name}", {"data_format": name, "strides": _STEP})
        for name in LAYOUTS
    ),
    *(Property(name, f"dtype {name}", {"dtype": name, "strides": _STEP}) for name in DTYPES),
    # Ones too, where a narrow sum gets stuck.
    Property(
        "accumulation",
        "long sums are kept in float32 or better",
        _long_sums,
        data=("ones", "normal"),
        every=2,
    ),
    Property("determinism", "the same bits twice", _repeated, data="normal", every=4, twice=True),
    Property("mixed", "everything at once", _mixed),
)
OBSERVED = {
    "operands-kept": "the operands are not written to",
    "fresh-result": "the result is memory of its own",
}
"""Checked in every call, without problems of their own."""
NAMES = (*(row.name for row in PROPERTIES), *OBSERVED)
