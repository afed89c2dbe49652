"""The kernel under test as a Python callable: from a module, a shared library or a framework; and one observed call."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.dtypes import FLOATING, AnyArray
from ..._base.errors import ArgumentError, BackendMissingError
from ..._base.files import open_regular
from ..._base.messages import is_plain
from ..._bridges.peers import FRAMEWORKS
from ..._problem.convolution import Kind
from . import beside
from .problems import LAYOUTS, OPS, Case

Kernel = Callable[..., Any]
"""Takes what the top-level function of the operation takes."""

LIBRARIES = (".so", ".dylib", ".dll")
FILL = 0xCB
"""What result and guard bytes of a C kernel hold before the call; as float32 -26712982, as half -15.6."""
GUARD = 256

BROKEN = (
    IndexError,
    KeyError,
    NameError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    RecursionError,
    SystemError,
)
"""Exceptions that do not count as refusing a problem: the kernel has a bug."""


@dataclass
class Observation:
    """What one call did. One of `result`, `refused` and `died` is set."""

    result: AnyArray | None = None
    results: list[AnyArray] | None = None
    """In the place of `result`, where an operation has several."""
    refused: str | None = None
    """Its own words: the kernel does not take this problem."""
    died: str | None = None
    """How the process ended, or which mistake was raised."""
    late: bool = False
    """Whether it was ended because it did not answer in time."""
    written: bool = False
    """Whether an operand was changed."""
    shared: str | None = None
    """Whose memory the result lies in, if not its own."""
    repeated: bool = True
    """Whether a second call gave the same bits; True if there was none."""


class Overrun(Exception):
    """A C kernel wrote outside its result."""


def load(text: str, op: str) -> Kernel:
    """Return the kernel that IMPL names.

    >>> load("convgrad.reference", "conv2d")([[[[2.0]]]], [[[[3.0]]]], 1, "SAME").item()
    6.0
    """
    where, _, name = text.rpartition(":")
    if where.endswith(LIBRARIES):
        _only_convolutions(op, "a C function")
        return _from_library(where, name, op)
    module, _, name = text.partition(":")
    if module in FRAMEWORKS and not name:
        _only_convolutions(op, module)
        return _from_framework(module, op)
    return _from_module(module, name or op)


def _only_convolutions(op: str, what: str) -> None:
    if op not in OPS:
        raise ArgumentError(
            f"IMPL: {what} can be checked for {', '.join(OPS)}; for {op} give a function of Python, module:function."
        )


def version(text: str) -> str:
    """Return the version of a framework or module that states one, after it was loaded."""
    module = sys.modules.get(text.partition(":")[0].partition(".")[0])
    return str(getattr(module, "__version__", ""))


def _from_framework(name: str, op: str) -> Kernel:
    """Return a framework's form of an operation, called as its documentation says."""
    framework = FRAMEWORKS[name]
    try:
        framework.load()
    except ImportError as error:
        raise BackendMissingError(f"IMPL: {name} is not installed: {error}") from None
    way = {"door": "documented"} if name == "tensorflow" else {}

    def kernel(*arguments: Any, **settings: Any) -> AnyArray:
        case = case_of(op, arguments, settings)
        first, second = (each for each in arguments if _is_array(each))
        return framework.compute(case.wanted, first, second, **way)

    return kernel


def _from_module(name: str, function: str) -> Kernel:
    here = Path.cwd()
    beside.offer(name, here)
    try:
        found: Any = import_module(name)
    except ImportError as error:
        raise BackendMissingError(f"IMPL: cannot import {name!r}: {error}") from None
    except Exception as error:
        raise ArgumentError(
            f"IMPL: importing {name!r} raised {type(error).__name__}: {error}"
        ) from error
    for part in function.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ArgumentError(
            f"IMPL: module {name!r} has no function {function!r}{_hidden(name, here)}."
        )
    kernel: Kernel = found
    return kernel


def _hidden(name: str, folder: Path) -> str:
    """Say so where the module is an installed one and the current folder has one of the same name."""
    own, taken = beside.there(name, folder), sys.modules[name.partition(".")[0]].__file__
    if own is None or taken is None or Path(taken).resolve() == own.resolve():
        return ""
    return f"; it is {taken}, which comes before {own.relative_to(folder)} of the current folder"


FIELDS = (
    "kind",
    "dtype",
    "layout",
    "batch",
    "in_h",
    "in_w",
    "in_c",
    "filter_h",
    "filter_w",
    "groups",
    "out_h",
    "out_w",
    "out_c",
    "stride_h",
    "stride_w",
    "dilation_h",
    "dilation_w",
    "pad_top",
    "pad_bottom",
    "pad_left",
    "pad_right",
)
"""The members of `convgrad_problem`, all int64_t, in order; docs/checking-your-kernel.md explains them."""


