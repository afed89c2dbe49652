"""Finding the record of a call by the words of its key, in compiled code.

A framework's call is described as a key: a row of 64-bit words with everything that decides how it is computed. Its
record is found in the table of `_runtime/records.py`, which Python adds to while this reads, without a lock.
"""

from __future__ import annotations

from typing import NamedTuple

from .._runtime.records import BUCKETS
from .serve import ADDRESS, INT, NOTHING, Function, FunctionBuilder, Int, Module, Signature, Words

NEXT = 0
"""The word of a record that has the address of the next one in its bucket; the key stands behind it."""
_SPREAD = 0x9E3779B97F4A7C15
"""2**64 divided by the golden ratio: neighbouring numbers come to lie far apart."""
_LANES = 4
"""Sums of a hash, side by side: one would make every word wait for the one before."""


class LookUp(NamedTuple):
    """Functions on keys of one length."""

    clear: Function[None]
    """Writes zeros to all words of a key."""
    hash: Function[Int]
    """Returns the hash of a key."""
    find: Function[Words]
    """Of buckets, a key and its hash: returns the record with these words, or null."""


def body_at(key_words: int) -> int:
    """Return which word of a record is the first behind its key."""
    return NEXT + 1 + key_words


def look_up(module: Module, key_words: int) -> LookUp:
    """Write what finds a record by its key.

    Loops over words are written out: a key's length is known here, and a loop would take longer than its body.
    """
    found = LookUp(
        Function("clear", Signature(NOTHING, (ADDRESS,))),
        Function("hash", Signature(INT, (ADDRESS,))),
        Function("find", Signature(ADDRESS, (ADDRESS, ADDRESS, INT))),
    )
    with module.function(found.clear.name, found.clear.signature) as f:
        for word in range(key_words):
            f.words(0)[word] = 0
    with module.function(found.hash.name, found.hash.signature) as f:
        f.returns(_hashed(f, f.words(0), key_words))
    with module.function(found.find.name, found.find.signature) as f:
        buckets, key = f.words(0), f.words(1)
        number = f.integer(2) & (BUCKETS - 1)
        # Acquired: whoever sees a record sees all of its words.
        record = f.variable(buckets.follow(number, acquire=True))
        with f.forever(carry=[record]):
            this = record.value
            with f.when(this.is_null()):
                f.returns(f.null())
            with f.when(_difference(key, this.offset(NEXT + 1), key_words).equals(0)):
                f.returns(this)
            record.value = this.follow(NEXT)
    return found


def _hashed(f: FunctionBuilder, key: Words, key_words: int) -> Int:
    """Return a sum of the words, each times an odd number of its own, whose high half depends on every bit."""
    sums = [f.i64(0)] * _LANES
    for word in range(key_words):
        lane = word % _LANES
        sums[lane] = sums[lane] + key[word] * _factor(word)
    whole = sums[0]
    for each in sums[1:]:
        whole = whole + each
    return whole.high_bits(32)


def _factor(word: int) -> int:
    """Return the odd number of a word, with a sign as LLVM spells it."""
    bits = (_SPREAD * (2 * word + 1) ^ (_SPREAD * (word + 1) >> 29)) & (1 << 64) - 1 | 1
    return bits - (1 << 64) if bits >> 63 else bits


def _difference(one: Words, other: Words, key_words: int) -> Int:
    """Return 0 if all words are the same."""
    bits = [one[word] ^ other[word] for word in range(key_words)]
    while len(bits) > 1:
        bits = [
            bits[at] | bits[at + 1] if at + 1 < len(bits) else bits[at]
            for at in range(0, len(bits), 2)
        ]
    return bits[0]
