"""Compute an operation on arrays in files, however large, and write the result to a file.

Operands are .npy files, or arrays of .npz files (file.npz:name; the name may be left out if there is only one). They
are read a slice of the batch at a time through memory maps, so a file may be larger than memory; a compressed member
of an .npz file is read whole. The result appears under its name complete or not at all, and an existing file is kept
unless --force is given. Without --output, only the summary is printed.

A batch larger than --slice-bytes is computed slice by slice. The slices depend on nothing but the shapes and that
number, so a repeated run gives the same bits; against one call with the whole batch bits may differ, within the same
accuracy. Slices of a filter gradient are computed in float32 or better, added in float64 and rounded once.

NumPy saves bfloat16 as 2-byte items without a name: say --dtype bfloat16 to read them, also where the output is read.
"""

from __future__ import annotations

import math
import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import convgrad

from .. import _arguments, _config, _dtypes, _problem
from .._dtypes import AnyArray, DType
from .._errors import CompileError
from .._problem import Call, Kind, Problem
from . import operation, sink, slicing, sources
from .screen import Screen
from .slicing import Operands, Summary
from .sources import Source
from .verb import DONE, Refusal

NAME = "run"
SUMMARY = "compute an operation on .npy and .npz files of any size"
EXAMPLES = """
convgrad run depthwise_conv2d --input x.npy --filter f.npy --strides 2 -o y.npy
convgrad run depthwise_conv2d_backprop_filter --input x.npy --out-backprop g.npy --filter-sizes 3,3,64,1 -o df.npy
convgrad run conv2d_backprop_input --input-sizes 8,56,56,64 --filter w.npz:f --out-backprop w.npz:g -o dx.npz
convgrad run conv2d --random 8,56,56,64 --filter-sizes 3,3,64,128 --padding 0,0:1,1:1,1:0,0
"""

_CALLS = {call.function: call for call in _problem.OPS}
_ROWS = {row.name: row for row in _dtypes.DTYPES}


def add_arguments(parser: ArgumentParser) -> None:
    """Add operands, settings and the output."""
    operation.add_op(parser)
    operands = parser.add_argument_group("operands")
    for option, what in (
        ("--input", "the images"),
        ("--filter", "[kh, kw, c, m] for depthwise operations, [kh, kw, c / groups, k] for others"),
        ("--out-backprop", "the gradient of the result"),
    ):
        operands.add_argument(option, metavar="FILE", help=what)
    operands.add_argument(
        "--input-sizes", type=operation.shape, metavar="SIZES", help="for the input gradient"
    )
    operands.add_argument(
        "--filter-sizes",
        type=operation.shape,
        metavar="SIZES",
        help="for the filter gradient, and for a random filter",
    )
    operands.add_argument(
        "--random",
        type=operation.shape,
        metavar="N,H,W,C",
        help="make up the operands that are not given, for an input of this shape (in --data-format order)",
    )
    operands.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the random numbers; default 0"
    )
    operands.add_argument(
        "--dtype",
        choices=operation.DTYPES,
        help="of random operands (default float32), and what files must hold",
    )
    operation.add_settings(parser.add_argument_group("settings"))
    rest = parser.add_argument_group("output and work")
    rest.add_argument(
        "-o", "--output", metavar="FILE", help="a .npy file, or .npz with one array `result`"
    )
    rest.add_argument("--force", action="store_true", help="replace an existing output")
    rest.add_argument(
        "--slice-bytes",
        type=operation.nbytes,
        default=256 << 20,
        metavar="N",
        help="images, gradients and results held at a time, such as 64M or 1G; at least one image; default 256M",
    )
    operation.add_threads(rest)


def run(given: Namespace, screen: Screen) -> int:
    """Check everything, compute, write, summarise."""
    target = sink.check(Path(given.output), force=given.force) if given.output else None
    with ExitStack() as files:
        problem, operands = _read(given, files)
        at_once = slicing.images_at_once(problem, given.slice_bytes)
        summary = Summary()
        with operation.threads(given):
            _compute(given, problem, operands, at_once, target, summary, screen)
    _report(given, problem, at_once, summary, screen)
    return DONE


def _read(given: Namespace, files: ExitStack) -> tuple[Problem, Operands]:
    """Open what was given, make up the rest, and check all shapes and dtypes against each other."""
    call = _CALLS[given.op]
    _check_options(given, call)
    said = _ROWS[given.dtype] if given.dtype else None
    found = {
        name: sources.read(text, said, files)
        for name in ("input", "filter", "out_backprop")
        if (text := getattr(given, name)) is not None
    }
    row = _one_dtype(found, said)
    how = _arguments.settings(given.op, _arguments.FRIENDLY, **operation.settings(given))
    x, f, g = (found.get(name) for name in ("input", "filter", "out_backprop"))
    if x is not None and given.random and x.shape != given.random:
        raise Refusal(f"--input has the shape {list(x.shape)}, --random says {list(given.random)}")
    if given.input_sizes and given.random and given.input_sizes != given.random:
        raise Refusal("--input-sizes and --random say the same thing; give one of them")
    input_shape = x.shape if x is not None else given.input_sizes or given.random
    filter_shape = f.shape if f is not None else given.filter_sizes
    if f is not None and given.filter_sizes not in (None, f.shape):
        raise Refusal(
            f"--filter has the shape {list(f.shape)}, not --filter-sizes {list(given.filter_sizes)}"
        )
    grad_shape = g.shape if g is not None else None
    if call.kind is not Kind.FORWARD and g is None:
        forward = _problem.DEPTHWISE if call.depthwise else _problem.CONV2D
        grad_shape = _problem.build(forward, how, row, input_shape, filter_shape, None).output_shape
    problem = _problem.build(call, how, row, input_shape, filter_shape, grad_shape)
    random = partial(sources.Random, dtype=row, seed=given.seed)
    if call.kind is not Kind.INPUT_GRADIENT:
        x = x or random(problem.input_shape, operand=0)
    if call.kind is not Kind.FILTER_GRADIENT:
        f = f or random(problem.filter_shape, operand=1)
    if call.kind is not Kind.FORWARD:
        g = g or random(problem.output_shape, operand=2)
    return problem, Operands(x, None if f is None else f.images(0, f.shape[0]), g)


