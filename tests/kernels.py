"""Driving one algorithm by name: its plan, its kernels, on arrays placed where we want them."""

from __future__ import annotations

import ctypes
import functools
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

import convgrad
from cases import KINDS, NUMPY, SMALL, Case, Data, random_case, run
from convgrad._apps.check.draws import ONE, Each, Families, Mix, Value
from convgrad._base import config, dtypes
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels import ALGORITHMS
from convgrad._problem import convolution
from convgrad._problem.arguments import FRIENDLY, settings
from convgrad._problem.convolution import Problem
from convgrad._runtime import pool
from convgrad._runtime.run import run as run_program
from convgrad._runtime.state import State
from guard import guarded

Place = Literal["start", "end", "shifted"]
"""Against a forbidden page at its start or its end, or at an address with no more alignment than one element."""


def problem_of(case: Case, kind: str) -> Problem:
    """Return one of the three problems a case stands for."""
    dense = (convolution.CONV2D, convolution.CONV2D_INPUT, convolution.CONV2D_FILTER)
    depthwise = (convolution.DEPTHWISE, convolution.DEPTHWISE_INPUT, convolution.DEPTHWISE_FILTER)
    call = (depthwise if case.depthwise else dense)[KINDS.index(kind)]
    row = dtypes.find(NUMPY[case.dtype])
    assert row is not None
    how = settings("test", FRIENDLY, case.strides, case.padding, case.data_format, case.dilations)
    grad = None if kind == "forward" else case.output_shape
    return convolution.build(call, how, row, case.input_shape, case.filter_shape, grad)


def compute(
    name: str,
    target: Target,
    case: Case,
    kind: str,
    data: Data,
    place: Place = "end",
    put: Callable[[Any, Place, int], Any] | None = None,
    threads: int = 1,
) -> Any:
    """Run one algorithm on copies of its operands; result, workspace and partial sums start full of rubbish.

    The rubbish is NaN in every float type, and what is taken for a workspace ends at a forbidden page: a kernel that
    reads what it has not written, even to multiply it by zero, or writes beyond its scratch is found out. `put` may
    place the operands (0 and 1) and the result (2) in memory that is used again; else it is not given back.
    """
    put = put or (lambda values, place, _: placed(values, place))
    problem = problem_of(case, kind)
    program = prepare.bind(planner.choose_named(problem, target, name), target, guarded_state())
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    first, second = (put(each, place, i) for i, each in enumerate(operands[kind]))
    result = put(np.full(problem.result_shape, 77, problem.dtype.numpy), place, 2)
    with shared_among(threads):
        run_program(program, *(each.ctypes.data for each in (first, second, result)))
    return result


_idle: list[Any] = []
"""Blocks that end at a forbidden page and are in no call."""
_lent: dict[int, Any] = {}
asked: deque[int] = deque(maxlen=1)
"""How many bytes the last program wanted: more where it is shared."""


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
def _take(nbytes: int) -> int:
    """Lend bytes that are NaN, against a forbidden page."""
    asked.append(nbytes)
    size = -(-nbytes // 64) * 64
    found = next((block for block in _idle if block.size >= size), None)
    if found is None:
        found = guarded(np.empty(max(size, 1 << 16), np.uint8), "end")
    else:
        _idle[:] = [block for block in _idle if block is not found]
    lent = found[found.size - size :]
    lent[...] = 255
    address = int(lent.ctypes.data)
    _lent[address] = found
    return address


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
def _give(address: int, nbytes: int) -> None:
    _idle.append(_lent.pop(address))


@functools.cache
def guarded_state() -> State:
    """Return a runtime block of our own, whose programs get their memory here."""
    state = State()
    state["TAKE"], state["GIVE"] = (ctypes.cast(f, ctypes.c_void_p).value for f in (_take, _give))
    return state


@contextmanager
def shared_among(threads: int) -> Iterator[None]:
    """Let programs of our block use the pool: a block of one's own has none, and whatever is asked for runs alone."""
    guarded_state()["CONTROL"] = pool.ensure(threads).control if threads > 1 else 0
    with convgrad.threads(threads):
        yield


def placed(values: Any, place: Place) -> Any:
    """Return a copy at a place."""
    if place != "shifted":
        return guarded(values, place)
    memory = np.zeros(values.size + 3, values.dtype)
    result = memory[3:].reshape(values.shape)
    result[...] = values
    return result


def expected_exactly(case: Case, kind: str, data: Data) -> Any:
    """Return the exact result on whole numbers, rounded once to the case's dtype; int32 wraps."""
    exact = run(case, kind, data, "reference", exact=True)
    if case.dtype == "int32":
        return ((exact + 2**31) % 2**32 - 2**31).astype(np.int32)
    row = dtypes.find(NUMPY[case.dtype])
    assert row is not None
    return dtypes.round_once(exact.astype(np.float64), row)


MOST_PRODUCTS = 12_000_000
"""Of a generated case: the oracle takes about 30 ms for them."""

_CHANNELS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 20, 24, 31, 32, 33, 40, 64, 96)
"""Of one group: below, at and above every vector and panel of any target, and what is left over."""


