"""Look-up of records by the words of a key, as compiled code of bridges does it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from convgrad._bridges import look_up
from convgrad._bridges.serve import ADDRESS, INT, NOTHING, Module, Signature
from convgrad._engine.prepare import load_functions
from convgrad._runtime.records import BUCKETS, Table

SYMBOLS = ("test_clear", "test_hash", "test_find")


@dataclass(frozen=True)
class Source:
    text: str
    name: str = "cg_test_look_up"
    symbols: tuple[str, ...] = SYMBOLS


class Functions:
    """Compiled functions on keys of one length."""

    def __init__(self, words: int) -> None:
        self.words = words
        module = Module()
        found = look_up.look_up(module, words)
        with module.function("test_clear", Signature(NOTHING, (ADDRESS,)), internal=False) as f:
            f.call(found.clear, f.words(0))
        with module.function("test_hash", Signature(INT, (ADDRESS,)), internal=False) as f:
            f.returns(f.call(found.hash, f.words(0)))
        with module.function(
            "test_find", Signature(ADDRESS, (ADDRESS, ADDRESS, INT)), internal=False
        ) as f:
            f.returns(f.call(found.find, f.words(0), f.words(1), f.integer(2)))
        loaded = load_functions(Source(module.text()), {})
        pointer, word = ctypes.c_void_p, ctypes.c_int64
        self.clear = ctypes.CFUNCTYPE(None, pointer)(loaded["test_clear"])
        self._hash = ctypes.CFUNCTYPE(word, pointer)(loaded["test_hash"])
        self._find = ctypes.CFUNCTYPE(pointer, pointer, pointer, word)(loaded["test_find"])

    def key(self, *words: int) -> Any:
        return (ctypes.c_int64 * self.words)(*words)

    def hash(self, key: Any) -> int:
        found: int = self._hash(key)
        return found

    def find(self, table: Table, key: Any, hash_: int | None = None) -> int | None:
        found: int | None = self._find(
            table.buckets, key, self.hash(key) if hash_ is None else hash_
        )
        return found


@pytest.mark.parametrize("words", [1, 3, 32])
def test_records_are_found_by_their_words(words: int) -> None:
    functions, table = Functions(words), Table()
    rng = np.random.default_rng(words)
    keys = [functions.key(*row) for row in rng.integers(-(2**63), 2**63, (50, words)).tolist()]
    assert all(functions.find(table, key) is None for key in keys)
    made = [
        table.link(list(key), functions.hash(key), [at], None, 0) for at, key in enumerate(keys)
    ]
    assert [functions.find(table, key) for key in keys] == made
    body = 8 * look_up.body_at(words)
    assert [ctypes.c_int64.from_address(at + body).value for at in made] == list(range(50))
    table.clear()
    assert all(functions.find(table, key) is None for key in keys)


@pytest.mark.parametrize("word", range(5))
def test_every_word_counts(word: int) -> None:
    """Records in one bucket are told apart by each of their words; the one that was linked last comes first."""
    functions, table = Functions(5), Table()
    key, other = functions.key(1, 2, 3, 4, 5), functions.key(1, 2, 3, 4, 5)
    other[word] ^= 1 << 63
    assert functions.hash(key) != functions.hash(other)
    first = table.link(list(key), 7, [], None, 0)
    assert functions.find(table, other, 7) is None
    second = table.link(list(other), 7, [], None, 0)
    assert functions.find(table, key, 7) == first
    assert functions.find(table, other, 7) == second
    assert functions.find(table, key, 8) is None


def test_a_key_is_cleared() -> None:
    functions = Functions(3)
    room = (ctypes.c_int64 * 4)(1, 2, 3, 4)
    functions.clear(room)
    assert list(room) == [0, 0, 0, 4]


def test_sizes_of_images_spread_over_buckets() -> None:
    """Keys that differ as those of a network do, in a few sizes that are often even, fill half of the buckets."""
    functions = Functions(32)
    used = set()
    for batch, rows, channels, at in product(
        (1, 8, 64), (7, 14, 56, 112), (64, 128, 256, 512), range(8)
    ):
        key = functions.key(
            at, 12345, 4, batch, rows, rows, channels, 4, 3, 3, channels, 2 * channels
        )
        used.add(functions.hash(key) % BUCKETS)
    # Of 384 balls thrown at random into 1024 boxes, 320 find one of their own or share it.
    assert len(used) > 290
