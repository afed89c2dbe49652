"""Known mistakes planted in a copy of the reference: the checker finds each, and guesses its cause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from convgrad import reference
from convgrad._apps.check.implementation import case_of
from convgrad._apps.check.problems import Case
from convgrad._base.dtypes import round_once
from convgrad._problem import oracle
from convgrad.testing import check_op

DENSE = ("conv2d", "conv2d_backprop_input", "conv2d_backprop_filter")
DEPTHWISE = tuple(f"depthwise_{name}" for name in DENSE)


def kernel_of(op: str, problem_of: Any = None, before: Any = None, after: Any = None) -> Any:
    """Build a kernel from the oracle's sums with one of its steps replaced."""

    def kernel(*arguments: Any, **settings: Any) -> Any:
        case = case_of(op, arguments, settings)
        first, second = (each for each in arguments if isinstance(each, np.ndarray))
        dtype, problem = case.row, case.problem
        first, second = first.astype(np.float64), second.astype(np.float64)
        if before:
            first, second = before(case, first, second)
        result = oracle.compute(problem_of(case) if problem_of else problem, first, second)
        if after:
            result = after(case, result)
        return round_once(np.ascontiguousarray(result), dtype)

    return kernel


def axes(change: Any) -> Any:
    """Replace both axes; `change` gets (case, axis)."""

    def problem_of(case: Case) -> Any:
        problem = case.problem
        return replace(problem, rows=change(case, problem.rows), cols=change(case, problem.cols))

    return problem_of


def swapped_strides(case: Case) -> Any:
    problem = case.problem
    rows, cols = problem.rows, problem.cols
    return replace(
        problem,
        rows=rows._replace(stride=cols.stride),
        cols=cols._replace(stride=rows.stride),
    )


def last_output_dropped(case: Case, f: Any, g: Any) -> Any:
    """An output that is not followed by a whole stride is not counted."""
    g = g.copy()
    for axis, at in ((case.problem.rows, 1), (case.problem.cols, 2)):
        room = axis.size + axis.before + axis.after - (axis.window - 1) * axis.dilation - 1
        if room % axis.stride:
            np.moveaxis(g, at + (case.data_format == "NCHW"), 0)[-1:] = 0
    return f, g


def interleaved(case: Case, y: Any) -> Any:
    at = 3 if case.data_format == "NHWC" else 1
    wide = np.moveaxis(y, at, 3)
    parts = wide.reshape(*wide.shape[:3], case.groups, case.group_out)
    return np.moveaxis(parts.swapaxes(3, 4).reshape(wide.shape), 3, at)


def reversed_groups(case: Case, f: Any, g: Any) -> Any:
    parts = f.reshape(*case.window, case.group_in, case.groups, case.group_out)
    return parts[:, :, :, ::-1].reshape(f.shape), g


def first_image_only(case: Case, x: Any, g: Any) -> Any:
    g = g.copy()
    g[1:] = 0
    return x, g


def unwritten(case: Case, result: Any) -> Any:
    return np.full_like(result, 7) if case.problem.is_empty else result


def nhwc_result(case: Case, result: Any) -> Any:
    """The result of an NCHW call is left in NHWC order."""
    if case.data_format == "NHWC":
        return result
    return np.ascontiguousarray(result.transpose(0, 2, 3, 1)).reshape(result.shape)


def narrow_sum(*arguments: Any, **settings: Any) -> Any:
    """A depthwise filter gradient that adds image by image, row by row, in the dtype of its operands."""
    x, sizes, g = arguments
    case = case_of("depthwise_conv2d_backprop_filter", arguments, settings)
    plain = case.data_format == "NHWC" and case.padding == "VALID" and case.strides == (1, 1)
    if not plain or case.window != (1, 2) or case.dtype in ("float32", "float64"):
        right = reference.depthwise_conv2d_backprop_filter(*arguments, **settings)
        return round_once(right, case.row)
    total = np.zeros(sizes, x.dtype)
    wide = (*g.shape[:3], case.groups, case.group_out)
    for s in (0, 1):
        cells = x[:, :, s : s + g.shape[2], :, None]
        products = (cells * g.reshape(wide)).reshape(-1, *wide[3:])
        for each in products:
            total[0, s] += each
    return total


PLANTED = [
    ("conv2d_backprop_filter", "stride and dilation look swapped",
     {"problem_of": axes(lambda c, a: a._replace(stride=a.dilation, dilation=a.stride))}),
    ("conv2d_backprop_filter", "last rows ignored when (n-k) % s != 0", {"before": last_output_dropped}),
    ("depthwise_conv2d_backprop_input", "last rows ignored when (n-k) % s != 0",
     {"before": last_output_dropped}),
    ("conv2d", "the odd cell of the padding is on the wrong side (pads before and after exchanged)",
     {"problem_of": axes(lambda c, a: a._replace(before=a.after, after=a.before)
                          if c.padding == "SAME" else a)}),
    ("depthwise_conv2d_backprop_input", "dilation ignored",
     {"problem_of": axes(lambda c, a: a._replace(dilation=1))}),
    ("conv2d_backprop_input", "groups in reversed order", {"before": reversed_groups}),
    ("depthwise_conv2d", "output channels in the order m*C + c instead of c*M + m",
     {"after": interleaved}),
    ("conv2d", "filter flipped (convolution instead of correlation)",
     {"before": lambda c, x, f: (x, f[::-1, ::-1])}),
    ("conv2d_backprop_input", "one layout taken for the other (NCHW, NHWC)", {"after": nhwc_result}),
    ("depthwise_conv2d_backprop_filter", "only the first image counts", {"before": first_image_only}),
    ("conv2d_backprop_filter", "the result of an empty problem is left unwritten", {"after": unwritten}),
    ("depthwise_conv2d", "row and column strides swapped", {"problem_of": swapped_strides}),
    ("conv2d", "padding ignored", {"problem_of": axes(lambda c, a: a._replace(before=0))}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "guess", "wrong"), PLANTED, ids=[f"{op}: {guess}" for op, guess, _ in PLANTED]
)
def test_found_with_the_right_guess(
    op: str, guess: str, wrong: dict[str, Any], checked: Any
) -> None:
    report = check_op(kernel_of(op, **wrong), op, problems=100)
    checked["planted problems"] += report.problems
    assert not report.ok
    best = report.findings[0]
    assert best.guess == guess, str(report)
    assert best.evidence.startswith("matches")


