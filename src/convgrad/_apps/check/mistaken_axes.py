"""Kernels that take sizes, strides, dilations or pads for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind
from ..._problem.geometry import Axis, reach, solve
from .prediction import Predict, compute
from .problems import Case

AxesChange = Callable[[Axis, Axis], tuple[Axis, Axis]]


def axes(change: AxesChange) -> Predict:
    """Predict with changed axes: as they come, and with pads and output sizes worked out again from them.

    A gradient's `out_backprop` keeps its size, so there outputs that do not exist are left out.
    """

    def predict(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
        problem = case.problem
        plain = change(problem.rows, problem.cols)
        solved = tuple(
            solve(
                axis.size,
                axis.window,
                axis.stride,
                axis.dilation,
                case.padding if isinstance(case.padding, str) else (axis.before, axis.after),
            )
            for axis in plain
        )
        for rows, cols in dict.fromkeys((plain, solved)):
            kept = (rows.out, cols.out) == (problem.rows.out, problem.cols.out)
            if not kept and problem.kind is not Kind.FORWARD:
                rows = rows._replace(out=problem.rows.out)
                cols = cols._replace(out=problem.cols.out)
            if min(rows.out, cols.out) >= 0 and (rows, cols) != (problem.rows, problem.cols):
                yield compute(replace(problem, rows=rows, cols=cols), first, second)

    return predict


def kept(*changes: AxesChange) -> Predict:
    """Predict with axes exactly as changed, pads and output sizes included."""

    def predict(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
        problem = case.problem
        for change in changes:
            rows, cols = change(problem.rows, problem.cols)
            if (rows, cols) == (problem.rows, problem.cols) or min(rows.out, cols.out) < 0:
                continue
            yield compute(replace(problem, rows=rows, cols=cols), first, second)

    return predict


def both(change: Callable[[Axis], Axis]) -> AxesChange:
    """Change rows and columns alike."""
    return lambda rows, cols: (change(rows), change(cols))


def remainder_dropped(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """The last row or column of outputs goes unseen where cells are left over after it."""
    problem = case.problem
    if not (_left_over(problem.rows) or _left_over(problem.cols)):
        return

    def fewer(axis: Axis) -> Axis:
        return axis._replace(out=axis.out - 1) if _left_over(axis) else axis

    rows, cols = fewer(problem.rows), fewer(problem.cols)
    if problem.kind is Kind.FORWARD:
        shorter = compute(replace(problem, rows=rows, cols=cols), first, second)
        yield shorter
        result = np.zeros(problem.output_shape)
        result[_corner(case, rows.out, cols.out)] = shorter
        yield result
    else:
        grad = second[_corner(case, rows.out, cols.out)]
        yield compute(replace(problem, rows=rows, cols=cols), first, grad)


def _left_over(axis: Axis) -> int:
    """How many cells, pads included, lie after the last window."""
    room = axis.size + axis.before + axis.after - reach(axis.window, axis.dilation)
    return room % axis.stride if room >= 0 else 0


def _corner(case: Case, rows: int, cols: int) -> tuple[slice, ...]:
    part = (slice(rows), slice(cols))
    return (slice(None), *part) if case.data_format == "NHWC" else (slice(None), slice(None), *part)


def swapped(field: str) -> AxesChange:
    """Exchange one setting of rows and columns."""

    def change(rows: Axis, cols: Axis) -> tuple[Axis, Axis]:
        mine, theirs = getattr(rows, field), getattr(cols, field)
        return rows._replace(**{field: theirs}), cols._replace(**{field: mine})

    return change


def rows_for_both(field: str) -> AxesChange:
    return lambda rows, cols: (rows, cols._replace(**{field: getattr(rows, field)}))


def cols_for_both(field: str) -> AxesChange:
    return lambda rows, cols: (rows._replace(**{field: getattr(cols, field)}), cols)


def pads_exchanged(rows: Axis, cols: Axis) -> tuple[Axis, Axis]:
    return (
        rows._replace(before=cols.before, after=cols.after),
        cols._replace(before=rows.before, after=rows.after),
    )


def everything_exchanged(rows: Axis, cols: Axis) -> tuple[Axis, Axis]:
    names = ("stride", "dilation", "before", "after")
    return (
        rows._replace(**{name: getattr(cols, name) for name in names}),
        cols._replace(**{name: getattr(rows, name) for name in names}),
    )
