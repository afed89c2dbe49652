"""Values no sane caller passes, made fresh for each call: wrong, huge, lying, raising, changing, endless."""

from __future__ import annotations

import array
import ctypes
import datetime
import decimal
import fractions
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np


class Mine(Exception):
    """What a caller's own object raises; it may come out of any call, unchanged."""


def _raise(*_: Any, **__: Any) -> Any:
    raise Mine


def raising(*names: str, base: type = object) -> Any:
    """Return an instance whose methods of these names raise."""
    return type("Raising", (base,), dict.fromkeys(names, _raise))()


class Changing:
    """Answers something else each time."""

    def __init__(self, *answers: Any) -> None:
        self._answers = itertools.cycle(answers)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return next(self._answers)

    def __len__(self) -> int:
        return next(self._answers)

    def __index__(self) -> int:
        return next(self._answers)


class Liar(Sequence):  # type: ignore[type-arg]
    """A sequence whose length is not the number of its elements."""

    def __init__(self, length: int, elements: Any) -> None:
        self._length, self._elements = length, elements

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return 1

    def __iter__(self) -> Any:
        return iter(self._elements)


class EndlessList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return itertools.repeat(1)

    def __len__(self) -> int:
        return 4


class OddInt(int):
    """Compares, counts and hashes as it likes."""

    def _yes(self, *_: Any) -> Any:
        return True

    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = __ne__ = _yes
    __hash__ = _raise
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __floordiv__ = __neg__ = _raise
    __index__ = __int__ = __repr__ = _raise


class OddStr(str):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__

    def upper(self) -> str:
        return "SAME"

    def __str__(self) -> str:
        return "NHWC"


class EqualToAll:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("auto")


class OddArray(np.ndarray):  # type: ignore[type-arg]
    """A subclass that resists everything NumPy asks of it."""

    def __array_finalize__(self, other: Any) -> None:
        if other is not None and getattr(other, "angry", False):
            raise Mine
        self.angry = True

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise Mine

    def __array_function__(self, *_: Any, **__: Any) -> Any:
        raise Mine

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return (10**6,) * 4

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        return 1


def _odd_array() -> Any:
    return np.ones((1, 4, 4, 2), np.float32).view(OddArray)


class Interface:
    def __init__(self, **changes: Any) -> None:
        self.memory = np.ones((1, 4, 4, 2), np.float32)
        self.__array_interface__ = {**self.memory.__array_interface__, **changes}


def _recursive() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def _deep() -> list[Any]:
    deep: list[Any] = [1.0]
    for _ in range(2000):
        deep = [deep]
    return deep


_ONES = np.ones((1, 4, 4, 2), np.float32)

NUMBERS: list[Callable[[], Any]] = [
    lambda: 0, lambda: -1, lambda: 2, lambda: 3, lambda: 2**31 - 1, lambda: 2**31, lambda: 2**63, lambda: -(2**63),
    lambda: 10**50, lambda: 10**5000, lambda: True, lambda: 1.0, lambda: 1.5, lambda: float("nan"), lambda: 1e300,
    lambda: 1j, lambda: np.int64(2), lambda: np.uint64(2**64 - 1), lambda: np.int8(-128), lambda: np.float32(2),
    lambda: np.bool_(True), lambda: np.array(2), lambda: np.array([2]), lambda: np.datetime64("2020"),
    lambda: ml_dtypes.bfloat16(1), lambda: decimal.Decimal(2), lambda: fractions.Fraction(4, 2), lambda: OddInt(2),
    lambda: OddInt(-7), lambda: OddInt(10**6), lambda: Changing(1, 2, -3), lambda: Changing("x", None),
    lambda: raising("__index__"), lambda: raising("__int__", "__len__", "__float__", "__bool__"),
]  # fmt: skip

