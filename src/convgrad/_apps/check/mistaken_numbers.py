"""Kernels that read or write the wrong numbers: taps, channels, groups, images, or the sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind
from .prediction import Predict, compute
from .problems import Case


def _again(array: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """Read the same numbers, in the same order, as another shape."""
    return np.ascontiguousarray(array).reshape(shape)


def filter_changed(change: Callable[[Case, AnyArray], AnyArray | None]) -> Predict:
    """Predict with the filter read, or the filter's gradient written, another way: `change` keeps the shape."""

    def predict(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
        kind = case.problem.kind
        if kind is Kind.FILTER_GRADIENT:
            changed = change(case, compute(case.problem, first, second))
            if changed is not None:
                yield changed
            return
        changed = change(case, second if kind is Kind.FORWARD else first)
        if changed is not None and kind is Kind.FORWARD:
            yield compute(case.problem, first, changed)
        elif changed is not None:
            yield compute(case.problem, changed, second)

    return predict


def flipped(case: Case, taps: AnyArray) -> AnyArray | None:
    return None if case.window == (1, 1) else taps[::-1, ::-1]


def last_taps(case: Case, taps: AnyArray) -> AnyArray | None:
    if case.window == (1, 1):
        return None
    kept = np.array(taps)
    kept[-1 if case.window[0] > 1 else 1 :] = 0
    kept[:, -1 if case.window[1] > 1 else 1 :] = 0
    return kept


def taps_transposed(case: Case, taps: AnyArray) -> AnyArray | None:
    if min(case.window) == 1:
        return None
    return _again(taps.transpose(1, 0, 2, 3), taps.shape)


def groups_reversed(case: Case, taps: AnyArray) -> AnyArray | None:
    if case.groups < 2:
        return None
    shape = (*case.window, case.group_in, case.groups, case.group_out)
    return _again(taps.reshape(shape)[:, :, :, ::-1], taps.shape)


def first_groups_filter(case: Case, taps: AnyArray) -> AnyArray | None:
    if case.groups < 2:
        return None
    shape = (*case.window, case.group_in, case.groups, case.group_out)
    wide = taps.reshape(shape)
    return _again(np.broadcast_to(wide[:, :, :, :1], shape), taps.shape)


def depth_transposed(case: Case, taps: AnyArray) -> AnyArray | None:
    """Take [kh, kw, in, out] for [kh, kw, out, in]."""
    if min(taps.shape[2:]) < 2:
        return None
    swapped = (*taps.shape[:2], taps.shape[3], taps.shape[2])
    return np.swapaxes(_again(taps, swapped), 2, 3)


def output_order(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Output channel m * G + g instead of g * M + m, where the output is written or `out_backprop` read."""
    problem = case.problem
    if min(case.groups, case.group_out) < 2:
        return
    if problem.kind is Kind.FORWARD:
        yield _interleaved(case, compute(problem, first, second), back=False)
    else:
        yield compute(problem, first, _interleaved(case, second, back=True))


def _interleaved(case: Case, image: AnyArray, back: bool) -> AnyArray:
    axis = 3 if case.data_format == "NHWC" else 1
    wide = np.moveaxis(image, axis, 3)
    parts = (case.group_out, case.groups) if back else (case.groups, case.group_out)
    moved = wide.reshape(*wide.shape[:3], *parts).swapaxes(3, 4).reshape(wide.shape)
    return np.moveaxis(moved, 3, axis)


def wrong_layout(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """NCHW memory taken for NHWC, in the operands, in the result, or in both."""
    problem = case.problem
    other = "NHWC" if case.data_format == "NCHW" else "NCHW"
    there = replace(problem, data_format=other)

    one, two = first, second
    if problem.kind is not Kind.INPUT_GRADIENT:
        one = _again(first, there.input_shape)
    if problem.kind is not Kind.FORWARD:
        two = _again(second, there.output_shape)
    misread = compute(there, one, two)
    right = compute(problem, first, second)
    yield _again(misread, problem.result_shape)
    if problem.kind is not Kind.FILTER_GRADIENT:
        order = (0, 3, 1, 2) if case.data_format == "NCHW" else (0, 2, 3, 1)
        inverse = (0, 2, 3, 1) if case.data_format == "NCHW" else (0, 3, 1, 2)
        yield _again(right.transpose(inverse), problem.result_shape)
        yield right.transpose(inverse)
        yield misread.transpose(order)


def some_images(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Only the first image counts: the others stay zero, or all of them get its result."""
    if case.batch < 2:
        return
    problem = case.problem
    if problem.kind is Kind.FILTER_GRADIENT:
        one = replace(problem, batch=1)
        yield compute(one, first[:1], second[:1])
        return
    right = compute(problem, first, second)
    alone = np.zeros_like(right)
    alone[:1] = right[:1]
    yield alone
    yield np.broadcast_to(right[:1], right.shape)


def last_image(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    problem = case.problem
    if case.batch < 1:
        return
    if problem.kind is Kind.FILTER_GRADIENT:
        yield compute(replace(problem, batch=case.batch - 1), first[:-1], second[:-1])
        return
    right = compute(problem, first, second)
    right[-1:] = 0
    yield right


def short_batch(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """A batch counted in 8 or 16 bits."""
    problem = case.problem
    for bits in (8, 15, 16):
        seen = case.batch % 2**bits
        if seen == case.batch:
            continue
        if problem.kind is Kind.FILTER_GRADIENT:
            yield compute(replace(problem, batch=seen), first[:seen], second[:seen])
        else:
            right = compute(problem, first, second)
            right[seen:] = 0
            yield right


def whole_vectors(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Channels beyond the last whole vector of 4, 8 or 16 are left out of the result or of the sums."""
    problem = case.problem
    result_axis = 3 if case.data_format == "NHWC" or problem.kind is Kind.FILTER_GRADIENT else 1
    if case.call.depthwise and problem.kind is Kind.FILTER_GRADIENT:
        result_axis = 2
    right = np.moveaxis(compute(problem, first, second), result_axis, 0)
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
            yield compute(problem, *pair)


def last_group(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """Only the first group is computed."""
    problem = case.problem
    if case.groups < 2:
        return
    right = compute(problem, first, second)
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


def special_lost(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    """NaN and infinity count as 0, or are clamped to the largest number."""
    if np.isfinite(first).all() and np.isfinite(second).all():
        return
    wide = [each.astype(np.float64) for each in (first, second)]
    yield compute(case.problem, *(np.nan_to_num(each, nan=0, posinf=0, neginf=0) for each in wide))
    quiet = compute(case.problem, *wide)
    yield np.where(np.isnan(quiet), 0.0, quiet)


def all_zero(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    yield np.zeros(case.problem.result_shape)


def negated(case: Case, first: AnyArray, second: AnyArray) -> Iterator[AnyArray]:
    yield -compute(case.problem, first, second)
