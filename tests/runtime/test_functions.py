"""Functions that are not kernels: signatures, calls, words by name, loops without an end, atomics."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from convgrad._compiler.codegen import I32
from convgrad._compiler.codegen.functions import (
    ADDRESS,
    INT,
    INT32,
    NOTHING,
    TRUTH,
    Function,
    Module,
    Signature,
)
from convgrad._engine.prepare import load_functions

UNARY = Signature(INT, (INT,))
ON_WORDS = Signature(INT, (ADDRESS,))


@dataclass(frozen=True)
class Source:
    name: str
    symbols: tuple[str, ...]
    text: str


def loaded(module: Module, *symbols: str, **imports: int) -> dict[str, int]:
    source = Source("cg_test_functions", symbols, module.text())
    return load_functions(source, imports)


def called(module: Module, symbol: str, *words: Any, result: Any = ctypes.c_int64) -> Any:
    kinds = [ctypes.c_int64 if isinstance(word, int) else ctypes.c_void_p for word in words]
    return ctypes.CFUNCTYPE(result, *kinds)(loaded(module, symbol)[symbol])(*words)


def test_functions_call_each_other() -> None:
    module = Module()
    larger = Function("larger", Signature(TRUTH, (INT, INT)))
    with module.function("larger", larger.signature) as f:
        f.returns(f.integer(0) > f.integer(1))
    with module.function("most", Signature(INT, (INT, INT)), internal=False) as f:
        a, b = f.integer(0), f.integer(1)
        with f.branch(f.call(larger, a, b)) as both:
            with both.then():
                f.returns(a)
            with both.otherwise():
                f.returns(b)
    assert [called(module, "most", *pair) for pair in ((3, 5), (7, -7))] == [5, 7]


def test_a_function_calls_through_an_address() -> None:
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)
    def theirs(number: int, address: int) -> int:
        seen.append((number, address))
        return number - 10

    module = Module()
    with module.function("ask", Signature(INT, (ADDRESS, INT)), internal=False) as f:
        words = f.words(0, ("CALLEE",))
        taken = f.through(
            words.follow("CALLEE"), Signature(INT32, (INT32, ADDRESS)), f.integer(1), words
        )
        f.through(words.follow("CALLEE"), Signature(INT32, (INT32, ADDRESS)), 4, f.null())
        f.returns(taken)
    block = (ctypes.c_int64 * 1)(ctypes.cast(theirs, ctypes.c_void_p).value)
    assert called(module, "ask", block, 3 + (1 << 40)) == -7
    assert seen == [(3, ctypes.addressof(block)), (4, None)]


def test_words_have_names() -> None:
    module = Module()
    with module.function("swap", Signature(NOTHING, (ADDRESS, ADDRESS)), internal=False) as f:
        row = f.words(0, {"A": 0, "LINK": 2, "HALF": 3})
        kept = f.stack(1)
        kept[0] = row["A"]
        row["A"] = row.offset(1)[0]
        row[1] = kept[0]
        row["LINK"] = f.words(1)
        half = row.offset(3).as_element(I32)
        half.offset(1).store_int(half.load_int() + 1)
        row.follow("LINK", ("X",))["X"] = row.bits()
    words, other = (ctypes.c_int64 * 4)(1, 2, 3, (5 << 32) + 7), (ctypes.c_int64 * 1)()
    called(module, "swap", words, other, result=None)
    assert list(words) == [2, 1, ctypes.addressof(other), (8 << 32) + 7]
    assert other[0] == ctypes.addressof(words)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_loop_runs_until_it_returns(length: int) -> None:
    """The length of a list that ends with null; it starts in a word that other threads may write."""
    module = Module()
    with module.function("length", ON_WORDS, internal=False) as f:
        here = f.variable(f.words(0).follow(0, acquire=True))
        count = f.variable(f.i64(0))
        with f.forever(carry=[here, count]):
            with f.when(here.value.is_null()):
                f.returns(count.value)
            count.value = count.value + 1
            here.value = here.value.follow(0)
    row = [(ctypes.c_int64 * 1)() for _ in range(length + 1)]
    for one, next_ in pairwise(row):
        one[0] = ctypes.addressof(next_)
    assert called(module, "length", row[0]) == length


def test_a_return_in_a_branch_leaves_variables_as_they_were() -> None:
    module = Module()
    with module.function("clamp", UNARY, internal=False) as f:
        value = f.variable(f.integer(0))
        with f.when(value.value < 0):
            value.value = f.i64(0)
            f.returns(value.value)
        with f.loop(0, 3, carry=[value]) as i:
            with f.when(value.value > 100):
                f.returns(i)
            value.value = value.value * 10
        f.returns(value.value)
    assert [called(module, "clamp", number) for number in (-4, 0, 1, 50)] == [0, 0, 1000, 1]


def test_words_are_counted_and_bits_mixed() -> None:
    module = Module()
    with module.function("mix", ON_WORDS, internal=False) as f:
        words = f.words(0)
        before = words.count(0, 1)
        words.count(1, -1)
        f.returns((before | 8) ^ (f.i64(0) - words[2]).high_bits(60))
    words = (ctypes.c_int64 * 3)(2, 2, 1)
    assert called(module, "mix", words) == 10 ^ 15
    assert list(words) == [3, 1, 1]


def test_imports_have_the_address_they_are_loaded_with() -> None:
    module = Module()
    module.imports("cg_test_block")
    with module.function("get", Signature(INT, ()), internal=False) as f:
        f.returns(f.imported("cg_test_block", ("NUMBER",))["NUMBER"])
    block = (ctypes.c_int64 * 1)(77)
    address = loaded(module, "get", cg_test_block=ctypes.addressof(block))["get"]
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == 77


def test_mistakes_are_found_as_they_are_written() -> None:
    module = Module()
    with (
        pytest.raises(AssertionError, match="without a result"),
        module.function("nothing", UNARY),
    ):
        pass
    with module.function("wrong", UNARY) as f:
        with pytest.raises(AssertionError):
            f.words(0)
        f.returns(1)
    with (
        pytest.raises(AssertionError, match="always returns"),
        module.function("once", UNARY) as f,
        f.forever(),
    ):
        f.returns(1)


def test_a_function_leaves_its_place_to_another() -> None:
    """As the last thing that it does; nothing of its own is in the way of an exception then."""
    seen = []

    @ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_void_p)
    def theirs(number: int, address: int) -> None:
        seen.append((number, address))

    module = Module()
    with module.function(
        "leave", Signature(NOTHING, (ADDRESS, INT)), internal=False, raises=True
    ) as f:
        words = f.words(0)
        words.count(1, 1)
        with f.when(f.integer(1).equals(0)):
            f.returns()
        f.leave_to(words.follow(0), Signature(NOTHING, (INT32, ADDRESS)), f.integer(1), words)
    assert "tail call void" in module.text() and "nounwind" not in module.text()
    block = (ctypes.c_int64 * 2)(ctypes.cast(theirs, ctypes.c_void_p).value)
    called(module, "leave", block, 0, result=None)
    called(module, "leave", block, 5, result=None)
    assert seen == [(5, ctypes.addressof(block))] and block[1] == 2


def test_what_is_on_the_stack_cannot_be_left_behind() -> None:
    module = Module()
    with module.function("leave", Signature(NOTHING, (ADDRESS,)), raises=True) as f:
        f.stack(1)
        with pytest.raises(AssertionError, match="left behind"):
            f.leave_to(f.words(0), Signature(NOTHING, ()))
