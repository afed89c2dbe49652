"""Problems that somebody names, instead of drawn ones: which properties they can show, and with which data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..._base.errors import ArgumentError, shown
from ..._problem.text import Line, parse, write
from .problems import DTYPES, LONG, Case, Data, Trial, numbers
from .properties import PROPERTIES

_ROWS = {row.name: row for row in PROPERTIES}


def cases(lines: Sequence[str | Line], op: str) -> list[Case]:
    """Return the problems of one operation that lines of text name, each once, written as there.

    A layer has three operations, of which one is meant; a line of another operation is refused.
    """
    found: dict[object, Case] = {}
    for text in lines:
        named = [text] if isinstance(text, Line) else _read(text)
        meant = [line for line in named if line.call.function == op]
        if not meant:
            said = write(named[0].problem) if named else shown(text)
            raise ArgumentError(f"check_op: `problems` must be of {op}, got {said}.")
        for line in meant:
            found.setdefault(line.problem, _case(line))
    if not found:
        raise ArgumentError("check_op: `problems` must hold at least one line, got none.")
    return list(found.values())


def _read(text: object) -> list[Line]:
    if not isinstance(text, str):
        raise ArgumentError(
            f"check_op: `problems` must be a number or lines of text, got {shown(text)}."
        )
    try:
        return parse(text)
    except ArgumentError as error:
        raise ArgumentError(f"check_op: {error}") from None


def _case(line: Line) -> Case:
    problem, how = line.problem, line.settings
    if problem.dtype.name not in DTYPES:
        raise ArgumentError(
            f"check_op: `problems` must be of {', '.join(DTYPES)}, got {write(problem)}."
        )
    return Case(
        line.call.function,
        batch=problem.batch,
        size=(problem.rows.size, problem.cols.size),
        groups=problem.groups,
        group_in=problem.group_in,
        group_out=problem.group_out,
        window=(problem.rows.window, problem.cols.window),
        strides=how.strides,
        dilations=how.dilations,
        padding=how.padding,
        data_format=how.data_format,
        dtype=problem.dtype.name,
    )


def trials(given: Sequence[Case], chosen: Sequence[str], seed: int) -> list[Trial]:
    """Return the problems with all data that makes sense for them, under the properties they can show."""
    every = [
        Trial(name, case, data, (*numbers(seed, name, case.op), number))
        for number, case in enumerate(given)
        for name, data in _shown(case)
    ]
    found = [each for each in every if each.property in chosen]
    if not found and chosen and not any(name in _ROWS for name in chosen):
        return every  # properties of every call
    if not found:
        names = ", ".join(dict.fromkeys(each.property for each in every))
        raise ArgumentError(
            f"check_op: `properties` must be among those the problems can show, {names}, got {', '.join(chosen)}."
        )
    return found


def _shown(case: Case) -> Iterator[tuple[str, Data]]:
    """Yield properties and data: whole numbers under what is special about the sizes, then the rest."""
    yield _speciality(case), "whole"
    if case.problem.is_empty:
        return
    yield "nan", "nan"
    yield "nan", "inf"
    yield "accumulation", "normal"
    if case.terms > LONG:
        yield "accumulation", "ones"
    yield "determinism", "normal"


def _speciality(case: Case) -> str:
    """Return the property that a problem shows by its sizes and settings; of several the rarest."""
    rows, cols = case.problem.rows, case.problem.cols
    strided, dilated = case.strides != (1, 1), case.dilations != (1, 1)
    marks = (
        ("empty", case.problem.is_empty),
        ("stride-dilation", strided and dilated),
        ("dilation", dilated),
        ("large-window", rows.window > rows.size or cols.window > cols.size),
        ("unequal-strides", case.strides[0] != case.strides[1]),
        ("groups", not case.call.depthwise and case.groups > 1),
        ("multiplier", case.call.depthwise and case.group_out > 1),
        ("explicit-padding", not isinstance(case.padding, str)),
        ("stride", strided),
        ("valid", case.padding == "VALID"),
    )
    return next((name for name, holds in marks if holds), "basic")
