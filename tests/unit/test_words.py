"""Run-time words are matched by name: what does not fit is refused, and kernels list none twice."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from convgrad import _kernels
from convgrad._base.errors import InternalError
from convgrad._compiler.codegen import KernelBuilder
from convgrad._compiler.targets import find
from convgrad._kernels.shared.words import arguments, in_order, load_row, load_word, narrow


def test_the_kernel_decides_the_order():
    assert in_order(("a", "b", "c"), c=3, a=1, b=2) == (1, 2, 3)
    assert in_order(()) == ()


@pytest.mark.parametrize(
    ("names", "values", "complaint"),
    [
        (("a", "b"), {"a": 1}, r"missing \['b'\]"),
        (("a",), {"a": 1, "b": 2}, r"unknown \['b'\]"),
        (("a", "a"), {"a": 1}, r"listed twice \['a'\]"),
        (("a", "b"), {"a": 1, "c": 2}, r"missing \['b'\], unknown \['c'\]"),
    ],
)
def test_what_does_not_fit_is_refused(names, values, complaint):
    with pytest.raises(InternalError, match=complaint):
        in_order(names, **values)


def test_a_word_given_twice_is_refused():
    one, two = {"a": 1}, {"a": 2}
    with pytest.raises(TypeError, match="multiple values"):
        in_order(("a",), **one, **two)


def test_numbers_that_fit_no_32_bits_are_refused():
    ends = [-(2**31), 2**31 - 1]
    assert np.frombuffer(narrow(ends), np.int32).tolist() == ends
    for number in (2**31, -(2**31) - 1, 2**40):
        with pytest.raises(InternalError, match=rf"a table of 32-bit numbers has .*{number}"):
            narrow([0, number])


def test_arguments_stand_behind_the_pointers():
    k = KernelBuilder("words", find("avx2"))
    word = arguments(k, 2, ("rows", "cols"))
    assert [*word] == ["rows", "cols"]
    assert word["cols"].text == k.arg_i64(3).text


def test_no_kernel_lists_a_word_twice():
    found = {
        name: module.WORDS
        for name, module in sys.modules.items()
        if name.startswith(_kernels.__name__) and hasattr(module, "WORDS")
    }
    assert len(found) >= 9
    for name, words in found.items():
        assert len(set(words)) == len(words), name


class Row:
    """Stands for a pointer into a table: what is loaded from it says where it was."""

    def __init__(self, at: int = 0) -> None:
        self.at = at

    def offset(self, elements: int) -> Row:
        return Row(self.at + elements)

    def load_int(self) -> int:
        return self.at


def test_rows_of_a_table_are_read_by_name():
    names = ("first", "count", "apart")
    assert load_row(Row(), names) == {"first": 0, "count": 1, "apart": 2}
    assert load_word(Row(), names, "count") == 1
    with pytest.raises(ValueError, match="not in"):
        load_word(Row(), names, "place")
