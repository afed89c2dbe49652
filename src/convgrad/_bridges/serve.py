"""The compiled server: what the functions that frameworks call are made of, written in `_compiler/codegen`.

A framework calls compiled code of ours. It finds the record of the call, by the words of a key (`look_up`) or because
it was registered for one call only, fills in the addresses of tensors as places, and runs the record's programs on them
(`carry_out`). What stands here is the same for all frameworks and needs no interpreter; how a tensor is described and
where an error goes is theirs. What a record holds is in `records`.

Bridges write their own functions in the same language, of which this hands on what they need: they know nothing else of
the compiler.
"""

from __future__ import annotations

from typing import NamedTuple

from .._compiler.codegen import I32, Bool, Int, IntLike
from .._compiler.codegen.functions import (
    ADDRESS,
    INT,
    INT32,
    NOTHING,
    TRUTH,
    Function,
    FunctionBuilder,
    Module,
    Signature,
    Words,
)
from .._runtime.program import MOST_PLACES
from .._runtime.records import BUCKETS
from .records import NEXT, NOWHERE, RUN

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
    "LookUp",
    "Module",
    "Signature",
    "Words",
    "carry_out",
    "look_up",
]

ENTRY = Signature(INT, (ADDRESS, ADDRESS))
"""The entry: a program and its addresses; returns a status."""
_SPREAD = -7046029254386353131
"""2**64 divided by the golden ratio, as a number with a sign: neighbouring words come to lie far apart."""


class LookUp(NamedTuple):
    """Functions on the words of a key."""

    clear: Function[None]
    """Writes zeros to all words of a key."""
    hash: Function[Int]
    """Returns the hash of a key."""
    find: Function[Words]
    """Of buckets, a key and its hash: returns the record with these words, or null."""


def look_up(module: Module, key_words: int) -> LookUp:
    """Write what finds a record by the words of its key."""
    found = LookUp(
        Function("clear", Signature(NOTHING, (ADDRESS,))),
        Function("hash", Signature(INT, (ADDRESS,))),
        Function("find", Signature(ADDRESS, (ADDRESS, ADDRESS, INT))),
    )
    with module.function(found.clear.name, found.clear.signature) as f:
        key = f.words(0)
        with f.loop(0, key_words) as word:
            key[word] = 0
    with module.function(found.hash.name, found.hash.signature) as f:
        key, hash_ = f.words(0), f.variable(f.i64(0))
        with f.loop(0, key_words, carry=[hash_]) as word:
            spread = (hash_.value ^ key[word]) * _SPREAD
            hash_.value = spread ^ spread.high_bits(32)
        f.returns(hash_.value)
    with module.function(found.find.name, found.find.signature) as f:
        buckets, key, number = f.words(0), f.words(1), f.integer(2) & (BUCKETS - 1)
        # Python adds records while this reads, without a lock: whoever sees a record sees all of its words.
        record = f.variable(buckets.follow(number, acquire=True))
        with f.forever(carry=[record]):
            this = record.value
            with f.when(this.is_null()):
                f.returns(f.null())
            other = f.variable(f.i64(0))
            with f.loop(0, key_words, carry=[other]) as word:
                other.value = other.value | (this.offset(NEXT + 1)[word] ^ key[word])
            with f.when(other.value.equals(0)):
                f.returns(this)
            record.value = this.follow(NEXT)
    return found


def carry_out(module: Module) -> Function[Int]:
    """Write what runs the programs of a record: the entry, their rows, how many, and all places of the call.

    The function returns 0, or the status of the first program that failed; those behind it are not run then.
    """
    found = Function("carry_out", Signature(INT, (ADDRESS, ADDRESS, INT, ADDRESS)))
    with module.function(found.name, found.signature) as f:
        entry, runs, places = f.words(0), f.integer(2), f.words(3)
        addresses = f.stack(MOST_PLACES)
        row = f.variable(f.words(1, RUN))
        with f.loop(0, runs, carry=[row]):
            run = row.value
            count = run["COUNT"]
            with f.loop(0, count) as at:
                place = run.offset(len(RUN))[at]
                there = places[f.max(place, 0)]
                addresses[at] = f.select(place.equals(NOWHERE), f.i64(0), there)
            status = f.through(entry, ENTRY, run.follow("PROGRAM"), addresses)
            with f.when(status.differs(0)):
                f.returns(status)
            row.value = run.offset(count + len(RUN))
        f.returns(0)
    return found
