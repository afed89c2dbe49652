"""The compiled server: what the functions that frameworks call are made of, written in `_compiler/codegen`.

A framework calls compiled code of ours. It has the record of the call, fills in the addresses of tensors as places, and
runs the record's programs on them (`carry_out`). What stands here knows no framework and needs no interpreter; how a
tensor is described and where an error goes is theirs. What a record holds is in `records`.

Bridges write their own functions in the same language, of which this hands on what they need: they know nothing else of
the compiler.
"""

from __future__ import annotations

from collections.abc import Callable

from .._compiler.codegen import I32, Bool, Int, IntLike
from .._compiler.codegen.functions import (
    ADDRESS,
    INT,
    INT32,
    NOTHING,
    TRUTH,
    Function,
    FunctionBuilder,
    Kind,
    Module,
    Signature,
    Words,
)
from .._runtime.program import MOST_PLACES
from .records import NOWHERE, RUN

__all__ = [
    "ADDRESS",
    "I32",
    "INT",
    "INT32",
    "NOTHING",
    "TRUTH",
    "Bool",
    "Function",
    "FunctionBuilder",
    "Int",
    "IntLike",
    "Kind",
    "Module",
    "Signature",
    "Words",
    "carry_out",
]

ENTRY = Signature(INT, (ADDRESS, ADDRESS))
"""The entry: a program and its addresses; returns a status."""


def carry_out(
    f: FunctionBuilder,
    entry: Words,
    runs: Words,
    count: Int,
    places: Words,
    failed: Callable[[Int], None],
) -> None:
    """Write what runs the programs of a record, in order, on the places of a call.

    `failed` writes what is done, and what is returned, where the entry returned a status that is not 0; the programs
    behind are not run then. It is written where it is used: a call of a function would take as long as a loop of it.
    """
    addresses = f.stack(MOST_PLACES)
    row = f.variable(runs.seen_as(RUN))
    with f.loop(0, count, carry=[row]):
        run = row.value
        wanted = run["COUNT"]
        with f.loop(0, wanted) as at:
            place = run.offset(len(RUN))[at]
            there = places[f.max(place, 0)]
            addresses[at] = f.select(place.equals(NOWHERE), f.i64(0), there)
        status = f.through(entry, ENTRY, run.follow("PROGRAM"), addresses)
        with f.when(status.differs(0)):
            failed(status)
        row.value = run.offset(wanted + len(RUN))