def random_case_for(
    rng: np.random.Generator, name: str, target: Target, largest: int = 24, **fixed: Any
) -> tuple[Case, tuple[str, ...]]:
    """Draw a case one algorithm takes, and the operations it takes it for; `whole=False` leaves int32 out."""
    whole, sorts = fixed.pop("whole", True), families(largest)
    for _ in range(5_000):
        case = random_case(rng, sorts, **fixed)
        if 0 in (*case.input_shape, *case.output_shape) or case.products > MOST_PRODUCTS:
            continue
        if case.dtype == "int32" and not whole:
            continue
        kinds = taken(name, case, target)
        if kinds:
            return case, kinds
    raise AssertionError(f"{name} takes nothing that is drawn")


def taken(name: str, case: Case, target: Target) -> tuple[str, ...]:
    """Return the operations an algorithm takes a case for; int32 has no filter gradient."""
    kinds = KINDS[:2] if case.dtype == "int32" else KINDS
    if planner.switched_off(name, config.get("winograd")):
        return ()
    # Asking the one algorithm: to ask all of them for every case that is drawn took a fifth of the tests' time.
    why_not = planner.why_not
    return tuple(k for k in kinds if why_not(name, problem_of(case, k), target) is None)


def families(largest: int, depthwise: float = 0.25) -> Families:
    """Return what kernels are tried on, with images up to a size; `depthwise` is the share of such.

    The last family is the layer most networks are made of: 3x3, stride 1, enough channels and pixels for Winograd.
    """
    (_, thin), (_, dense) = SMALL
    sides = Each(range(1, largest))
    one = {"strides": ONE, "dilations": ONE}
    dense = dense | {
        "batch": (1, 1, 2, 2, 3, 5, 9),
        "size": sides,
        "strides": Mix((0.5, ONE), (0.5, dense["strides"])),
        "dilations": Mix((0.6, ONE), (0.4, dense["dilations"])),
        "window": (*map(Value, ((3, 3), (3, 3), (1, 1), (1, 7), (7, 1))), Each(range(1, 8))),
        "dtype": Mix((0.9, dense["dtype"]), (0.1, "int32")),
    }
    thin = thin | {
        "size": sides,
        "groups": (1, 2, 3, 5, 6, 7, 8, 9, 12, 16, 17, 24, 40, 72),
        "group_out": (1, 1, 1, 1, 2, 3, 4),
    }
    usual = thin | {"window": Each((1, 2, 3, 3, 3, 5, 7)), "strides": Each((1, 2))}
    wide = dense | {"groups": (1, 1, 1, 1, 2, 3, 4, 8), "group_in": _CHANNELS}
    narrow = dense | {
        "groups": (8, 16, 24, 32),
        "group_in": (1, 2, 4, 8),
        "group_out": (1, 2, 4, 8),
    }
    plain = dense | {
        "batch": (1, 1, 2, 3),
        "size": Each(range(largest // 2, largest + 2)),
        "groups": (1, 1, 1, 2),
        "group_in": (16, 32, 33, 36, 40, 48, 64),
        "group_out": (16, 32, 33, 36, 40, 48, 64),
        "window": Value((3, 3)),
    }
    others = ((0.6, wide | {"group_out": _CHANNELS}), (0.1, narrow), (0.3, plain | one))
    same = {"padding": "SAME", "dilations": ONE}
    rows = ((0.35, usual), (0.25, usual | same), (0.25, thin), (0.15, thin | same))
    return (
        *((depthwise * share, row) for share, row in rows),
        *(((1 - depthwise) * share, row) for share, row in others),
    )


def _is_opt_in(name: str) -> bool:
    """Whether an algorithm wants to be asked for, as the switches stand: it has tests of its own."""
    case = Case(False, 2, (40, 40), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    reasons = (planner.refusals(problem_of(case, k), jit.host_target())[name] for k in KINDS)
    return any("opt-in" in (reason or "") for reason in reasons)


NAMES = [name for name in ALGORITHMS if name != "reference" and not _is_opt_in(name)]
"""Algorithms with kernels."""

UNIVERSAL = {
    True: {
        "forward": ("depthwise_packed",),
        "input": ("depthwise_packed", "dense_direct"),
        "filter": ("depthwise_packed", "depthwise_plane", "depthwise_flat"),
    },
    False: {
        "forward": ("dense_direct",),
        "input": ("dense_direct",),
        "filter": ("dense_filter", "depthwise_plane", "depthwise_flat"),
    },
}
"""By family and operation: one of these takes every shape whose scratch is bearable."""

FIXED: dict[str, dict[str, Any]] = {
    "depthwise_direct": {"depthwise": True},
    "depthwise_plane": {"depthwise": True},
    "depthwise_flat": {"depthwise": True, "data_format": "NHWC"},
    "depthwise_packed": {"depthwise": True},
    "dense_grouped": {"depthwise": False},
}
"""What of a case not to draw: an algorithm that takes few of them would be drawn for long."""
