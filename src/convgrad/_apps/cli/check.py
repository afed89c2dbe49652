"""Test somebody else's kernel for one operation over many problems, judged by the oracle.

IMPL is `module:function` (or `module`, for a function named OP), `./library.so:symbol` (a C function; the interface
stands in docs/checking-your-kernel.md), or `tensorflow`, `torch`, `jax`. It runs in a child process, which may crash.
Reports each property, the worst error in u, likely causes, and the smallest failing case as a program.
Problems are drawn, or named with --problem: then exactly these are tried, each with all data that makes sense for it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..._problem.text import Line
from ..check.batch_norm.case import OPS as BATCH_NORM
from ..check.batch_norm.properties import PROPERTIES as NORM_PROPERTIES
from ..check.problems import DTYPES, LAYOUTS
from ..check.properties import NAMES, OBSERVED, PROPERTIES
from ..check.report import COLUMNS, Report
from ..check.run import PROBLEMS, check_op
from . import problem_lines
from .operation import NAMES as OPERATIONS
from .operation import add_op
from .screen import Cell, Mood, Screen
from .verb import DONE, NO, Refusal

NAME = "check"
SUMMARY = "test your own kernel, or a framework's, against the oracle"
EXAMPLES = """
convgrad check mykernels:conv2d conv2d
convgrad check ./libmine.so:my_filter_gradient depthwise_conv2d_backprop_filter --dtype float32
convgrad check tensorflow depthwise_conv2d_backprop_input --property dilation --problems 200
convgrad check torch conv2d --seconds 60 --markdown report.md
convgrad check mykernels:batch_norm_grad batch_norm_act_grad --problems 500
convgrad check mykernels:conv2d conv2d --problem 'conv2d 8x28x28x64 3x3x64x64 strides=2' --problem @recorded.txt
"""

_MOODS: dict[str, Mood] = {"pass": "good", "FAIL": "bad", "died": "bad"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add IMPL, OP and how much to try."""
    rows = [(row.name, row.meaning) for row in PROPERTIES]
    properties = "; ".join(f"{name}: {what}" for name, what in (*rows, *OBSERVED.items()))
    others = "; ".join(
        f"{row.name}: {row.meaning}" for row in NORM_PROPERTIES if row.name not in NAMES
    )
    properties = f"{properties}. Of batch norm: {others}"
    known = tuple(dict.fromkeys((*NAMES, *(row.name for row in NORM_PROPERTIES))))
    parser.add_argument("implementation", metavar="IMPL", help="the kernel to test")
    add_op(parser, (*OPERATIONS, *BATCH_NORM))
    parser.add_argument(
        "--problems", type=int, metavar="N", help=f"how many to draw; default {PROBLEMS}"
    )
    parser.add_argument(
        "--problem",
        action="append",
        metavar="LINE",
        help=f"try this one instead (may be repeated): {problem_lines.FORMS}; of layers and files those of OP",
    )
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="draw no more problems after so long"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the same seed draws the same problems; default 0"
    )
    parser.add_argument(
        "--property",
        action="append",
        choices=known,
        metavar="NAME",
        help=f"try this one only (may be repeated). {properties}".replace("%", "%%"),
    )
    parser.add_argument(
        "--dtype",
        action="append",
        choices=tuple(DTYPES),
        help="try this one only (may be repeated)",
    )
    parser.add_argument("--layout", action="append", choices=LAYOUTS, help="try this one only")
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="a call that takes longer hangs, and after three of them nothing more is tried; default 60",
    )
    parser.add_argument(
        "--in-process", action="store_true", help="call it in this process, as a debugger wants it"
    )
    parser.add_argument("--strict", action="store_true", help="refused problems are failures too")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the report there as a page"
    )


def run(given: Namespace, screen: Screen) -> int:
    """Check and report."""
    if given.markdown is not None and not given.markdown.absolute().parent.is_dir():
        raise Refusal(f"--markdown: there is no folder {str(given.markdown.parent)!r}")
    problems, total = _problems(given)
    with screen.progress(f"checking {given.implementation}", total) as advance:
        report = check_op(
            given.implementation,
            given.op,
            problems=problems,
            seconds=given.seconds,
            seed=given.seed,
            properties=given.property,
            dtypes=given.dtype,
            layouts=given.layout,
            isolate=not given.in_process,
            timeout=given.timeout,
            advance=advance,
        )
    if given.markdown is not None:
        given.markdown.write_text(report.markdown(), encoding="utf-8")
    _show(report, screen)
    screen.document(report.as_dict())
    return NO if not report.ok or (given.strict and report.refusals) else DONE


def _problems(given: Namespace) -> tuple[int | list[Line], int]:
    """Return the problems that were named, or how many to draw; and how many there will be, or about."""
    if not given.problem:
        count = PROBLEMS if given.problems is None else given.problems
        return count, count
    for name in ("problems", "dtype", "layout"):
        if getattr(given, name) is not None:
            raise Refusal(f"--{name} is for drawn problems, and --problem names them")
    if given.op in BATCH_NORM:
        raise Refusal(f"--problem: problems of {given.op} have no lines, and are drawn")
    lines = []
    for text in given.problem:
        found = [line for line in problem_lines.read([text]) if line.call.function == given.op]
        if not found:
            raise Refusal(f"--problem {text!r} has no problem of {given.op}")
        lines += found
    problem_lines.check_memory(lines)
    return lines, 5 * len(lines)


def _show(report: Report, screen: Screen) -> None:
    screen.line(report.title, "strong")
    screen.line(report.summary())
    screen.line()
    rows = [
        [
            Cell(cells[0]),
            Cell(cells[1], _MOODS.get(cells[1], "dim")),
            Cell(cells[6], "dim"),
            *map(Cell, cells[2:6]),
        ]
        for cells in report.cells()
    ]
    screen.table((*COLUMNS[:2], COLUMNS[6], *COLUMNS[2:6]), rows, left=3)
    screen.line()
    screen.line(report.errors_line())
    reasons = {row.reason: row.name for row in reversed(report.refusals)}
    for reason, name in reversed(reasons.items()):
        screen.line(f"refused, {name}: {reason}", "dim")
    for number, finding in enumerate(report.findings, 1):
        first, *rest = finding.lines()
        screen.line()
        screen.line(f"{number}. {first}", "bad")
        for text in (*rest, f"got      {finding.got}", f"expected {finding.expected}"):
            screen.line(f"   {text}")
        screen.line()
        for text in finding.program.splitlines():
            screen.line(f"    {text}".rstrip(), "dim")
