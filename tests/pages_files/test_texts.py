"""The texts on pins: every statement on the grammars T1 to T8 is a case."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from convgrad._errors import ArgumentError
from convgrad._pages import setting_texts as settings_of
from convgrad._pages import tensor_texts as tensors_of
from convgrad._pages.setting_texts import DTYPES
from convgrad._pages.tensor_texts import literal, literal_list, literal_text, typed_array


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
    same(literal(text), wanted, dtype)


def test_a_dtype_that_is_given_wins_over_characters() -> None:
    same(literal("{1,2}", DTYPES["DT_DOUBLE"]), [1, 2], np.float64)
    same(literal("3.0", DTYPES["DT_INT32"]), 3, np.int32)
    same(literal("{true,false,1}", DTYPES["DT_BOOL"]), [True, False, True], bool)
    assert literal('{"a","b c"}').tolist() == ["a", "b c"]


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
        literal(text)
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
    got = literal(literal_text(array))
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "DT_STRING"])
def test_literals_of_every_dtype_come_back(name: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(DTYPES[name])
    same(literal(literal_text(array), DTYPES[name]), array, DTYPES[name])


def test_literal_texts() -> None:
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


# T4, attributes


def test_attributes() -> None:
    read = settings_of.attributes
    assert read("name_ = value;name2_=value") == ({"name_": "value", "name2_": "value"}, [])
    assert read("a_ = 1;\r\n b_ = x y ;") == ({"a_": "1", "b_": "xy"}, [])
    assert read("") == ({}, [])
    assert read("container_ =;shared_name_ =;") == ({}, [])
    assert read("a_=1;a_=2") == ({"a_": "1"}, ["attribute `a_` is repeated; the first one counts"])
    assert read("a_=;a_=2")[0] == {}
    assert read("b_=1", ["a_"]) == ({}, ["unknown attribute `b_` is ignored"])
    assert "did you mean `data_format_`?" in read("data_fromat_=1", ["data_format_"])[1][0]


def test_misspelt_attributes_that_pages_carry() -> None:
    read = settings_of.attributes
    given, notes = read("dialtions_={1,1,2,2};SharedName_=v", ["dilations_", "shared_name_"])
    assert given == {"dilations_": "{1,1,2,2}", "shared_name_": "v"}
    assert len(notes) == 2
    given, notes = read("dialtions_={1,1,2,2};dilations_={1,1,1,1}", ["dilations_"])
    assert given == {"dilations_": "{1,1,1,1}"}
    assert notes == ["attribute `dialtions_` is ignored: `dilations_` is there"]


@pytest.mark.parametrize("text", ["dilations_={1;1;1;1}", "data_format_ NHWC", "=1", "a_=b=c"])
def test_attributes_that_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="attribute"):
        settings_of.attributes(text)


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("bool", "true", True),
        ("bool", "TRUE", True),
        ("bool", "1", True),
        ("bool", "false", False),
        ("bool", "0", False),
        ("int", "-9223372036854775808", -(2**63)),
        ("ints", "{1,2}", (1, 2)),
        ("float", "0.25", 0.25),
        ("float", "1e-3f", 0.001),
        ("string", "C:\\\\a", "C:\\a"),
        ("type", "DT_HALF", np.dtype(np.float16)),
        ("shape", "[2][?]", (2, -1)),
    ],
)
def test_attribute_values(kind: str, text: str, wanted: object) -> None:
    assert settings_of.attribute_value(kind, text) == wanted


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bool", "True"),
        ("bool", "yes"),
        ("int", "1.5"),
        ("int", "12abc"),
        ("int", "9223372036854775808"),
        ("int", "9" * 5000),
        ("float", "nan"),
        ("float", "1e999999"),
        ("float", "x"),
        ("ints", "{1,{2}}"),
        ("type", "float"),
        ("shape", "{-2}"),
        ("complex", "1"),
    ],
)
def test_attribute_values_that_are_refused(kind: str, text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        settings_of.attribute_value(kind, text)
    assert len(str(caught.value)) < 400


def test_attributes_come_back() -> None:
    values = {
        "data_format_": ("string", "NCHW"),
        "dilations_": ("ints", (1, 1, 2, 2)),
        "seed_": ("int", -5),
        "rate_": ("float", 1e-5),
        "use_": ("bool", True),
        "not_": ("bool", False),
        "T_": ("type", np.dtype(np.int64)),
        "path_": ("string", "C:\\a\\b"),
    }
    text = settings_of.attributes_text({name: value for name, (_, value) in values.items()})
    given, notes = settings_of.attributes(text)
    assert notes == []
    assert {name: settings_of.attribute_value(values[name][0], given[name]) for name in given} == {
        name: value for name, (_, value) in values.items()
    }
    for bad in ("a b", "a;b", "", "a=b", float("nan"), None):
        with pytest.raises(ArgumentError, match="attribute `x_`"):
            settings_of.attributes_text({"x_": bad})


# T5 to T8


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{2,3}", (2, 3)),
        ("[2][3]", (2, 3)),
        ("2;3", (2, 3)),
        ("{}", ()),
        ("", ()),
        ("[]", ()),
        ("{7}", (7,)),
        (" [2] [3] ", (2, 3)),
        ("[2, 3]", (2, 3)),
        ("{0}", (0,)),
    ],
)
def test_shapes(text: str, wanted: tuple) -> None:
    assert settings_of.shape(text) == wanted
    assert settings_of.shape(settings_of.shape_text(wanted)) == wanted


@pytest.mark.parametrize(
    "text", ["{-1}", "{?}", "[2][", "[a]", "{2,,3}", "[[2]]", "{1" + ",1" * 40 + "}", "{{2,3}}"]
)
def test_shapes_that_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="shape"):
        settings_of.shape(text)


def test_shapes_with_unknown_sizes() -> None:
    assert settings_of.shape("{-1,3}", unknown=True) == (-1, 3)
    assert settings_of.shape("[?][3]", unknown=True) == (-1, 3)
    with pytest.raises(ArgumentError, match=r"or \? where"):
        settings_of.shape("{-2}", unknown=True)


def test_shapes_in_braces_that_enuspace_misreads_have_a_note() -> None:
    assert settings_of.bracket_shape("[2][3]") == ((2, 3), [])
    assert settings_of.bracket_shape("{5}") == ((5,), [])
    sizes, notes = settings_of.bracket_shape("{2,3}")
    assert sizes == (2, 3)
    assert "[2,23]" in notes[0]


def test_lists_of_integers() -> None:
    for text in ("{1,2,2,1}", "1;2;2;1", "1,2,2,1", " { 1 , 2 , 2 , 1 } "):
        assert settings_of.ints(text) == (1, 2, 2, 1)
    assert settings_of.ints(settings_of.ints_text((-1, 5))) == (-1, 5)
    for text in ("{1,2", "a", "1;;2", "1.5", "{1}{2}"):
        with pytest.raises(ArgumentError):
            settings_of.ints(text)


def test_dtypes() -> None:
    for name, dtype in DTYPES.items():
        assert settings_of.dtype(name) == dtype
        assert settings_of.dtype_name(dtype) == name
    for text in ("DT_float", "float", "", "DT_FLOAT "):
        with pytest.raises(ArgumentError, match="one of DT_FLOAT, DT_DOUBLE"):
            settings_of.dtype(text)
    with pytest.raises(ArgumentError):
        settings_of.dtype_name(np.dtype(np.complex64))


def test_padding() -> None:
    assert [settings_of.padding(text) for text in ("SAME", "VALID")] == ["SAME", "VALID"]
    for text in ("same", " SAME", "VALID ", "", "EXPLICIT"):
        with pytest.raises(ArgumentError, match="SAME or VALID"):
            settings_of.padding(text)
    assert settings_of.padding("EXPLICIT", ("SAME", "VALID", "EXPLICIT")) == "EXPLICIT"


def test_backslashes_are_collapsed() -> None:
    assert settings_of.unescaped("C:\\\\Users\\\\x") == "C:\\Users\\x"


# Nothing takes long, and nothing but an ArgumentError comes out.

READERS = (
    literal,
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