def _check_options(given: Namespace, call: Call) -> None:
    """Refuse options the operation has no use for, and name the missing ones."""
    kinds = {
        Kind.FORWARD: ("input", "filter"),
        Kind.INPUT_GRADIENT: ("input_sizes", "filter", "out_backprop"),
        Kind.FILTER_GRADIENT: ("input", "filter_sizes", "out_backprop"),
    }
    needed = kinds[call.kind]
    for name in ("input", "filter", "out_backprop", "input_sizes", "filter_sizes"):
        useful = name in needed or (name == "filter_sizes" and given.random)
        if getattr(given, name) is not None and not useful:
            raise Refusal(
                f"{_option(name)} is not an operand of {given.op}; it takes {_list(needed)}"
            )
    missing = [name for name in needed if getattr(given, name) is None]
    if given.random:
        missing = [name for name in missing if name in ("filter", "filter_sizes")]
        if given.filter_sizes is not None or not missing:
            return
        raise Refusal(
            f"--random needs --filter-sizes{' or --filter' if 'filter' in missing else ''} too"
        )
    if missing:
        raise Refusal(f"{given.op} needs {_list(missing)}, or --random N,H,W,C")


def _one_dtype(found: dict[str, Source], said: DType | None) -> DType:
    rows = {name: source.dtype for name, source in found.items()}
    if len(set(rows.values())) > 1:
        listed = ", ".join(f"{_option(name)} {row.name}" for name, row in rows.items())
        raise Refusal(f"the operands must have one dtype, got {listed}; nothing is converted")
    return next(iter(rows.values()), said or _dtypes.FLOAT)


def _compute(
    given: Namespace,
    problem: Problem,
    operands: Operands,
    at_once: int,
    target: Path | None,
    summary: Summary,
    screen: Screen,
) -> None:
    shape, dtype = problem.result_shape, problem.dtype.numpy
    place: Any = nullcontext()
    if target is not None:
        sink.check_space(target, math.prod(shape) * dtype.itemsize)
    with screen.progress(given.op, problem.batch) as advance:
        summary.preparing = _prepare(problem, at_once)
        parts = slicing.compute(problem, operands, partial(_call, given), at_once, summary)
        done, part = next(parts)  # before a file is opened: this may refuse
        if target is not None:
            place = sink.written(target, shape, dtype, force=given.force)
        with place as writer:
            so_far = 0
            while True:
                if part is not None:
                    summary.add(part)
                    if writer is not None:
                        writer.write(part)
                so_far += done
                advance(done, f"{so_far} of {problem.batch} images")
                del part  # or two slices would be held while the next is computed
                following = next(parts, None)
                if following is None:
                    break
                done, part = following


def _prepare(problem: Problem, at_once: int) -> float:
    """Compile or load the kernels, so that the time of the work is that of the work; returns the seconds."""
    if problem.is_empty or not _config.get("kernels"):
        return 0.0
    from .._prepare import executable
    from .._runtime import threads

    start = time.perf_counter()
    with suppress(CompileError):  # the engine will say so and use the reference
        for each in slicing.problems(problem, at_once):
            executable(each)
        threads.ready()
    return time.perf_counter() - start


def _call(given: Namespace, first: Any, filter: Any, grad: Any) -> AnyArray:
    """Call the operation as Python does: an operand, or sizes in its place."""
    function = getattr(convgrad, given.op)
    operands = (first, filter) if grad is None else (first, filter, grad)
    result: AnyArray = function(*operands, **operation.settings(given))
    return result


def _report(
    given: Namespace, problem: Problem, at_once: int, summary: Summary, screen: Screen
) -> None:
    slices = -(-max(problem.batch, 1) // at_once)
    gflops = problem.flops / summary.seconds / 1e9 if summary.seconds else 0.0
    screen.table(
        ("what", "value"),
        [
            ("operation", given.op),
            ("result", f"{list(problem.result_shape)} {problem.dtype.name}"),
            (
                "min, mean, max",
                f"{_number(summary.least)}, {_number(summary.mean)}, {_number(summary.most)}",
            ),
            ("checksum", summary.checksum),
            ("time", f"{summary.seconds * 1e3:,.1f} ms, {gflops:,.1f} GFLOP/s"),
            ("preparing", f"{summary.preparing * 1e3:,.1f} ms"),
            ("slices", f"{slices} of at most {at_once} images"),
            *([("output", given.output)] if given.output else []),
        ],
        left=2,
    )
    screen.document(
        {
            "operation": given.op,
            "dtype": problem.dtype.name,
            "data_format": problem.data_format,
            "input_shape": problem.input_shape,
            "filter_shape": problem.filter_shape,
            "output_shape": problem.output_shape,
            "result_shape": problem.result_shape,
            "min": summary.least,
            "mean": summary.mean,
            "max": summary.most,
            "checksum": summary.checksum,
            "seconds": summary.seconds,
            "seconds_preparing": summary.preparing,
            "flops": problem.flops,
            "gflops": gflops,
            "slices": slices,
            "images_per_slice": at_once,
            "output": given.output,
        }
    )


def _number(value: float | None) -> str:
    return "none" if value is None else f"{np.float64(value):.6g}"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _list(names: Any) -> str:
    return ", ".join(map(_option, names))