class CProblem(ctypes.Structure):
    """`convgrad_problem` of the C interface."""

    _fields_ = [(name, ctypes.c_int64) for name in FIELDS]


def sizes(case: Case) -> CProblem:
    """Describe a case to a C kernel."""
    problem = case.problem
    rows, cols = problem.rows, problem.cols
    return CProblem(
        list(Kind).index(problem.kind),
        FLOATING.index(case.row),
        LAYOUTS.index(case.data_format),
        *(case.batch, rows.size, cols.size, problem.in_c, rows.window, cols.window, case.groups),
        *(rows.out, cols.out, problem.out_c, rows.stride, cols.stride),
        *(rows.dilation, cols.dilation, rows.before, rows.after, cols.before, cols.after),
    )


def _from_library(where: str, name: str, op: str) -> Kernel:
    path = Path(where).resolve()
    try:
        open_regular(path).close()  # the loader would wait for a pipe
        function = getattr(ctypes.CDLL(str(path)), name or op)
    except OSError as error:
        raise ArgumentError(f"IMPL: cannot load {where!r}: {error.strerror or error}") from None
    except AttributeError:
        raise ArgumentError(f"IMPL: {where!r} has no function {name or op!r}.") from None
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.POINTER(CProblem), *[ctypes.c_void_p] * 3]

    def kernel(*arguments: Any, **settings: Any) -> AnyArray:
        case = case_of(op, arguments, settings)
        first, second = (np.ascontiguousarray(each) for each in arguments if _is_array(each))
        count = int(np.prod(case.problem.result_shape)) * case.row.itemsize
        memory = np.full(count + 2 * GUARD, FILL, np.uint8)
        inside = memory[GUARD : GUARD + count]
        status = function(
            sizes(case), first.ctypes.data, second.ctypes.data, memory.ctypes.data + GUARD
        )
        if (memory[:GUARD] != FILL).any() or (memory[GUARD + count :] != FILL).any():
            raise Overrun(f"wrote outside the result ({count} bytes)")
        if status:  # its way to say that it does not take the problem, which counts as refused
            raise NotImplementedError(f"returned {status}")
        result: AnyArray = inside.copy().view(case.row.numpy).reshape(case.problem.result_shape)
        return result

    return kernel


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def case_of(op: str, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Case:
    """Read a call back into sizes: the inverse of `Case.arguments`, for pairs as the checker passes them."""
    call = OPS[op]
    shapes = [each.shape if _is_array(each) else tuple(each) for each in arguments]
    image, taps = (shapes[0], shapes[1])
    layout = settings["data_format"]
    channels = image[3] if layout == "NHWC" else image[1]
    groups = channels if call.depthwise else channels // taps[2]
    dtype = next(each.dtype for each in arguments if _is_array(each))
    return Case(
        op,
        batch=image[0],
        size=(image[1], image[2]) if layout == "NHWC" else (image[2], image[3]),
        groups=groups,
        group_in=1 if call.depthwise else taps[2],
        group_out=taps[3] if call.depthwise else taps[3] // groups,
        window=(taps[0], taps[1]),
        dtype=next(row.name for row in FLOATING if row.numpy == dtype),
        **settings,
    )


def observe(
    kernel: Kernel, case: Case, first: AnyArray, second: AnyArray, twice: bool = False
) -> Observation:
    """Call a kernel on copies of the operands and note what it did to them."""
    mine = first.copy(), second.copy()
    try:
        with np.errstate(all="ignore"):
            given = kernel(*case.arguments(*mine), **case.settings)
            result = np.asarray(given)
            kept = result.copy()
            again = np.asarray(kernel(*case.arguments(*mine), **case.settings)) if twice else None
    except Overrun as error:
        return Observation(died=str(error))
    except BROKEN as error:
        return Observation(died=f"raised {error_line(error)}")
    except (Exception, SystemExit) as error:
        return Observation(refused=error_line(error))
    if not is_plain(kept):  # None, a generator, words: nothing to compare
        return Observation(died=f"returned an array of {kept.dtype}")
    shared = "an operand" if any(np.shares_memory(result, each) for each in mine) else None
    if again is not None and result.size and np.shares_memory(result, again):
        shared = "the result of an earlier call"
    return Observation(
        result=kept,
        written=mine[0].tobytes() != first.tobytes() or mine[1].tobytes() != second.tobytes(),
        shared=shared,
        repeated=again is None or again.tobytes() == kept.tobytes(),
    )


def error_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of its message, at most 200 characters."""
    try:
        text = str(error).strip()
    except Exception:  # the error is a stranger's, and so is its text
        text = ""
    text = re.sub(r"^\{\{.*?\}\} *", "", text)  # TensorFlow's name of a graph node
    text = (text.splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}"[:200] if text else type(error).__name__
