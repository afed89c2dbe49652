"""`explain`: what would be done for a problem, and why, before doing it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ... import _kernels
from ..._api.types import FlexibleInts, FlexiblePadding
from ..._base import config, dtypes
from ..._base.dtypes import DType
from ..._base.errors import ArgumentError, DTypeError, shown
from ..._bridges.dask.traffic import Chunked
from ..._compiler import costs, jit, machines
from ..._compiler.jit import llvm
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._engine import planner, probe
from ..._engine.probe import Roof
from ..._kernels import reference
from ..._kernels.plan import Plan
from ..._problem import arguments, convolution
from ..._problem import text as _problem_text
from ..._problem.convolution import Call, Kind, Problem, Shape
from ..._problem.formula import formula
from ..._problem.sums import VERSION, told
from ..._problem.sums.winograd import numerical_class
from ..._runtime.threads import get_num_threads
from .lazy_shapes import Lazy

_CALLS = {call.function: call for call in (*convolution.OPS, convolution.CONV2D_TRANSPOSE)}
_SEPARABLE = convolution.SEPARABLE_DEPTHWISE.function
_NAMES = (*_CALLS, _SEPARABLE)
_MOST_CELLS = 1 << 18
"""Rows or columns, about 1 s of planning. A call has arrays of that size, which take longer; here are only numbers."""


@dataclass(frozen=True)
class Explanation:
    """The planner's story for one problem, or for two in a row; print it, or take `to_dict()` for machines."""

    operation: str
    """As it was asked for."""
    problem: Problem
    plan: Plan
    target: Target
    refusals: dict[str, str | None]
    """Every algorithm: why it cannot compute this or may not, or None."""
    predicted: dict[str, float]
    """Every algorithm that could: microseconds its best candidate should take on so many threads."""
    offered: dict[str, tuple[tuple[str, float], ...]]
    """The same for all candidates of an algorithm, each with what tells it from the others."""
    threads: int
    bytes_moved: int
    """Operands read once and the result written once."""
    roofline_seconds: float | None
    """The least time this machine could need: arithmetic or memory, whichever is slower. None for another machine."""
    roof: Roof | None
    """The speeds that follow from; None for another machine, which cannot be measured here."""
    then: Explanation | None = None
    """Of `separable_conv2d`: the 1x1 convolution of the result. All else here is about the depthwise convolution."""
    numbers: str = "sums"
    """The class of the result's numbers: plain sums, or Winograd's of the algorithm of this name."""
    chunked: Chunked | None = None
    """Of a call on arrays of Dask: chunks of the result, tasks, bytes between them. All else is about one block."""

    @property
    def algorithm(self) -> str:
        return self.plan.algorithm

    @property
    def scratch_bytes(self) -> int:
        """Workspace of all threads together, and partial sums."""
        per_thread = max((step.scratch_bytes for step in self.plan.steps), default=0)
        return per_thread * self.threads + self.plan.partial_bytes + self.plan.packed_bytes

    def _peak(self, roof: Roof) -> float:
        return roof.gflops * (0.5 if self.problem.dtype.itemsize == 8 else 1.0)

    def _stream(self, roof: Roof) -> float:
        near = self.bytes_moved < self.target.l3_bytes
        return (roof.near_bytes if near else roof.far_bytes) / 1e9

    @property
    def _at_best(self) -> str:
        """The least time, and which roof is the lower one; nothing where no roof was measured."""
        if self.roof is None or self.roofline_seconds is None:
            return ""
        peak, stream = self._peak(self.roof), self._stream(self.roof)
        if self.problem.flops / peak >= self.bytes_moved / stream:
            bound = f"arithmetic ({peak:,.0f} GFLOP/s)"
        else:
            where = "cache" if self.bytes_moved < self.target.l3_bytes else "memory"
            bound = f"{where} traffic ({stream:,.0f} GB/s)"
        return f", at best {self.roofline_seconds * 1e3:.3f} ms here, by {bound}"

    @property
    def _outside(self) -> str | None:
        """Why the bits are not those of the contract of sums, or None."""
        if not self.target.fuses(self.problem.dtype.itemsize) and not self.problem.dtype.is_integer:
            return f"{told.OUTSIDE} in {self.problem.dtype.name} on {self.target.label}"
        if self.algorithm == "reference" and not reference.follows_contract(
            self.problem, self.numbers
        ):
            return "outside the contract: the reference adds in float64"
        return None

    def _order(self) -> list[str]:
        """Write in which order products are added."""
        lines = told.lines(self.problem, self.numbers)
        if not lines:
            return []
        found = [f"  sums, version {VERSION}: {lines[0]}", *(f"    {line}" for line in lines[1:])]
        return found if self._outside is None else [*found, f"    {self._outside}"]

    @property
    def _caches(self) -> config.Caches:
        return config.Caches(self.target.l1_bytes, self.target.l2_bytes, self.target.l3_bytes)

    def _times(self, name: str) -> str:
        """Write what an algorithm's candidates should take, or nothing."""
        found = self.offered.get(name, ())
        if len(found) < 2:
            return f"predicted {_time(found[0][1])}" if found else ""
        return "predicted " + ", ".join(f"{_time(time)} ({label})" for label, time in found)

    @property
    def formula(self) -> str:
        """The sum that is computed, in the letters of the docstrings, with the problem's numbers."""
        if self.operation == convolution.CONV2D_TRANSPOSE.function:
            return formula(self.problem, "y", "x")
        return formula(self.problem)

    @property
    def line(self) -> str:
        """The problem in one line of text, which `explain`, `bench` and `check` take; of two in a row the first."""
        return _problem_text.write(self.problem)

    @property
    def _shapes(self) -> tuple[Shape, Shape, Shape]:
        """Shapes of input, filter and output: of the forward operation, or of the transposed one as it is called."""
        p = self.problem
        if self.operation == convolution.CONV2D_TRANSPOSE.function:
            return p.output_shape, p.filter_shape, p.input_shape
        return p.input_shape, p.filter_shape, p.output_shape

    @property
    def _both(self) -> list[Explanation]:
        return [self] if self.then is None else [self, self.then]

    def sources(self) -> list[KernelSource]:
        """Return the kernels as LLVM IR, each once, in the order they run; none for the reference."""
        kernels = dict.fromkeys(step.kernel for each in self._both for step in each.plan.steps)
        return [_kernels.emit(kernel, self.target) for kernel in kernels]

    def assembly(self) -> list[tuple[str, str]]:
        """Return the name and the machine's assembly of each kernel."""
        return [(one.symbol, llvm.assembly(one.ir, self.target)) for one in self.sources()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON.

        Of `separable_conv2d` that is what both problems have in common, their sums, and under "problems" the same
        document for each of the two.
        """
        if self.then is not None:
            return self._separable_dict(self.then)
        return self._dict(self.operation)

    def _separable_dict(self, then: Explanation) -> dict[str, Any]:
        problem = self.problem
        return {
            "operation": self.operation,
            "dtype": problem.dtype.name,
            "data_format": problem.data_format,
            "input_shape": list(problem.input_shape),
            "filter_shape": list(problem.filter_shape),
            "pointwise_shape": list(then.problem.filter_shape),
            "output_shape": list(then.problem.output_shape),
            "flops": problem.flops + then.problem.flops,
            "bytes": self.bytes_moved + then.bytes_moved,
            "roofline_ms": _milliseconds(self.roofline_seconds, then.roofline_seconds),
            "target": self.target.label,
            "cache_bytes": list(self._caches),
            "scratch_bytes": max(self.scratch_bytes, then.scratch_bytes),
            "problems": [self._dict(_problem_text.operation(problem)), then.to_dict()],
        }

    def _dict(self, operation: str) -> dict[str, Any]:
        problem = self.problem
        input_shape, filter_shape, output_shape = map(list, self._shapes)
        return {
            "operation": operation,
            "problem": self.line,
            "dtype": problem.dtype.name,
            "data_format": problem.data_format,
            "input_shape": input_shape,
            "filter_shape": filter_shape,
            "output_shape": output_shape,
            "strides": [problem.rows.stride, problem.cols.stride],
            "dilations": [problem.rows.dilation, problem.cols.dilation],
            "pads": [
                [problem.rows.before, problem.rows.after],
                [problem.cols.before, problem.cols.after],
            ],
            "groups": problem.groups,
            "formula": self.formula,
            "sums": {**told.document(problem, self.numbers), "outside": self._outside},
            "flops": problem.flops,
            "bytes": self.bytes_moved,
            "roofline_ms": _milliseconds(self.roofline_seconds),
            "roof_gflops": None if self.roof is None else self._peak(self.roof),
            "roof_gb_per_second": None if self.roof is None else self._stream(self.roof),
            "target": self.target.label,
            "cache_bytes": list(self._caches),
            "threads": self.threads,
            "algorithm": self.algorithm,
            "candidates": {
                name: {"reason": reason, "predicted_us": self.predicted.get(name)}
                for name, reason in self.refusals.items()
            },
            "predicted_us": self.predicted[self.algorithm],
            "choices": dict(self.plan.story),
            "steps": [
                {
                    "kernel": type(step.kernel).__name__,
                    "items": step.items,
                    "grain": step.grain,
                    "scratch_bytes": step.scratch_bytes,
                }
                for step in self.plan.steps
            ],
            "partial_bytes": self.plan.partial_bytes,
            "packed_bytes": self.plan.packed_bytes,
            "scratch_bytes": self.scratch_bytes,
            **({} if self.chunked is None else {"dask": self.chunked.to_dict()}),
        }

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        if self.then is None:
            return self._story(self.operation)
        p, then = self.problem, self.then.problem
        return (
            f"{self.operation}, {p.dtype.name}, {p.data_format}: two problems in a row\n"
            f"  input {list(p.input_shape)}, filters {list(p.filter_shape)} and {list(then.filter_shape)},"
            f" output {list(then.output_shape)}\n\n"
            f"1. {self._story(_problem_text.operation(p))}\n\n2. {self.then}"
        )

    def _story(self, operation: str) -> str:
        p = self.problem
        input_shape, filter_shape, output_shape = map(list, self._shapes)
        pads = f"rows {p.rows.before}+{p.rows.after}, columns {p.cols.before}+{p.cols.after}"
        lines = [
            *([] if self.chunked is None else self.chunked.lines()),
            f"{operation}, {p.dtype.name}, {p.data_format}",
            f"  input {input_shape}, filter {filter_shape}, output {output_shape}",
            f"  strides {p.rows.stride},{p.cols.stride}  dilations {p.rows.dilation},{p.cols.dilation}"
            f"  pads {pads}  groups {p.groups}",
            f"  {self.formula}",
            f"  {p.flops / 1e6:,.2f} MFLOP, {self.bytes_moved / 1e6:,.2f} MB{self._at_best}",
            *self._order(),
            f"target {self.target.label}, caches {self._caches},"
            f" {self.threads} thread{'s' if self.threads > 1 else ''}",
        ]
        for name, reason in self.refusals.items():
            if name == self.algorithm:
                lines.append(f"* {name}: {self._times(name)}")
                lines += [f"    {what}: {value}" for what, value in self.plan.story]
                lines += [
                    f"    {type(step.kernel).__name__}: {step.items} items, {step.grain} at a time"
                    for step in self.plan.steps
                ]
            else:
                time = self._times(name)
                both = f"{reason} ({time})" if reason and time else reason or time
                lines.append(f"  {name}: {both}")
        lines.append(f"workspace {self.scratch_bytes / 1e3:,.1f} kB")
        if self.target.name not in costs.FITTED:
            lines.append("predicted times are guesses: nothing was measured for this target")
        if p.is_empty:
            lines.append("nothing to add up: the result is empty, or zeros")
        elif self.algorithm == "reference":
            lines.append("no kernel takes this problem: it runs on the slow reference")
        return "\n".join(lines)


def explain(
    op: str,
    input_shape: Any = None,
    filter_shape: Any = None,
    strides: FlexibleInts = 1,
    padding: FlexiblePadding = "SAME",
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    dtype: Any = "float32",
    *,
    output_shape: Any = None,
    pointwise_shape: Any = None,
    out_backprop: Any = None,
    target: str | None = None,
    vector_bits: int | None = None,
    caches: str | Sequence[int] | None = None,
) -> Explanation:
    """Explain how an operation would be computed: sizes, candidates, choice, tiles, work split, memory, roofline.

    Parameters
    ----------
    op : name of an operation, such as "depthwise_conv2d_backprop_filter", or a whole problem in one line
        Such as "conv2d_backprop_filter 8x56x56x64 3x3x64x64 strides=2", as the command line takes it; all other
        arguments are then left out.
    input_shape, filter_shape : 4 ints each
        Of the forward operation, also for its gradients. Of "conv2d_transpose", those of its own input and filters.
    strides, padding, data_format, dilations
        As for the operation.
    dtype : name or NumPy dtype
    output_shape : 4 ints, or 2 (rows, columns)
        For "conv2d_transpose" only, which needs it.
    pointwise_shape : 4 ints
        For "separable_conv2d" only, which needs it: the shape of the pointwise filter, ``[1, 1, c*m, k]``.
    out_backprop : array of Dask
        For the gradients. Arrays of Dask may stand for `input_shape`, `filter_shape` and `pointwise_shape` too, and
        bring their dtype. The story is then that of the blocks their chunks are computed in. What is given as a
        shape will be an array of NumPy.
    target, vector_bits, caches
        Another machine than this one, on which nothing is run or measured: its CPU row, such as "avx512", "neon" or
        "cortex_m4" (default this machine's), the bits of its vectors (default the row's), and the sizes of its three
        levels of cache, such as "32K,1M,32M" (default the usual ones of a row that is named, else this machine's).

    Returns
    -------
    Explanation
        Print it, or use `to_dict()`.

    Examples
    --------
    >>> import convgrad
    >>> story = convgrad.explain("depthwise_conv2d", [8, 28, 28, 192], [3, 3, 192, 1])
    >>> story.problem.output_shape
    (8, 28, 28, 192)
    >>> print(story)  # doctest: +ELLIPSIS
    depthwise_conv2d, float32, NHWC
      input [8, 28, 28, 192], filter [3, 3, 192, 1], output [8, 28, 28, 192]
      ...
    >>> story.line
    'depthwise_conv2d 8x28x28x192 3x3x192x1 padding=1,1:1,1'
    >>> convgrad.explain(story.line).algorithm == story.algorithm
    True
    >>> there = convgrad.explain(story.line, target="neon", caches="64K,512K,4M")
    >>> there.target.name, there.roof
    ('neon', None)
    """
    machine = machines.described(target, vector_bits, caches)
    if isinstance(op, str) and len(str.split(op)) > 1:
        _alone(
            input_shape=(input_shape, None),
            filter_shape=(filter_shape, None),
            strides=(strides, 1),
            padding=(padding, "SAME"),
            data_format=(data_format, "NHWC"),
            dilations=(dilations, 1),
            dtype=(dtype, "float32"),
            output_shape=(output_shape, None),
            pointwise_shape=(pointwise_shape, None),
            out_backprop=(out_backprop, None),
        )
        problem = _read_line(str.__str__(op))
        return _explained(machine, _problem_text.operation(problem), problem)
    if not isinstance(op, str) or (op := str.__str__(op)) not in _NAMES:
        raise ArgumentError(f"explain: `op` must be one of {', '.join(_NAMES)}, got {shown(op)}.")
    how = arguments.settings(
        "explain", arguments.FRIENDLY, strides, padding, data_format, dilations
    )
    call = _CALLS.get(op, convolution.SEPARABLE_DEPTHWISE)
    lazy = Lazy(call, call.allowed, input_shape, filter_shape, pointwise_shape, out_backprop)
    input_shape, filter_shape, pointwise_shape = lazy.shapes
    image = arguments.sizes("explain", "input_shape", input_shape, (4,))
    taps = arguments.sizes("explain", "filter_shape", filter_shape, (4,))
    row = _row(call, dtype) if lazy.row is None or dtype != "float32" else lazy.row
    lazy.check(row)
    wanted = _own_shape(op, "output_shape", output_shape, convolution.CONV2D_TRANSPOSE.function)
    mixing = _own_shape(op, "pointwise_shape", pointwise_shape, _SEPARABLE)
    if mixing is not None:
        first, second = convolution.build_separable(how, row, image, taps, mixing)
        between = lazy.tell(first, lazy.image, lazy.taps)
        then = _explained(
            machine,
            _problem_text.operation(second),
            *lazy.tell(second, between[2], lazy.mixing)[:2],
        )
        return _explained(machine, op, *between[:2], then)
    if wanted is not None:
        problem = convolution.build(call, how, row, wanted, taps, image)
        return _explained(machine, op, *lazy.tell(problem, lazy.taps, lazy.image)[:2])
    forward = convolution.DEPTHWISE if call.depthwise else convolution.CONV2D
    problem = convolution.build(forward, how, row, image, taps, None)
    if call.kind is not Kind.FORWARD:
        moved = problem.output_shape if lazy.grad is None else lazy.grad.shape
        problem = convolution.build(call, how, row, image, taps, moved)
    operands = {
        Kind.FORWARD: (lazy.image, lazy.taps),
        Kind.INPUT_GRADIENT: (lazy.taps, lazy.grad),
        Kind.FILTER_GRADIENT: (lazy.image, lazy.grad),
    }[call.kind]
    return _explained(machine, op, *lazy.tell(problem, *operands)[:2])


def _read_line(line: str) -> Problem:
    try:
        return _problem_text.read(line)
    except ArgumentError as error:
        raise ArgumentError(f"explain: {error}") from None


def _alone(**given: tuple[Any, Any]) -> None:
    """Refuse arguments beside a line that says everything: pairs of what was given and the default."""
    for argument, (value, default) in given.items():
        if type(value) is not type(default) or value != default:
            raise ArgumentError(
                f"explain: `{argument}` must be left out where `op` is a whole problem, got {shown(value)}."
            )


def _own_shape(op: str, argument: str, shape: Any, only: str) -> Shape | None:
    """Read a shape that one operation needs and no other has."""
    if op == only and shape is None:
        raise ArgumentError(f"explain: `{argument}` must be given for {only}.")
    if op != only and shape is not None:
        raise ArgumentError(f"explain: `{argument}` is for {only} only, got it for {op}.")
    if shape is None:
        return None
    return arguments.sizes(
        "explain", argument, shape, (4, 2) if argument == "output_shape" else (4,)
    )


def _explained(
    machine: Target | None,
    operation: str,
    problem: Problem,
    chunked: Chunked | None = None,
    then: Explanation | None = None,
) -> Explanation:
    longest = max(problem.rows.size, problem.cols.size, problem.rows.out, problem.cols.out)
    if longest > _MOST_CELLS:
        raise ArgumentError(
            f"explain: images must have at most {_MOST_CELLS:,} rows and columns, got {longest:,}; "
            f"planning goes through them one by one."
        )
    target = jit.host_target() if machine is None else machine
    plan = planner.choose(problem, target)
    threads = get_num_threads()
    offered = {
        name: tuple(
            (each.label, costs.microseconds(each.work, target, threads))
            for _, each in planner.candidates(problem, target, name)
        )
        for name in _kernels.ALGORITHMS
    }
    shapes_moved = (problem.input_shape, problem.filter_shape, problem.output_shape)
    itemsize = problem.dtype.itemsize
    moved = sum(prod(shape) for shape in shapes_moved) * itemsize
    roof = probe.roof() if machine is None else None
    return Explanation(
        operation=operation,
        problem=problem,
        plan=plan,
        target=target,
        refusals=planner.refusals(problem, target),
        predicted={name: found[0][1] for name, found in offered.items() if found},
        offered={name: found for name, found in offered.items() if found},
        threads=1 if plan.serial else threads,
        bytes_moved=moved,
        roofline_seconds=None
        if roof is None
        else roof.seconds(problem.flops, moved, target.l3_bytes, itemsize),
        roof=roof,
        then=then,
        numbers=numerical_class(problem, config.get("winograd")),
        chunked=chunked,
    )


def _row(call: Call, dtype: Any) -> DType:
    by_name = {row.name: row for row in call.allowed}
    if isinstance(dtype, str) and dtype in by_name:
        return by_name[dtype]
    try:
        found = dtypes.find(np.dtype(dtype))
    except Exception:  # NumPy raises five kinds of errors for what is not a dtype
        found = None
    if found is None or found.name not in by_name:
        raise DTypeError(
            f"explain: `dtype` must be one of {', '.join(by_name)} for {call.function}, got {shown(dtype)}."
        )
    return found


def _milliseconds(*seconds: float | None) -> float | None:
    """Return the sum of some times, or None where one is not known."""
    known = [each for each in seconds if each is not None]
    return sum(known) * 1e3 if len(known) == len(seconds) else None


def _time(microseconds: float) -> str:
    """Write a predicted time in three digits, for it is no more exact than that.

    >>> _time(3.14159), _time(12345.6)
    ('3.14 us', '12,300 us')
    """
    return f"{float(f'{microseconds:.3g}'):,.{2 if microseconds < 10 else 1 if microseconds < 100 else 0}f} us"
