"""What is checked: one row per property, with a generator of problems that show it.

Each row keeps everything else as plain as it can, so that a kernel without NCHW, or without half, fails in that row and
nowhere else. Only `mixed` draws everything at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._problem.convolution import Kind
from ..._problem.geometry import Axis, reach
from .problems import DTYPES, LAYOUTS, OPS, Case, Data, Trial, generator, numbers

Random = np.random.Generator


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


Draw = Callable[[Random, Base], tuple[Case, Data] | None]
"""Draws one problem; None if it has to be drawn again."""


@dataclass(frozen=True)
class Property:
    """A row."""

    name: str
    meaning: str
    draw: Draw
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
    while True:
        drawn = row.draw(random, base)
        if drawn is not None:
            case, data = drawn
            return Trial(row.name, case, data, (*numbers(seed, row.name, base.op), number))


def _plain(random: Random, base: Base, **fixed: Any) -> Case | None:
    """Draw a small case: stride 1, dilation 1, one group, no multiplier, unless `fixed` says otherwise."""
    wide = int(random.integers(1, 5))
    draw: dict[str, Any] = {
        "op": base.op,
        "batch": int(random.integers(1, 4)),
        "size": _pair(random, 2, 10),
        "groups": wide if base.depthwise else 1,
        "group_in": 1 if base.depthwise else wide,
        "group_out": 1 if base.depthwise else int(random.integers(1, 5)),
        "window": _pair(random, 1, 5),
        "padding": str(random.choice(["SAME", "VALID"])),
        "data_format": base.layout,
        "dtype": base.dtype,
    }
    case = Case(**{**draw, **fixed})
    return case if case.legal and not case.problem.is_empty else None


def _pair(random: Random, low: int, high: int) -> tuple[int, int]:
    return int(random.integers(low, high)), int(random.integers(low, high))


def _with(choose: Callable[[Random, Base], dict[str, Any]], data: Data = "whole") -> Draw:
    """Make a generator of plain cases with some arguments chosen."""

    def draw(random: Random, base: Base) -> tuple[Case, Data] | None:
        case = _plain(random, base, **choose(random, base))
        return None if case is None else (case, data)

    return draw


def _where(inner: Draw, holds: Callable[[Case], bool]) -> Draw:
    def draw(random: Random, base: Base) -> tuple[Case, Data] | None:
        drawn = inner(random, base)
        return drawn if drawn is not None and holds(drawn[0]) else None

    return draw


def _axes(case: Case) -> tuple[Axis, Axis]:
    return case.problem.rows, case.problem.cols


def _equal_strides(random: Random, base: Base) -> dict[str, Any]:
    stride = int(random.integers(2, 5))
    return {"strides": (stride, stride), "size": _pair(random, 3, 12)}


def _unequal_strides(random: Random, base: Base) -> dict[str, Any]:
    rows, cols = random.choice(4, 2, replace=False)
    return {"strides": (int(rows) + 1, int(cols) + 1), "size": _pair(random, 3, 12)}


def _dilations(random: Random, base: Base) -> dict[str, Any]:
    rate = int(random.integers(2, 4))
    both = (rate, rate) if random.random() < 0.5 else _pair(random, 1, 4)
    return {"dilations": both, "size": _pair(random, 4, 12), "window": _pair(random, 2, 4)}


def _both(random: Random, base: Base) -> dict[str, Any]:
    return {**_dilations(random, base), "strides": _pair(random, 2, 4)}


def _explicit(random: Random, base: Base) -> dict[str, Any]:
    return {
        "padding": (_pair(random, 0, 4), _pair(random, 0, 4)),
        "strides": (1, 1) if random.random() < 0.5 else (2, 2),
    }


def _same(random: Random, base: Base) -> dict[str, Any]:
    return {"padding": "SAME", "strides": (1, 1) if random.random() < 0.5 else (2, 2)}


def _valid_strided(random: Random, base: Base) -> dict[str, Any]:
    stride = int(random.integers(2, 5))
    return {"padding": "VALID", "strides": (stride, stride), "size": _pair(random, 3, 12)}


def _groups(random: Random, base: Base) -> dict[str, Any]:
    return {"groups": int(random.integers(2, 5)), "group_out": int(random.integers(1, 4))}


def _large_window(random: Random, base: Base) -> dict[str, Any]:
    pads = (_pair(random, 1, 5), _pair(random, 1, 5))
    return {
        "size": _pair(random, 1, 4),
        "window": _pair(random, 2, 7),
        "padding": "SAME" if random.random() < 0.5 else pads,
    }


def _odd_channels(random: Random, base: Base) -> dict[str, Any]:
    channels, others = (int(each) for each in random.choice([1, 3, 7, 9, 17, 33], 2))
    if base.depthwise:
        return {"groups": channels}
    return {"group_in": channels, "group_out": others}


def _large_batch(random: Random, base: Base) -> dict[str, Any]:
    batch = int(random.choice([257, 4099, 65537]))
    size = _pair(random, 1, 3) if batch < 65537 else (1, 1)
    one = {"group_in": 1, "group_out": 1, "groups": 1, "window": (1, 1)}
    return {"batch": batch, "size": size, **one}


def _empty(random: Random, base: Base) -> tuple[Case, Data] | None:
    """Take one size to zero: the batch, a side of the image, the output channels, or the output."""
    case = _plain(random, base)
    if case is None:
        return None
    which = int(random.integers(4))
    if which == 0:
        case = replace(case, batch=0)
    elif which == 1:
        case = replace(case, size=(0, case.size[1]), padding="SAME")
    elif which == 2:
        case = replace(case, group_out=0)
    else:
        window = case.size[0] + 1
        case = replace(case, window=(window, case.window[1]), padding="VALID")
    return (case, "whole") if case.legal and case.problem.is_empty else None


def _mixed(random: Random, base: Base) -> tuple[Case, Data] | None:
    case = _plain(
        random,
        base,
        groups=int(random.integers(1, 5)) if base.depthwise else int(random.choice([1, 1, 2, 3])),
        group_out=int(random.choice([1, 1, 2, 3])),
        size=_pair(random, 1, 12),
        window=_pair(random, 1, 6),
        strides=_pair(random, 1, 5),
        dilations=_pair(random, 1, 4),
        padding=_any_padding(random),
        data_format=str(random.choice(base.layouts)),
        dtype=str(random.choice(base.dtypes)),
    )
    return None if case is None else (case, "whole")


def _any_padding(random: Random) -> Any:
    which = int(random.integers(3))
    return (_pair(random, 0, 5), _pair(random, 0, 5)) if which == 2 else ("SAME", "VALID")[which]


def _special(random: Random, base: Base) -> tuple[Case, Data] | None:
    """Put one NaN or infinity into the image, where no kernel can meet it in the padding."""
    case = _plain(random, base)
    if case is None:
        return None
    return case, "nan" if random.random() < 0.5 else "inf"


def _long_sums(random: Random, base: Base) -> tuple[Case, Data] | None:
    """Add 300 to 5000 products into each number: ones, where a narrow sum gets stuck, or normal numbers."""
    many = int(random.integers(300, 1200))
    side = int(random.integers(17, 33))
    chosen: dict[str, Any] = {
        "batch": 1,
        "padding": "VALID",
        "dtype": str(random.choice(base.dtypes)),
    }
    if base.kind is Kind.FILTER_GRADIENT:
        chosen |= {"batch": int(random.integers(1, 6)), "size": (side, side), "window": (1, 2)}
    elif base.depthwise:
        chosen |= {"size": (side, side + 1), "window": (side, side), "group_out": 1}
        if base.kind is Kind.INPUT_GRADIENT:  # every output reads the middle of the image
            chosen |= {"padding": ((side - 1, side - 1),) * 2, "size": (side, side)}
    else:
        part = "group_in" if base.kind is Kind.FORWARD else "group_out"
        chosen |= {part: many, "size": (3, 4), "window": _pair(random, 1, 3)}
    case = _plain(random, base, **chosen)
    data: Data = "ones" if random.random() < 0.5 else "normal"
    return None if case is None else (case, data)


def _repeated(random: Random, base: Base) -> tuple[Case, Data] | None:
    channels = int(random.choice([8, 16, 24]))
    chosen: dict[str, Any] = {"size": _pair(random, 14, 25), "window": (3, 3), "batch": 2}
    chosen |= {"groups": channels} if base.depthwise else {"group_in": channels, "group_out": 8}
    case = _plain(random, base, **chosen)
    return None if case is None else (case, "normal")


def _one_dtype(name: str) -> Draw:
    return _with(lambda random, base: {"dtype": name, "strides": _step(random)})


def _one_layout(name: str) -> Draw:
    return _with(lambda random, base: {"data_format": name, "strides": _step(random)})


def _step(random: Random) -> tuple[int, int]:
    return (1, 1) if random.random() < 0.5 else (2, 2)


def _odd_cell(case: Case) -> bool:
    return any(axis.before != axis.after for axis in _axes(case))


def _remainder(case: Case) -> bool:
    """Whether cells are left over after the last window."""
    return any(
        (axis.size + axis.before + axis.after - reach(axis.window, axis.dilation)) % axis.stride
        for axis in _axes(case)
    )


def _larger(case: Case) -> bool:
    return any(axis.window > axis.size for axis in _axes(case))


PROPERTIES = (
    Property("basic", "stride 1, dilation 1", _with(lambda random, base: {})),
    Property("stride", "strides 2 to 4, rows and columns alike", _with(_equal_strides)),
    Property("unequal-strides", "row and column strides differ", _with(_unequal_strides)),
    Property(
        "dilation",
        "dilations 1 to 3, stride 1",
        _where(_with(_dilations), lambda case: case.dilations != (1, 1)),
    ),
    Property(
        "stride-dilation",
        "strides and dilations above 1 together",
        _where(_with(_both), lambda case: case.dilations != (1, 1)),
    ),
    Property(
        "padding-side", "SAME with an odd cell: it goes after", _where(_with(_same), _odd_cell)
    ),
    Property("explicit-padding", "pads that differ", _where(_with(_explicit), _odd_cell)),
    Property("valid", "no padding", _with(lambda random, base: {"padding": "VALID"})),
    Property("remainder", "(n-k) % s != 0, no padding", _where(_with(_valid_strided), _remainder)),
    Property("large-window", "filter larger than the image", _where(_with(_large_window), _larger)),
    Property("groups", "2 to 4 groups", _with(_groups)),
    Property(
        "multiplier",
        "channel multiplier 2 or 3",
        _with(lambda r, base: {"group_out": int(r.integers(2, 4))}),
    ),
    Property("odd-channels", "1, 3, 7, 9, 17, 33 channels", _with(_odd_channels)),
    Property("large-batch", "257, 4099, 65537 images", _with(_large_batch), every=8),
    Property("empty", "a size of 0: zeros, or nothing", _empty),
    Property("nan", "NaN and infinity reach their windows and no other", _special),
    *(Property(name, f"layout {name}", _one_layout(name)) for name in LAYOUTS),
    *(Property(name, f"dtype {name}", _one_dtype(name)) for name in DTYPES),
    Property("accumulation", "long sums are kept in float32 or better", _long_sums, every=2),
    Property("determinism", "the same bits twice", _repeated, every=4, twice=True),
    Property("mixed", "everything at once", _mixed),
)
OBSERVED = {
    "operands-kept": "the operands are not written to",
    "fresh-result": "the result is memory of its own",
}
"""Checked in every call, without problems of their own."""
NAMES = (*(row.name for row in PROPERTIES), *OBSERVED)
