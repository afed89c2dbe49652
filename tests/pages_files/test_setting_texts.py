"""The texts on pins that set something: every statement on the grammars T4 to T8 is a case."""

from __future__ import annotations

import numpy as np
import pytest

from convgrad._apps.pages import setting_texts as settings_of
from convgrad._apps.pages.setting_texts import DTYPES
from convgrad._base.errors import ArgumentError

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
