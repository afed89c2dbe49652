"""Mistakes people make in convolution kernels, each as the numbers a kernel with that mistake would return.

A row predicts: given a problem and its operands it computes, with the oracle's own sums, what a kernel with the mistake
returns. It may have variants, since the same thought goes wrong in more than one way. `guess.py` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from .. import _oracle
from .._dtypes import AnyArray
from .._geometry import Axis, reach, solve
from .._problem import Kind, Problem
from .problems import Case

Predict = Callable[[Case, AnyArray, AnyArray], Iterator[AnyArray]]
"""Yields predictions in float64, one per variant; none where the mistake cannot show."""
AxisChange = Callable[[Axis], Axis]


@dataclass(frozen=True)
class Mistake:
    """A row: what is said of a kernel, and what such a kernel returns."""

    text: str
    predict: Predict


def _compute(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    return _oracle.compute(problem, first.astype(np.float64), second.astype(np.float64))


def _again(array: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Read the same numbers, in the same order, as another shape."""
    return np.ascontiguousarray(array).reshape(shape)


def _reshaped(problem: Problem, rows: Axis, cols: Axis) -> Problem:
    return replace(problem, rows=rows, cols=cols)


def _axes(change: Callable[[Axis, Axis], tuple[Axis, Axis]]) -> Predict:
    """Predict with changed axes: as they come, and with pads and output sizes worked out anew from them.

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
                yield _compute(_reshaped(problem, rows, cols), first, second)

    return predict


def _each_axis(change: AxisChange) -> Predict:
    return _axes(lambda rows, cols: (change(rows), change(cols)))


def _kept(*changes: Callable[[Axis, Axis], tuple[Axis, Axis]]) -> Predict:
    """Predict with axes exactly as changed, pads and output sizes included."""

    def predict(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
        problem = case.problem
        for change in changes:
            rows, cols = change(problem.rows, problem.cols)
            if (rows, cols) == (problem.rows, problem.cols) or min(rows.out, cols.out) < 0:
                continue
            yield _compute(_reshaped(problem, rows, cols), first, second)

    return predict


def _each(change: AxisChange) -> Callable[[Axis, Axis], tuple[Axis, Axis]]:
    return lambda rows, cols: (change(rows), change(cols))


def _left_over(axis: Axis) -> int:
    """How many cells, pads included, lie behind the last window."""
    room = axis.size + axis.before + axis.after - reach(axis.window, axis.dilation)
    return room % axis.stride if room >= 0 else 0


def _remainder_dropped(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """The last row or column of outputs goes unseen where cells are left over behind it."""
    problem = case.problem
    if not (_left_over(problem.rows) or _left_over(problem.cols)):
        return

    def fewer(axis: Axis) -> Axis:
        return axis._replace(out=axis.out - 1) if _left_over(axis) else axis

    rows, cols = fewer(problem.rows), fewer(problem.cols)
    if problem.kind is Kind.FORWARD:
        shorter = _compute(_reshaped(problem, rows, cols), first, second)
        yield shorter
        result = np.zeros(problem.output_shape)
        result[_corner(case, rows.out, cols.out)] = shorter
        yield result
    else:
        grad = second[_corner(case, rows.out, cols.out)]
        yield _compute(_reshaped(problem, rows, cols), first, grad)


def _corner(case: Case, rows: int, cols: int) -> tuple[slice, ...]:
    part = (slice(rows), slice(cols))
    return (slice(None), *part) if case.data_format == "NHWC" else (slice(None), slice(None), *part)


def _filter_changed(change: Callable[[Case, AnyArray], AnyArray | None]) -> Predict:
    """Predict with the filter read, or the filter's gradient written, another way: `change` keeps the shape."""

    def predict(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
        kind = case.problem.kind
        if kind is Kind.FILTER_GRADIENT:
            changed = change(case, _compute(case.problem, first, second))
            if changed is not None:
                yield changed
            return
        changed = change(case, second if kind is Kind.FORWARD else first)
        if changed is not None and kind is Kind.FORWARD:
            yield _compute(case.problem, first, changed)
        elif changed is not None:
            yield _compute(case.problem, changed, second)

    return predict


def _flipped(case: Case, taps: AnyArray) -> AnyArray | None:
    return None if case.window == (1, 1) else taps[::-1, ::-1]


def _last_taps(case: Case, taps: AnyArray) -> AnyArray | None:
    if case.window == (1, 1):
        return None
    kept = np.array(taps)
    kept[-1 if case.window[0] > 1 else 1 :] = 0
    kept[:, -1 if case.window[1] > 1 else 1 :] = 0
    return kept


def _taps_transposed(case: Case, taps: AnyArray) -> AnyArray | None:
    if min(case.window) == 1:
        return None
    return _again(taps.transpose(1, 0, 2, 3), taps.shape)


def _groups_reversed(case: Case, taps: AnyArray) -> AnyArray | None:
    if case.groups < 2:
        return None
    shape = (*case.window, case.group_in, case.groups, case.group_out)
    return _again(taps.reshape(shape)[:, :, :, ::-1], taps.shape)


def _first_groups_filter(case: Case, taps: AnyArray) -> AnyArray | None:
    if case.groups < 2:
        return None
    shape = (*case.window, case.group_in, case.groups, case.group_out)
    wide = taps.reshape(shape)
    return _again(np.broadcast_to(wide[:, :, :, :1], shape), taps.shape)


def _depth_transposed(case: Case, taps: AnyArray) -> AnyArray | None:
    """Take [kh, kw, in, out] for [kh, kw, out, in]."""
    if min(taps.shape[2:]) < 2:
        return None
    swapped = (*taps.shape[:2], taps.shape[3], taps.shape[2])
    return np.swapaxes(_again(taps, swapped), 2, 3)


def _output_order(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Output channel m * G + g instead of g * M + m, where the output is written or `out_backprop` read."""
    problem = case.problem
    if min(case.groups, case.group_out) < 2:
        return
    if problem.kind is Kind.FORWARD:
        yield _interleaved(case, _compute(problem, first, second), back=False)
    else:
        yield _compute(problem, first, _interleaved(case, second, back=True))


def _interleaved(case: Case, image: AnyArray, back: bool) -> AnyArray:
    axis = 3 if case.data_format == "NHWC" else 1
    wide = np.moveaxis(image, axis, 3)
    parts = (case.group_out, case.groups) if back else (case.groups, case.group_out)
    moved = wide.reshape(*wide.shape[:3], *parts).swapaxes(3, 4).reshape(wide.shape)
    return np.moveaxis(moved, 3, axis)


def _wrong_layout(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """NCHW memory taken for NHWC, in the operands, in the result, or in both."""
    problem = case.problem
    other = "NHWC" if case.data_format == "NCHW" else "NCHW"
    there = replace(problem, data_format=other)

    one, two = first, second
    if problem.kind is not Kind.INPUT_GRADIENT:
        one = _again(first, there.input_shape)
    if problem.kind is not Kind.FORWARD:
        two = _again(second, there.output_shape)
    misread = _compute(there, one, two)
    right = _compute(problem, first, second)
    yield _again(misread, problem.result_shape)
    if problem.kind is not Kind.FILTER_GRADIENT:
        order = (0, 3, 1, 2) if case.data_format == "NCHW" else (0, 2, 3, 1)
        inverse = (0, 2, 3, 1) if case.data_format == "NCHW" else (0, 3, 1, 2)
        yield _again(right.transpose(inverse), problem.result_shape)
        yield right.transpose(inverse)
        yield misread.transpose(order)


def _some_images(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Only the first image counts: the others stay zero, or all of them get its result."""
    if case.batch < 2:
        return
    problem = case.problem
    if problem.kind is Kind.FILTER_GRADIENT:
        one = replace(problem, batch=1)
        yield _compute(one, first[:1], second[:1])
        return
    right = _compute(problem, first, second)
    alone = np.zeros_like(right)
    alone[:1] = right[:1]
    yield alone
    yield np.broadcast_to(right[:1], right.shape)


def _last_image(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    problem = case.problem
    if case.batch < 1:
        return
    if problem.kind is Kind.FILTER_GRADIENT:
        yield _compute(replace(problem, batch=case.batch - 1), first[:-1], second[:-1])
        return
    right = _compute(problem, first, second)
    right[-1:] = 0
    yield right


def _short_batch(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """A batch counted in 8 or 16 bits."""
    problem = case.problem
    for bits in (8, 15, 16):
        seen = case.batch % 2**bits
        if seen == case.batch:
            continue
        if problem.kind is Kind.FILTER_GRADIENT:
            yield _compute(replace(problem, batch=seen), first[:seen], second[:seen])
        else:
            right = _compute(problem, first, second)
            right[seen:] = 0
            yield right


def _whole_vectors(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Channels beyond the last whole vector of 4, 8 or 16 are left out of the result or of the sums."""
    problem = case.problem
    result_axis = 3 if case.data_format == "NHWC" or problem.kind is Kind.FILTER_GRADIENT else 1
    if case.call.depthwise and problem.kind is Kind.FILTER_GRADIENT:
        result_axis = 2
    right = np.moveaxis(_compute(problem, first, second), result_axis, 0)
    image = second if problem.kind is Kind.INPUT_GRADIENT else first
    axis = 3 if case.data_format == "NHWC" else 1
    for width in (4, 8, 16):
        whole = right.shape[0] // width * width
        if whole < right.shape[0]:
            cut = right.copy()
            cut[whole:] = 0
            yield np.moveaxis(cut, 0, result_axis)
        whole = image.shape[axis] // width * width
        if whole < image.shape[axis] and not case.call.depthwise:
            seen = np.moveaxis(image, axis, 0).copy()
            seen[whole:] = 0
            cut = np.moveaxis(seen, 0, axis)
            pair = (first, cut) if problem.kind is Kind.INPUT_GRADIENT else (cut, second)
            yield _compute(problem, *pair)


def _last_group(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Only the first group is computed."""
    problem = case.problem
    if case.groups < 2:
        return
    right = _compute(problem, first, second)
    if problem.kind is Kind.FILTER_GRADIENT:
        shape = (*case.window, case.group_in, case.groups, case.group_out)
        wide = right.reshape(shape)
        wide[:, :, :, 1:] = 0
        yield wide.reshape(right.shape)
        return
    each = case.group_out if problem.kind is Kind.FORWARD else case.group_in
    axis = 3 if case.data_format == "NHWC" else 1
    seen = np.moveaxis(right, axis, 0)
    seen[each:] = 0
    yield np.moveaxis(seen, 0, axis)


def _special_lost(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """NaN and infinity count as 0, or are clamped to the largest number."""
    if np.isfinite(first).all() and np.isfinite(second).all():
        return
    wide = [each.astype(np.float64) for each in (first, second)]
    yield _compute(case.problem, *(np.nan_to_num(each, nan=0, posinf=0, neginf=0) for each in wide))
    quiet = _compute(case.problem, *wide)
    yield np.where(np.isnan(quiet), 0.0, quiet)


def _all_zero(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    yield np.zeros(case.problem.result_shape)


def _negated(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    yield -_compute(case.problem, first, second)


def _swapped(field: str) -> Callable[[Axis, Axis], tuple[Axis, Axis]]:
    """Exchange one setting of rows and columns."""

    def change(rows: Axis, cols: Axis) -> tuple[Axis, Axis]:
        mine, theirs = getattr(rows, field), getattr(cols, field)
        return rows._replace(**{field: theirs}), cols._replace(**{field: mine})

    return change


def _rows_for_both(field: str) -> Callable[[Axis, Axis], tuple[Axis, Axis]]:
    return lambda rows, cols: (rows, cols._replace(**{field: getattr(rows, field)}))


def _cols_for_both(field: str) -> Callable[[Axis, Axis], tuple[Axis, Axis]]:
    return lambda rows, cols: (rows._replace(**{field: getattr(cols, field)}), cols)


def _either(*predictions: Predict) -> Predict:
    def predict(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
        for each in predictions:
            yield from each(case, first, second)

    return predict


def _pads_exchanged(rows: Axis, cols: Axis) -> tuple[Axis, Axis]:
    return (
        rows._replace(before=cols.before, after=cols.after),
        cols._replace(before=rows.before, after=rows.after),
    )


def _everything_exchanged(rows: Axis, cols: Axis) -> tuple[Axis, Axis]:
    names = ("stride", "dilation", "before", "after")
    return (
        rows._replace(**{name: getattr(cols, name) for name in names}),
        cols._replace(**{name: getattr(rows, name) for name in names}),
    )


MISTAKES = (
    Mistake("dilation ignored", _each_axis(lambda axis: axis._replace(dilation=1))),
    Mistake("stride ignored", _each_axis(lambda axis: axis._replace(stride=1))),
    Mistake(
        "stride and dilation look swapped",
        _each_axis(lambda axis: axis._replace(stride=axis.dilation, dilation=axis.stride)),
    ),
    Mistake("last rows ignored when (n-k) % s != 0", _remainder_dropped),
    Mistake(
        "the odd cell of the padding is on the wrong side (pads before and after exchanged)",
        _kept(_each(lambda axis: axis._replace(before=axis.after, after=axis.before))),
    ),
    Mistake(
        "padding taken as the same on both sides",
        _kept(
            _each(lambda axis: axis._replace(before=(axis.before + axis.after) // 2)),
            _each(lambda axis: axis._replace(before=(axis.before + axis.after + 1) // 2)),
            _each(lambda axis: axis._replace(before=axis.window // 2)),
        ),
    ),
    Mistake("padding ignored", _kept(_each(lambda axis: axis._replace(before=0)))),
    Mistake("row and column strides swapped", _axes(_swapped("stride"))),
    Mistake("row and column dilations swapped", _axes(_swapped("dilation"))),
    Mistake("row and column pads swapped", _kept(_pads_exchanged)),
    Mistake("row and column settings swapped", _kept(_everything_exchanged)),
    Mistake(
        "one stride used for rows and columns",
        _either(_axes(_rows_for_both("stride")), _axes(_cols_for_both("stride"))),
    ),
    Mistake(
        "one dilation used for rows and columns",
        _either(_axes(_rows_for_both("dilation")), _axes(_cols_for_both("dilation"))),
    ),
    Mistake("filter flipped (convolution instead of correlation)", _filter_changed(_flipped)),
    Mistake("filter rows and columns swapped", _filter_changed(_taps_transposed)),
    Mistake("filter depths swapped: [kh, kw, out, in]", _filter_changed(_depth_transposed)),
    Mistake("groups in reversed order", _filter_changed(_groups_reversed)),
    Mistake("every group uses the first group's filter", _filter_changed(_first_groups_filter)),
    Mistake("only the first group computed", _last_group),
    Mistake("output channels in the order m*C + c instead of c*M + m", _output_order),
    Mistake("one layout taken for the other (NCHW, NHWC)", _wrong_layout),
    Mistake("only the first image counts", _some_images),
    Mistake("the last image is left out", _last_image),
    Mistake("the batch is counted in 8 or 16 bits", _short_batch),
    Mistake("channels beyond the last whole vector left out", _whole_vectors),
    Mistake("the last row and column of the filter left out", _filter_changed(_last_taps)),
    Mistake("NaN or infinity lost (terms skipped or clamped)", _special_lost),
    Mistake("sign reversed", _negated),
    Mistake("the result is all zeros", _all_zero),
)
