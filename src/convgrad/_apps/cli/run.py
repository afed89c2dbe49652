"""Compute an operation on arrays in files, however large, and write the result to a file.

Operands are .npy files, or arrays of .npz files (file.npz:name; the name may be left out if there is only one). They
are read a slice of the batch at a time through memory maps, so a file may be larger than memory; a compressed member
of an .npz file is read whole. The result appears under its name complete or not at all, and an existing one is kept
unless --force is given. Without --output, only the summary is printed.

A batch larger than --slice-bytes is computed slice by slice. The slices depend on nothing but the shapes and that
number, so a repeated run gives the same bits. A slice has the bits of a plain call with its images; against one call
with the whole batch bits may differ, within the same accuracy, as the planner may choose another algorithm for it.
Slices of a filter gradient are computed in float32 or better, added in float64 and rounded once.

Through Dask (the extra `dask`), operands and results may also be .zarr stores (store.zarr:name for an array
in a group) and stacks of .npy files: a folder, or a pattern in quotes such as 'frames/*.npy', with an image or a batch
in each file, frame2 before frame10. All is computed in chunks, by threads of this machine or by the workers of
--scheduler, which must see the same files; --chunks and --scheduler take .npy files this way too. Images then need not
fit into memory one by one. Of a result of several chunks a "chunk checksum" is told: the checksum of the chunks'
checksums, in order. It depends on the chunks; "checksum", of all bytes in order, does not.

NumPy saves bfloat16 as 2-byte items without a name: say --dtype bfloat16 to read them, also where the output is read.
In a .zarr store they are unsigned 2-byte integers, with an attribute that says so and is read back.
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

from ..._base import config
from ..._base.dtypes import AnyArray
from ..._base.errors import CompileError
from ..._problem.convolution import Kind
from . import dask_run, operands, operation, sink, slicing
from .operands import Computation
from .screen import Screen
from .slicing import Summary
from .verb import DONE

NAME = "run"
SUMMARY = (
    "compute an operation on .npy, .npz and .zarr files of any size, here or on a Dask cluster"
)
EXAMPLES = """
convgrad run depthwise_conv2d --input x.npy --filter f.npy --strides 2 -o y.npy
convgrad run depthwise_conv2d_backprop_filter --input x.npy --out-backprop g.npy --filter-sizes 3,3,64,1 -o df.npy
convgrad run conv2d_backprop_input --input-sizes 8,56,56,64 --filter w.npz:f --out-backprop w.npz:g -o dx.npz
convgrad run conv2d --random 8,56,56,64 --filter-sizes 3,3,64,128 --padding 0,0:1,1:1,1:0,0
convgrad run conv2d_transpose --input x.npy --filter f.npy --output-shape 8,56,56,32 --strides 2 -o y.npy
convgrad run separable_conv2d --input x.npy --filter d.npy --pointwise-filter p.npy -o y.npy
convgrad run conv2d --input scans.zarr:raw/0 --filter f.npy -o sharp.zarr
convgrad run conv2d --input 'frames/*.npy' --filter f.npy -o 'sharp/{:05d}.npy' --scheduler tcp://host:8786
convgrad run depthwise_conv2d --input huge.npy --filter f.npy --chunks=1,2048,2048,-1 -o y.npy
"""

_SLICE_BYTES = 256 << 20


def add_arguments(parser: ArgumentParser) -> None:
    """Add operands, settings and the output."""
    operation.add_op(parser, operation.ALL)
    operands.add_arguments(parser)
    operation.add_settings(parser.add_argument_group("settings"))
    rest = parser.add_argument_group("output and work")
    rest.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="a .npy file, or .npz with one array `result`; through Dask also a .zarr store, or a folder with "
        "a file for each image: out/ or 'out/{:05d}.npy'",
    )
    rest.add_argument("--force", action="store_true", help="replace an existing output")
    rest.add_argument(
        "--slice-bytes",
        type=operation.nbytes,
        metavar="N",
        help="images, gradients and results held at a time, such as 64M or 1G; at least one image; default 256M",
    )
    operation.add_threads(rest)
    dask_run.add_arguments(parser.add_argument_group("through Dask"))


def run(given: Namespace, screen: Screen) -> int:
    """Check everything, compute, write, summarise."""
    if dask_run.is_wanted(given):
        work, summary, account = dask_run.run(given, screen, partial(_call, given))
        _report(given, work, summary, screen, account)
        return DONE
    if given.slice_bytes is None:
        given.slice_bytes = _SLICE_BYTES
    target = sink.check(Path(given.output), force=given.force) if given.output else None
    with ExitStack() as files:
        work = operands.read(given, files)
        summary = Summary()
        with operation.threads(given):
            _compute(given, work, target, summary, screen)
    _report(given, work, summary, screen)
    return DONE


def _compute(
    given: Namespace, work: Computation, target: Path | None, summary: Summary, screen: Screen
) -> None:
    problem = work.first
    shape, dtype = work.last.result_shape, problem.dtype.numpy
    place: Any = nullcontext()
    if target is not None:
        sink.check_space(target, math.prod(shape) * dtype.itemsize)
    with screen.progress(given.op, problem.batch) as advance:
        summary.preparing = _prepare(work)
        call = partial(_call, given, work)
        parts = slicing.compute_slices(problem, work.operands, call, work.at_once, summary)
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


def _prepare(work: Computation) -> float:
    """Compile or load the kernels, so that the time of the work is that of the work; returns the seconds."""
    if not config.get("kernels"):
        return 0.0
    from ..._engine import prepare
    from ..._runtime import threads

    start = time.perf_counter()
    with suppress(CompileError):  # the engine will say so and use the reference
        for problem in work.problems:
            for each in slicing.problems(problem, work.at_once):
                if not each.is_empty:
                    prepare.program(each)
        threads.ready()
    return time.perf_counter() - start


def _call(given: Namespace, work: Computation, image: Any, grad: Any) -> AnyArray:
    """Call the operation as Python does: `image` is the input or its sizes, or what stands for it in a slice."""
    filters = work.operands.filters
    arguments: tuple[Any, ...] = (image, *filters)
    if given.op == operation.TRANSPOSE:
        arguments = (grad, *filters, image)
    elif work.first.kind is Kind.FILTER_GRADIENT:
        arguments = (image, work.first.filter_shape, grad)
    elif work.first.kind is Kind.INPUT_GRADIENT:
        arguments = (image, *filters, grad)
    result: AnyArray = getattr(convgrad, given.op)(*arguments, **operation.settings(given))
    return result


def _report(
    given: Namespace,
    work: Computation,
    summary: Summary,
    screen: Screen,
    account: dask_run.Account | None = None,
) -> None:
    problem, result_shape = work.first, work.last.result_shape
    gflops = work.flops / summary.seconds / 1e9 if summary.seconds else 0.0
    input_shape, output_shape = problem.input_shape, work.last.output_shape
    if given.op == operation.TRANSPOSE:
        input_shape, output_shape = output_shape, input_shape
    # Of a run through Dask only the time of everything is known: workers compile, read, compute and write at once.
    time_of = "" if account is None else " with all reading and writing"
    if account is None:
        checksum, rows = ("checksum", summary.checksum), _slice_rows(work, summary)
        how: dict[str, Any] = {"slices": _slices(work), "images_per_slice": work.at_once}
    else:
        checksum, *rows = dask_run.rows(account)
        how = dask_run.document(account)
    screen.table(
        ("what", "value"),
        [
            ("operation", given.op),
            ("result", f"{list(result_shape)} {problem.dtype.name}"),
            (
                "min, mean, max",
                f"{_number(summary.least)}, {_number(summary.mean)}, {_number(summary.most)}",
            ),
            checksum,
            ("time", f"{summary.seconds * 1e3:,.1f} ms{time_of}, {gflops:,.1f} GFLOP/s"),
            *rows,
            *([("output", given.output)] if given.output else []),
        ],
        left=2,
    )
    screen.document(
        {
            "operation": given.op,
            "dtype": problem.dtype.name,
            "data_format": problem.data_format,
            "input_shape": input_shape,
            "filter_shape": problem.filter_shape,
            **({"pointwise_shape": work.last.filter_shape} if len(work.problems) > 1 else {}),
            "output_shape": output_shape,
            "result_shape": result_shape,
            "min": summary.least,
            "mean": summary.mean,
            "max": summary.most,
            "checksum": summary.checksum if account is None else account.checksum,
            "seconds": summary.seconds,
            **({"seconds_preparing": summary.preparing} if account is None else {}),
            "flops": work.flops,
            "gflops": gflops,
            **how,
            "output": given.output,
        }
    )


def _slices(work: Computation) -> int:
    return -(-max(work.first.batch, 1) // work.at_once)


def _slice_rows(work: Computation, summary: Summary) -> list[tuple[str, str]]:
    """Return what the table says of a run slice by slice."""
    return [
        ("preparing", f"{summary.preparing * 1e3:,.1f} ms"),
        ("slices", f"{_slices(work)} of at most {work.at_once} images"),
    ]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{np.float64(value):.6g}"
