"""The numbers on pins: every statement on the grammars T1 to T3 is a case; and all grammars with random texts."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from convgrad._apps.pages import setting_texts as settings_of
from convgrad._apps.pages import tensor_texts as tensors_of
from convgrad._apps.pages.setting_texts import DTYPES
from convgrad._apps.pages.tensor_texts import literal_list, literal_text, parse_literal, typed_array
from convgrad._base.errors import ArgumentError


def same(got: np.ndarray, wanted: object, dtype: object) -> None:
    wanted = np.array(wanted, dtype)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


# T1, typed arrays


@pytest.mark.parametrize(
    ("text", "type", "shape", "wanted", "dtype"),
    [
        ("1;2;3;4", "int", (2, 2), [[1, 2], [3, 4]], np.int32),
        ("1,2,3", "float", (3,), [1, 2, 3], np.float32),
        ("1.000000;2.000000", "double", (2,), [1, 2], np.float64),
        ("{1,2}", "double", (2,), [1, 2], np.float64),
        ("{{1,2},{3,4}}", "float", (4,), [1, 2, 3, 4], np.float32),
        ("3.000000", "int", (), 3, np.int32),
        ("2.5f", "float", (), 2.5, np.float32),
        (" -7 ; +8 ", "int", (2,), [-7, 8], np.int32),
        ("1e-3;.5;1.", "double", (3,), [1e-3, 0.5, 1.0], np.float64),
        ("inf;-inf", "double", (2,), [np.inf, -np.inf], np.float64),
        ("1;true;TRUE;True;0;false", "bool", (6,), [1, 1, 1, 1, 0, 0], bool),
        ("", "float", (2, 3), np.zeros((2, 3)), np.float32),
        ("", "bool", (2,), [False, False], bool),
        ("", "double", (0, 3), np.zeros((0, 3)), np.float64),
        ("9223372036854775807", "DT_INT64", (1,), [2**63 - 1], np.int64),
        ("1.00390625001", "DT_BFLOAT16", (1,), [1.0078125], ml_dtypes.bfloat16),
    ],
)
def test_typed_arrays(text: str, type: str, shape: tuple, wanted: object, dtype: object) -> None:
    same(typed_array(text, type, shape), wanted, dtype)


def test_strings_are_split_at_semicolons_only_and_not_trimmed() -> None:
    assert typed_array("a, b; c", "string", (2,)).tolist() == ["a, b", " c"]
    assert typed_array("{0}", "string", ()).item() == "{0}"  # braces are kept
    assert typed_array("", "string", (2,)).tolist() == ["", ""]


@pytest.mark.parametrize(
    ("text", "type", "shape", "words"),
    [
        ("1;2;3", "int", (2,), "needs 2 items, got 3"),
        ("1;2;3", "int", (2, 2), "needs 4 items, got 3"),
        ("1;;3", "int", (3,), "expected a number, got ''"),
        ("2.5", "int", (), "expected a whole number"),
        ("1e3", "int", (), "expected a whole number"),
        ("12abc", "float", (), "expected a number, got '12abc'"),
        ("2147483648", "int", (), "does not fit in int32"),
        ("1e39", "float", (), "does not fit in float32"),
        ("1e309", "double", (), "does not fit in float64"),
        ("yes", "bool", (), "expected one of 1, true"),
        ("1", "complex", (), "one of string, int, float, double, bool"),
        ("", "float", (1 << 40, 1 << 40), "elements; at most"),
        ("", "float", (0, 1 << 62, 1 << 62), "elements; at most"),
        ("", "float", (-1,), "sizes of an array are 0 or more"),
        ("", "float", (1,) * 40, "at most 32 dimensions"),
        ("1;" * (1 << 18), "int", ((1 << 18) + 1,), "at most 262144 items"),
        ("{}", "int", (1,), "needs 1 items, got 0"),
    ],
)
def test_typed_arrays_that_are_refused(text: str, type: str, shape: tuple, words: str) -> None:
    with pytest.raises(ArgumentError, match="(?s)" + words.replace("[", r"\[")) as caught:
        typed_array(text, type, shape)
    assert "\n" not in str(caught.value)


# T2, literals


@pytest.mark.parametrize(
    ("text", "wanted", "dtype"),
    [
        ("{{1,2},{3,4}}", [[1, 2], [3, 4]], np.int32),
        ("{100}", [100], np.int32),
        ("99", 99, np.int32),
        ("79 ", 79, np.int32),
        ("0.5f", 0.5, np.float32),
        ("0.1", 0.1, np.float64),
        ("0.1f", 0.1, np.float32),
        ("1", 1, np.int32),
        ("{0,1}", [0, 1], np.int32),
        ("true", 1, np.float64),
        ("false", 0, np.float32),
        ("TRUE", 1, np.float64),
        ("{true,false}", [1, 0], np.float32),
        ("1e3", 1000, np.float64),
        ("1E3", 1000, np.float64),
        ("-1", -1, np.int32),
        ("{1,2;}", [1, 2], np.int32),
        ("a1b", 1, np.int32),
        ("{}", [], np.int32),
        ("{{},{}}", [[], []], np.int32),
        (" { {1 , 2},\r\n {3 , 4} } ", [[1, 2], [3, 4]], np.int32),
        ("{{{1.5f}}}", [[[1.5]]], np.float32),
        ("{nan,inf,-inf}", [np.nan, np.inf, -np.inf], np.float64),
        ("{nanf,1}", [np.nan, 1], np.float32),
    ],
)
def test_literals(text: str, wanted: object, dtype: object) -> None:
    same(parse_literal(text), wanted, dtype)


def test_a_dtype_that_is_given_wins_over_characters() -> None:
    same(parse_literal("{1,2}", DTYPES["DT_DOUBLE"]), [1, 2], np.float64)
    same(parse_literal("3.0", DTYPES["DT_INT32"]), 3, np.int32)
    same(parse_literal("{true,false,1}", DTYPES["DT_BOOL"]), [True, False, True], bool)
    assert parse_literal('{"a","b c"}').tolist() == ["a", "b c"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an empty text"),
        (" ", "an empty text"),
        ("{1;2}", "expected a number, got '1;2'"),
        ("{1 2}", "expected a number, got '1 2'"),
        ("{{1,2},{3}}", "equally long and deep"),
        ("{{1,2},3}", "equally long and deep"),
        ("{1,{2}}", "equally long and deep"),
        ("{{{1}},{2}}", "equally long and deep"),
        ("1,2", "several items need braces"),
        ("{1}{2}", "a list begins where none can"),
        ("x{1}", "a list begins where none can"),
        ("{1}x", "something stands behind a list"),
        ("{1", "a brace is not closed"),
        ("1}", "several items need braces"),
        ("{1,}", "expected a number, got ''"),
        ("abc", "expected a number"),
        ("1-2", "expected a number"),
        ("1j", "complex numbers"),
        ("2J", "complex numbers"),
        ("2147483648", "does not fit in int32"),
        ("{" * 33 + "1" + "}" * 33, "nested more than 32 deep"),
        ('{"a}', "expected a text such as"),
    ],
)
def test_literals_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_literal(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    hnp.arrays(
        st.sampled_from([np.int32, np.float32, np.float64]),
        hnp.array_shapes(min_dims=0, max_dims=3, max_side=3),
    )
)
@settings(max_examples=100, deadline=None)
def test_literals_come_back(array: np.ndarray) -> None:
    got = parse_literal(literal_text(array))
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "DT_STRING"])
def test_literals_of_every_dtype_come_back(name: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(DTYPES[name])
    same(parse_literal(literal_text(array), DTYPES[name]), array, DTYPES[name])


def test_literal_texts() -> None:
    assert literal_text(np.float32(3.4025002e38)) == "3.4025002e+38f"  # 3.403e+38 is too large
    assert literal_text(np.array(["a", "b c"], object)) == '{"a","b c"}'
    assert literal_text(np.float64(1)) == "1.0"
    assert literal_text(np.zeros((2, 0), np.int32)) == "{{},{}}"
    for array in (np.zeros((0, 2)), np.array(['"'], object)):
        with pytest.raises(ArgumentError):
            literal_text(array)


# T3, lists of literals


def test_lists_of_literals() -> None:
    assert [each.tolist() for each in literal_list("{1,2},{3,4}")] == [[1, 2], [3, 4]]
    assert [each.tolist() for each in literal_list("{1,2};{3,4};")] == [[1, 2], [3, 4]]
    assert [each.item() for each in literal_list("1;2.5")] == [1, 2.5]
    assert [each.dtype.name for each in literal_list("1,2.5,1f")] == ["int32", "float64", "float32"]
    assert literal_list("") == []
    with pytest.raises(ArgumentError, match="an empty text"):
        literal_list("1,,2")


# Nothing takes long, and nothing but an ArgumentError comes out.

READERS = (
    parse_literal,
    literal_list,
    settings_of.attributes,
    settings_of.shape,
    settings_of.bracket_shape,
    settings_of.ints,
    settings_of.dtype,
    settings_of.padding,
    lambda text: typed_array(text, "int", (2,)),
    lambda text: typed_array(text, "double", ()),
    lambda text: typed_array(text, "bool", (1,)),
    lambda text: typed_array(text, "string", (1,)),
)


@given(st.text(alphabet="{}[],;=0123456789.+-eEfjtrun? \n\"'\\xX", max_size=30))
@settings(max_examples=300, deadline=None)
def test_random_texts_are_read_or_refused(text: str) -> None:
    for reader in READERS:
        try:
            reader(text)
        except ArgumentError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 1_000_000,
        "1" * 1_000_000,
        "1" * 1_000_000 + "x",
        "{" + "1," * 262_000 + "1}",
        "{" + "{1}," * 262_000 + "{1}}",
        ";" * 5_000_000,
        "=" * 1_000_000,
        "[" * 1_000_000 + "]" * 1_000_000,
        " " * 5_000_000 + "x",
        "a_=1;" * 200_000,
        "-" * 1_000_000,
        "0." + "0" * 1_000_000,
    ],
    ids=range(12),
)
def test_long_texts_do_not_take_long(text: str) -> None:
    for reader in READERS:
        begin = time.process_time()
        try:
            reader(text)
        except ArgumentError as error:
            assert len(str(error)) < 1000
        assert time.process_time() - begin < 4  # the slowest takes a second


def test_bounds_are_what_the_messages_say() -> None:
    assert tensors_of.elements((1 << 14, 1 << 14)) == 1 << 28
    with pytest.raises(ArgumentError):
        tensors_of.elements((1 << 14, (1 << 14) + 1))