def one_row_more(*arguments: Any, **settings: Any) -> Any:
    """A wrong shape, in float64 whatever the operands are."""
    result = reference.conv2d(*arguments, **settings)
    at = 1 if settings["data_format"] == "NHWC" else 2
    return np.concatenate([result, result.take([0], at)], at) if result.shape[at] else result


def test_a_wrong_shape_is_called_a_wrong_shape() -> None:
    """It was called float64, once for every dtype."""
    report = check_op(one_row_more, "conv2d", problems=150)
    guesses = [each.guess for each in report.findings]
    assert guesses == [
        "the result has the wrong shape: its rows or columns",
        "the result is float64 where the operands are not",
    ]
    assert report.findings[0].what.startswith("shape [1, 2, 1, 1] instead of [1, 1, 1, 1], dtype")
    assert "[[]]" not in report.findings[1].got  # shown by a problem with numbers in it


@pytest.mark.parametrize(("change", "guess"), [
    (lambda y: y[0], "3 dimensions instead of 4"),
    (lambda y: y.transpose(3, 1, 2, 0), "its dimensions are in another order"),
    (lambda y: y[:, :, :, :-1], "its channels"),
    (lambda y: np.concatenate([y, y]), "its batch"),
])  # fmt: skip
def test_every_wrong_shape_has_words(change: Any, guess: str) -> None:
    def kernel(*arguments: Any, **settings: Any) -> Any:
        return change(reference.conv2d(*arguments, **settings).astype(arguments[0].dtype))

    found = check_op(
        kernel, "conv2d", problems=60, layouts=["NHWC"], properties=["basic", "stride"]
    ).findings
    assert f"the result has the wrong shape: {guess}" in [each.guess for each in found]


@pytest.mark.parametrize("op", DENSE)
def test_a_problem_with_nothing_in_it_is_shown_only_where_no_other_fails(op: str) -> None:
    """A kernel that adds 1 to everything was said to leave the results of empty problems unwritten."""
    report = check_op(kernel_of(op, after=lambda case, result: result + 1), op, problems=200)
    assert [each.guess for each in report.findings] == [None]
    best = report.findings[0]
    assert "empty" in best.properties or op == "conv2d"
    assert "reshape([0" not in best.program and "zeros" not in best.program
    assert best.got != "[]" and "[[]]" not in best.got
    died = check_op(raises, op, problems=60)
    assert all("reshape([0" not in each.program for each in died.findings)


def raises(*arguments: Any, **settings: Any) -> Any:
    raise IndexError("always")


def test_narrow_accumulation_is_found_and_named() -> None:
    report = check_op(
        narrow_sum,
        "depthwise_conv2d_backprop_filter",
        problems=80,
        properties=["accumulation", "half"],
    )
    assert report.row("half").status == "pass"
    assert report.row("accumulation").status == "FAIL"
    assert {each.guess for each in report.findings} == {
        "narrow accumulation: sums, or parts of them, are kept in half",
        "narrow accumulation: sums, or parts of them, are kept in bfloat16",
    }


@pytest.mark.parametrize("op", [*DENSE, *DEPTHWISE])
def test_nothing_is_found_where_nothing_is_wrong(op: str) -> None:
    report = check_op(kernel_of(op), op, problems=50)
    assert report.ok and not report.findings and not report.refusals, str(report)


@pytest.mark.parametrize("place", [0, 6])
def test_the_program_shows_the_failure(place: int) -> None:
    """The smallest case really fails, and is small."""
    op, _, wrong = PLANTED[place]
    kernel = kernel_of(op, **wrong)
    best = check_op(kernel, op, problems=100).findings[0]
    source = best.program.replace("kernel = ...  # your function", "")
    names: dict[str, Any] = {"kernel": kernel}
    exec(source[: source.index("print(")], names)
    assert names["got"].tolist() != names["want"].tolist()
    assert str(names["got"].astype(float).tolist()) == best.got
    operands = [names[name] for name in ("x", "f", "g") if name in names]
    assert sum(each.size for each in operands) < 40


def test_a_failed_report_is_raised_whole() -> None:
    kernel = kernel_of("conv2d", before=lambda case, x, f: (-x, f))
    report = check_op(kernel, "conv2d", problems=10, properties=["basic"])
    with pytest.raises(AssertionError, match=r"(?s)basic +FAIL.*sign reversed.*import numpy as np"):
        report.raise_if_failed()