OBJECTS: list[Callable[[], Any]] = [
    lambda: None, object, lambda: "SAME", lambda: "valid", lambda: "EXPLICIT", lambda: "NCHW", lambda: "",
    lambda: "\0",
    lambda: "x" * 10**5, lambda: b"SAME", lambda: bytearray(8), lambda: memoryview(b"12345678"), dict, set, lambda: (),
    lambda: [1, 1], lambda: [1, 2, 1, 1], lambda: [[0, 0], [1, 1], [1, 1], [0, 0]], lambda: ((1, 0), (0, 2)),
    lambda: [[1]], lambda: range(4), lambda: range(10**9), lambda: range(-(10**30), 10**30), _recursive, _deep,
    lambda: Liar(4, [1, 1]), lambda: Liar(2, itertools.repeat(1)), lambda: Liar(-1, []), lambda: Liar(10**30, [1, 1]),
    EndlessList, lambda: [EndlessList(), EndlessList()], lambda: itertools.repeat(1), lambda: iter([1, 1]),
    lambda: OddStr("NHWC"), lambda: OddStr("rubbish"), lambda: OddStr("SAME"), EqualToAll,
    lambda: raising("__eq__", "__hash__", "__repr__"), lambda: raising("__iter__", "__len__", "__getitem__"),
    lambda: raising("__array__"), lambda: raising("__array__", "__dlpack__", "__buffer__"),
    lambda: raising("__dlpack__"),
    lambda: raising("__getattr__"), lambda: raising("__iter__", "__len__", base=list),
    lambda: raising("__eq__", base=str),
    lambda: raising("__repr__", "__str__"), lambda: type("T", (), {}), lambda: len, lambda: Ellipsis,
    lambda: NotImplemented,
    lambda: datetime.date(2020, 1, 1), lambda: float, lambda: np.float32, lambda: "f4,f8", lambda: np.dtype("O"),
    lambda: {"names": ["a"]}, lambda: {"winograd": "off"},
]  # fmt: skip

ARRAYS: list[Callable[[], Any]] = [
    lambda: _ONES, lambda: _ONES.astype(np.float64), lambda: _ONES.astype(np.float16), lambda: _ONES.astype(">f4"),
    lambda: _ONES.astype(ml_dtypes.bfloat16), lambda: _ONES.astype(np.int32), lambda: _ONES.astype(np.longdouble),
    lambda: _ONES.astype(ml_dtypes.float8_e4m3fn), lambda: _ONES.astype(complex), lambda: _ONES.astype(bool),
    lambda: _ONES.astype(object), lambda: _ONES.astype("U8"), lambda: _ONES.astype("S3"),
    lambda: _ONES.astype("M8[s]"),
    lambda: np.zeros((1, 4, 4, 2), "f4,i8"), lambda: np.zeros((1, 4, 4, 2), "V12"), lambda: np.array(1.0, np.float32),
    lambda: np.ones((1,) * 33 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else (1,) * 32, np.float32),
    lambda: np.ones((1,) * 32, np.float32), lambda: np.ones((0, 4, 4, 2), np.float32),
    lambda: np.ones((4,), np.float32),
    lambda: np.ones((1, 0, 4, 2), np.float32), lambda: np.ones((0, 2**30, 2**20, 2), np.float32),
    lambda: np.broadcast_to(np.float32(1), (1, 4, 4, 2)), lambda: np.broadcast_to(np.float32(1), (1, 2**20, 2**20, 2)),
    lambda: np.broadcast_to(np.float32(1), (2**40,)), lambda: np.broadcast_to(np.int64(1), (2**40,)),
    lambda: np.ma.masked_array(_ONES), lambda: np.matrix(np.ones((4, 2), np.float32)), _odd_array,
    lambda: _ONES[:, ::-1, ::-1], lambda: _ONES.transpose(3, 1, 2, 0),
    lambda: np.full((1, 4, 4, 2), np.nan, np.float32),
    lambda: np.full((1, 4, 4, 2), np.inf), lambda: np.full((1, 4, 4, 2), 10**30, object),
    lambda: np.lib.stride_tricks.as_strided(_ONES, (1, 2, 2, 2)),
    lambda: np.frombuffer(b"\1" * 129, np.float32, 32, 1),
    lambda: array.array("f", [1] * 4), lambda: (ctypes.c_float * 8)(), lambda: memoryview(_ONES),
    lambda: _ONES.tolist(),
    lambda: [[[[1.0, "a"]]]], lambda: [[1], [1, 2]], lambda: [[[[10**400]]]], lambda: [[[[True]]]],
    lambda: [[[[None]]]],
    lambda: [[[[OddInt(2)]]]], lambda: Changing(_ONES, _ONES[:, :2], None), lambda: Changing([1, 2]),
    lambda: Changing(7),
    lambda: Interface(shape=(1, 4, -4, 2)), lambda: Interface(typestr="<f3"), lambda: Interface(data=None),
    lambda: Interface(strides=(1,)), lambda: Interface(version="x"), lambda: Interface(shape=(OddInt(1),)),
]  # fmt: skip

EVERYTHING = NUMBERS + OBJECTS + ARRAYS
